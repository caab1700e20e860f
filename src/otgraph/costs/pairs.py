"""Sets of candidate pairs with their costs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import pairs as kernels
from otgraph._kernels import restricted as selection
from otgraph._memory import return_free_memory
from otgraph._parallel import Workers, equal_blocks, row_blocks
from otgraph.costs.interface import PairSet
from otgraph.costs.restricted import RestrictedProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, IntArray, LongArray

SORT_BLOCK_ROWS = 2048  # rows per task
FEW_POINTS = 512  # up to so many, a list of pairs is sorted in one call
FILL_GROUPS = 4  # most tasks that fill rows in parallel, each with a counter for every row
BUFFER_PAIRS = 1 << 16  # size of the buffer for the pairs of a block
# Length of the arrays of pairs, relative to what they hold, so that some can be added where they
# are. Memory that is not written to is not used.
ROOM = 1.05
# Parts of rows that are moved at the same time when pairs grow. First entries are copied for each.
GROWN_PARTS = 8
# Entries per row for which whole rows have room at first: 30 are usual.
ROW_ROOM = 32
# Up to so many pairs that a search finds stay where they are: 16 MB.
FEW_PAIRS = 1 << 20
# Pairs of a long array. 32 MB is the size from which the C library never keeps what is freed. Pages
# that are not written to take no memory.
LONG_PAIRS = 1 << 23

PairChunk = tuple["IntArray", "IntArray", "FloatArray"]


@dataclass
class Pairs(PairSet):
    """Symmetric CSR: every pair in both rows, sorted, no diagonal.

    Only `grown`, `overlaid` and `restore` change them. ``room`` are the arrays of which these are
    the first part.
    """

    indptr: LongArray
    indices: IntArray
    costs: FloatArray
    room: tuple[IntArray, FloatArray] | None = None
    reach: FloatArray | None = None

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
        return_free_memory(16 * self.n_pairs)
        counts = np.empty(self.n, dtype=np.int64)
        blocks = equal_blocks(self.n, SORT_BLOCK_ROWS)
        source = (self.indptr, self.indices, self.costs, upper)
        workers.run(lambda b: selection.count_active(*source, *b, counts), blocks)
        kept = _empty_pairs(counts)
        target = (kept.indptr, kept.indices, kept.costs)
        workers.run(lambda b: selection.select_active_costs(*source, *b, *target), blocks)
        return kept

    def merged(self, other: Pairs, workers: Workers) -> Pairs:
        """The pairs of either set."""
        return_free_memory(16 * self.n_pairs)
        merged = _empty_pairs(self._union_counts(other, workers))
        self.fill_merged(other, merged, workers)
        return merged

    def grown(
        self, other: Pairs, workers: Workers, second: tuple[FloatArray, Pairs] | None = None
    ) -> Pairs:
        """The same pairs with others, which are few: they are added here, if there is room.

        Whoever has these pairs has more of them then. Nobody depends on having no more: candidates
        stay candidates, and a screen still has all pairs below its bound. ``second`` are an array
        with another value of every pair, which grows as well, and the others with theirs.
        """
        indptr = np.concatenate(([0], np.cumsum(self._union_counts(other, workers))))
        if self.room is None or len(self.room[0]) < indptr[-1]:
            return self.merged(other, workers)
        if indptr[-1] > self.indptr[-1]:  # otherwise all are here already
            self._move(other, indptr, workers, second)
        columns, costs = self.room
        self.indptr, self.indices, self.costs = indptr, columns[: indptr[-1]], costs[: indptr[-1]]
        return self

    def keep(self) -> None:
        """From now on, others are added to a copy; who needs exactly these pairs asks for it."""
        self.room = None

    def _move(
        self,
        other: Pairs,
        grown: LongArray,
        workers: Workers,
        second: tuple[FloatArray, Pairs] | None,
    ) -> None:
        """Make room where others belong, and put them there.

        Threads move rows at the same time. Each part is moved over the first entries of the next
        one, which are copied before.
        """
        assert self.room is not None  # asked before
        (columns, costs), (more, others) = self.room, second or (None, None)
        ours = (self.indptr, columns, costs, more)
        theirs = (other.indptr, other.indices, other.costs, others.costs if others else None)
        shifts, parts = grown - self.indptr, []
        blocks = row_blocks(self.n, max(-(-self.n // GROWN_PARTS), SORT_BLOCK_ROWS))
        if any(self.indptr[b] - self.indptr[a] < shifts[a] for a, b in blocks):
            blocks = [(0, self.n)]  # a part would be moved over more than the next one
        for a, b in blocks:
            head = slice(self.indptr[a], self.indptr[a] + shifts[a])
            saved = (columns[head].copy(), costs[head].copy())
            parts.append((a, b, *saved, None if more is None else more[head].copy()))
        workers.run(lambda part: kernels.grow_rows(*ours, *theirs, grown, *part), parts)

    def overlaid(
        self, other: Pairs, workers: Workers, second: tuple[FloatArray, Pairs] | None = None
    ) -> Pairs:
        """The pairs of either set, with the costs of the others; where they are, if possible."""
        grown = self.grown(other, workers, second)
        grown._set(other)
        return grown

    def restore(self, listed: Callable[[], Pairs]) -> None:
        """Undo `overlaid`; pairs that were added stay."""
        self._set(listed())

    def _set(self, other: Pairs) -> None:
        """Set the costs of other pairs, as far as they are here."""
        kernels.set_entries(
            self.indptr, self.indices, self.costs, other.indptr, other.indices, other.costs
        )

    def _union_counts(self, other: Pairs, workers: Workers) -> LongArray:
        """Lengths of the rows of both sets together."""
        counts = np.empty(self.n, dtype=np.int64)
        patterns = (self.indptr, self.indices, other.indptr, other.indices)
        blocks = equal_blocks(self.n, SORT_BLOCK_ROWS)
        workers.run(lambda b: kernels.count_union(*patterns, *b, counts), blocks)
        return counts

    def fill_merged(self, other: Pairs, merged: Pairs, workers: Workers) -> None:
        """Write the pairs of either set to rows of the right lengths."""
        source = (
            self.indptr, self.indices, self.costs, other.indptr, other.indices, other.costs
        )  # fmt: skip
        target = (merged.indptr, merged.indices, merged.costs)
        blocks = equal_blocks(self.n, SORT_BLOCK_ROWS)
        workers.run(lambda b: kernels.fill_union(*source, *b, *target), blocks)

    def restricted(self, diagonal: FloatArray, workers: Workers) -> RestrictedProblem:
        """The transport problem on these pairs and a diagonal."""
        return RestrictedProblem(self, diagonal, workers)


def drain(
    collect: Callable[[IntArray, IntArray, FloatArray, int], tuple[int, int]],
    n_rows: int,
    row_capacity: int,
) -> list[PairChunk]:
    """Run a collecting kernel until all rows are done; it stops when its buffers are full."""
    capacity = max(BUFFER_PAIRS, row_capacity)
    i, j, c = empty_chunk(capacity)
    chunks, row = [], 0
    while row < n_rows:
        row, count = collect(i, j, c, row)
        if count:
            chunks.append((i[:count].copy(), j[:count].copy(), c[:count].copy()))
    return chunks


class FoundPairs:
    """Chunks of pairs on their way into rows.

    The process keeps the memory of many small arrays when these are freed: at a million points a
    third of a gigabyte. So once there are many pairs, they are copied to the ends of long arrays,
    which the system gets back.
    """

    def __init__(self) -> None:
        self.chunks: list[PairChunk] = []
        self._n_pairs = 0
        self._room: PairChunk | None = None

    def add(self, found: list[PairChunk]) -> None:
        """Add the pairs of a part of a search."""
        for chunk in found:
            self._n_pairs += len(chunk[0])
            self.chunks.append(chunk if self._n_pairs <= FEW_PAIRS else self._copied(chunk))

    def taken(self) -> list[PairChunk]:
        """The chunks, which are not kept here any longer."""
        chunks, self.chunks, self._room = self.chunks, [], None
        return chunks

    def _copied(self, chunk: PairChunk) -> PairChunk:
        size = len(chunk[0])
        if self._room is None or size > len(self._room[0]):
            self._room = empty_chunk(max(size, LONG_PAIRS))
        first, second, third = self._room
        i, j, costs = first[:size], second[:size], third[:size]
        i[:], j[:], costs[:] = chunk
        self._room = first[size:], second[size:], third[size:]
        return i, j, costs


def _equal_parts(chunks: list[PairChunk], n_parts: int) -> list[deque[PairChunk]]:
    """The chunks in order, in parts with about as many pairs each."""
    if n_parts == 1:
        return [deque(chunks)]
    ends = np.cumsum([len(i) for i, _, _ in chunks])
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1] if len(ends) else 0, n_parts + 1)[1:-1])
    bounds = [0, *cuts.tolist(), len(chunks)]
    return [deque(chunks[a:b]) for a, b in pairwise(bounds)]


def empty_chunk(n_pairs: int) -> PairChunk:
    """Arrays for so many pairs, to be filled."""
    return np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32), np.empty(n_pairs)


def _empty_pairs(counts: LongArray) -> Pairs:
    """Rows of given lengths, to be filled."""
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return _with_room(indptr, *_empty_entries(int(indptr[-1] * ROOM)))


def _empty_entries(count: int) -> tuple[IntArray, FloatArray]:
    """Columns and costs, to be filled."""
    return np.empty(count, dtype=np.int32), np.empty(count)


def _with_room(indptr: LongArray, columns: IntArray, costs: FloatArray) -> Pairs:
    used = indptr[-1]
    return Pairs(indptr, columns[:used], costs[:used], (columns, costs))


class FoundRows:
    """Complete, sorted rows on their way into the arrays of pairs; they come in order.

    The thread that waits for a search copies them meanwhile. The buffers they came in go back to
    ``free``, for later parts of the search: the system fills every new page with zeros, which takes
    longer than to copy to it.
    """

    def __init__(self, n: int, free: Callable[[Any], None] | None) -> None:
        self._counts = np.zeros(n, dtype=np.int64)
        self._free = free
        self._used = 0
        self._room = _empty_entries(ROW_ROOM * n)

    def add(self, found: list[PairChunk]) -> None:
        """Add the rows of a part of a search, which are the first entries of its buffers."""
        for i, j, costs in found:
            kernels.count_rows(i, self._counts)
            here = slice(self._used, self._used + len(j))
            if here.stop > len(self._room[0]):
                self._lengthen(here.stop, int(i[-1]) + 1)
            columns, all_costs = self._room
            columns[here], all_costs[here] = j, costs
            self._used = here.stop
            if self._free is not None:
                self._free((i.base, j.base, costs.base))

    def _lengthen(self, least: int, n_rows: int) -> None:
        """More room, for as many entries as the rows so far let expect."""
        columns, costs = _empty_entries(int(ROOM * least * len(self._counts) / n_rows))
        here = slice(self._used)
        columns[here], costs[here] = self._room[0][here], self._room[1][here]
        self._room = columns, costs

    def joined(self) -> Pairs:
        """All rows."""
        return _with_room(np.concatenate(([0], np.cumsum(self._counts))), *self._room)


def symmetric_pairs(n: int, chunks: list[PairChunk], workers: Workers) -> Pairs:
    """Pairs from chunks (i, j, cost) in any order; repeated pairs are kept once.

    The list ``chunks`` is emptied to free memory early.
    """
    if len(chunks) == 1 and n <= FEW_POINTS:
        return _sorted_pairs(n, *chunks.pop())
    # Each group counts its own entries, which gives it its own range in every row. Chunks of a
    # screen come in the order of their points. Kept in it, rows are nearly sorted when they are
    # filled, and insertion sort is fast.
    n_pairs = sum(len(i) for i, _, _ in chunks)
    n_groups = min(FILL_GROUPS, max(1, len(chunks)), 1 + n_pairs // max(n, 1))
    groups = _equal_parts(chunks, n_groups)
    chunks.clear()
    return_free_memory(16 * n_pairs)
    cursors = np.zeros((n_groups, n), dtype=np.int64)

    def count(g: int) -> None:
        for i, j, _ in groups[g]:
            kernels.count_both(i, j, cursors[g])

    workers.run(count, range(n_groups))
    counts = cursors.sum(axis=0)
    found = _empty_pairs(counts)
    assert found.room is not None
    indptr, (indices, costs) = found.indptr, found.room
    place = indptr[:-1].copy()
    for cursor in cursors:  # counts become the places where the parts of the rows begin
        place += cursor
        np.subtract(place, cursor, out=cursor)

    def fill(g: int) -> None:
        while groups[g]:  # frees each chunk after it was copied
            kernels.fill_both(*groups[g].popleft(), cursors[g], indices, costs)

    workers.run(fill, range(n_groups))
    blocks = equal_blocks(n, SORT_BLOCK_ROWS)
    source = (indptr, indices, costs)
    workers.run(lambda block: kernels.sort_rows(*source, n, *block, counts), blocks)
    packed = np.concatenate(([0], np.cumsum(counts)))
    if packed[-1] == indptr[-1]:
        return found
    kernels.pack_rows(*source, packed)  # in place, because these are the largest arrays of all
    del found  # nothing looks at a part of the arrays when they become shorter
    length = int(packed[-1] * ROOM)
    indices.resize(length, refcheck=False)
    costs.resize(length, refcheck=False)
    return _with_room(packed, indices, costs)


def _sorted_pairs(n: int, i: IntArray, j: IntArray, costs: FloatArray) -> Pairs:
    """The same for one chunk of the pairs of few points."""
    indptr, room = np.empty(n + 1, dtype=np.int64), _empty_entries(int(2 * len(i) * ROOM))
    kernels.sort_pairs(i, j, costs, np.zeros(n, dtype=np.int64), indptr, *room)
    return _with_room(indptr, *room)


def union_of_nearest(near: LongArray, costs: FloatArray, workers: Workers) -> Pairs:
    """Pairs of which one end at least is among the nearest points of the other.

    Rows are sorted by cost, which is the same from both ends. Few pairs are missing in one of their
    rows, and only these are added there.
    """
    n, k = near.shape
    blocks, counts = equal_blocks(n, SORT_BLOCK_ROWS), np.zeros(n, dtype=np.int64)
    if k == 0:
        return _empty_pairs(counts)
    workers.run(lambda b: kernels.count_one_sided(near, costs, *b, counts), blocks)
    ends = np.cumsum(counts)
    i, j, c = empty_chunk(ends[-1])
    place = ends - counts
    workers.run(lambda b: kernels.list_one_sided(near, costs, *b, place, i, j, c), blocks)
    counts[:] = k
    kernels.count_rows(j, counts)
    union = _empty_pairs(counts)
    target = (union.indptr, union.indices, union.costs)
    workers.run(lambda b: kernels.put_rows(near, costs, *b, *target), blocks)
    kernels.put_back(i, j, c, union.indptr[:-1] + k, union.indices, union.costs)
    workers.run(lambda b: kernels.sort_rows(*target, n, *b, counts), blocks)
    return union
