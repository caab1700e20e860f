"""Blocks of rows, as the workers hold them.

Columns are renumbered: first the rows of the block, then all others that it meets. A vector
for the block is that much of the whole vector, and the kernels that know complete rows work
as they are. Entries keep their order within a row, which is that of the original columns, so
that sums have the same bits however the rows are cut into blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from otgraph.costs.pairs import Pairs
    from otgraph.typing import IntArray, LongArray

# Vectors travel in pieces of whole segments; a block asks for the pieces that it needs.
SEGMENT_ROWS = 1 << 16


@dataclass(frozen=True)
class Columns:
    """The columns that rows ``first:last`` of n meet.

    ``others`` are those outside of these rows, sorted.
    """

    n: int
    first: int
    last: int
    others: IntArray

    @property
    def segments(self) -> LongArray:
        """The segments of a vector that hold any of the columns."""
        own = np.arange(self.first // SEGMENT_ROWS, -(-self.last // SEGMENT_ROWS))
        return np.union1d(own, np.unique(self.others // SEGMENT_ROWS))

    def take(self, piece_rows: int, pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The numbers of these columns, from the pieces of a vector that hold any of them."""
        numbers = np.unique(self.segments * SEGMENT_ROWS // piece_rows)
        width = self.last - self.first
        out = np.empty((width + len(self.others), *pieces[0].shape[1:]), pieces[0].dtype)
        for number, piece in zip(numbers.tolist(), pieces, strict=True):
            start = number * piece_rows
            a, b = max(self.first, start), min(self.last, start + len(piece))
            if a < b:
                out[a - self.first : b - self.first] = piece[a - start : b - start]
            a, b = np.searchsorted(self.others, (start, start + len(piece)))
            out[width + a : width + b] = piece[self.others[a:b] - start]
        return out

    def number(self, columns: IntArray) -> IntArray:
        """Local numbers of columns given by their numbers in the whole."""
        place = np.empty(self.n, dtype=np.int32)
        width = self.last - self.first
        place[self.first : self.last] = np.arange(width)
        place[self.others] = width + np.arange(len(self.others), dtype=np.int32)
        return place[columns]

    def names(self, local: IntArray) -> IntArray:
        """Numbers in the whole of local columns."""
        own = np.arange(self.first, self.last, dtype=np.int32)
        return np.concatenate((own, self.others))[local]


def columns_of(n: int, first: int, last: int, columns: IntArray) -> Columns:
    """The columns that occur."""
    seen = np.zeros(n, dtype=np.bool_)
    seen[columns] = True
    seen[first:last] = False
    return Columns(n, first, last, np.flatnonzero(seen).astype(np.int32))


class Held:
    """Something that a worker holds; Dask asks how large it is, to place work and save memory."""

    def __sizeof__(self) -> int:
        return array_bytes(self)


def array_bytes(value: Any) -> int:
    """Size of all arrays in a dataclass, a dictionary, a tuple or a sparse matrix."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value):
        parts = [getattr(value, part.name) for part in fields(value)]
    elif isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, tuple):
        parts = list(value)
    elif sp.issparse(value):
        parts = [value.indptr, value.indices, value.data]
    else:
        parts = []
    return sum(array_bytes(part) for part in parts)


@dataclass(frozen=True)
class PairBlock(Held):
    """Candidate pairs of some rows, with local columns."""

    columns: Columns
    pairs: Pairs

    def with_global_columns(self) -> Pairs:
        """The same rows with their columns numbered as in the whole."""
        return replace(self.pairs, indices=self.columns.names(self.pairs.indices))


def pair_block(n: int, first: int, last: int, pairs: Pairs) -> PairBlock:
    """The block of pairs whose columns are numbered as in the whole."""
    columns = columns_of(n, first, last, pairs.indices)
    return PairBlock(columns, replace(pairs, indices=columns.number(pairs.indices)))
