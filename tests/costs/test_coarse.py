"""Coarser systems are the matrix between groups, and make conjugate gradients fast."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph._kernels import aggregates as kernels
from otgraph._parallel import Workers
from otgraph.costs.coarse import Coarsening, Entries
from otgraph.costs.restricted import Hessian, SharedRows
from otgraph.solvers.cg import conjugate_gradients, flexible_gradients

SIDE = 60


def grid(side=SIDE, *, lonely=0):
    """The pattern of a square grid, which is bipartite, and points without neighbors."""
    line = sp.diags_array(np.ones(side - 1), offsets=1)
    line, one = line + line.T, sp.eye_array(side)
    return sp.csr_matrix(sp.block_diag([sp.kron(line, one) + sp.kron(one, line),
                                        sp.csr_matrix((lonely, lonely))]))  # fmt: skip


def hessian_of(pattern, n_jobs=1, block=None):
    degrees = np.diff(pattern.indptr).astype(float)
    starts, ends = (pattern.indptr[a:b].astype(np.int64) for a, b in ((0, -1), (1, None)))
    n = len(degrees)
    rows = SharedRows([(a, min(a + (block or n), n)) for a in range(0, n, block or n)],
                      Workers(n_jobs))  # fmt: skip
    return Hessian(starts, ends, pattern.indices, degrees, degrees, rows, bipartite=True)


def random_pattern(rng, n=80):
    upper = np.triu(rng.random((n, n)) < 0.06, 1)
    return sp.csr_matrix((upper | upper.T).astype(float))


def test_every_row_with_neighbors_is_in_a_group_of_its_own_component(rng):
    pattern = random_pattern(rng)
    hessian = hessian_of(pattern)
    codes = np.empty(80, dtype=np.int32)
    count = kernels.group_rows(hessian.starts, hessian.ends, hessian.indices, np.empty(0), codes)
    np.testing.assert_array_equal(codes == 0, hessian.degrees == 0)
    assert set(np.abs(codes[codes != 0])) == set(range(1, count + 1))
    _, component = sp.csgraph.connected_components(pattern)
    for k in range(1, count + 1):
        assert len(set(component[np.abs(codes) == k])) == 1


def test_coarse_systems_are_the_matrix_between_groups(rng):
    pattern = random_pattern(rng)
    hessian = hessian_of(pattern)
    diagonal = hessian.diagonal + rng.uniform(0.1, 1.0, size=80)
    coarse = Coarsening.of(Entries(hessian.starts, hessian.ends, hessian.indices), diagonal)
    A, codes = np.diag(diagonal) + pattern.toarray(), coarse.codes
    for level, (a, b) in enumerate(zip(coarse.firsts[:-1], coarse.firsts[1:], strict=True)):
        P = np.zeros((len(codes), b - a))
        used = np.flatnonzero(codes)
        P[used, np.abs(codes[used]) - 1 - a] = np.sign(codes[used])
        A = P.T @ A @ P
        entries = sp.csr_matrix(
            (coarse.values, coarse.indices, coarse.indptr), shape=(coarse.firsts[-1],) * 2
        ).toarray()
        found = np.diag(coarse.diagonal[a:b]) + entries[a:b, a:b]
        np.testing.assert_allclose(found, A, rtol=1e-12, atol=1e-12, err_msg=str(level))
        codes = coarse.group_codes[a:b]
    assert not codes.any()  # no two groups of the last level are connected


def solved(hessian, rhs, rtol=1e-8, ridge=1e-9):
    shift = ridge * np.maximum(hessian.diagonal, 1.0)
    return flexible_gradients(
        lambda v: hessian.product(v) + shift * v, hessian.multilevel(shift), rhs,
        np.zeros_like(rhs), rtol=rtol, max_products=500, weights=np.ones_like(rhs),
    )  # fmt: skip


def test_weak_entries_do_not_bring_rows_together():
    """Pairs with strong entries in a ring of weak ones: each is a group."""
    strong, n = np.arange(20) % 2 == 0, 20
    values = np.where(strong, 1.0, 0.1)
    ring = sp.csr_matrix((values, (np.arange(n), (np.arange(n) + 1) % n)), shape=(n, n))
    ring = sp.csr_matrix(ring + ring.T)
    starts, ends = (ring.indptr[a:b].astype(np.int64) for a, b in ((0, -1), (1, None)))
    coarse = Coarsening.of(Entries(starts, ends, ring.indices, ring.data), np.full(n, 1.1))
    np.testing.assert_array_equal(np.abs(coarse.codes), np.repeat(np.arange(10), 2) + 1)
    np.testing.assert_array_equal(coarse.codes[::2] + coarse.codes[1::2], 0)


def test_without_any_active_pair_the_diagonal_is_left(rng):
    hessian, rhs = hessian_of(sp.csr_matrix((5, 5))), rng.normal(size=5)
    x, _ = solved(hessian, rhs, ridge=0.5)
    np.testing.assert_allclose(x, rhs / 0.5)


@pytest.fixture
def rhs(rng):
    values = rng.normal(size=SIDE * SIDE)
    sign = (-1.0) ** np.add.outer(np.arange(SIDE), np.arange(SIDE)).ravel()
    return values - sign * (sign @ values) / len(values)  # in the range of the singular matrix


def test_few_products_solve_the_system_of_a_grid(rhs):
    hessian = hessian_of(grid())
    x, count = solved(hessian, rhs)
    left = hessian.product(x) + 1e-9 * hessian.diagonal * x - rhs
    assert np.linalg.norm(left) <= 1.1e-8 * np.linalg.norm(rhs)
    _, plain = conjugate_gradients(
        hessian.product, hessian.diagonal, rhs, rtol=1e-8, max_products=1000
    )
    assert count < 0.6 * plain


def test_products_hardly_depend_on_the_size(rng):
    counts = []
    for side in (30, 120):
        hessian, x = hessian_of(grid(side)), rng.normal(size=side * side)
        counts.append(solved(hessian, hessian.product(x))[1])
    assert counts[1] <= 1.5 * counts[0]  # plain conjugate gradients need four times as many


def test_points_without_partners_stay(rhs):
    hessian = hessian_of(grid(lonely=3))
    x, _ = solved(hessian, np.concatenate((rhs, np.zeros(3))))
    np.testing.assert_array_equal(x[-3:], 0.0)
    np.testing.assert_array_equal(x[:-3], solved(hessian_of(grid()), rhs)[0])


def test_threads_do_not_matter(rhs):
    one = solved(hessian_of(grid(), 1, 500), rhs)[0]
    np.testing.assert_array_equal(one, solved(hessian_of(grid(), 3, 500), rhs)[0])


def test_graphs_of_one_cloud_have_none():
    hessian = hessian_of(grid(4))
    own = Hessian(hessian.starts, hessian.ends, hessian.indices, hessian.degrees,
                  hessian.diagonal, hessian.rows)  # fmt: skip
    assert own.multilevel(np.ones(16)) is None
