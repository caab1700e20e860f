"""Exact nearest neighbors of the points and of new points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._optional import importing
from otgraph._parallel import cache_blocks, in_own_thread

if TYPE_CHECKING:
    from otgraph.costs.direct import DirectCost
    from otgraph.typing import FloatArray, LongArray, Points


def nearest(
    cost: DirectCost, queries: Points, k: int, own: LongArray | None
) -> tuple[LongArray, FloatArray]:
    """Indices and raw costs of the k points nearest to every query.

    If the queries are points of the graph, ``own`` holds their indices; a point is left out of its
    own list.
    """
    if k == 0:
        return np.empty((queries.shape[0], 0), dtype=np.int64), np.empty((queries.shape[0], 0))
    if cost.search_metric is None:
        return _ordered(*_nearest_in_rows(cost, queries, k, own))
    indices, distances = _searched(cost, queries, k, own)
    raw = cost.raw_of_neighbors(queries, indices, distances)
    unsure = np.flatnonzero(raw.max(axis=1) < cost.noise(queries))
    if unsure.size:
        excluded = None if own is None else own[unsure]
        indices[unsure], raw[unsure] = _nearest_in_rows(cost, queries[unsure], k, excluded)
    return _ordered(indices, raw)


def _searched(
    cost: DirectCost, queries: Points, k: int, own: LongArray | None
) -> tuple[LongArray, FloatArray]:
    with importing():
        from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(
        metric=cost.search_metric,
        metric_params=cost.keywords or None,
        # Trees with a fitted metric share a buffer between threads and return wrong results.
        n_jobs=1 if cost.keywords else cost.workers.n_threads,
    ).fit(cost.own)
    n_neighbors = k + (own is not None)
    distances, indices = in_own_thread(lambda: search.kneighbors(queries, n_neighbors))
    if own is None:
        return indices, distances
    keep = indices != own[:, None]
    # Among many duplicates the point itself may not be listed; the last neighbor is dropped then.
    keep[keep.all(axis=1), -1] = False
    shape = (len(own), k)
    return indices[keep].reshape(shape), distances[keep].reshape(shape)


def _nearest_in_rows(
    cost: DirectCost, queries: Points, k: int, own: LongArray | None
) -> tuple[LongArray, FloatArray]:
    m = queries.shape[0]
    indices, raw = np.empty((m, k), dtype=np.int64), np.empty((m, k))

    def find(rows: tuple[int, int]) -> None:
        a, b = rows
        block = cost.raw(queries[a:b], 0, a, "X_new" if own is None else "X")
        if own is not None:
            block[np.arange(b - a), own[a:b]] = np.inf
        best = np.argpartition(block, k - 1, axis=1)[:, :k]
        indices[a:b], raw[a:b] = best, np.take_along_axis(block, best, axis=1)

    cost.workers.run(find, cache_blocks(m, cost.n))
    return indices, raw


def _ordered(indices: LongArray, costs: FloatArray) -> tuple[LongArray, FloatArray]:
    order = np.lexsort((indices, costs))
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(costs, order, axis=1)
