"""Blocks of rows on the workers: vectors to them, entries between them, components from them.

A block numbers its columns locally: first its own rows, then all other columns. A vector for
the block has one entry per local column, and kernels for complete rows work unchanged. The
entries of a row keep the order of their global columns, so sums have the same bits however the
rows are cut into blocks.

Entries (row, column, value) that one task finds belong to many blocks. The task sorts them by
block, and each block collects its entries from all tasks that have any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from otgraph._kernels import blocks as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph._kernels.components import component_roots
from otgraph._parallel import row_blocks
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from distributed import Future

    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import Array, FloatArray, IntArray, LongArray

    Pieces = dict[int, Array]  # of a vector, by the number of their first row
    Part = Array | Pieces  # what a block needs of a vector: its entries, or pieces that hold them
    Entries = tuple[IntArray, IntArray, FloatArray]
    Edges = tuple[IntArray, IntArray]

T = TypeVar("T")

# Number of equal segments of a vector. A block reports which segments it needs, and a vector is
# sent in pieces of one or more segments. For a hundred million rows a segment of 16 columns has
# 6 MB.
SEGMENTS = 2048
# Entries of a vector up to which the tasks of a round contain what their blocks need of it: 32 MB.
# That is less than the vector for each worker, and a round does not wait for a task that returns
# the vector. Of a longer one, which many blocks share, the scheduler gets every piece only once.
MOST_CONTAINED = 1 << 22

# Forests that a task joins. Two at a time would be more tasks, one after the other.
JOINED_FORESTS = 4


def segment_rows(n: int) -> int:
    """Length of a segment of n rows."""
    return -(-n // SEGMENTS)


class Need(NamedTuple):
    """What a block needs of a vector: segments, and its columns outside its rows if few."""

    segments: LongArray
    others: IntArray | None


@dataclass(frozen=True)
class Columns:
    """The columns of rows ``first:last`` of n; ``others`` are the sorted columns outside."""

    n: int
    first: int
    last: int
    others: IntArray

    @classmethod
    def of(cls, n: int, first: int, last: int, columns: IntArray) -> Columns:
        """The columns that occur in some entries."""
        seen = np.zeros(n, dtype=np.bool_)
        seen[columns] = True
        seen[first:last] = False
        return cls(n, first, last, np.flatnonzero(seen).astype(np.int32))

    @property
    def n_rows(self) -> int:
        """Number of rows of the block."""
        return self.last - self.first

    @property
    def segments(self) -> LongArray:
        """The segments of a vector that hold any of the columns."""
        size = segment_rows(self.n)
        own = np.arange(self.first // size, -(-self.last // size))
        return np.union1d(own, np.unique(self.others // size))

    @property
    def need(self) -> Need:
        """What a vector must bring."""
        few = len(self.others) <= MOST_CONTAINED
        return Need(self.segments, self.others if few else None)

    def take(self, part: Part) -> Array:
        """The entries of these columns, in case from the pieces of a vector that hold any."""
        if not isinstance(part, dict):
            return part
        like = next(iter(part.values()))
        out = np.empty((self.n_rows + len(self.others), *like.shape[1:]), like.dtype)
        for start, piece in part.items():
            a, b = max(self.first, start), min(self.last, start + len(piece))
            if a < b:
                out[a - self.first : b - self.first] = piece[a - start : b - start]
            a, b = np.searchsorted(self.others, (start, start + len(piece)))
            out[self.n_rows + a : self.n_rows + b] = piece[self.others[a:b] - start]
        return out

    def to_local(self, columns: IntArray) -> IntArray:
        """Local indices of global columns."""
        place = np.empty(self.n, dtype=np.int32)
        place[self.first : self.last] = np.arange(self.n_rows)
        place[self.others] = self.n_rows + np.arange(len(self.others), dtype=np.int32)
        return place[columns]

    def to_global(self, local: IntArray) -> IntArray:
        """Global indices of local columns."""
        own = np.arange(self.first, self.last, dtype=np.int32)
        return np.concatenate((own, self.others))[local]


@dataclass(frozen=True)
class Vector:
    """A vector of n rows, or a narrow matrix, on the cluster in pieces of ``piece_rows`` rows."""

    n: int
    piece_rows: int
    pieces: list[Future]

    @classmethod
    def send(cls, cluster: Cluster, values: Array) -> Vector:
        """Send a vector to the workers."""
        n, width = len(values), int(np.prod(values.shape[1:]))
        size = segment_rows(n)
        piece_rows = max(1, cluster.piece_entries // width // size) * size
        pieces = [cluster.send("vector", values[a:b]) for a, b in row_blocks(n, piece_rows)]
        return cls(n, piece_rows, pieces)

    def part(self, segments: LongArray) -> dict[int, Future]:
        """The pieces that hold some segments, by the number of their first row."""
        numbers = np.unique(segments * segment_rows(self.n) // self.piece_rows)
        return {number * self.piece_rows: self.pieces[number] for number in numbers.tolist()}


@dataclass(frozen=True)
class Blocks:
    """Blocks of consecutive rows on the workers, as the driver sees them."""

    cluster: Cluster
    ranges: list[tuple[int, int]]  # first and last row; depend only on n and the size of a block
    futures: list[Future]
    needs: list[Need]  # what each block needs of a vector
    facts: list[Any]  # that each block reported; none until they are asked for (`reported`)

    @classmethod
    def of(cls, cluster: Cluster, ranges: list[tuple[int, int]], futures: list[Future]) -> Blocks:
        """Blocks that are being computed; their notes are what they need of a vector, and facts."""
        needs, facts = zip(*cluster.notes(futures), strict=True)
        return cls(cluster, ranges, futures, list(needs), list(facts))

    def reported(self) -> list[Any]:
        """The facts; workers are asked for them if nobody knows them yet."""
        if not self.facts:
            self.facts.extend(fact for _, fact in self.cluster.notes(self.futures))
        return self.facts

    def each(
        self,
        name: str,
        function: Callable[..., object],
        *arguments: object,
        vector: Array | None = None,
    ) -> list[Future]:
        """One task per block: ``function(block, *arguments, part of the vector)``.

        A list holds one argument for each block; anything else is the same for all.
        """
        if vector is not None:
            arguments = (*arguments, self._parts(vector))
        futures = []
        for b, block in enumerate(self.futures):
            own = [a[b] if isinstance(a, list) else a for a in arguments]
            futures.append(self.cluster.submit(name, function, block, *own))
        return futures

    def _parts(self, vector: Array) -> list[Any]:
        """What each block gets of a vector; see `MOST_CONTAINED`."""
        others = [need.others for need in self.needs if need.others is not None]
        n_entries = vector.size // len(vector) * (len(vector) + sum(map(len, others)))
        if len(others) == len(self.needs) and n_entries <= MOST_CONTAINED:
            rows = self.rows_of(vector)
            return [np.concatenate((a, vector[b])) for a, b in zip(rows, others, strict=True)]
        sent = Vector.send(self.cluster, vector)
        return [sent.part(need.segments) for need in self.needs]

    def needed(self, parts: list[Future]) -> list[dict[int, Future]]:
        """What each block gets of a vector whose rows every block has computed for itself."""
        (_, rows), n = self.ranges[0], self.ranges[-1][1]
        size, found = segment_rows(n), []
        for need in self.needs:
            ends = need.segments * size, np.minimum((need.segments + 1) * size, n) - 1
            some = np.unique(np.concatenate(ends) // rows)
            found.append({self.ranges[b][0]: parts[b] for b in some.tolist()})
        return found

    def answers(
        self,
        name: str,
        function: Callable[..., object],
        *arguments: object,
        vector: Array | None = None,
    ) -> FloatArray:
        """One or more numbers per row, from one task per block."""
        futures = self.each(name, function, *arguments, vector=vector)
        return np.concatenate(self.cluster.gather(futures))

    def rows_of(self, values: Array) -> list[Array]:
        """The entries of a vector that belong to each block."""
        return [values[first:last] for first, last in self.ranges]


def shuffle(
    cluster: Cluster,
    ranges: list[tuple[int, int]],
    name: str,
    sorted_entries: list[Future],
    join: Callable[..., object],
    label: str | None = None,
) -> tuple[list[Any], Blocks]:
    """The notes of tasks that end with `by_block`, and the blocks that ``join`` makes.

    The list of tasks is emptied, so that their results are freed block by block.
    """
    notes = cluster.notes(sorted_entries, label)
    n, futures = ranges[-1][1], []
    filled = [some for _, some in notes]
    pieces = pieces_of(cluster, "entries", sorted_entries, filled, len(ranges))
    sorted_entries.clear()
    pieces.reverse()
    for first, last in ranges:
        futures.append(cluster.submit(name, _join, join, n, first, last, pieces.pop()))
    return [note for note, _ in notes], Blocks.of(cluster, ranges, futures)


def pieces_of(
    cluster: Cluster, name: str, results: list[Future], filled: list[set[int]], n_blocks: int
) -> list[list[Future]]:
    """For every block its pieces of results, each a dictionary by block; `in_order` joins them.

    There is one task for the pieces that one worker has: one for each piece would be a large part
    of all tasks. ``filled`` says which blocks each result has anything for.
    """
    together, pieces = cluster.held_together(results), []
    for b in range(n_blocks):
        own = [[t for t in some if b in filled[t]] for some in together]
        pieces.append(
            [
                cluster.submit(name, _pieces, [results[t] for t in some], some, b)
                for some in own
                if some
            ]
        )
    return pieces


def in_order(pieces: Sequence[dict[int, T]]) -> list[T]:
    """The pieces of a block in the order of the results that they are from."""
    found = {t: piece for own in pieces for t, piece in own.items()}
    return [found[t] for t in sorted(found)]


def components(cluster: Cluster, n: int, forests: list[Future]) -> tuple[int, IntArray]:
    """Number of components and labels, from spanning forests of the blocks, some at a time."""
    while len(forests) > 1:
        forests = [
            cluster.submit("forest", _join_forests, n, forests[a:b])
            for a, b in row_blocks(len(forests), JOINED_FORESTS)
        ]
    rows, columns = cluster.result(forests[0])
    tree = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    count, labels = connected_components(tree, directed=False)
    return int(count), labels.astype(np.int32, copy=False)


# Tasks ---------------------------------------------------------------------------------


def by_block(
    chunks: Sequence[Entries], n: int, block_rows: int, note: T, *, both: bool = False
) -> Kept[dict[int, Entries], tuple[T, set[int]]]:
    """Entries sorted by blocks of rows; reports the note and which blocks have entries.

    With ``both`` they are pairs, which belong to the rows of both ends. Most have both ends in one
    block, and travel once: 16 bytes.
    """
    counts = np.zeros(-(-n // block_rows), dtype=np.int64)
    for rows, columns, _ in chunks:
        kernels.count_blocks(rows, columns, block_rows, both, counts)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    rows, columns = np.empty((2, bounds[-1]), dtype=np.int32)
    values, cursor = np.empty(bounds[-1]), bounds[:-1].copy()
    for chunk in chunks:
        kernels.group_entries(*chunk, block_rows, both, cursor, rows, columns, values)
    blocks = {}
    for block in np.flatnonzero(counts).tolist():
        mine = slice(bounds[block], bounds[block + 1])
        # Copies: a view would keep the entries of all blocks until the last one is done.
        blocks[block] = rows[mine].copy(), columns[mine].copy(), values[mine].copy()
    return Kept(blocks, (note, set(blocks)))


def _pieces(
    results: Sequence[dict[int, T]], numbers: list[int], block: int
) -> Kept[dict[int, T], None]:
    """What some results have for a block, by the number of the result."""
    found = (result[block] for result in results)
    return Kept(dict(zip(numbers, found, strict=True)), None)


def _join(
    join: Callable[..., T], n: int, first: int, last: int, pieces: Sequence[dict[int, Entries]]
) -> T:
    return join(n, first, last, in_order(pieces))


def sorted_rows(
    chunks: Sequence[Entries], first: int, last: int, *, both: bool = False
) -> tuple[LongArray, IntArray, FloatArray]:
    """CSR arrays of rows ``first:last``, sorted by column; duplicates are kept once.

    ``both`` as in `by_block`.
    """
    counts = np.zeros(last - first, dtype=np.int64)
    for rows, columns, _ in chunks:
        kernels.count_rows(rows, columns, first, last, both, counts)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    columns, values = np.empty(indptr[-1], dtype=np.int32), np.empty(indptr[-1])
    cursor = indptr[:-1].copy()
    for chunk in chunks:
        kernels.fill_rows(*chunk, first, last, both, cursor, columns, values)
    n_columns = int(columns.max(initial=0)) + 1
    pair_kernels.sort_rows(indptr, columns, values, n_columns, 0, last - first, counts)
    packed = np.concatenate(([0], np.cumsum(counts)))
    if packed[-1] < indptr[-1]:
        pair_kernels.pack_rows(indptr, columns, values, packed)
        columns.resize(packed[-1], refcheck=False)
        values.resize(packed[-1], refcheck=False)
    return packed, columns, values


def forest(n: int, rows: IntArray, columns: IntArray) -> Edges:
    """A forest with the components of some edges: stars around their first points."""
    roots = component_roots(n, rows, columns)
    points = np.flatnonzero(roots != np.arange(n))
    return points.astype(np.int32), roots[points].astype(np.int32)


def _join_forests(n: int, edges: Sequence[Edges]) -> Edges:
    """A spanning forest of several forests together."""
    rows, columns = zip(*edges, strict=True)
    return forest(n, np.concatenate(rows), np.concatenate(columns))
