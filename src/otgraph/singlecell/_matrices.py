"""The two matrices that scanpy reads, made of the weights of any graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._parallel import Workers
from otgraph.graphs._canonical import with_small_indices
from otgraph.graphs._cost_kinds import is_metric_name, pair_costs

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.graphs import Graph
    from otgraph.typing import SparseMatrix

# Distance of two copies of one cell: some readers drop zeros, and with them the edge.
SMALLEST_DISTANCE = float(np.finfo(np.float32).tiny)


def connectivities(weights: SparseMatrix) -> SparseMatrix:
    """Weights in units of the heaviest edge of a typical cell, at most one, without self-loops.

    In the graph that scanpy makes for UMAP, the heaviest edge of every cell is one. Here the
    *median* cell has it, and whoever has a heavier one is cut: one factor for the whole graph,
    so that edges keep their proportions and the matrix its symmetry.
    """
    hollow = _without_diagonal(weights)
    heaviest = np.asarray(hollow.max(axis=1).todense()).ravel()
    linked = heaviest > 0.0
    if linked.any():
        hollow.data /= np.median(heaviest[linked])
        np.minimum(hollow.data, 1.0, out=hollow.data)
    # An edge of 1e-40 is none to any reader, and float32 ends there.
    hollow.data[hollow.data < SMALLEST_DISTANCE] = 0.0
    return with_small_indices(hollow.astype(np.float32))


def distances(graph: Graph, metric: Callable[..., float] | None = None) -> SparseMatrix:
    """Distances along the edges; ones for a graph without points.

    For a power p of a metric this is the metric itself, not its power.
    """
    hollow = _without_diagonal(graph.weights)
    if graph.points is None:
        hollow.data[:] = 1.0
        return with_small_indices(hollow.astype(np.float32))
    recorded = str(graph.params.get("metric", "euclidean"))
    costs = pair_costs(graph.points, recorded if is_metric_name(recorded) else metric, 1.0)
    costs.normalize(False, Workers(1))
    rows = np.repeat(np.arange(graph.n), np.diff(hollow.indptr))
    hollow.data = np.maximum(costs.listed(rows, hollow.indices), SMALLEST_DISTANCE)
    return with_small_indices(hollow.astype(np.float32))


def _without_diagonal(weights: SparseMatrix) -> SparseMatrix:
    hollow = sp.csr_matrix(weights, dtype=np.float64, copy=True)
    hollow.setdiag(0.0)
    hollow.eliminate_zeros()
    hollow.sort_indices()
    return hollow
