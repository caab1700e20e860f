"""Powers of Euclidean distances between points.

Two steps exclude pairs before costs are computed in float64: whole cells by the triangle
inequality, then single pairs by a float32 product with a proven error bound.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import euclidean as kernels
from otgraph._kernels.near_cells import nearest_in_cells
from otgraph._kernels.shells import screen_cells
from otgraph._parallel import Reused, Workers, row_blocks
from otgraph.costs.base import cheapest_of_each
from otgraph.costs.cells import InCells, enough_points
from otgraph.costs.exclusion import AllPairs, Chained, NearCells, NotExcluded
from otgraph.costs.few import FewPoints
from otgraph.costs.near import Bunches, NearSearch
from otgraph.costs.pairs import drain, empty_chunk
from otgraph.costs.partition import (
    cluster_order,
    enclosing_cells,
    label_order,
    one_cell,
)
from otgraph.costs.powers import DirectPowers, DistancePowers, raised
from otgraph.costs.search import Work
from otgraph.costs.single import SinglePoints
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import product_error, square_distances

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from otgraph.costs.near import ShortPairs
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.partition import Partition
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.typing import Float32Array, FloatArray, IndexArray, IntArray, LongArray

    NeighborTask = tuple[int, int, IntArray]
    CellTask = tuple[int, int, LongArray]
    NearLists = tuple[IntArray, FloatArray]  # points and costs, one row each
    Ways = AllPairs | NearCells | NotExcluded | Chained

CELLS_PER_ROOT = 3.0  # number of cells, relative to sqrt(n): balances making and scanning them
# From a million points on, cells do not grow any more: approximate searches look at a number of
# pairs per point that is proportional to their size.
MOST_CELL_POINTS = 334
# A partner of x in a cell around b with radius r has a squared distance up to R, the sum of two
# reaches. If its direction from x were at right angles to that from b, |x - b|² would be at most
# r² + R; only along a line it could be (r + sqrt(R))². In many dimensions angles are nearly right,
# and few partners are as far from b as r. Of the 15 nearest of ten million points (manifold, 50-d)
# a share of 0.55 loses 2 %, and a point looks into as many pairs as in a third of the cells.
LIKELY_SHARE = 0.45
# A sample of the points has about so many neighbors of a point that wants k. The pairs that are
# found are that many times k: fewer would leave more points whose potentials exceed their bounds,
# and more take longer in every step.
SAMPLED_NEIGHBORS = 3
MORE_PAIRS = 1.67
FEWEST_SAMPLED = 64
TIE_MARGIN = 1.0 - 1e-9  # factor that excludes pairs exactly at the bound
PARTNER_STEP = 8  # one of so many points tells how far a few partners are at most
# Relative error of one term of |x|² - 2 x·y + |y|² for near points, amply.
PRODUCT_NOISE = 16.0 * np.finfo(np.float64).eps
NEIGHBOR_ROWS = 512  # rows that are compared with all points at once


def cell_count(n: int) -> int:
    """Number of cells for n points."""
    return int(max(CELLS_PER_ROOT * np.sqrt(n), n / MOST_CELL_POINTS))


class EuclideanPowers(InCells, DistancePowers):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale, in any number of dimensions.

    ``exact`` says whether screens cover all pairs or only near cells; None leaves the choice to
    `decide`. ``labels`` are the cells of the points, if already known. With ``keep_order`` there
    is one cell, and the points stay in their order. ``cells`` are those of points that are in
    their order already, such as a part of the points of a larger cost.
    """

    def __init__(
        self,
        scaled: ScaledPoints,
        *,
        exact: bool | None = True,
        seed: int = 0,
        workers: Workers,
        labels: LongArray | None = None,
        keep_order: bool = False,
        cells: Partition | None = None,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        points, n = scaled.points, len(scaled.points)
        order = None
        if n >= sizes.fewest_cell_points and not keep_order and cells is None:
            if labels is None:
                order, offsets = cluster_order(points, cell_count(n), seed, workers)
            else:
                order, offsets = label_order(labels, cell_count(n))
        super().__init__(scaled, workers, order, sizes)
        if cells is not None:
            self._cells = cells
        elif order is None:
            self._cells = one_cell(self.own.shape, float(self._squares.max()))
        else:
            self._cells = enclosing_cells(self.own, offsets)
        self.exact = exact
        self.compares_all = self._cells.n_cells == 1
        self.searched_cells = sizes.screen_cells  # per cell, in an approximate screen

    def _surviving_share(self, upper: FloatArray) -> float:
        return NotExcluded(self.own, self._cells, self._reach(upper), None).share()

    def _points_of(self, rows: LongArray) -> FloatArray:
        return np.asarray(self.own[rows])

    def neighbor_work(self, k: int) -> Work:
        """The search for the k nearest points, within near cells or among all points."""
        k = min(k, self.n - 1)
        near = self._near_cells(k)
        if near is not None:
            near_cells, n_chosen = near
            tasks = self.neighbor_tasks(enumerate(near_cells))
            return Work(tasks, partial(self.neighbors_of_cell, k, n_chosen))
        if self.compares_all:
            return self._work_of_all(k)
        k = self._neighbors_of_hubs(k)
        return Work(self._all_columns(), partial(self._neighbors_among_all, k))

    def _work_of_all(self, k: int) -> Work:
        """The search for the k nearest points of every row where it compares all points."""
        reach = np.empty(self.n)
        find = partial(self._neighbors_of_block, k, reach)
        return Work(self._all_columns(), find, reach=reach)

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        reach = self._reach(upper)
        way = self._choose_blocks(reach, rows)
        check = partial(self._screen_batch, way, upper, reach, rows is None, Reused(np.float32))
        # Pairs are looked at once, in the later cell: later batches have more rows.
        sizes = [_last(batch) for batch in way.batches] if rows is None else None
        return Work(way.batches, check, complete=self.exact is not False, sizes=sizes)

    # Neighbors -------------------------------------------------------------------------

    def neighbor_tasks(self, near_cells: Iterable[tuple[int, LongArray]]) -> list[CellTask]:
        """(first row, last row, cells near them, nearest first) for some cells."""
        offsets = self._cells.offsets
        return [(int(offsets[b]), int(offsets[b + 1]), near) for b, near in near_cells]

    def _all_columns(self) -> list[NeighborTask]:
        """Blocks of rows that do not cross those of columns, each with all columns."""
        everything = np.arange(self.n, dtype=np.int32)
        return [
            (first + a, first + b, everything)
            for first, last in self.column_blocks()
            for a, b in row_blocks(last - first, NEIGHBOR_ROWS)
        ]

    def column_blocks(self) -> list[tuple[int, int]]:
        """Whole cells, so that each product is the same where only some cells are in memory."""
        if self._cells.n_cells == 1:
            return super().column_blocks()
        offsets = self._cells.offsets
        return [
            (int(offsets[a]), int(offsets[b])) for a, b in self._cells.blocks(self.sizes.block_rows)
        ]

    def neighbors_of_cell(
        self, k: int, n_chosen: int, task: CellTask
    ) -> tuple[int, list[PairChunk]]:
        """About k neighbors of the points of a cell, each in the near cells that it is nearest to.

        Of as many cells, those near a point hold more of its neighbors than those near its cell.
        """
        first, last, cells = task
        starts, stops = self._cells.offsets[cells], self._cells.offsets[cells + 1]
        center = self.own[first:last].mean(axis=0)
        towards = self._cells.centers[cells] - center
        found = np.empty((last - first, k), dtype=np.int32)
        n_pairs = nearest_in_cells(
            self._values, first, last, self._as_held(center), starts, stops, towards, n_chosen,
            enough_points(k), found,
        )  # fmt: skip
        return n_pairs, [self._listed_pairs(first, found)]

    def _neighbors_of_block(
        self, k: int, reach: FloatArray | None, task: NeighborTask
    ) -> tuple[int, list[PairChunk]]:
        first, last, columns = task
        _, pairs = self._near_points(k, (first, last), columns, reach)
        return (last - first) * len(columns), [pairs]

    def _fill_reach(
        self, reach: FloatArray, squares: FloatArray, others: FloatArray, beyond: Float32Array
    ) -> None:
        """Costs below which no point is missing: those left out have products up to ``beyond``."""
        largest = others.max(initial=0.0)
        size = 2.0 * np.sqrt(squares * largest) + largest + squares
        left_out = squares - beyond - product_error(size, self.own.shape[1])
        reach[:] = self.factor * np.maximum(left_out, 0.0) ** self._half_power

    def _neighbors_among_all(self, k: int, task: NeighborTask) -> tuple[int, list[PairChunk]]:
        """The nearest of each block of columns, then the nearest of these."""
        first, last, columns = task
        best = None
        cuts = np.searchsorted(columns, [a for a, _ in self.column_blocks()[1:]])
        for some in np.split(columns, cuts):
            if len(some):
                best = merged_lists(best, self.nearest_in(k, (first, last), some, before=best))
        assert best is not None  # there are columns
        return (last - first) * len(columns), [pairs_of_lists(first, best)]

    def nearest_in(
        self,
        k: int,
        rows: tuple[int, int],
        columns: IntArray,
        before: NearLists | None = None,
    ) -> NearLists:
        """The k nearest of some columns and their costs; see `_near_points`.

        Where there are fewer than k, the number is -1 and the cost infinite.
        """
        found, (_, _, listed) = self._near_points(k, rows, columns, before=before)
        costs = np.full(found.shape, np.inf)
        costs[found >= 0] = listed
        return found, costs

    def _near_points(
        self,
        k: int,
        rows: tuple[int, int],
        columns: IntArray,
        reach: FloatArray | None = None,
        before: NearLists | None = None,
    ) -> tuple[IntArray, PairChunk]:
        """The k nearest of some columns, by a float32 product, as lists, and as pairs with costs.

        ``reach`` is filled with the cost of each row below which no other column is. ``before`` has
        lists of other columns: what is farther than all of a list is left out.
        """
        first, last = rows
        center = self.own[first:last].mean(axis=0)
        left, own_squares = self._centered(np.arange(first, last, dtype=np.int32), center, 2.0)
        left[:, -1] = 1.0
        right, squares = self._centered(columns, center, 1.0)
        right[:, -1] = -squares
        found = np.empty((last - first, k), dtype=np.int32)
        beyond = np.empty(last - first, dtype=np.float32)
        floor = np.full(last - first, -np.inf, dtype=np.float32)
        if before is not None:
            farthest = (before[1].max(axis=1) / self.factor) ** (1.0 / self._half_power)
            floor[:] = own_squares - farthest
        kernels.nearest(left @ right.T, first, columns, k, floor, found, beyond)
        if reach is not None:
            self._fill_reach(reach[first:last], own_squares, squares, beyond)
        return found, self._listed_pairs(first, found)

    def _listed_pairs(self, first: int, found: IntArray) -> PairChunk:
        """Lists of near points of consecutive points as pairs with their costs."""
        i, j, c = empty_chunk(found.size)
        count = kernels.costs_of(self._values, first, found, self.factor, self._half_power, i, j, c)
        return i[:count], j[:count], c[:count]

    # Screening -------------------------------------------------------------------------

    def _choose_blocks(self, reach: FloatArray, rows: LongArray | None) -> Ways:
        """How to divide the pairs into blocks."""
        if self.exact is False and self._cells.n_cells > 1:
            return NearCells(self._cells, self.partner_cells(), rows, chosen=self.chooses)
        return self._exact_blocks(reach, rows, (0, self.n), (0, self._cells.n_cells))

    def pairs_in(
        self, way: Ways, upper: FloatArray, *, ordered: bool
    ) -> tuple[int, list[PairChunk]]:
        """Number of pairs computed, and those below the bound, in all blocks of a division."""
        reach, checked, chunks = self._reach(upper), 0, []
        reused = Reused(np.float32)
        for batch in way.batches:
            n_pairs, found = self._screen_batch(way, upper, reach, ordered, reused, batch)
            checked += n_pairs
            chunks += found
        return checked, chunks

    def _exact_blocks(
        self,
        reach: FloatArray,
        rows: LongArray | None,
        columns: tuple[int, int],
        cells: tuple[int, int],
    ) -> AllPairs | NotExcluded:
        """Blocks of all pairs with some columns, which are the points of a range of cells."""
        plain = AllPairs(columns, self.sizes.plain_columns, rows)
        if self._cells.n_cells == 1:
            return plain
        way = NotExcluded(self.own, self._cells, reach, rows, cells)
        return way if way.share() < self.sizes.plain_share else plain

    def _screen_batch(
        self,
        way: Ways,
        upper: FloatArray,
        reach: FloatArray,
        ordered: bool,
        reused: Reused,
        batch: Any,
    ) -> tuple[int, list[PairChunk]]:
        """Number of pairs computed, and the pairs below the bound."""
        division: AllPairs | NearCells | NotExcluded
        division, batch = batch if isinstance(way, Chained) else (way, batch)
        if isinstance(division, NotExcluded):
            return self._screen_cells(division, upper, reach, ordered, batch)
        chunks: list[PairChunk] = []
        checked = 0
        for first, last, rows in division.blocks(batch):
            if isinstance(division, NearCells) and division.chosen:
                rows = self._likely(reach, first, last, rows)
            checked += (last - first) * len(rows)
            if len(rows):
                chunks += self._screen_block(upper, reach, ordered, reused, first, last, rows)
        return checked, chunks

    def _likely(self, reach: FloatArray, first: int, last: int, rows: IndexArray) -> IndexArray:
        """The rows that are likely to have pairs with the points of a cell; see `LIKELY_SHARE`."""
        members = self.own[first:last]
        center = members.mean(axis=0)
        square = float(np.square(members - center).sum(axis=1).max())
        center = self._as_held(center)
        usual = float(reach[first:last].mean())
        near = kernels.near_center(self._values, rows, center, square, reach, usual, LIKELY_SHARE)
        return rows[near]

    def _screen_cells(
        self,
        way: NotExcluded,
        upper: FloatArray,
        reach: FloatArray,
        ordered: bool,
        batch: tuple[int, int],
    ) -> tuple[int, list[PairChunk]]:
        """The same for points that cells exclude one by one."""
        if not way.meets(batch):
            return 0, []
        shells = way.shells(batch).arguments
        checked, chunks = 0, []
        for rows, first_cells in way.row_blocks(batch):
            points = (self._values, rows, first_cells, reach[rows])
            bound = (ordered, upper, self.factor, self._half_power)
            arguments: tuple[Any, ...] = (*points, *shells, *bound)
            n_pairs, i, j, costs = screen_cells(*arguments)
            checked += n_pairs
            chunks.append((i, j, costs))
        return checked, chunks

    def _screen_block(
        self,
        upper: FloatArray,
        reach: FloatArray,
        ordered: bool,
        reused: Reused,
        first: int,
        last: int,
        rows: IndexArray,
    ) -> list[PairChunk]:
        center = self.own[first:last].mean(axis=0)
        right, squares = self._centered(np.arange(first, last, dtype=np.int32), center, 1.0)
        with np.errstate(over="ignore"):  # a reach beyond float32 is infinite: all pairs pass
            right[:, -1] = reach[first:last] - squares
        right_norm = np.sqrt(squares.max())
        right_last = np.abs(right[:, -1]).max()
        chunks = []
        for a, b in row_blocks(len(rows), self.sizes.block_rows):
            some = rows[a:b]
            left, squares = self._centered(some, center, 2.0)
            left[:, -1] = 1.0
            limits = squares - reach[some]
            size = 2.0 * np.sqrt(squares) * right_norm + right_last + np.abs(limits)
            limits -= product_error(size, self.own.shape[1])
            with np.errstate(over="ignore", invalid="ignore"):
                product, limits = reused.product(left, right.T), limits.astype(np.float32)
            collect = partial(
                kernels.collect, product, limits, some, first, ordered,
                self._values, upper, self.factor, self._half_power,
            )  # fmt: skip
            chunks += drain(collect, b - a, 4 * (last - first))
            reused.give_back(product)
        return chunks

    def _centered(
        self, rows: IndexArray, center: FloatArray, scale: float
    ) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float32]], FloatArray]:
        d = self.own.shape[1]
        out, squares = np.empty((len(rows), d + 1), np.float32), np.empty(len(rows))
        kernels.gather(self._values, rows, self._as_held(center), scale, out, squares)
        return out, squares

    def _as_held(self, center: FloatArray) -> FloatArray:
        """A point of the centered cloud, as kernels see the points, which may not be centered."""
        return center + self.own.center if isinstance(self.own, SinglePoints) else center


