"""Powers of Euclidean distances between points.

Two steps exclude pairs before any is looked at in float64: whole cells by the triangle
inequality, then single pairs by a float32 product with a proven error bound.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import euclidean as kernels
from otgraph._kernels import pairs as pair_kernels
from otgraph._parallel import Workers, row_blocks, single_threaded_blas
from otgraph.costs.base import Cost, Screen
from otgraph.costs.cells import Cells, cluster_order, consecutive_cells, enclosing_cells
from otgraph.costs.pairs import BUFFER_PAIRS, drain, symmetric_pairs

if TYPE_CHECKING:
    from otgraph.costs.pairs import PairChunk, Pairs
    from otgraph.typing import FloatArray, IndexArray, IntArray, LongArray

    ScreenTask = tuple[int, int, IndexArray]

# Below this many points one float32 pass over all pairs is cheaper than making cells.
MIN_CELL_POINTS = 8192
CELLS_PER_ROOT = 3.0  # number of cells = this times sqrt(n): making and scanning them balance
PROBES = 16  # cells that a cell looks into for its neighbors
PLAIN_COLUMNS = 1024  # columns of a block product when nothing can be excluded
BLOCK_ROWS = 2048
# Looking cell by cell gathers points again and again; above this share of surviving
# (point, cell) combinations plain blocks do less work.
PLAIN_SHARE = 0.4
SHARE_ROWS = 2048  # sample from which that share is estimated
# Looking at more than this many pairs per point, some fifty times what the rest of the work
# looks at, is what search="auto" does without.
AUTO_PAIRS_PER_POINT = 250_000
FLOAT32_UNIT = 2.0**-24
TINY = 1e-35  # far below any product that matters, above float32 underflow


class EuclideanCost(Cost):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale.

    Parameters
    ----------
    points
        Centered points, scaled by a power of two to values about 1.
    p
        Power of the distance.
    factor
        c = factor · (squared distance of the scaled points)^(p/2).
    scale
        What costs of the caller's points were divided by.
    exact
        Whether screening covers all pairs, or only the cells near each cell; None leaves the
        choice to the first screen, which estimates what covering all pairs would cost.
    """

    def __init__(
        self,
        points: FloatArray,
        *,
        p: float,
        factor: float,
        scale: float,
        exact: bool | None,
        seed: int,
        workers: Workers,
    ) -> None:
        self.n = len(points)
        self.scale = scale
        self.exact = exact
        self.workers = workers
        self.identical = not points.any()
        self._factor = factor
        self._half_power = 0.5 * p
        if self.n >= MIN_CELL_POINTS:
            n_cells = int(CELLS_PER_ROOT * np.sqrt(self.n))
            self.order, offsets = cluster_order(points, n_cells, seed, workers)
            self._X = points[self.order]
            self._cells = enclosing_cells(self._X, offsets)
        else:
            self.order = np.arange(self.n)
            self._X = points
            self._cells = consecutive_cells(points, max(self.n, 1))

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points; products, so accurate to the norms only."""
        some = self._X[rows]
        out = np.empty((len(rows), self.n))

        def fill(block: tuple[int, int]) -> None:
            X = self._X[slice(*block)]
            squares = np.square(some).sum(axis=1)[:, None] + np.square(X).sum(axis=1)
            squares -= 2.0 * (some @ X.T)
            out[:, slice(*block)] = self._power(np.maximum(squares, 0.0))

        with single_threaded_blas():
            self.workers.run(fill, row_blocks(self.n, BLOCK_ROWS))
        return out

    def widen(self) -> bool:
        """Look into all cells where only near ones were looked into."""
        if self.exact:
            return False
        self.exact = True
        return True

    def neighbors(self, k: int) -> Pairs:
        """The k nearest points among those of the nearest cells."""
        k = min(k, self.n - 1)
        with single_threaded_blas():
            tasks = self._neighbor_tasks(k)
            find = partial(self._neighbors_of_block, k)
            chunks = list(self.workers.map(find, tasks, label="search"))
        return symmetric_pairs(self.n, chunks, self.workers)

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        reach = self._reach(upper)
        with single_threaded_blas():
            tasks = self._screen_tasks(reach) if rows is None else self._row_tasks(reach, rows)
            check = partial(self._screen_block, upper, reach, rows is None)
            chunks: list[PairChunk] = []
            for found in self.workers.map(check, tasks, label="screen"):
                chunks.extend(found)
        checked = self.n_pairs if self.exact else sum(len(r) * (b - a) for a, b, r in tasks)
        pairs = symmetric_pairs(self.n, chunks, self.workers)
        return Screen(pairs, complete=bool(self.exact), pairs_checked=checked)

    def _power(self, squares: FloatArray) -> FloatArray:
        return self._factor * squares**self._half_power

    def _reach(self, upper: FloatArray) -> FloatArray:
        """Numbers r with r_i + r_j >= |x_i - x_j|² wherever c_ij < upper_i + upper_j.

        For p = 2 this is the condition itself. Otherwise
        (a + b)^(2/p) <= max(1, 2^(2/p - 1)) (a^(2/p) + b^(2/p)) separates the two ends.
        """
        if self._half_power == 1.0:
            return upper / self._factor
        exponent = 1.0 / self._half_power
        convexity = max(1.0, 2.0 ** (exponent - 1.0))
        return convexity * (np.maximum(upper, 0.0) / self._factor) ** exponent

    # Neighbors -------------------------------------------------------------------------

    def _neighbor_tasks(self, k: int) -> list[tuple[int, int, IntArray]]:
        """(first row, last row, columns to look at) for each block of rows."""
        if self._cells.n_cells == 1:
            everything = np.arange(self.n, dtype=np.int32)
            return [(a, b, everything) for a, b in row_blocks(self.n, BLOCK_ROWS)]
        offsets = self._cells.offsets
        return [
            (int(offsets[b]), int(offsets[b + 1]), self._members(np.sort(near)))
            for b, near in enumerate(self._near_cells(2 * k + 1))
        ]

    def _near_cells(self, n_points: int) -> list[LongArray]:
        """For each cell the nearest ones, itself included, with ``n_points`` points or more."""
        cells = self._cells
        sizes = np.diff(cells.offsets)
        squares = np.square(cells.centers).sum(axis=1)
        near_cells = []
        for b in range(cells.n_cells):
            distance = squares - 2.0 * (cells.centers @ cells.centers[b])
            near = np.argsort(distance, kind="stable")
            enough = int(np.searchsorted(np.cumsum(sizes[near]), n_points)) + 1
            near_cells.append(near[: max(PROBES, enough)])
        return near_cells

    def _members(self, cells: LongArray) -> IntArray:
        offsets = self._cells.offsets
        return np.concatenate(
            [np.arange(offsets[c], offsets[c + 1], dtype=np.int32) for c in cells]
        )

    def _neighbors_of_block(self, k: int, task: tuple[int, int, IntArray]) -> PairChunk:
        first, last, columns = task
        center = self._X[first:last].mean(axis=0)
        left, _ = self._centered(np.arange(first, last), center, 2.0)
        left[:, -1] = 1.0
        right, squares = self._centered(columns, center, 1.0)
        right[:, -1] = -squares
        found = np.empty((last - first, k), dtype=np.int32)
        kernels.nearest(left @ right.T, first, columns, k, found)
        i, j, c = (
            np.empty(found.size, np.int32),
            np.empty(found.size, np.int32),
            np.empty(found.size),
        )
        count = kernels.costs_of(self._X, first, found, self._factor, self._half_power, i, j, c)
        return i[:count], j[:count], c[:count]

    # Screening -------------------------------------------------------------------------

    def _screen_tasks(self, reach: FloatArray) -> list[ScreenTask]:
        """(first column, last column, rows) so that every possible pair lies in one block."""
        cells = self._cells
        share = (
            self._surviving_share(reach) if cells.n_cells > 1 and self.exact is not False else 1.0
        )
        if self.exact is None:
            self.exact = 0.5 * share * self.n <= AUTO_PAIRS_PER_POINT
        if cells.n_cells > 1 and not self.exact:
            return self._local_tasks()
        if share < PLAIN_SHARE:
            return [
                (int(cells.offsets[b]), int(cells.offsets[b + 1]), rows)
                for b, rows in enumerate(self._surviving_rows(reach))
            ]
        # A row meets the columns behind it: rows up to the last column of the block.
        return [(a, b, np.arange(b)) for a, b in row_blocks(self.n, PLAIN_COLUMNS)]

    def _local_tasks(self) -> list[ScreenTask]:
        """Every cell with the cells before it that look into it, or it into them."""
        offsets, n_cells = self._cells.offsets, self._cells.n_cells
        partners: list[set[int]] = [{b} for b in range(n_cells)]
        for b, near in enumerate(self._near_cells(1)):
            for c in near:
                partners[max(b, int(c))].add(min(b, int(c)))
        return [
            (int(offsets[b]), int(offsets[b + 1]), self._members(np.array(sorted(before))))
            for b, before in enumerate(partners)
        ]

    def _row_tasks(self, reach: FloatArray, rows: LongArray) -> list[ScreenTask]:
        """Blocks that hold every possible pair of some points, with points on either side."""
        cells = self._cells
        if not self.exact or cells.n_cells == 1:
            return [(a, b, rows) for a, b in row_blocks(self.n, PLAIN_COLUMNS)]
        found = self._surviving_rows(reach, rows)
        return [
            (int(cells.offsets[b]), int(cells.offsets[b + 1]), of_cell)
            for b, of_cell in enumerate(found)
            if len(of_cell)
        ]

    def _surviving_share(self, reach: FloatArray) -> float:
        """Share of the (point, later cell) combinations that cannot be excluded, on a sample."""
        tables = _CellTables(self._cells, reach)
        stride = max(1, self.n // SHARE_ROWS)
        rows = np.arange(0, self.n, stride)
        found, _ = self._surviving_block(tables, reach, True, rows)
        return len(found) / int(np.sum(tables.n_cells - tables.owner[rows]))

    def _surviving_rows(self, reach: FloatArray, rows: LongArray | None = None) -> list[IndexArray]:
        """For each cell the points that may have a pair in it.

        Of all points those of the same or earlier cells, since the others find the pair from
        their own side; of given rows all.
        """
        tables = _CellTables(self._cells, reach)
        ordered = rows is None
        if rows is None:
            rows = np.arange(self.n)
        blocks = [rows[a:b] for a, b in row_blocks(len(rows), BLOCK_ROWS)]
        survive = partial(self._surviving_block, tables, reach, ordered)
        listed = list(self.workers.map(survive, blocks))
        counts = sum(np.bincount(cells, minlength=tables.n_cells) for _, cells in listed)
        bounds = np.concatenate(([0], np.cumsum(counts)))
        grouped, cursor = np.empty(bounds[-1], dtype=np.int32), bounds[:-1].copy()
        for found, cells in listed:
            pair_kernels.group(cells, found, cursor, grouped)
        return [grouped[bounds[b] : bounds[b + 1]] for b in range(tables.n_cells)]

    def _surviving_block(
        self, tables: _CellTables, reach: FloatArray, ordered: bool, rows: LongArray
    ) -> tuple[IntArray, IntArray]:
        X = self._X[rows]
        squares = np.square(X).sum(axis=1)
        product = X.astype(np.float32) @ tables.transposed
        # |x|² + |b|² - 2 x·b in float32 is off by at most this much.
        slack = (X.shape[1] + 8) * FLOAT32_UNIT * (np.sqrt(squares) + tables.largest_norm) ** 2
        first_cell = tables.owner[rows] if ordered else np.zeros_like(rows)
        capacity = max(BUFFER_PAIRS, 4 * tables.n_cells)
        found, cells = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        found_rows, found_cells = [], []
        row = 0
        while row < len(rows):
            row, count = kernels.surviving_cells(
                product, squares, tables.squares, tables.radii, reach[rows], tables.reach,
                first_cell, slack, found, cells, row,
            )  # fmt: skip
            found_rows.append(rows[found[:count]].astype(np.int32))
            found_cells.append(cells[:count].copy())
        return np.concatenate(found_rows), np.concatenate(found_cells)

    def _screen_block(
        self, upper: FloatArray, reach: FloatArray, ordered: bool, task: ScreenTask
    ) -> list[PairChunk]:
        first, last, rows = task
        center = self._X[first:last].mean(axis=0)
        right, squares = self._centered(np.arange(first, last), center, 1.0)
        right[:, -1] = reach[first:last] - squares
        right_norm = np.sqrt(squares.max())
        right_last = np.abs(right[:, -1]).max()
        chunks = []
        for a, b in row_blocks(len(rows), BLOCK_ROWS):
            some = rows[a:b]
            left, squares = self._centered(some, center, 2.0)
            left[:, -1] = 1.0
            limits = squares - reach[some]
            # d + 1 products and sums, each within one unit of rounding, on rounded operands.
            size = 2.0 * np.sqrt(squares) * right_norm + right_last + np.abs(limits)
            limits -= (self._X.shape[1] + 8) * FLOAT32_UNIT * size + TINY
            collect = partial(
                kernels.collect, left @ right.T, limits.astype(np.float32), some, first, ordered,
                self._X, upper, self._factor, self._half_power,
            )  # fmt: skip
            chunks += drain(collect, b - a, 4 * (last - first))
        return chunks

    def _centered(
        self, rows: IndexArray, center: FloatArray, scale: float
    ) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], FloatArray]:
        d = self._X.shape[1]
        out, squares = np.empty((len(rows), d + 1), np.float32), np.empty(len(rows))
        kernels.gather(self._X, rows, center, scale, out, squares)
        return out, squares


class _CellTables:
    """float32 tables of the cells, rounded so that no cell is excluded wrongly."""

    def __init__(self, cells: Cells, reach: FloatArray) -> None:
        self.n_cells = cells.n_cells
        self.transposed = np.ascontiguousarray(cells.centers.T.astype(np.float32))
        squares = np.square(cells.centers).sum(axis=1)
        self.squares = squares.astype(np.float32)
        self.largest_norm = float(np.sqrt(squares.max()))
        self.radii = np.nextafter(cells.radii.astype(np.float32), np.float32(np.inf)) * np.float32(
            1.0 + 8 * FLOAT32_UNIT
        )
        largest = np.maximum.reduceat(reach, cells.offsets[:-1])
        self.reach = (largest + kernels.REACH_MARGIN * np.abs(largest)).astype(np.float32)
        self.owner = cells.owner
