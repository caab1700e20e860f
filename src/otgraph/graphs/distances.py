"""Distances along the edges of a graph, and a fixed number of neighbors for every point.

Weights are similarities: large means near. Many programs want the opposite, distances, or the same
number of neighbors in every row. Both are computed here, in the metric of the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_count
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import entry_rows, index_type
from otgraph.graphs.extension import metric_cost

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.graphs.graph import Graph
    from otgraph.typing import Array, FloatArray, IntArray, LongArray, PointsLike, SparseMatrix

    Metric = Callable[..., float] | None


class Neighbors(NamedTuple):
    """The same number of neighbors for every point, by increasing distance.

    Parameters
    ----------
    indices
        Neighbors of every point, shape (n, k).
    distances
        Their distances, shape (n, k).

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.0]], eps=0.5)
    >>> graph.to_knn(1).distances.ravel()
    array([1., 1., 1., 1.])
    """

    indices: IntArray
    distances: FloatArray

    def matrix(self) -> SparseMatrix:
        """The distances as an n × n CSR matrix with k stored entries in every row.

        Zeros are stored, and every row is sorted by distance, as scikit-learn's
        ``metric="precomputed"`` wants it.
        """
        n, k = self.indices.shape
        indptr = np.arange(0, n * k + 1, k, dtype=index_type(n * k))
        data = (self.distances.ravel(), self.indices.ravel(), indptr)
        return sp.csr_matrix(data, shape=(n, n), copy=True)


def distances(graph: Graph, metric: Metric = None, *, least: int = 0) -> SparseMatrix:
    """Distances along the edges and of every point to itself; see :meth:`Graph.distances`.

    The nearest other points fill rows with fewer than `least` neighbors.
    """
    found = _filled(graph, min(least, graph.n - 1), metric)
    return _sorted_by_distance(found.joined(_loops(graph.n)), (graph.n, graph.n))


def edge_distances(graph: Graph, metric: Metric = None) -> FloatArray:
    """The distance of every stored entry of ``graph.weights``, in the order of its data.

    Costs that the graph has kept give it without the points. The scale of the costs may be beyond
    the range of float64, as for tiny points; distances are computed again then.
    """
    kept, params = graph.edge_costs, graph.params
    precomputed = params.get("metric") == "precomputed"
    if kept is not None:
        scale, power = float(params.get("scale") or 0.0), float(params.get("power") or 1.0)
        with np.errstate(over="ignore", under="ignore"):
            found = (kept * scale) ** (1.0 if precomputed else 1.0 / power)
        if 0.0 < scale < np.inf and np.isfinite(found).all():
            return np.asarray(found)
    if graph.points is None:
        msg = (
            "This graph has neither points nor costs, so it knows no distances. Build it from "
            "points, load it with them, or pass them to `Graph.from_weights`."
        )
        raise ValueError(msg)
    cost, _ = metric_cost(graph, metric)
    return cost.listed(entry_rows(graph.weights), graph.weights.indices)


def new_distances(
    graph: Graph, X_new: PointsLike, rows: SparseMatrix, metric: Metric = None, *, least: int = 0
) -> SparseMatrix:
    """Distances of new points to the neighbors in their `rows`, at least `least` of them."""
    cost, queries = metric_cost(graph, metric, X_new)
    place = entry_rows(rows)
    found = Listed(place, rows.indices, cost.listed(place, rows.indices, queries))
    least = min(least, graph.n)
    short = np.flatnonzero(np.diff(rows.indptr) < least)
    if short.size:
        found = found.joined(_others(cost.nearest(least, queries[short]), short, found, graph.n))
    return _sorted_by_distance(found, rows.shape)


def to_knn(
    graph: Graph, n_neighbors: int, *, include_self: bool = False, metric: Metric = None
) -> Neighbors:
    """A fixed number of neighbors of every point; see :meth:`Graph.to_knn`."""
    n_neighbors = check_count(n_neighbors, "n_neighbors")
    most = graph.n - 1 + include_self
    if n_neighbors > most:
        msg = f"must be at most {most} for {graph.n} points, got {n_neighbors}."
        raise invalid("n_neighbors", msg)
    found = _filled(graph, n_neighbors - include_self, metric)
    if include_self:
        found = found.joined(_loops(graph.n))
    matrix = _sorted_by_distance(found, (graph.n, graph.n))
    nearest = matrix.indptr[:-1, None] + np.arange(n_neighbors)
    return Neighbors(matrix.indices[nearest].astype(np.int32), matrix.data[nearest])


class Listed(NamedTuple):
    """Distances of listed pairs."""

    rows: Array
    columns: Array
    values: Array

    def joined(self, other: Listed) -> Listed:
        """These pairs and others."""
        return Listed(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


def _loops(n: int) -> Listed:
    return Listed(np.arange(n), np.arange(n), np.zeros(n))


def _sorted_by_distance(pairs: Listed, shape: tuple[int, int]) -> SparseMatrix:
    """CSR matrix with rows sorted by distance; zeros are stored, the point itself comes first.

    scikit-learn wants precomputed distances in this order; otherwise it sorts a copy and warns.
    """
    rows, columns, values = pairs
    order = np.lexsort((columns, rows != columns, values, rows))
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=shape[0]))))
    kind = index_type(max(len(values), *shape))
    data = (values[order], columns[order].astype(kind), indptr.astype(kind))
    return sp.csr_matrix(data, shape=shape)


def _filled(graph: Graph, k: int, metric: Metric) -> Listed:
    """All edges in both directions, and more neighbors of the points with fewer than k."""
    rows, columns = entry_rows(graph.weights), graph.weights.indices
    edge = rows != columns
    edges = Listed(rows[edge], columns[edge], edge_distances(graph, metric)[edge])
    short = np.flatnonzero(graph.degrees < k)
    if not short.size:
        return edges
    if graph.points is None:
        msg = (
            f"must be at most {graph.degrees.min()}, the smallest degree, got {k}: this graph has "
            "no points among which more neighbors could be found."
        )
        raise invalid("n_neighbors", msg)
    cost, own = metric_cost(graph, metric)
    return edges.joined(_others(cost.nearest(k, own[short], short), short, edges, graph.n))


def _others(
    nearest: tuple[LongArray, FloatArray], short: LongArray, edges: Listed, n: int
) -> Listed:
    """The nearest points without an edge, as many as each short row lacks.

    The k nearest points are enough to find them: at most as many of them have an edge as the row
    has edges.
    """
    near, values = nearest
    rows = np.broadcast_to(short[:, None], near.shape)
    is_edge = np.isin(rows * n + near, edges.rows * n + edges.columns)
    lacking = near.shape[1] - np.bincount(edges.rows, minlength=short[-1] + 1)[short]
    taken = ~is_edge & (np.cumsum(~is_edge, axis=1) <= lacking[:, None])
    return Listed(rows[taken], near[taken], values[taken])
