"""Sums over candidate pairs agree with dense sums over the same pairs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import reference
from otgraph._kernels import restricted as kernels

finite = st.floats(-50.0, 50.0, allow_subnormal=False)


@pytest.fixture
def rows(rng):
    """Random candidates as CSR arrays, and the dense cost with the rest forbidden."""
    n = 40
    C = np.triu(rng.uniform(size=(n, n)), 1)
    C[rng.uniform(size=(n, n)) < 0.7] = 0.0
    C[:, 7] = C[7] = 0.0  # a point without candidates
    matrix = sp.csr_matrix(C + C.T)
    dense = np.where(matrix.toarray() > 0, matrix.toarray(), np.inf)
    diagonal = np.where(np.arange(n) % 2, 0.3, np.inf)
    np.fill_diagonal(dense, diagonal)
    u = rng.normal(0.3, 0.2, size=n)
    return matrix.indptr, matrix.indices, matrix.data, diagonal, u, dense


def test_evaluate(rows):
    indptr, indices, cost, diagonal, u, C = rows
    sums, squares = np.full(len(u), np.nan), np.full(len(u), np.nan)
    kernels.evaluate(indptr, indices, cost, diagonal, u, 0, 25, sums, squares)
    assert np.isnan(sums[25:]).all()  # only its own rows
    kernels.evaluate(indptr, indices, cost, diagonal, u, 25, len(u), sums, squares)
    np.testing.assert_allclose(sums, reference.row_sums(C, u), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        squares, (reference.excess(C, u) ** 2).sum(axis=1), rtol=1e-13, atol=1e-15
    )


def test_active_pairs_are_those_above_the_cost(rows):
    indptr, indices, cost, _, u, C = rows
    n = len(u)
    counts = np.empty(n, dtype=np.int64)
    kernels.count_active(indptr, indices, cost, u, 0, n, counts)
    above = u[:, None] + u > C
    np.fill_diagonal(above, False)
    np.testing.assert_array_equal(counts, above.sum(axis=1))
    active = np.concatenate(([0], np.cumsum(counts)))
    columns, again = np.empty(active[-1], dtype=np.int32), np.empty(active[-1], dtype=np.int32)
    costs = np.empty(active[-1])
    kernels.select_active(indptr, indices, cost, u, 0, n, active, columns)
    kernels.select_active_costs(indptr, indices, cost, u, 0, n, active, again, costs)
    np.testing.assert_array_equal(columns, np.nonzero(above)[1])
    np.testing.assert_array_equal(again, columns)
    np.testing.assert_array_equal(costs, C[above])


def test_hessian_product(rows, rng):
    _, _, _, _, u, C = rows
    H = reference.hessian(C, u)
    sigma = sp.csr_matrix(H - np.diag(np.diag(H)))
    v, out = rng.normal(size=len(u)), np.empty(len(u))
    kernels.hessian_product(sigma.indptr, sigma.indices, np.diag(H).copy(), v, 0, len(u), out)
    np.testing.assert_allclose(out, H @ v, rtol=1e-13, atol=1e-14)


def test_plan_product(rows, rng):
    _, _, _, _, u, C = rows
    W = reference.plan(C, u, 0.5)
    off = sp.csr_matrix(W - np.diag(np.diag(W)))
    v, out = rng.normal(size=len(u)), np.empty(len(u))
    diagonal = W.sum(axis=1) + np.diag(W)
    kernels.plan_product(off.indptr, off.indices, off.data, diagonal, v, 0, len(u), out)
    np.testing.assert_allclose(out, (np.diag(W.sum(axis=1)) + W) @ v, rtol=1e-13, atol=1e-14)


@given(st.lists(finite, min_size=1, max_size=12), st.floats(1e-6, 1e3))
def test_solve_row(costs, target):
    """sum_j (t - c_j)_+ reaches the target: one equation, one root."""
    costs = np.sort(np.array(costs))
    t = kernels.solve_row(costs, target)
    assert t == pytest.approx(reference.solve_row(costs, target), rel=1e-12, abs=1e-12)
    rounding = len(costs) * (np.abs(costs).max() + target) * 1e-15
    assert np.maximum(t - costs, 0.0).sum() == pytest.approx(target, rel=1e-12, abs=rounding)


def test_solve_row_ignores_forbidden_entries():
    assert kernels.solve_row(np.array([1.0, 2.0, np.inf]), 2.0) == 2.5
    assert kernels.solve_row(np.array([np.inf]), 2.0) == np.inf


def test_start_rows(rows, rng):
    indptr, _, cost, diagonal, u, C = rows
    target, out = rng.uniform(0.1, 3.0, size=len(u)), np.empty(len(u))
    kernels.start_rows(indptr, cost, diagonal, target, 0, len(u), out)
    for i in range(len(u)):
        assert 2.0 * out[i] == pytest.approx(reference.solve_row(C[i], target[i]), rel=1e-12)


def test_row_excess(rows):
    indptr, _, cost, _, u, C = rows
    out = np.empty(len(u))
    kernels.row_excess(indptr, cost, 3, 0, len(u), out)
    for i in range(len(u)):
        near = np.sort(np.delete(C[i], i))
        near = near[np.isfinite(near)]
        last = min(3, len(near) - 1)
        expected = (near[last] - near[:last]).sum() if len(near) else 0.0
        assert out[i] == pytest.approx(expected, rel=1e-13)


def test_scaled_plan_values(rows, rng):
    _, _, _, _, u, C = rows
    np.fill_diagonal(C, np.inf)
    W = reference.plan(C, u, 0.5)
    w = rng.uniform(-0.1, 0.1, size=len(u))
    scaled = W * (1.0 + w[:, None] + w)
    used = W > 0
    linear, square = np.empty(len(u)), np.empty(len(u))
    off = sp.csr_matrix(W)
    kernels.scaled_plan_values(
        off.indptr, off.indices, off.data, C[used], w, 0, len(u), linear, square
    )
    np.testing.assert_allclose(linear, (np.where(used, C, 0.0) * scaled).sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(square, (scaled**2).sum(axis=1), rtol=1e-13)
