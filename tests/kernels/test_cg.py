"""Dot products and updates of conjugate gradients."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph._kernels import cg as kernels
from otgraph._kernels.newton import deviations
from otgraph._parallel import Workers
from otgraph.costs.restricted import Hessian, SharedRows
from otgraph.solvers.cg import conjugate_gradients


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


def test_vectors_in_blocks_give_the_same_bits_in_threads_and_in_one_call(rng):
    n = 2 * kernels.SUM_ROWS + 100
    places = np.arange(n, dtype=np.int32)
    indices = np.sort(np.stack([np.roll(places, s) for s in (-7, -1, 1, 7)], axis=1), axis=1)
    starts = 4 * np.arange(n)
    shift, rhs, weights = rng.uniform(0.1, 0.5, size=n), rng.normal(size=n), np.ones(n)
    degrees = np.full(n, 4.0)

    def hessian(rows):
        return Hessian(starts, starts + 4, indices.ravel(), degrees, degrees, rows)

    together = hessian(SharedRows([(0, n)], Workers(1))).solve(shift, rhs, weights, 1e-8, 100)
    for n_jobs in (1, 2):
        shared = hessian(SharedRows.of(n, Workers(n_jobs)))
        found = conjugate_gradients(
            shared.shifted(shift), degrees + shift, rhs,
            rtol=1e-8, max_products=100, weights=weights, run=shared.run,
        )  # fmt: skip
        np.testing.assert_array_equal(found[0], together[0])
        assert found[1] == together[1]
    left = rhs - shared.shifted(shift)(found[0])
    assert np.linalg.norm(left) < 1e-7 * np.linalg.norm(rhs)


def test_deviations(rng):
    sums, target = rng.uniform(0.5, 2.0, size=(2, 50))
    error, share = deviations(sums, target)
    assert error == np.max(np.abs(sums - target) / target)
    assert share == pytest.approx(np.abs(sums - target).sum() / target.sum())


def test_deviations_keep_nan(rng):
    sums, target = rng.uniform(0.5, 2.0, size=(2, 50))
    sums[20] = np.nan
    assert np.isnan(deviations(sums, target)).all()
