"""Matrices made of a graph, with rows on the workers, for methods that ask for products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.distributed._weights import WeightBlock
    from otgraph.distributed.graph import DistributedGraph
    from otgraph.typing import FloatArray, LongArray, SparseMatrix

# Columns of a dense factor that travel together: a piece of a vector then has 8 MB.
COLUMNS_AT_ONCE = 16


class BlockMatrix:
    """What of a sparse matrix is needed: products, the diagonal, some rows and columns.

    ``rows`` are futures of the rows of each block, with local columns.
    """

    def __init__(
        self,
        graph: DistributedGraph,
        rows: list[Any],
        diagonal: FloatArray,
        row_ids: LongArray | None = None,
        column_ids: LongArray | None = None,
    ) -> None:
        self._graph = graph
        self._rows = rows
        self._diagonal = diagonal
        self._row_ids = np.arange(graph.n) if row_ids is None else row_ids
        self._column_ids = np.arange(graph.n) if column_ids is None else column_ids

    def __getitem__(self, key: Any) -> BlockMatrix:
        """Rows ``A[rows]``, or columns ``A[:, columns]``."""
        row_ids, column_ids = self._row_ids, self._column_ids
        if isinstance(key, tuple):
            column_ids = column_ids[key[1]]
        else:
            row_ids = row_ids[key]
        return BlockMatrix(self._graph, self._rows, self._diagonal, row_ids, column_ids)

    def diagonal(self) -> FloatArray:
        """Diagonal of a square part."""
        return self._diagonal[self._row_ids]

    def __matmul__(self, V: FloatArray) -> FloatArray:
        """Product with a dense matrix, some columns at a time."""
        graph = self._graph
        out = np.empty((len(self._row_ids), V.shape[1]))
        for a in range(0, V.shape[1], COLUMNS_AT_ONCE):
            columns = slice(a, a + COLUMNS_AT_ONCE)
            whole = np.zeros((graph.n, len(range(V.shape[1])[columns])))
            whole[self._column_ids] = V[:, columns]
            held = graph.cluster.hold(whole)
            tasks = [
                graph.cluster.submit(
                    "product", _product, block, rows, held.piece_rows, held.part(segments)
                )
                for block, rows, segments in zip(
                    graph.blocks, self._rows, graph.segments, strict=True
                )
            ]
            out[:, columns] = np.concatenate(graph.cluster.gather(tasks))[self._row_ids]
        return out


def transition_matrix(graph: DistributedGraph) -> BlockMatrix:
    """Rows sum to one; a point without any edge stays where it is."""
    rows = [graph.cluster.submit("transition", _transition, block) for block in graph.blocks]
    return BlockMatrix(graph, rows, np.zeros(graph.n))


def spreading_matrix(graph: DistributedGraph, mu: float) -> BlockMatrix:
    """D - M + μ I with M = W + Wᵀ, W the random walk and D = diag(M 1)."""
    cluster = graph.cluster
    held = cluster.hold(_inverse(graph.row_sums))
    rows = [
        cluster.submit("matrix", _spreading, block, mu, held.piece_rows, held.part(segments))
        for block, segments in zip(graph.blocks, graph.segments, strict=True)
    ]
    diagonal = np.concatenate(
        cluster.gather([cluster.submit("diagonal", _diagonal_of, r) for r in rows])
    )
    return BlockMatrix(graph, rows, diagonal)


# What the workers do ------------------------------------------------------------------


def _product(
    block: WeightBlock, rows: SparseMatrix, piece_rows: int, pieces: Sequence[FloatArray]
) -> FloatArray:
    return np.asarray(rows @ block.columns.take(piece_rows, pieces))


def _transition(block: WeightBlock) -> SparseMatrix:
    W = block.matrix
    sums = np.asarray(W.sum(axis=1)).ravel()
    scaled = W.copy()
    scaled.data *= np.repeat(_inverse(sums), np.diff(W.indptr))
    return (scaled + _loops(W.shape, sums == 0.0)).tocsr()


def _spreading(
    block: WeightBlock, mu: float, piece_rows: int, inverse: Sequence[FloatArray]
) -> SparseMatrix:
    W = block.matrix
    scale = block.columns.take(piece_rows, inverse)
    own = np.repeat(scale[: W.shape[0]], np.diff(W.indptr))
    M = W.copy()
    M.data = W.data * own + W.data * scale[W.indices]
    M = M + _loops(W.shape, 2.0 * (np.diff(W.indptr) == 0))
    sums = np.asarray(M.sum(axis=1)).ravel()
    return (_loops(W.shape, sums + mu) - M).tocsr()


def _diagonal_of(rows: SparseMatrix) -> FloatArray:
    return np.asarray(rows.diagonal())


def _loops(shape: tuple[int, int], values: Any) -> SparseMatrix:
    """A diagonal matrix of the shape of a block: its rows are its first columns."""
    return sp.csr_matrix(sp.diags(np.asarray(values, dtype=np.float64), shape=shape))


def _inverse(sums: FloatArray) -> FloatArray:
    return 1.0 / np.where(sums == 0.0, 1.0, sums)
