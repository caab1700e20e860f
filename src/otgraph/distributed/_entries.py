"""Entries (row, column, value) of a sparse matrix on their way between blocks of rows.

Runs on the workers. What one of them finds belongs to many blocks: it sorts its entries by
block, and each block collects its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from otgraph._kernels import blocks as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph.distributed._blocks import Held

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.typing import FloatArray, IntArray, LongArray

    Entries = tuple[IntArray, IntArray, FloatArray]

T = TypeVar("T")


@dataclass(frozen=True)
class Parcel(Held, Generic[T]):
    """Entries sorted by block of rows, and a note about where they come from."""

    blocks: dict[int, Entries]
    note: T

    @property
    def counts(self) -> dict[int, int]:
        """Number of entries for each block that has some."""
        return {block: len(rows) for block, (rows, _, _) in self.blocks.items()}


def parcel(chunks: Sequence[Entries], n: int, size: int, note: T) -> Parcel[T]:
    """Sort entries by blocks of ``size`` rows."""
    counts = np.zeros(-(-n // size), dtype=np.int64)
    for rows, _, _ in chunks:
        kernels.count_keys(rows, 0, size, counts)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    rows, columns = np.empty((2, bounds[-1]), dtype=np.int32)
    values, cursor = np.empty(bounds[-1]), bounds[:-1].copy()
    for chunk in chunks:
        kernels.group_entries(*chunk, size, cursor, rows, columns, values)
    blocks = {}
    for block in np.flatnonzero(counts).tolist():
        mine = slice(bounds[block], bounds[block + 1])
        blocks[block] = rows[mine], columns[mine], values[mine]
    return Parcel(blocks, note)


def sorted_rows(
    chunks: Sequence[Entries], first: int, last: int
) -> tuple[LongArray, IntArray, FloatArray]:
    """CSR arrays of rows ``first:last``, sorted by column; what comes twice is kept once."""
    counts = np.zeros(last - first, dtype=np.int64)
    for rows, _, _ in chunks:
        kernels.count_keys(rows, first, 1, counts)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    columns, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    cursor = indptr[:-1].copy()
    for chunk in chunks:
        kernels.fill_rows(*chunk, first, cursor, columns, values)
    pair_kernels.sort_rows(indptr, columns, values, 0, last - first, counts)
    packed = np.concatenate(([0], np.cumsum(counts)))
    if packed[-1] == indptr[-1]:
        return indptr, columns, values
    kept_columns, kept_values = np.empty(packed[-1], dtype=np.int32), np.empty(packed[-1])
    pair_kernels.pack_rows(
        indptr, columns, values, 0, last - first, packed, kept_columns, kept_values
    )
    return packed, kept_columns, kept_values


def note_of(found: Parcel[T]) -> tuple[T, dict[int, int]]:
    """What the driver must know of a parcel."""
    return found.note, found.counts


def entries_of(found: Parcel[T], block: int) -> Entries:
    """What a parcel holds for one block."""
    return found.blocks[block]
