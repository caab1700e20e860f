"""Rows of the finished graph on the workers, in the order of the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph.distributed._blocks import Columns, by_block, forest, sorted_rows
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.distributed._blocks import Blocks, Edges, Entries, Need, Part
    from otgraph.distributed._plan import PlanBlock
    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray, SparseMatrix

    # Lengths and sums of rows, and their self-loops, if there are any.
    Facts = tuple[IntArray, FloatArray, FloatArray | None]


@dataclass(frozen=True)
class WeightBlock:
    """Weights of some rows, with local columns."""

    columns: Columns
    matrix: SparseMatrix

    def arrays(self) -> tuple[LongArray, IntArray, FloatArray]:
        """CSR arrays with global columns."""
        return self.matrix.indptr, self.columns.to_global(self.matrix.indices), self.matrix.data

    def entries(self) -> Entries:
        """Row, column and value of every entry, in global numbers."""
        indptr, indices, data = self.arrays()
        rows = np.arange(self.columns.first, self.columns.last, dtype=np.int32)
        return np.repeat(rows, np.diff(indptr)), indices, data


def row_bounds(rows: Blocks) -> LongArray:
    """The row pointer of the whole CSR matrix."""
    lengths = np.concatenate([facts[0] for facts in rows.facts])
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


# Tasks ---------------------------------------------------------------------------------


def plan_entries(
    block: PlanBlock, loops: FloatArray | None, block_rows: int, order: Part
) -> Kept[dict[int, Entries], tuple[tuple[BoolArray, BoolArray], set[int]]]:
    """Entries of a plan in the order of the input, sorted by block.

    Reports for every row whether it has a partner at cost zero, and one at positive cost.
    """
    plan, names = block.plan, block.columns.take(order).astype(np.int32)
    own = names[: block.columns.n_rows]
    row_of = np.repeat(np.arange(len(own)), np.diff(plan.indptr))
    chunks = [(own[row_of], names[plan.indices], plan.weights)]
    if loops is not None:
        chunks.append((own, own, loops))
    chunks = [_without_zeros(*chunk) for chunk in chunks]
    at_same_place, elsewhere = np.zeros((2, len(own)), dtype=np.bool_)
    at_same_place[row_of[plan.costs == 0.0]] = True
    elsewhere[row_of[plan.costs > 0.0]] = True
    return by_block(chunks, block.columns.n, block_rows, (at_same_place, elsewhere))


def join_weights(
    n: int, first: int, last: int, entries: Sequence[Entries]
) -> Kept[WeightBlock, tuple[Need, Facts]]:
    """Rows ``first:last`` of the graph; reports their lengths, sums and self-loops."""
    indptr, indices, weights = sorted_rows(entries, first, last)
    columns = Columns.of(n, first, last, indices)
    shape = (last - first, last - first + len(columns.others))
    matrix = sp.csr_matrix((weights, columns.to_local(indices), indptr), shape=shape)
    sums = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    loops = matrix.diagonal()[: last - first]
    facts = np.diff(indptr).astype(np.int32), sums, loops if loops.any() else None
    return Kept(WeightBlock(columns, matrix), (columns.need, facts))


def product(block: WeightBlock, V: Part) -> FloatArray:
    """Weights times a matrix."""
    return np.asarray(block.matrix @ block.columns.take(V))


def scaled_product(block: WeightBlock, scale_and_V: Part) -> FloatArray:
    """Weights w_ij (scale_i + scale_j) times a matrix; the scale is the first column."""
    W, local = block.matrix, block.columns.take(scale_and_V)
    scale, V = local[:, 0], local[:, 1:]
    data = W.data * (np.repeat(scale[: W.shape[0]], np.diff(W.indptr)) + scale[W.indices])
    return np.asarray(sp.csr_matrix((data, W.indices, W.indptr), shape=W.shape) @ V)


def arrays(block: WeightBlock) -> tuple[LongArray, IntArray, FloatArray]:
    """The rows themselves, for the driver."""
    return block.arrays()


def among(block: WeightBlock, rows: LongArray, points: LongArray) -> SparseMatrix:
    """Weights of some rows of the block with some points, both by their numbers."""
    indptr, indices, data = block.arrays()
    whole = sp.csr_matrix((data, indices, indptr), shape=(len(indptr) - 1, block.columns.n))
    return whole[rows - block.columns.first][:, points]


def edges(block: WeightBlock) -> Edges:
    """A spanning forest of the edges of a block."""
    rows, columns, _ = block.entries()
    return forest(block.columns.n, rows, columns)


def _without_zeros(rows: IntArray, columns: IntArray, values: FloatArray) -> Entries:
    kept = values != 0.0
    return (rows, columns, values) if kept.all() else (rows[kept], columns[kept], values[kept])
