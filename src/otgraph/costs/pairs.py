"""Sets of candidate pairs with their costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import pairs as kernels
from otgraph._kernels import restricted as selection
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.interface import PairSet
from otgraph.costs.restricted import RestrictedProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, IntArray, LongArray

SORT_BLOCK_ROWS = 16384

BUFFER_PAIRS = 1 << 16

PairChunk = tuple["IntArray", "IntArray", "FloatArray"]


@dataclass(frozen=True)
class Pairs(PairSet):
    """Symmetric CSR: every pair in both rows, sorted, no diagonal."""

    indptr: LongArray
    indices: IntArray
    costs: FloatArray

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.indptr) - 1

    @property
    def n_pairs(self) -> int:
        """Number of pairs, each counted once."""
        return len(self.indices) // 2

    def below(self, upper: FloatArray, workers: Workers) -> Pairs:
        """The pairs with c_ij < upper_i + upper_j."""
        counts = np.empty(self.n, dtype=np.int64)
        blocks = row_blocks(self.n, SORT_BLOCK_ROWS)
        source = (self.indptr, self.indices, self.costs, upper)
        workers.run(lambda b: selection.count_active(*source, *b, counts), blocks)
        kept = _empty_pairs(counts)
        target = (kept.indptr, kept.indices, kept.costs)
        workers.run(lambda b: selection.select_active_costs(*source, *b, *target), blocks)
        return kept

    def merged(self, other: Pairs, workers: Workers) -> Pairs:
        """The pairs of either set."""
        counts = np.empty(self.n, dtype=np.int64)
        blocks = row_blocks(self.n, SORT_BLOCK_ROWS)
        patterns = (self.indptr, self.indices, other.indptr, other.indices)
        workers.run(lambda b: kernels.count_union(*patterns, *b, counts), blocks)
        merged = _empty_pairs(counts)
        source = (
            self.indptr, self.indices, self.costs, other.indptr, other.indices, other.costs
        )  # fmt: skip
        target = (merged.indptr, merged.indices, merged.costs)
        workers.run(lambda b: kernels.fill_union(*source, *b, *target), blocks)
        return merged

    def restricted(self, diagonal: FloatArray, workers: Workers) -> RestrictedProblem:
        """The transport problem on these pairs and a diagonal."""
        return RestrictedProblem(self, diagonal, workers)


def drain(
    collect: Callable[[IntArray, IntArray, FloatArray, int], tuple[int, int]],
    n_rows: int,
    row_capacity: int,
) -> list[PairChunk]:
    """Run a collecting kernel, which stops when its buffers may not hold the next row."""
    capacity = max(BUFFER_PAIRS, row_capacity)
    i, j, c = np.empty(capacity, np.int32), np.empty(capacity, np.int32), np.empty(capacity)
    chunks, row = [], 0
    while row < n_rows:
        row, count = collect(i, j, c, row)
        if count:
            chunks.append((i[:count].copy(), j[:count].copy(), c[:count].copy()))
    return chunks


def _empty_pairs(counts: LongArray) -> Pairs:
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return Pairs(indptr, np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1]))


def symmetric_pairs(n: int, chunks: list[PairChunk], workers: Workers) -> Pairs:
    """Pairs from chunks (i, j, cost) in any order; what comes twice is kept once.

    The list is emptied on the way.
    """
    counts = np.zeros(n, dtype=np.int64)
    for i, j, _ in chunks:
        kernels.count_both(i, j, counts)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = np.empty(indptr[-1], dtype=np.int32)
    costs = np.empty(indptr[-1])
    cursor = indptr[:-1].copy()
    chunks.reverse()
    while chunks:  # each is freed once it is filled in
        kernels.fill_both(*chunks.pop(), cursor, indices, costs)
    workers.run(
        lambda block: kernels.sort_rows(indptr, indices, costs, *block, counts),
        row_blocks(n, SORT_BLOCK_ROWS),
    )
    packed = np.concatenate(([0], np.cumsum(counts)))
    if packed[-1] == indptr[-1]:
        return Pairs(indptr, indices, costs)
    out_indices, out_costs = np.empty(packed[-1], dtype=np.int32), np.empty(packed[-1])
    kernels.pack_rows(indptr, indices, costs, counts, packed, out_indices, out_costs)
    return Pairs(packed, out_indices, out_costs)
