"""Graphs and their matrices for iterative methods, and rows of new points.

A :class:`otgraph.Graph` gives scipy matrices. Another graph only has to compute products with
its weights, which may be on a cluster; see `ProductGraph` in :mod:`otgraph.typing`.
"""

from __future__ import annotations

from contextlib import nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_csr, check_finite
from otgraph.exceptions import invalid
from otgraph.graphs import Graph
from otgraph.graphs._canonical import row_sums
from otgraph.graphs.products import threaded

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from otgraph.typing import (
        BoolArray,
        FloatArray,
        LongArray,
        PointsLike,
        ProductGraph,
        SparseMatrix,
    )


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


def check_rows(rows: PointsLike, n: int) -> SparseMatrix:
    """Rows of new points as a matrix of weights."""
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
    return csr


def transition_rows(rows: PointsLike, n: int) -> tuple[SparseMatrix, BoolArray]:
    """Rows of new points scaled to sum to one, and a mask of rows without any weight."""
    csr = check_rows(rows, n)
    sums = row_sums(csr)
    empty = sums == 0.0
    csr.data /= np.repeat(np.where(empty, 1.0, sums), np.diff(csr.indptr))
    return csr, empty


class Operator(Protocol):
    """The part of a matrix that an iteration needs."""

    def __matmul__(self, V: FloatArray) -> FloatArray:
        """Product with a dense matrix."""


class SquareOperator(Operator, Protocol):
    """A matrix with a diagonal, rows ``A[rows]`` and columns ``A[:, columns]``."""

    def __getitem__(self, key: Any) -> SquareOperator:
        """Some rows or some columns."""

    def diagonal(self) -> FloatArray:
        """Diagonal of a square part."""


def transition_matrix(graph: Graph | ProductGraph) -> Operator:
    """The random walk D⁻¹W; a point without any edge stays where it is."""
    if isinstance(graph, Graph):
        walk: Operator = threaded(graph.transition())
        return walk
    return _Walk(graph)


def spreading_matrix(graph: Graph | ProductGraph, mu: float) -> SquareOperator:
    """D - M + μ I with M = P + Pᵀ, P the random walk and D = diag(M 1)."""
    if not isinstance(graph, Graph):
        return _Spreading(graph, mu)
    P = graph.transition()
    M = (P + P.T).tocsr()
    del P
    diagonal = sp.diags(row_sums(M) + mu, format="csr")
    matrix: SquareOperator = threaded((diagonal - M).tocsr())
    return matrix


def products_of(graph: Graph | ProductGraph) -> AbstractContextManager[object]:
    """A context for many products; a graph on a cluster prepares for them once."""
    prepare = getattr(graph, "computing", nullcontext)
    context: AbstractContextManager[object] = prepare()
    return context


class Part:
    """Weights of some points with each other, which have no edges to others."""

    def __init__(self, graph: ProductGraph, members: LongArray) -> None:
        self._graph = graph
        self._members = members

    def sum(self, axis: int) -> FloatArray:
        """Row sums, as a matrix gives them."""
        del axis  # symmetric
        return self._graph.row_sums[self._members]

    def __matmul__(self, x: FloatArray) -> FloatArray:
        whole = np.zeros((self._graph.n, 1))
        whole[self._members, 0] = x
        return self._graph.product(whole)[self._members, 0]


class _Walk:
    """Products with the random walk."""

    def __init__(self, graph: ProductGraph) -> None:
        self._graph = graph
        self._isolated = graph.row_sums == 0.0
        self._inverse = _inverse(graph.row_sums)[:, None]

    def __matmul__(self, V: FloatArray) -> FloatArray:
        out = self._inverse * self._graph.product(V)
        out[self._isolated] = V[self._isolated]
        return out


class _Spreading:
    """Products with D - M + μ I, or with some of its rows and columns.

    M has the entries w_ij (1/s_i + 1/s_j) for row sums s. A point without any edge would add 2 to
    the diagonals of both D and M, so it is left out of both.
    """

    def __init__(self, graph: ProductGraph, mu: float) -> None:
        self._graph = graph
        self._inverse = _inverse(graph.row_sums)
        self._rows = self._columns = np.arange(graph.n)
        sums = graph.product(np.ones((graph.n, 1)), self._inverse).ravel()
        self._scale = sums + mu
        self._diagonal = self._scale - 2.0 * graph.loops * self._inverse

    def __getitem__(self, key: LongArray | tuple[slice, LongArray]) -> _Spreading:
        part = copy(self)
        if isinstance(key, tuple):
            part._columns = self._columns[key[1]]
        else:
            part._rows = self._rows[key]
        return part

    def diagonal(self) -> FloatArray:
        return self._diagonal[self._rows]

    def __matmul__(self, V: FloatArray) -> FloatArray:
        whole = np.zeros((self._graph.n, V.shape[1]))
        whole[self._columns] = V
        product = self._graph.product(whole, self._inverse)
        return self._scale[self._rows, None] * whole[self._rows] - product[self._rows]


def _inverse(sums: FloatArray) -> FloatArray:
    return 1.0 / np.where(sums == 0.0, 1.0, sums)
