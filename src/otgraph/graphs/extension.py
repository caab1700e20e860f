"""Rows of new points, one function per construction.

The graph holds everything that is needed: points, parameters and, for optimal transport,
potentials. A graph that was loaded from a file extends like the one that was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._memory import require_bytes
from otgraph._parallel import Workers, row_blocks
from otgraph._validation import check_positive, check_vector
from otgraph.costs import check_input, direct_cost
from otgraph.costs.blocks import MatrixCost
from otgraph.costs.direct import check_new_points
from otgraph.costs.metrics import is_metric_name
from otgraph.exceptions import argument_error
from otgraph.graphs._dense import csr_from_dense
from otgraph.graphs._kernel_rows import decayed, gaussian_weights, kernel_rows, project

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs import DirectCost
    from otgraph.graphs.graph import Graph, TransportGraph
    from otgraph.typing import FloatArray, PointsLike, SparseMatrix

# Costs of new points that are in memory at once: 32 MB.
BLOCK_ENTRIES = 1 << 22
ENTRY_BYTES = 24  # of a weight and its index, in the blocks and in the result


def extend(
    graph: Graph,
    X_new: PointsLike,
    *,
    mass: float | FloatArray | None = None,
    metric: Callable[..., float] | None = None,
) -> SparseMatrix:
    """Rows of new points against the points of a graph; see :meth:`Graph.extend`."""
    method = graph.params.get("method")
    rows_of = _ROWS_OF.get(str(method))
    if rows_of is None:
        known = ", ".join(_ROWS_OF)
        msg = f"Only graphs built by one of {known} can be extended; this one is {method!r}."
        raise ValueError(msg)
    if mass is not None and not hasattr(graph, "potentials"):
        msg = f"`mass` must be None for a {method!r} graph: kernels have no masses."
        raise argument_error(ValueError, "mass", msg)
    if graph.points is None and graph.params.get("metric") != "precomputed":
        msg = "This graph has no points to extend from; save it with `include_points=True`."
        raise ValueError(msg)
    return rows_of(graph, X_new, mass, metric)


def _quadratic_rows(
    graph: TransportGraph, X_new: PointsLike, mass: Any, metric: Any
) -> SparseMatrix:
    """π*_j = (u* + u_j − c*_j)₊ / ε with the u* that makes the row sum to the mass."""
    eps = graph.eps
    return _transport_rows(graph, X_new, mass, metric, lambda c, m: _fill_quadratic(c, m, eps))


def _entropic_rows(
    graph: TransportGraph, X_new: PointsLike, mass: Any, metric: Any
) -> SparseMatrix:
    """π*_j = exp((u* + u_j − c*_j) / ε) with the u* that makes the row sum to the mass."""
    eps = graph.eps
    return _transport_rows(graph, X_new, mass, metric, lambda c, m: _fill_entropic(c, m, eps))


def _gaussian_rows(graph: Graph, X_new: PointsLike, mass: Any, metric: Any) -> SparseMatrix:
    """exp(−c*_j / ε) for all points."""
    costs, queries = _costs_and_queries(graph, X_new, metric)
    eps = float(graph.params["eps"])  # type: ignore[arg-type]
    return _stacked(costs, queries, lambda block, a, b: gaussian_weights(block, eps))


def _knn_gaussian_rows(graph: Graph, X_new: PointsLike, mass: Any, metric: Any) -> SparseMatrix:
    """exp(−c*_j / ε), or ones, for the k nearest points."""
    costs, queries = _costs_and_queries(graph, X_new, metric)
    k = min(int(graph.params["n_neighbors"]), costs.n)  # type: ignore[arg-type]
    indices, values = costs.nearest(k, queries)
    eps = graph.params["eps"]
    weights = gaussian_weights(values, None if eps is None else float(eps))
    return kernel_rows(indices, weights, costs.n)


def _magic_rows(graph: Graph, X_new: PointsLike, mass: Any, metric: Any) -> SparseMatrix:
    """exp(−(d*_j / σ*)^α) where it reaches `thresh`, σ* the distance to the k-th nearest point.

    As in graphtools, `knn_max` limits the neighbors of the points of the graph, not those of new
    points.
    """
    params: dict[str, Any] = dict(graph.params)
    metric = _metric(graph, metric)
    points: Any = graph.points
    if params["n_pca"] is not None:
        points = check_input(points, metric)
        X_new = check_new_points(X_new, points)
        points, X_new = project(points, X_new, params["n_pca"], params["random_state"])
    costs = _cost_of(graph.n, points, metric=metric)
    queries = costs.queries(X_new)
    kernel = params["n_neighbors"], params["decay"], params["thresh"]
    return _stacked(costs, queries, lambda block, a, b: decayed(block, *kernel))


_ROWS_OF: dict[str, Callable[[Any, PointsLike, Any, Any], SparseMatrix]] = {
    "quadratic": _quadratic_rows,
    "entropic": _entropic_rows,
    "gaussian": _gaussian_rows,
    "knn": _knn_gaussian_rows,
    "magic": _magic_rows,
}


def _transport_rows(
    graph: TransportGraph,
    X_new: PointsLike,
    mass: Any,
    metric: Any,
    fill: Callable[[FloatArray, FloatArray], None],
) -> SparseMatrix:
    u = graph.potentials
    costs, queries = _costs_and_queries(graph, X_new, metric)
    masses = _new_masses(mass, queries.shape[0])

    def weights(block: FloatArray, a: int, b: int) -> FloatArray:
        block -= u
        # Relative to the smallest value of the row, so that far points keep their digits.
        block -= block.min(axis=1, keepdims=True)
        fill(block, masses[a:b])
        return block

    return _stacked(costs, queries, weights)


def _fill_quadratic(excess: FloatArray, mass: FloatArray, eps: float) -> None:
    """Replace t_j ≥ 0, smallest 0, by (v − t_j)₊/ε with the v where these sum to the mass.

    Only t_j < ε m can have a positive weight: v = ε m already gives all the mass to the smallest
    t. With t sorted, the first k have positive weights for v = (ε m + t_1 + … + t_k)/k, where k
    is the largest number with t_k < v.
    """
    for row, m in zip(excess, mass, strict=True):
        near = np.sort(row[row < eps * m])
        levels = (eps * m + np.cumsum(near)) / np.arange(1, len(near) + 1)
        level = levels[np.count_nonzero(near < levels) - 1]
        np.subtract(level, row, out=row)
        np.maximum(row, 0.0, out=row)
        row /= eps


def _fill_entropic(excess: FloatArray, mass: FloatArray, eps: float) -> None:
    excess /= -eps
    with np.errstate(under="ignore"):
        np.exp(excess, out=excess)
    excess *= (mass / excess.sum(axis=1))[:, None]


def _stacked(
    costs: DirectCost, queries: Any, weights: Callable[[FloatArray, int, int], FloatArray]
) -> SparseMatrix:
    """Rows, computed block by block to limit the memory."""
    parts = []
    with single_threaded_blas():
        for a, b in row_blocks(queries.shape[0], max(1, BLOCK_ENTRIES // costs.n)):
            parts.append(csr_from_dense(weights(costs.rows(queries[a:b], a), a, b)))
            if not a:  # the first block shows how dense the rows are
                n_entries = parts[0].nnz / b * queries.shape[0]
                require_bytes(
                    ENTRY_BYTES * n_entries, f"Weights of {queries.shape[0]:,} new points",
                    "Pass fewer of them at a time.",
                )  # fmt: skip
    return sp.csr_matrix(sp.vstack(parts, format="csr"))


def _costs_and_queries(graph: Graph, X_new: PointsLike, metric: Any) -> tuple[DirectCost, Any]:
    params: dict[str, Any] = dict(graph.params)
    recorded = {name: params[name] for name in ("power", "normalize", "scale")}
    costs = _cost_of(graph.n, graph.points, metric=_metric(graph, metric), **recorded)
    return costs, costs.queries(X_new)


def _cost_of(n: int, points: Any, **options: Any) -> DirectCost:
    """The cost of the points of a graph; precomputed costs need no points."""
    workers = Workers(-1)
    if points is None:
        return MatrixCost(np.empty((n, 0)), scale=options.get("scale", 1.0), workers=workers)
    points = check_input(points, options["metric"])
    try:
        return direct_cost(points, workers=workers, **options)
    finally:
        workers.close()


def _metric(graph: Graph, metric: Any) -> Any:
    recorded = str(graph.params["metric"])
    if is_metric_name(recorded):
        if metric is not None:
            msg = f"`metric` must be None for a graph built with metric={recorded!r}."
            raise argument_error(ValueError, "metric", msg)
        return recorded
    if metric is None:
        msg = f"`metric` must be the function that the graph was built with ({recorded}), got None."
        raise argument_error(ValueError, "metric", msg)
    return metric


def _new_masses(mass: Any, n_new: int) -> FloatArray:
    if mass is None:
        return np.ones(n_new)
    if np.ndim(mass) == 0:
        return np.full(n_new, check_positive(mass, "mass"))
    masses = check_vector(mass, "mass", n_new)
    if masses.min() <= 0.0:
        msg = f"`mass` must be positive, got {masses.min()!r}."
        raise argument_error(ValueError, "mass", msg)
    return masses
