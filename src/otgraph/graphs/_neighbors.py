"""Exact nearest neighbors for the comparison graphs."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from otgraph._parallel import row_blocks
from otgraph._validation import check_count
from otgraph.graphs._cost_kinds import EuclideanCosts, MetricCosts
from otgraph.graphs._dense import BLOCK_ENTRIES

if TYPE_CHECKING:
    from otgraph.graphs._pair_costs import PairCosts
    from otgraph.typing import FloatArray, LongArray

# Distances that a matrix product gives within this many units of rounding of zero say nothing
# about the order of neighbors: these rows are searched again by subtraction.
NOISE_UNITS = 1e4


def check_neighbor_count(k: Any, name: str, available: int) -> int:
    """A number of neighbors, at most those that are there."""
    k = check_count(k, name)
    if k > available:
        warnings.warn(
            f"`{name}`={k} is more than the {available} possible neighbor(s); using {available}.",
            UserWarning,
            stacklevel=3,
        )
    return min(k, available)


def own_neighbors(costs: PairCosts, k: int, n_jobs: int) -> tuple[LongArray, FloatArray]:
    """Indices and costs of the k points nearest to every point, itself left out by index.

    By index, because among duplicates a point need not come first in its own list, nor be
    in it at all. Rows are ordered by cost, then index.
    """
    if k == 0:  # a point that counts as its own and only neighbor has no other
        return np.empty((costs.n, 0), dtype=np.int64), np.empty((costs.n, 0))
    rows = np.arange(costs.n)
    return _nearest(costs, costs.own, k, n_jobs, own=rows)


def new_neighbors(
    costs: PairCosts, queries: Any, k: int, n_jobs: int
) -> tuple[LongArray, FloatArray]:
    """Indices and costs of the k points nearest to every query."""
    return _nearest(costs, queries, k, n_jobs, own=None)


def _nearest(
    costs: PairCosts, queries: Any, k: int, n_jobs: int, own: LongArray | None
) -> tuple[LongArray, FloatArray]:
    if isinstance(costs, EuclideanCosts):
        indices = _searched(costs.own, queries, k, n_jobs, own, metric="euclidean")[0]
        raw = costs.paired(queries, indices)
        unsure = np.flatnonzero(_uncertain(costs, queries, raw))
        if unsure.size:
            excluded = None if own is None else own[unsure]
            found = _nearest_in_rows(costs, queries[unsure], k, excluded)
            indices[unsure], raw[unsure] = found
    elif isinstance(costs, MetricCosts):
        indices, distances = _searched(
            costs.points, queries, k, n_jobs, own, metric=costs.metric, keywords=costs.keywords
        )
        raw = distances**costs.power
    else:
        indices, raw = _nearest_in_rows(costs, queries, k, own)
    return _ordered(indices, raw * costs.factor)


def _searched(
    points: Any,
    queries: Any,
    k: int,
    n_jobs: int,
    own: LongArray | None,
    *,
    metric: Any,
    keywords: dict[str, FloatArray] | None = None,
) -> tuple[LongArray, FloatArray]:
    # A function need not obey the triangle inequality that trees rely on.
    algorithm = "brute" if callable(metric) else "auto"
    search = NearestNeighbors(
        algorithm=algorithm, metric=metric, metric_params=keywords or None, n_jobs=n_jobs
    ).fit(points)
    distances, indices = search.kneighbors(queries, n_neighbors=k + (own is not None))
    if own is None:
        return indices, distances
    keep = indices != own[:, None]
    keep[keep.all(axis=1), -1] = False  # self crowded out by duplicates: the last one goes
    shape = (len(own), k)
    return indices[keep].reshape(shape), distances[keep].reshape(shape)


def _uncertain(costs: EuclideanCosts, queries: Any, raw: FloatArray) -> Any:
    """Rows with a neighbor so near that the product which found it had no digit left."""
    norms = np.abs(queries.data if hasattr(queries, "nnz") else queries)
    largest = float(max(norms.max(initial=0.0), 1.0)) ** 2 * queries.shape[1]
    noise = NOISE_UNITS * np.finfo(np.float64).eps * largest
    return raw.max(axis=1) < noise**costs.half_power


def _nearest_in_rows(
    costs: PairCosts, queries: Any, k: int, own: LongArray | None
) -> tuple[LongArray, FloatArray]:
    m = queries.shape[0]
    indices, raw = np.empty((m, k), dtype=np.int64), np.empty((m, k))
    for a, b in row_blocks(m, max(1, BLOCK_ENTRIES // costs.n)):
        block = costs.raw(queries[a:b])
        if own is not None:
            block[np.arange(b - a), own[a:b]] = np.inf
        nearest = np.argpartition(block, k - 1, axis=1)[:, :k]
        indices[a:b], raw[a:b] = nearest, np.take_along_axis(block, nearest, axis=1)
    return indices, raw


def _ordered(indices: LongArray, costs: FloatArray) -> tuple[LongArray, FloatArray]:
    by_index = np.argsort(indices, axis=1)
    indices = np.take_along_axis(indices, by_index, axis=1)
    costs = np.take_along_axis(costs, by_index, axis=1)
    by_cost = np.argsort(costs, axis=1, kind="stable")
    return np.take_along_axis(indices, by_cost, axis=1), np.take_along_axis(costs, by_cost, axis=1)
