"""Rows of new points: the function behind ``Graph.extend``, and what constructions share.

The graph holds everything that is needed: points, parameters and, for optimal transport,
potentials. A graph that was loaded from a file extends like the one that was saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._memory import require_bytes
from otgraph._parallel import Workers, row_blocks
from otgraph._validation import check_mass, check_positive
from otgraph.costs import check_input, direct_cost
from otgraph.costs.blocks import MatrixCost
from otgraph.costs.direct import check_new_points
from otgraph.costs.metrics import is_metric_name
from otgraph.costs.powers import can_list
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import csr_from_dense, with_small_indices
from otgraph.graphs._kernel_rows import project
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.copies import Copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from otgraph.costs import DirectCost
    from otgraph.costs.near import Found
    from otgraph.costs.sweeps import Rule
    from otgraph.graphs.graph import Graph, TransportGraph
    from otgraph.typing import (
        FloatArray,
        Keywords,
        LongArray,
        Metric,
        Points,
        PointsLike,
        SparseMatrix,
    )

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
    construction = CONSTRUCTIONS.get(str(method))
    if construction is None:
        known = ", ".join(CONSTRUCTIONS)
        msg = f"Only graphs built by one of {known} can be extended; this one is {method!r}."
        raise ValueError(msg)
    if mass is not None and not hasattr(graph, "potentials"):
        raise invalid("mass", f"must be None for a {method!r} graph: kernels have no masses.")
    if graph.points is None and graph.params.get("metric") != "precomputed":
        msg = "This graph has no points to extend from; save it with `include_points=True`."
        raise ValueError(msg)
    copies = getattr(graph, "copies", None)
    if copies is None or method != "quadratic":  # the parts of a mean have copies of their own
        return construction.extend(graph, X_new, mass, metric)
    collapsed = Copies(copies, graph.mass)  # type: ignore[attr-defined]
    distinct = collapsed.distinct_graph(graph)  # type: ignore[arg-type]
    return collapsed.spread_rows(construction.extend(distinct, X_new, mass, metric))


def transport_rows(
    graph: TransportGraph,
    X_new: PointsLike,
    mass: ArrayLike | None,
    metric: Metric | None,
    fill: Callable[[FloatArray, FloatArray, FloatArray], None],
    listed: ListedRows | None = None,
) -> SparseMatrix:
    """Rows of a plan with the potentials that make them sum to the mass.

    ``fill`` turns c*_j - u_j, minus its smallest value, into such rows, in place. It gets these
    rows, their masses and the smallest values. If only few points can have a weight, ``listed``
    says which, and what weights they have. Then dense points are not compared with all others.
    """
    u = graph.potentials
    costs, queries = costs_and_queries(graph, X_new, metric)
    masses = _new_masses(mass, queries.shape[0])
    if listed is not None and can_list(costs):
        try:
            found = costs.lists(listed.rule(masses), u, queries)
        finally:
            costs.workers.close()
        listed.fill(found.indptr, found.values, masses)
        return rows_of_lists(found, costs.n)

    def weights(block: FloatArray, a: int, b: int) -> FloatArray:
        block -= u
        # Relative to the smallest value of the row, so that far points keep their digits.
        lowest = block.min(axis=1, keepdims=True)
        block -= lowest
        fill(block, masses[a:b], lowest.ravel())
        return block

    return stacked_rows(costs, queries, weights)


class ListedRows(NamedTuple):
    """Rows with weights for few points."""

    rule: Callable[[FloatArray], Rule]  # which points, for given masses
    fill: Callable[[LongArray, FloatArray, FloatArray], None]  # weights from c*_j - u_j, in place


def rows_of_lists(found: Found, n: int) -> SparseMatrix:
    """CSR matrix of lists that hold weights; zeros are dropped."""
    shape = (len(found.indptr) - 1, n)
    rows = sp.csr_matrix((found.values, found.columns, found.indptr), shape=shape)
    rows.has_sorted_indices = True
    return with_small_indices(rows)


def stacked_rows(
    costs: DirectCost, queries: Points, weights: Callable[[FloatArray, int, int], FloatArray]
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


def costs_and_queries(
    graph: Graph, X_new: PointsLike, metric: Metric | None
) -> tuple[DirectCost, Points]:
    """The cost that the graph was built with, and the checked new points."""
    params: Keywords = dict(graph.params)
    recorded = {name: params[name] for name in ("power", "normalize", "scale")}
    costs = cost_of(graph.n, graph.points, {"metric": metric_of(graph, metric), **recorded})
    return costs, costs.queries(X_new)


def metric_cost(
    graph: Graph, metric: Metric | None = None, X_new: PointsLike | None = None
) -> tuple[DirectCost, Points]:
    """The metric of a graph as a cost, without power and scale, and points as queries.

    The queries are the new points, or those of the graph. A graph on principal components measures
    distances there.
    """
    metric, params = metric_of(graph, metric), graph.params
    points = graph.points
    if params.get("n_pca") is not None:
        points = check_input(points, metric)
        new = points if X_new is None else check_new_points(X_new, points)
        points, X_new = project(points, new, params["n_pca"], params["random_state"])  # type: ignore[arg-type]
    costs = cost_of(graph.n, points, {"metric": metric})
    return costs, costs.own if X_new is None else costs.queries(X_new)


def cost_of(n: int, points: Points | None, options: Keywords) -> DirectCost:
    """The cost of the points of a graph; precomputed costs need no points."""
    workers = Workers(-1)
    if points is None:
        return MatrixCost(np.empty((n, 0)), scale=options.get("scale", 1.0), workers=workers)
    points = check_input(points, options["metric"])
    try:
        return direct_cost(points, workers=workers, **options)
    finally:
        workers.close()


def metric_of(graph: Graph, metric: Metric | None) -> Metric:
    """The metric of the graph; functions are not recorded and must be given."""
    recorded = str(graph.params.get("metric", "euclidean"))
    if is_metric_name(recorded):
        if metric is not None:
            raise invalid("metric", f"must be None for a graph built with metric={recorded!r}.")
        return recorded
    if metric is None:
        msg = f"must be the function that the graph was built with ({recorded}), got None."
        raise invalid("metric", msg)
    return metric


def _new_masses(mass: ArrayLike | None, n_new: int) -> FloatArray:
    if mass is not None and np.ndim(mass) == 0:
        return np.full(n_new, check_positive(mass, "mass"))
    return check_mass(mass, n_new, self_loops=True)
