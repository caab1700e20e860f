"""The two matrices that scanpy reads, computed from any graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.graphs._canonical import entry_rows, with_small_indices, without_loops
from otgraph.graphs.distances import edge_distances

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.graphs import Graph
    from otgraph.typing import SparseMatrix

# Distance of duplicates. It is positive, because some readers drop zeros and with them the edge.
SMALLEST_DISTANCE = float(np.finfo(np.float32).tiny)


def connectivities(weights: SparseMatrix) -> SparseMatrix:
    """Weights in units of the heaviest edge of a typical cell, at most one, without self-loops.

    In scanpy's graph for UMAP, the heaviest edge of every cell is one. Here it is one for the
    *median* cell, and larger values are cut off at one. A single factor for the whole graph keeps
    the proportions of the edges and the symmetry.
    """
    hollow = without_loops(weights)
    heaviest = np.asarray(hollow.max(axis=1).todense()).ravel()
    linked = heaviest > 0.0
    if linked.any():
        hollow.data /= np.median(heaviest[linked])
        np.minimum(hollow.data, 1.0, out=hollow.data)
    # Smaller values underflow in float32 and count as no edge.
    hollow.data[hollow.data < SMALLEST_DISTANCE] = 0.0
    return with_small_indices(hollow.astype(np.float32))


def distances(graph: Graph, metric: Callable[..., float] | None = None) -> SparseMatrix:
    """Distances along the edges; ones for a graph without points.

    For a power p of a metric this is the metric itself, not its power.
    """
    hollow = without_loops(graph.weights)
    if graph.points is None:
        hollow.data[:] = 1.0
        return with_small_indices(hollow.astype(np.float32))
    off_diagonal = entry_rows(graph.weights) != graph.weights.indices
    found = edge_distances(graph, metric)[off_diagonal]
    hollow.data = np.maximum(found, SMALLEST_DISTANCE)
    return with_small_indices(hollow.astype(np.float32))
