"""Blocks of rows on the workers, and the part of a vector that each of them needs.

A block numbers its columns locally: first its own rows, then all other columns. A vector for
the block has one entry per local column, and kernels for complete rows work unchanged. The
entries of a row keep the order of their global columns, so sums have the same bits however the
rows are cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._parallel import row_blocks
from otgraph.distributed._cluster import Kept

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import FloatArray, IntArray, LongArray

    # The pieces of a vector that a block needs, by the number of their first row.
    Part = dict[int, NDArray[Any]]

# Number of equal segments of a vector. A block reports which segments it needs, and a vector is
# sent in pieces of one or more segments. For a hundred million rows a segment of 16 columns has
# 6 MB.
SEGMENTS = 2048


def segment_rows(n: int) -> int:
    """Length of a segment of n rows."""
    return -(-n // SEGMENTS)


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

    def take(self, part: Part) -> NDArray[Any]:
        """The entries of these columns, from the pieces of a vector that hold any of them."""
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
    pieces: list[Any]

    @classmethod
    def send(cls, cluster: Cluster, values: NDArray[Any]) -> Vector:
        """Send a vector to the workers."""
        n, width = len(values), int(np.prod(values.shape[1:]))
        size = segment_rows(n)
        piece_rows = max(1, cluster.piece_entries // width // size) * size
        pieces = [cluster.send("vector", values[a:b]) for a, b in row_blocks(n, piece_rows)]
        return cls(n, piece_rows, pieces)

    def part(self, segments: LongArray) -> dict[int, Any]:
        """The pieces that hold some segments, by the number of their first row."""
        numbers = np.unique(segments * segment_rows(self.n) // self.piece_rows)
        return {number * self.piece_rows: self.pieces[number] for number in numbers.tolist()}


def keep_block(block: Any, facts: Any) -> Kept[Any, Any]:
    """Keep a block on its worker, and report to the driver which segments it needs."""
    return Kept(block, (block.columns.segments, facts))


@dataclass(frozen=True)
class Blocks:
    """Blocks of consecutive rows on the workers, as the driver sees them.

    Parameters
    ----------
    ranges
        First and last row of each block; they depend only on n and the size of a block.
    futures
        The blocks themselves.
    segments
        Segments of a vector that each block needs.
    facts
        Other values that each block reported; see `keep_block`.
    """

    cluster: Cluster
    ranges: list[tuple[int, int]]
    futures: list[Any]
    segments: list[LongArray]
    facts: list[Any]

    @classmethod
    def of(cls, cluster: Cluster, ranges: list[tuple[int, int]], futures: list[Any]) -> Blocks:
        """Blocks that are being computed by tasks that end with `keep_block`."""
        segments, facts = zip(*cluster.notes(futures), strict=True)
        return cls(cluster, ranges, futures, list(segments), list(facts))

    def each(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        vector: NDArray[Any] | None = None,
    ) -> list[Any]:
        """One task per block: ``function(block, *arguments, part of the vector)``.

        A list holds one argument for each block; anything else is the same for all.
        """
        sent = None if vector is None else Vector.send(self.cluster, vector)
        futures = []
        for b, block in enumerate(self.futures):
            own = [a[b] if isinstance(a, list) else a for a in arguments]
            if sent is not None:
                own.append(sent.part(self.segments[b]))
            futures.append(self.cluster.submit(name, function, block, *own))
        return futures

    def answers(
        self,
        name: str,
        function: Callable[..., Any],
        *arguments: Any,
        vector: NDArray[Any] | None = None,
    ) -> FloatArray:
        """One or more numbers per row, from one task per block."""
        futures = self.each(name, function, *arguments, vector=vector)
        return np.concatenate(self.cluster.gather(futures))

    def rows_of(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The entries of a vector that belong to each block."""
        return [values[first:last] for first, last in self.ranges]
