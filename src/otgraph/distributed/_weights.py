"""Rows of the finished graph, in the caller's order, as the workers hold them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from otgraph.distributed._blocks import Columns, Held, columns_of
from otgraph.distributed._entries import Parcel, parcel, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.distributed._blocks import PairBlock
    from otgraph.distributed._entries import Entries
    from otgraph.distributed._rows import PlanRows
    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray, SparseMatrix

    Edges = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class WeightBlock(Held):
    """Weights of some rows; the columns of the matrix are numbered locally."""

    columns: Columns
    matrix: SparseMatrix

    def with_global_columns(self) -> tuple[LongArray, IntArray, FloatArray]:
        """The arrays of CSR rows, columns numbered as in the whole."""
        return self.matrix.indptr, self.columns.names(self.matrix.indices), self.matrix.data


@dataclass(frozen=True)
class CopyFlags:
    """Whether each row of a plan has a partner at no cost, and one at some cost."""

    at_same_place: BoolArray
    elsewhere: BoolArray


def plan_entries(
    block: PairBlock,
    rows: PlanRows,
    loops: FloatArray | None,
    block_rows: int,
    piece_rows: int,
    order: Sequence[LongArray],
) -> Parcel[CopyFlags]:
    """Entries of a plan in the caller's numbering, sorted by block of the caller's rows."""
    names = block.columns.take(piece_rows, order).astype(np.int32)
    own = names[: len(rows.loops)]
    row_of = np.repeat(np.arange(len(own)), np.diff(rows.indptr))
    entries = [(own[row_of], names[rows.indices], rows.weights)]
    if loops is not None:
        entries.append((own, own, loops))
    entries = [_without_zeros(*chunk) for chunk in entries]
    flags = CopyFlags(*np.zeros((2, len(own)), dtype=np.bool_))
    flags.at_same_place[row_of[rows.costs == 0.0]] = True
    flags.elsewhere[row_of[rows.costs > 0.0]] = True
    return parcel(entries, block.columns.n, block_rows, flags)


def join_weights(n: int, first: int, last: int, entries: Sequence[Entries]) -> WeightBlock:
    """Rows ``first:last`` of the graph."""
    indptr, indices, weights = sorted_rows(entries, first, last)
    columns = columns_of(n, first, last, indices)
    shape = (last - first, last - first + len(columns.others))
    matrix = sp.csr_matrix((weights, columns.number(indices), indptr), shape=shape)
    return WeightBlock(columns, matrix)


def row_facts(block: WeightBlock) -> tuple[LongArray, LongArray, FloatArray, BoolArray]:
    """Segments met, and for each row its length, its sum, and whether it has a loop."""
    matrix = block.matrix
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    loops = matrix.diagonal()[: matrix.shape[0]] != 0.0
    return block.columns.segments, np.diff(matrix.indptr).astype(np.int64), sums, loops


def arrays(block: WeightBlock) -> tuple[LongArray, IntArray, FloatArray]:
    """The rows themselves, for the caller who asks for them."""
    return block.with_global_columns()


def forest(block: WeightBlock) -> Edges:
    """Edges that connect what the rows of a block connect, as few as possible."""
    indptr, indices, _ = block.with_global_columns()
    rows = np.repeat(np.arange(block.columns.first, block.columns.last), np.diff(indptr))
    return _spanning(block.columns.n, rows.astype(np.int32), indices)


def join_forests(n: int, edges: Sequence[Edges]) -> Edges:
    """The same for several forests together."""
    rows, columns = zip(*edges, strict=True)
    return _spanning(n, np.concatenate(rows), np.concatenate(columns))


def _spanning(n: int, rows: IntArray, columns: IntArray) -> Edges:
    graph = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    tree = minimum_spanning_tree(graph).tocoo()
    return tree.row.astype(np.int32), tree.col.astype(np.int32)


def _without_zeros(rows: IntArray, columns: IntArray, values: FloatArray) -> Entries:
    kept = values != 0.0
    return (rows, columns, values) if kept.all() else (rows[kept], columns[kept], values[kept])
