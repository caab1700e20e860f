"""Point clouds that have caused trouble somewhere, by name, and costs made from them."""

from __future__ import annotations

import numpy as np

from otgraph._parallel import Workers
from otgraph.costs import as_cost, check_input


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
