"""Systems without the trees that hang on the rest have the same solution, found sooner."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph._parallel import Workers
from otgraph.costs import branches as module
from otgraph.costs.local import _OwnCurvature
from otgraph.costs.restricted import Hessian, SharedRows
from otgraph.solvers.cg import conjugate_gradients

N = 300


@pytest.fixture(autouse=True)
def at_any_size(monkeypatch):
    monkeypatch.setattr(module, "FEWEST_ROWS", 0)


def hessian_of(edges, n=N, loops=0.0):
    i, j = np.array(edges).T
    pattern = sp.csr_matrix((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(n, n))
    degrees = np.diff(pattern.indptr) + loops
    starts, ends = pattern.indptr[:-1].astype(np.int64), pattern.indptr[1:].astype(np.int64)
    rows = SharedRows([(0, n)], Workers(1))
    return Hessian(starts, ends, pattern.indices, degrees, degrees + loops, rows)


def random_tree(rng, first, last, root):
    """Edges from each of some points to an earlier one of them, or to the root."""
    return [(k, int(rng.choice([root, *range(first, k)]))) for k in range(first, last)]


def with_trees(rng):
    """A graph in which 100 points have several neighbors, and trees that hang on it."""
    core = [(k, (k + step) % 100) for k in range(100) for step in (1, 7, 31)]
    trees = [edge for a in range(100, N, 20) for edge in random_tree(rng, a, a + 20, a % 97)]
    order = rng.permutation(N)
    return [(order[i], order[j]) for i, j in core + trees], order


def solved(hessian, shift, rhs, branches, rtol=1e-10):
    return conjugate_gradients(
        hessian.shifted(shift), hessian.diagonal + shift, rhs,
        rtol=rtol, max_products=2000, branches=branches,
    )  # fmt: skip


def dense(hessian, shift):
    n = len(shift)
    return np.column_stack([hessian.product(row) for row in np.eye(n)]) + np.diag(shift)


def test_only_trees_are_taken_out(rng):
    edges, order = with_trees(rng)
    branches = hessian_of(edges).branches(np.full(N, 0.01))
    np.testing.assert_array_equal(np.sort(branches.rows), np.sort(order[100:]))
    assert {frozenset(pair) for pair in zip(branches.rows, branches.partners, strict=True)} <= {
        frozenset(edge) for edge in edges
    }


@pytest.mark.parametrize("ridge", [1e-2, 1e-9])
def test_the_solution_is_that_of_the_whole_system(rng, ridge):
    hessian, rhs = hessian_of(with_trees(rng)[0]), rng.normal(size=N)
    shift = ridge * np.maximum(hessian.diagonal, 1.0)
    x, count = solved(hessian, shift, rhs, hessian.branches(shift))
    left = dense(hessian, shift) @ x - rhs
    rounding = 1e-14 * np.linalg.norm(x)  # of a graph that is bipartite, and so nearly singular
    assert np.linalg.norm(left) <= 1.1e-10 * np.linalg.norm(rhs) + rounding
    assert count < 0.7 * solved(hessian, shift, rhs, None)[1]


def test_trees_that_hang_on_nothing_are_left(rng):
    """They are bipartite components: a system for them is singular, but for the shift."""
    assert hessian_of(random_tree(rng, 1, N, 0)).branches(np.full(N, 1e-3)) is None
    edges, order = with_trees(rng)
    apart = [(N + k, N + k + 1) for k in range(5)]
    shift = np.full(N + 6, 0.01)
    hessian = hessian_of(edges + apart, N + 6)
    branches = hessian.branches(shift)
    np.testing.assert_array_equal(np.sort(branches.rows), np.sort(order[100:]))
    np.testing.assert_array_equal(branches.diagonal[N:], hessian.diagonal[N:] + 0.01)


def test_hubs_no_longer_slow_it_down(rng):
    """Points on a ring, some of them with partners that have nobody else."""
    ring = [(k, (k + 1) % 200) for k in range(200)] + [(k, (k + 2) % 200) for k in range(200)]
    hessian = hessian_of(ring + [(k, int(k * k % 7)) for k in range(200, N)])
    rhs, shift = rng.normal(size=N), np.full(N, 1e-6)
    few = solved(hessian, shift, rhs, hessian.branches(shift), rtol=1e-2)[1]
    assert 2 * few < solved(hessian, shift, rhs, None, rtol=1e-2)[1]


def test_fixed_points_keep_what_hangs_on_them(rng):
    """The last points do not move: rows whose only partner is one of these are no branches."""
    whole = hessian_of(with_trees(rng)[0])
    own = 200
    keep = whole.ends[:own]
    rows = SharedRows([(0, own)], Workers(1))
    part = Hessian(whole.starts[:own], keep, whole.indices, whole.degrees[:own],
                   whole.diagonal[:own], rows)  # fmt: skip
    hessian = _OwnCurvature(part, part.degrees, part.diagonal, np.zeros(N - own))
    shift, rhs = np.full(own, 0.01), rng.normal(size=own)
    branches = hessian.branches(shift)
    assert len(branches.rows)
    assert max(branches.partners) < own
    x, _ = solved(hessian, shift, rhs, branches)
    np.testing.assert_allclose(dense(hessian, shift) @ x, rhs, atol=1e-8)


def test_points_that_keep_mass_are_no_branches():
    assert hessian_of([(0, 1), (1, 2)], 3, loops=1.0).branches(np.ones(3)) is None


def test_small_systems_are_solved_as_they_are(monkeypatch):
    monkeypatch.setattr(module, "FEWEST_ROWS", 3)
    assert hessian_of([(0, 1), (1, 2)], 3).branches(np.ones(3)) is None
