"""Move entries (row, column, value) of a sparse matrix to their blocks.

The entries found by one task belong to many blocks. The task sorts them by block, and each block
collects its entries from all tasks that have any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import blocks as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph.distributed._blocks import Blocks
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import FloatArray, IntArray, LongArray

    Entries = tuple[IntArray, IntArray, FloatArray]


def shuffle(
    cluster: Cluster,
    ranges: list[tuple[int, int]],
    name: str,
    sorted_entries: Sequence[Any],
    join: Callable[..., Any],
    label: str | None = None,
) -> tuple[list[Any], Blocks]:
    """The notes of tasks that end with `by_block`, and the blocks that ``join`` makes."""
    notes = cluster.notes(sorted_entries, label)
    n, futures = ranges[-1][1], []
    for b, (first, last) in enumerate(ranges):
        own = [
            cluster.submit("entries", _entries_of, found, b)
            for found, (_, filled) in zip(sorted_entries, notes, strict=True)
            if b in filled
        ]
        futures.append(cluster.submit(name, join, n, first, last, own))
    return [note for note, _ in notes], Blocks.of(cluster, ranges, futures)


# Tasks ---------------------------------------------------------------------------------


def by_block(
    chunks: Sequence[Entries], n: int, block_rows: int, note: object
) -> Kept[dict[int, Entries], Any]:
    """Entries sorted by blocks of rows; reports the note and which blocks have entries."""
    counts = np.zeros(-(-n // block_rows), dtype=np.int64)
    for rows, _, _ in chunks:
        kernels.count_keys(rows, 0, block_rows, counts)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    rows, columns = np.empty((2, bounds[-1]), dtype=np.int32)
    values, cursor = np.empty(bounds[-1]), bounds[:-1].copy()
    for chunk in chunks:
        kernels.group_entries(*chunk, block_rows, cursor, rows, columns, values)
    blocks = {}
    for block in np.flatnonzero(counts).tolist():
        mine = slice(bounds[block], bounds[block + 1])
        blocks[block] = rows[mine], columns[mine], values[mine]
    return Kept(blocks, (note, set(blocks)))


def _entries_of(found: dict[int, Entries], block: int) -> Entries:
    return found[block]


def sorted_rows(
    chunks: Sequence[Entries], first: int, last: int
) -> tuple[LongArray, IntArray, FloatArray]:
    """CSR arrays of rows ``first:last``, sorted by column; duplicates are kept once."""
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
