"""Three ways to divide the pairs into blocks, by which points can have a pair in which cell.

Each way lists batches of work. A batch yields blocks (first column, last column, rows): the
columns are consecutive points, and the rows are all points that may have a pair with one of them.
Where cells exclude points one by one, a kernel does that (`_kernels/shells.py`), and a batch yields
only blocks of rows.
Over all batches every pair occurs once, in the row of the point that comes first. If rows are
given, all of their pairs occur, in their rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from otgraph._kernels import euclidean as kernels
from otgraph._kernels.shells import FLOAT32_UNIT
from otgraph._parallel import row_blocks
from otgraph.costs.shells import raised_radii, raised_reach, shells_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from otgraph.costs.partition import Partition
    from otgraph.costs.shells import Shells
    from otgraph.typing import BoolArray, FloatArray, IndexArray, LongArray

    Batch: TypeAlias = tuple[int, int]
    Block: TypeAlias = tuple[int, int, IndexArray]

BATCH_CELLS = 64  # cells per batch
BATCH_ROWS = 8192  # rows that a kernel compares with the cells of a batch at once
SHARE_ROWS = 2048  # sample size for the share of (point, cell) combinations that remain
# Relative errors of float64 sums of two reaches and of squared distances, amply.
REACH_SLACK = 1e-12
CENTER_SLACK = 1e-10


class AllPairs:
    """All pairs: blocks of columns, each with all rows before its end."""

    def __init__(self, columns: tuple[int, int], n_columns: int, rows: LongArray | None) -> None:
        self._rows = None if rows is None else rows.astype(np.int32)
        first, last = columns
        self.batches: list[Batch] = [
            (first + a, first + b) for a, b in row_blocks(last - first, n_columns)
        ]

    def blocks(self, batch: Batch) -> Iterator[Block]:
        """The one block of a batch."""
        first, last = batch
        yield first, last, np.arange(last, dtype=np.int32) if self._rows is None else self._rows


class NearCells:
    """Only pairs in cells near each other, for an approximate search.

    ``partners`` are the cells with which each cell has pairs. If they are ``chosen``, a point looks
    only into those that it is near to.
    """

    def __init__(
        self,
        cells: Partition,
        partners: Sequence[LongArray],
        rows: LongArray | None,
        columns: tuple[int, int] | None = None,
        *,
        chosen: bool = False,
    ) -> None:
        self.chosen = chosen
        self._cells = cells
        self._wanted: BoolArray | None = None
        if rows is not None:
            self._wanted = np.zeros(cells.offsets[-1], dtype=np.bool_)
            self._wanted[rows] = True
            wanted_cells = np.logical_or.reduceat(self._wanted, cells.offsets[:-1])
            partners = [near[wanted_cells[near]] for near in partners]
        self._partners = partners
        first, last = columns or (0, cells.n_cells)
        self.batches: list[Batch] = [
            (first + a, first + b) for a, b in row_blocks(last - first, BATCH_CELLS)
        ]

    def blocks(self, batch: Batch) -> Iterator[Block]:
        """One block for each cell of the batch."""
        offsets = self._cells.offsets
        for b in range(*batch):
            near = self._partners[b]
            if self._wanted is None:
                rows = self._cells.members(near[near <= b])
            else:
                rows = self._cells.members(near)
                rows = rows[self._wanted[rows]]
            yield int(offsets[b]), int(offsets[b + 1]), rows


class NotExcluded:
    """Pairs of point i and cell B, unless (|x_i - b| - r_B)_+² >= reach_i + max of reach over B."""

    def __init__(
        self,
        X: FloatArray | None,
        cells: Partition,
        reach: FloatArray,
        rows: LongArray | None,
        columns: tuple[int, int] | None = None,
    ) -> None:
        self._X = X
        self._cells = cells
        self._reach = reach
        self._ordered = rows is None
        self._rows = np.arange(cells.offsets[-1]) if rows is None else rows
        self._owner = cells.owner
        # float32 tables, rounded in the direction that excludes fewer cells.
        self._transposed = np.ascontiguousarray(cells.centers.T.astype(np.float32))
        squares = np.square(cells.centers).sum(axis=1)
        self._squares = squares.astype(np.float32)
        self._largest_norm = float(np.sqrt(squares.max()))
        self._radii = raised_radii(cells.radii)
        self._cell_reach = raised_reach(np.maximum.reduceat(reach, cells.offsets[:-1]))
        self._columns = first, last = columns or (0, cells.n_cells)
        self.batches: list[Batch] = [
            (first + a, first + b) for a, b in row_blocks(last - first, BATCH_CELLS)
        ]

    def share(self, X: FloatArray | None = None) -> float:
        """Estimated share of the (point, cell) combinations that are not excluded.

        ``X`` are the points of `share_rows`, if this process has no others.
        """
        sample = share_rows(self._rows)
        found = self._survivors(sample, self._columns, X)
        return found / (len(sample) * (self._columns[1] - self._columns[0]))

    def meets(self, batch: Batch) -> bool:
        """Whether some point may have a pair in the cells of a batch.

        Few points are compared with the cells first: shells of all cells would take longer.
        """
        few = not self._ordered and len(self._rows) <= BATCH_ROWS
        return not few or self._survivors(self._rows, batch, None) > 0

    def shells(self, batch: Batch) -> Shells:
        """The points of the cells of a batch."""
        return shells_of(self._X, self._cells, batch, self._reach)

    def row_blocks(self, batch: Batch) -> Iterator[tuple[LongArray, LongArray]]:
        """All points that may have pairs with a batch, and the first of its cells for each."""
        a, b = batch
        rows = self._rows
        if self._ordered:  # pairs with points of later cells belong to later batches
            rows = rows[: self._cells.offsets[b]]
        for first, last in row_blocks(len(rows), BATCH_ROWS):
            some = rows[first:last]
            here = np.maximum(self._owner[some] - a, 0) if self._ordered else np.zeros_like(some)
            yield some, here

    def _survivors(self, rows: LongArray, batch: Batch, X: FloatArray | None) -> int:
        """Number of combinations (point, cell of the batch) that cannot be excluded."""
        a, b = batch
        if X is None:
            assert self._X is not None  # only the estimate of the share does without points
            X = self._X[rows]
        squares = np.square(X).sum(axis=1)
        product = X.astype(np.float32) @ self._transposed[:, a:b]
        # Bound of the rounding error of |x|² + |b|² - 2 x·b in float32.
        slack = (X.shape[1] + 8) * FLOAT32_UNIT * (np.sqrt(squares) + self._largest_norm) ** 2
        return kernels.surviving_cells(
            product, squares, self._squares[a:b], self._radii[a:b], self._reach[rows],
            self._cell_reach[a:b], slack,
        )  # fmt: skip


def share_rows(rows: LongArray) -> LongArray:
    """The rows of which the share is estimated."""
    return rows[:: max(1, len(rows) // SHARE_ROWS)]


def meeting_cells(
    ours: tuple[FloatArray, FloatArray, FloatArray],
    theirs: tuple[FloatArray, FloatArray, FloatArray],
) -> BoolArray:
    """Which of some cells can have pairs with which others, by center, radius and largest reach.

    Fewer are excluded than by the points themselves, so that no pair is lost.
    """
    (centers, radii, reach), (others, other_radii, other_reach) = ours, theirs
    both = reach[:, None] + other_reach
    both += REACH_SLACK * (np.abs(reach[:, None]) + np.abs(other_reach))
    bound = radii[:, None] + other_radii + np.sqrt(np.maximum(both, 0.0))
    squares = np.square(centers).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    distance = squares - 2.0 * (centers @ others.T) - CENTER_SLACK * squares
    return np.asarray((distance < bound * bound) & (both > 0.0))


class Chained:
    """Several divisions of different pairs, one after the other."""

    def __init__(self, ways: Sequence[AllPairs | NotExcluded]) -> None:
        self.batches = [(way, batch) for way in ways for batch in way.batches]
