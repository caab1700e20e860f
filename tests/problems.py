"""Point clouds that have caused trouble somewhere, by name, and costs made from them."""

from __future__ import annotations

from functools import partial

import numpy as np

from otgraph._parallel import Workers
from otgraph.costs import RestrictedProblem, as_cost, check_input
from otgraph.costs.pairs import symmetric_pairs
from otgraph.costs.sizes import SearchSizes
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.transport import TransportProblem

# Few points take the ways of many: they are divided into cells, and reordered.
CELLS = SearchSizes(fewest_cell_points=100, block_rows=128)
# An approximate search in so few cells that it misses many pairs.
FEW_CELLS = SearchSizes(fewest_cell_points=100, neighbor_cells=3, nearest_cells=3, screen_cells=3)


def random(rng, n):
    return rng.normal(size=(n, 4))


def clustered(rng, n):
    return 20.0 * rng.normal(size=(8, 3))[rng.integers(8, size=n)] + rng.normal(size=(n, 3))


def duplicates(rng, n):
    """Every point about four times, exactly."""
    return rng.normal(size=(n // 4 + 1, 3))[rng.integers(n // 4 + 1, size=n)]


def offset(rng, n):
    return 1e6 + rng.normal(size=(n, 3))


def outlier(rng, n):
    X = rng.normal(size=(n, 3))
    X[n // 3] = 1e6
    return X


def far_apart(rng, n):
    """Two clusters a million of their own radii apart."""
    X = rng.normal(size=(n, 3))
    X[: n // 2, 0] += 1e6
    return X


def many_dimensions(rng, n):
    return rng.normal(size=(n, 120))


def line(rng, n):
    """One coordinate that matters, one that is constant."""
    return np.column_stack([rng.uniform(size=n), np.full(n, 3.0)])


def heavy_tails(rng, n):
    return rng.standard_t(1.2, size=(n, 2))


def grid(rng, n):
    """Integer points: distances tie all over."""
    side = int(np.ceil(np.sqrt(n)))
    return np.stack(np.meshgrid(*2 * [np.arange(side, dtype=float)]), -1).reshape(-1, 2)[:n]


CLOUDS = {
    function.__name__: function
    for function in (
        random, clustered, duplicates, offset, outlier, far_apart, many_dimensions, line,
        heavy_tails, grid,
    )
}  # fmt: skip


def cost_of(X, *, metric="euclidean", n_jobs=1, **options):
    """The cost object of what a user would hand over."""
    return as_cost(check_input(X, metric), metric=metric, workers=Workers(n_jobs), **options)


def graph_with(sizes, X, eps=None, *, mean_degree=None, mass=None, u0=None, n_jobs=-1, **options):
    """The quadratic graph of a search with these sizes."""
    problem = TransportProblem(
        X, QuadraticOptions(**options), mass=mass, n_jobs=n_jobs,
        make_cost=partial(as_cost, sizes=sizes),
    )  # fmt: skip
    solution, found = problem.solve_goal(eps, mean_degree, u0)
    return problem.graph(solution, **found)


def as_mask(pairs, order=None):
    """Stored pairs as a symmetric mask, in the numbering of the caller; checks the storage."""
    n = pairs.n
    rows = np.repeat(np.arange(n), np.diff(pairs.indptr))
    columns = pairs.indices.astype(np.int64)
    assert np.all(np.diff(rows * n + columns) > 0)  # sorted, nothing twice
    mask = np.zeros((n, n), dtype=bool)
    mask[rows, columns] = True
    assert np.array_equal(mask, mask.T)
    assert not mask.diagonal().any()
    if order is None:
        return mask
    inverse = np.argsort(order)
    return mask[np.ix_(inverse, inverse)]


def restricted(C, n_jobs=1):
    """The problem on the finite entries of a cost matrix."""
    i, j = np.nonzero(np.triu(np.isfinite(C), 1))
    chunk = (i.astype(np.int32), j.astype(np.int32), C[i, j])
    workers = Workers(n_jobs)
    return RestrictedProblem(symmetric_pairs(len(C), [chunk], workers), np.diag(C).copy(), workers)
