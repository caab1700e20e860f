"""Checks of graphs and of rows of new points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_csr, check_finite
from otgraph.exceptions import invalid
from otgraph.graphs import Graph

if TYPE_CHECKING:
    from otgraph.typing import BoolArray, PointsLike, ProductGraph, SparseMatrix


def as_graph(graph: object) -> Graph:
    """The graph itself, or the graph of a symmetric sparse matrix."""
    if isinstance(graph, Graph):
        return graph
    if sp.issparse(graph):
        return Graph.from_weights(graph)
    hint = "Graph.from_weights makes one of a dense array."
    if hasattr(graph, "to_graph"):
        hint = "Pass `graph.to_graph()`, if it fits into memory."
    msg = f"must be a Graph or a symmetric scipy sparse matrix, got {type(graph).__name__}. {hint}"
    raise invalid("graph", msg, TypeError)


def as_product_graph(graph: Graph | SparseMatrix | ProductGraph) -> Graph | ProductGraph:
    """A graph for methods that only need products; it may be on a cluster."""
    return graph if hasattr(graph, "product") else as_graph(graph)


def transition_rows(rows: PointsLike, n: int) -> tuple[SparseMatrix, BoolArray]:
    """Rows of new points scaled to sum to one, and a mask of rows without any weight."""
    csr = check_csr(rows, name="rows") if sp.issparse(rows) else sp.csr_matrix(rows)
    if csr.shape[1] != n:
        msg = (
            f"must have one column for each of the {n} points of the graph, got shape {csr.shape}. "
            "`graph.extend(X_new)` gives such rows."
        )
        raise invalid("rows", msg)
    csr = csr.astype(np.float64, copy=True)
    check_finite(csr, "rows")
    if csr.nnz and csr.data.min() < 0.0:
        raise invalid("rows", f"must hold weights >= 0, got {csr.data.min():.6g}.")
    sums = np.asarray(csr.sum(axis=1), dtype=np.float64).ravel()
    empty = sums == 0.0
    csr.data /= np.repeat(np.where(empty, 1.0, sums), np.diff(csr.indptr))
    return csr, empty
