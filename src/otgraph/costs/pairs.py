"""Sets of candidate pairs with their costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import pairs as kernels
from otgraph._kernels import restricted as selection
from otgraph._parallel import Workers, row_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.typing import FloatArray, IntArray, LongArray

SORT_BLOCK_ROWS = 16384

PairChunk = tuple["IntArray", "IntArray", "FloatArray"]


@dataclass(frozen=True)
class Pairs:
    """Symmetric CSR: every pair in both rows, sorted, no diagonal."""

    indptr: LongArray
    indices: IntArray
    costs: FloatArray

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.indptr) - 1

    def below(self, upper: FloatArray, workers: Workers) -> Pairs:
        """The pairs with c_ij < upper_i + upper_j."""
        counts = np.empty(self.n, dtype=np.int64)
        blocks = row_blocks(self.n, SORT_BLOCK_ROWS)
        source = (self.indptr, self.indices, self.costs, upper)
        workers.run(lambda b: selection.count_active(*source, *b, counts), blocks)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        indices = np.empty(indptr[-1], dtype=np.int32)
        costs = np.empty(indptr[-1])
        target = (indptr, indices, costs)
        workers.run(lambda b: selection.select_active_costs(*source, *b, *target), blocks)
        return Pairs(indptr, indices, costs)


def symmetric_pairs(n: int, chunks: Sequence[PairChunk], workers: Workers) -> Pairs:
    """Pairs from chunks (i, j, cost) in any order; what comes twice is kept once."""
    counts = np.zeros(n, dtype=np.int64)
    for i, j, _ in chunks:
        kernels.count_both(i, j, counts)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    indices = np.empty(indptr[-1], dtype=np.int32)
    costs = np.empty(indptr[-1])
    cursor = indptr[:-1].copy()
    for i, j, c in chunks:
        kernels.fill_both(i, j, c, cursor, indices, costs)
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