class EuclideanCost(EuclideanPowers, DirectPowers):
    """Powers of distances within one cloud, in any number of dimensions."""

    _few: FewPoints | None = None  # known after a search for neighbors

    def _work_of_all(self, k: int) -> Work:
        """The search for pairs with c_ij < b_i + b_j, for bounds b_i that resemble potentials.

        It is a screen, which need not be repeated for potentials below these bounds. Every pair is
        looked at once, so that it takes half of the products of lists of nearest points.
        """
        if self.n <= NEIGHBOR_ROWS:
            reach = np.empty(self.n)
            return Work([k], partial(self._neighbors_of_few, reach), reach=reach)
        upper, sure = self._likely_bounds(k)
        return replace(self.screen_work(upper), reach=2.0 * sure)

    def _neighbors_of_few(self, reach: FloatArray, k: int) -> tuple[int, list[PairChunk]]:
        """The pairs of all points, each once and in order, so that nothing has to be sorted."""
        n, d = self.own.shape
        points, squares = self._centered(np.arange(n, dtype=np.int32), np.zeros(d), 1.0)
        self._few = FewPoints(points[:, :d], squares, (self._values, self.factor, self._half_power))
        beyond, pairs = self._few.near(k)
        self._fill_reach(reach, squares, squares, beyond)
        return n * n, [pairs]

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """Where the products of few points are known, nothing is multiplied again."""
        few = self._few
        if few is None or rows is None:
            return super().screen_work(upper, rows)

        def find(some: LongArray) -> tuple[int, list[PairChunk]]:
            return len(some) * self.n, [few.below(upper, self._reach(upper), some)]

        return Work([rows], find, complete=self.exact is not False)

    def forget_points(self) -> None:
        """Free the points and their products."""
        self._few = None
        vars(self).pop("_in_cells", None)
        super().forget_points()

    def _likely_bounds(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Bounds that resemble potentials and give every point about k pairs.

        Pairs exactly at the bound are left out, but for copies, which are always partners. The
        second bounds are lower by the noise of products: where workers have different processors,
        each computes the bounds of its part of the search.
        """
        step = max(1, min(k // SAMPLED_NEIGHBORS, self.n // FEWEST_SAMPLED))
        rank = round(MORE_PAIRS * k / step)
        if rank * step >= self.n - 1:  # nearly all pairs are wanted
            return (raised(np.full(self.n, self.largest)),) * 2
        reach = sampled_reach(self.own, self._squares, step, rank, self.workers)
        noise = self._noise(slice(None), reach)
        levels = reach + noise, np.maximum(reach - noise, 0.0)
        upper, sure = (0.5 * self.factor * (2.0 * level) ** self._half_power for level in levels)
        tiny = np.finfo(np.float64).tiny
        return TIE_MARGIN * upper + 2.0 * tiny, TIE_MARGIN * sure + tiny

    def _noise(self, rows: Any, squares: FloatArray) -> FloatArray:
        """Bound of the errors of squared distances of some points, by products in float64."""
        sizes = self._squares[rows] + squares
        return PRODUCT_NOISE * (self.own.shape[1] + 8) * sizes

    def nearest_pairs(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, sorted by point and cost.

        An approximate search looks only where first candidates come from.
        """
        if self.exact is not False or self._cells.n_cells == 1:
            listed = self._cells.n_cells > 1 and k < self.n
            return self._nearest_by_lists(rows, k) if listed else super().nearest_pairs(rows, k)
        partners, costs = self._partners_in_near_cells(rows, k)
        return cheapest_of_each(
            np.repeat(rows, k), np.repeat(rows, k), partners.ravel(), costs.ravel(), k
        )

    def _nearest_by_lists(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The same by lists whose bounds fall.

        Points of wide clusters have their nearest points in all cells of these. A bound from near
        cells would let a screen find hundreds of pairs for each.
        """
        queries = self._values[rows].astype(np.float64, copy=False)
        partners, costs = self._in_cells.nearest(k, queries, rows, **self._formula)
        return np.repeat(rows, k), partners.ravel(), costs.ravel()

    def shortest_of_groups(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """As in `Cost`, cell by cell; one bound serves all points of a group."""
        if self._cells.n_cells == 1:
            return super().shortest_of_groups(rows, labels, k)
        bunches = Bunches.by_group(rows, labels)
        found = self.shortest_of_bunches(
            bunches, self._values[bunches.rows], labels, k, inside=False
        )
        return found.i, found.j, self.listed(found.i, found.j)

    def nearest_inside(self, rows: LongArray, groups: LongArray, labels: LongArray) -> LongArray:
        """As in `Cost`, cell by cell."""
        if self._cells.n_cells == 1:
            return super().nearest_inside(rows, groups, labels)
        bunches = Bunches.one_by_one(rows, groups)
        return self.shortest_of_bunches(bunches, self._values[rows], labels, 1, inside=True).j

    def shortest_of_bunches(
        self, bunches: Bunches, queries: Any, labels: LongArray, k: int, *, inside: bool
    ) -> ShortPairs:
        """The k cheapest pairs of each bunch; ``queries`` are its points as they are held here."""
        return self._in_cells.shortest(bunches, queries, labels, k, inside=inside, **self._formula)

    @cached_property
    def _in_cells(self) -> NearSearch:
        """The points for searches from some of them, sorted by the cells that there are."""
        return NearSearch(self._values, self.workers, self.sizes, self._cells.offsets)

    @property
    def _formula(self) -> dict[str, float]:
        """How a cost comes from a squared distance."""
        return {"factor": self.factor, "half_power": self._half_power}

    def _partner_bounds(self, rows: LongArray, k: int) -> FloatArray:
        """A cost that at least k partners of each point do not exceed, from a sample.

        In one cell, points that are near in memory are no nearer than others.

        A point of the sample is its own first partner.
        """
        step = max(1, min(PARTNER_STEP, self.n // (2 * (k + 1))))
        sample, sample_squares = self.own[::step], self._squares[::step]
        found = np.empty(len(rows))

        def fill(block: tuple[int, int]) -> None:
            some = rows[slice(*block)]
            squares = square_distances(
                self.own[some], self._squares[some], sample, sample_squares, near=False
            )
            found[slice(*block)] = np.partition(squares, k, axis=1)[:, k]

        with single_threaded_blas():
            self.workers.run(fill, row_blocks(len(rows), NEIGHBOR_ROWS))
        found += self._noise(rows, found)
        return raised(self.factor * found**self._half_power)

    def _partners_in_near_cells(self, rows: LongArray, k: int) -> tuple[LongArray, FloatArray]:
        """The k nearest points of some points in the cells near to theirs, and their costs."""
        with single_threaded_blas():
            near_cells = self._cells.nearest(self.sizes.nearest_cells, n_points=enough_points(k))
        return self.partners_in(dict(enumerate(near_cells)), rows, k)

    def partners_in(
        self, near_cells: Mapping[int, LongArray], rows: LongArray, k: int
    ) -> tuple[LongArray, FloatArray]:
        """The same, given the cells near those of the points."""
        cells = self._cells
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], cells.offsets)
        partners, costs = np.empty((len(rows), k), np.int64), np.empty((len(rows), k))

        def fill(cell: int) -> None:
            here = order[cuts[cell] : cuts[cell + 1]]
            some, columns = rows[here], cells.members(np.sort(near_cells[cell]))
            squares = square_distances(
                self.own[some], self._squares[some],
                self.own[columns], self._squares[columns], near=False,
            )  # fmt: skip
            near = columns[np.argpartition(squares, k, axis=1)[:, : k + 1]]
            found = self._costs_among(some, near)  # the point itself is one, at an infinite cost
            nearest = np.argpartition(found, k - 1, axis=1)[:, :k]
            partners[here] = np.take_along_axis(near, nearest, axis=1)
            costs[here] = np.take_along_axis(found, nearest, axis=1)

        with single_threaded_blas():
            self.workers.run(fill, np.flatnonzero(np.diff(cuts)).tolist())
        return partners, costs


def sampled_reach(
    own: Any, squares: FloatArray, step: int, rank: int, workers: Workers
) -> FloatArray:
    """Half of the squared distance to a near point of every point, corrected for that of others.

    The near point is that of some rank among every ``step``-th point. Where points differ, these
    halves are no good potentials: points far out, whose partners are hubs, need what these lack. So
    the result is the mean of the half and of what the row needs besides the halves of the others,
    as far as these are not larger than its own: small clusters far away would lower all the others.
    In float32 the noise of tight clusters far from each other would give them all of their pairs.
    """
    (_n, d), sample = own.shape, own[::step]
    right = np.empty((d + 1, len(sample)))
    sample_squares = squares[::step].copy()  # a view with steps would be compiled for by itself
    right[:d], right[d] = 2.0 * sample.T, -sample_squares
    halves, reused = np.zeros(len(sample)), Reused(np.float64)

    def found(points: Any, own_squares: FloatArray, step: int) -> tuple[FloatArray, FloatArray]:
        near, needed = np.empty((2, len(own_squares)))

        def fill(rows: tuple[int, int]) -> None:
            here = slice(*rows)
            left = np.ones((rows[1] - rows[0], d + 1))
            left[:, :d] = points[here]
            product = reused.product(left, right)
            kernels.near_in_sample(
                product, own_squares[here], rows[0], step, halves, rank, near[here], needed[here]
            )
            reused.give_back(product)

        workers.run(fill, row_blocks(len(own_squares), NEIGHBOR_ROWS))
        return near, needed

    halves = np.maximum(0.5 * found(sample, sample_squares, 1)[0], 0.0)
    near, needed = found(own, squares, step)
    return np.maximum(0.25 * near + 0.5 * needed, 0.0)


def merged_lists(before: NearLists | None, new: NearLists) -> NearLists:
    """The nearest of two lists of different columns; of equal costs those of the first list."""
    if before is None:
        return new
    points = np.concatenate((before[0], new[0]), axis=1)
    costs = np.concatenate((before[1], new[1]), axis=1)
    kept = np.argsort(costs, axis=1, kind="stable")[:, : before[0].shape[1]]
    return np.take_along_axis(points, kept, axis=1), np.take_along_axis(costs, kept, axis=1)


def pairs_of_lists(first: int, lists: NearLists) -> PairChunk:
    """Lists of consecutive points as pairs with their costs."""
    points, costs = lists
    there = points >= 0
    rows = np.arange(first, first + len(points), dtype=np.int32)
    return np.repeat(rows, there.sum(axis=1)), points[there], costs[there]


def _last(batch: Any) -> float:
    """The last row or cell of a batch; between clouds it comes with the way to divide them."""
    last = batch[1]
    return float(last[1] if isinstance(last, tuple) else last)
