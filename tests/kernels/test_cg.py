"""Dot products and updates of conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph._kernels import cg as kernels


def test_dot_and_updates(rng):
    r, M, p, q, x = rng.normal(size=(5, 30))
    M, weights = np.abs(M), rng.uniform(0.5, 2.0, size=30)
    z = np.empty(30)
    rz, rr = kernels.start_cg(r, M, weights, z)
    np.testing.assert_array_equal(z, r * M)
    assert rz == pytest.approx(r @ (M * r))
    assert rr == pytest.approx(r @ (weights * r))
    assert kernels.dot(p, q) == pytest.approx(p @ q)
    x_after, r_after = x + 0.3 * p, r - 0.3 * q
    rz, rr = kernels.advance_cg(0.3, p, q, M, weights, x, r, z)
    np.testing.assert_allclose(x, x_after, rtol=1e-15)
    np.testing.assert_allclose(r, r_after, rtol=1e-15)
    assert rz == pytest.approx(r_after @ (M * r_after))
    assert rr == pytest.approx(r_after @ (weights * r_after))
    p_after = z + 0.7 * p
    kernels.next_direction(0.7, z, p)
    np.testing.assert_allclose(p, p_after, rtol=1e-15)
