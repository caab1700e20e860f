"""Searches in some cells of a cost, for processes that hold only these.

A `Group` holds the points of some cells as they were given, float32 if they were. A window is a
cost of the points of a few groups, scaled as all points are, whose numbers of points and cells are
translated. A search of all cells is made of searches in windows: products have the same operands
as in one process, and what decides is computed from the same numbers. So are the results.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._parallel import Workers, row_blocks
from otgraph.costs.exclusion import AllPairs, NearCells, NotExcluded, meeting_cells
from otgraph.costs.partition import Partition
from otgraph.costs.points import NEIGHBOR_ROWS, EuclideanCost, merged_lists, pairs_of_lists
from otgraph.costs.powers import reaches
from otgraph.costs.scaling import ScaledPoints
from otgraph.costs.single import SinglePoints
from otgraph.costs.squares import row_squares

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from otgraph.costs.near import Bunches, ShortPairs
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.points import NearLists
    from otgraph.costs.scaling import Placement
    from otgraph.costs.sizes import SearchSizes
    from otgraph.typing import Array, FloatArray, IntArray, LongArray

    Found = tuple[int, list[PairChunk]]
    Ball = tuple[FloatArray, FloatArray, FloatArray]  # centers, radii, reaches


# Screens that look into the partners of each cell, all points or those that are near to it.
NEAR_WAYS = ("near", "chosen")


@dataclass(frozen=True)
class Frame:
    """How points are scaled, and what turns their distances into costs; see `ScaledPoints`.

    ``single`` says whether they stay float32, as `SinglePoints`.
    """

    placement: Placement
    power: float
    factor: float
    scale: float
    identical: bool
    sizes: SearchSizes
    single: bool = False

    @property
    def half_power(self) -> float:
        """The power of squared distances."""
        return 0.5 * self.power

    def held(self, points: Array) -> Array:
        """Points as they were given, scaled; those that stay float32 are not centered."""
        if self.single:
            return np.asarray(points * np.float32(self.placement.single(points).scale))
        return np.asarray(self.placement.place(points.astype(np.float64, copy=False), "X"))

    def own(self, held: Array) -> Any:
        """Held points as a cost reads them."""
        if self.single:
            return SinglePoints(held, 1.0, self.placement.single(held).center)
        return held


@dataclass(frozen=True)
class CellLists:
    """Cells that belong to each of some cells: those of ``cells[a]`` in ``others[bounds[a]: ...]``.

    Three arrays, because thousands of short ones would travel as a message each.
    """

    cells: LongArray
    bounds: LongArray
    others: LongArray

    @classmethod
    def of(cls, cells: Sequence[int], others: Sequence[LongArray]) -> CellLists:
        """Lists of some cells, in order."""
        bounds = np.cumsum([0, *map(len, others)])
        together = np.concatenate(others) if len(others) else np.empty(0, dtype=np.int64)
        return cls(np.asarray(cells, dtype=np.int64), bounds, together)

    def pairs(self) -> tuple[LongArray, LongArray]:
        """Both cells of every entry."""
        return np.repeat(self.cells, np.diff(self.bounds)), self.others


@dataclass(frozen=True)
class Group:
    """The points of some cells, in their order, as they were given.

    ``cells`` are the numbers of the cells, ``starts`` those of their first points, and
    ``offsets`` where they begin in ``points``. The points of a group may be scaled already.
    """

    points: Array
    cells: LongArray
    starts: LongArray
    offsets: LongArray
    centers: FloatArray
    radii: FloatArray
    scaled: bool = False

    def __sizeof__(self) -> int:
        """Bytes of the points and of their cells, for those who watch memory."""
        parts = (self.points, self.cells, self.starts, self.offsets, self.centers, self.radii)
        return sum(part.nbytes for part in parts)

    @property
    def members(self) -> IntArray:
        """The numbers of the points."""
        shifts = np.repeat(self.starts - self.offsets[:-1], np.diff(self.offsets))
        return (np.arange(len(self.points)) + shifts).astype(np.int32)

    def sizes_of(self, cells: LongArray) -> LongArray:
        """Number of points of some of the cells, given by their numbers."""
        return np.diff(self.offsets)[np.searchsorted(self.cells, cells)]

    def placed(self, frame: Frame) -> Group:
        """The group with its points scaled."""
        if self.scaled:
            return self
        return replace(self, points=frame.held(self.points), scaled=True)

    def only(self, cells: LongArray) -> Group:
        """Some of the cells, given by their numbers; the points are copied."""
        if len(cells) == len(self.cells):
            return self
        here = np.searchsorted(self.cells, cells)
        parts = [self.points[self.offsets[b] : self.offsets[b + 1]] for b in here]
        offsets = np.concatenate(([0], np.cumsum(self.sizes_of(cells))))
        points = np.concatenate(parts) if parts else self.points[:0]
        return Group(
            points, cells, self.starts[here], offsets, self.centers[here], self.radii[here],
            self.scaled,
        )  # fmt: skip


def joined(
    groups: Sequence[Group], frame: Frame, cells: Sequence[LongArray] | None = None
) -> Group:
    """Several groups as one, scaled, or only some ``cells`` of each; all must be in order.

    One group is scaled at a time, so that no more than one is in memory a third time.
    """
    if cells is None:
        cells = [group.cells for group in groups]
    if len(groups) == 1:
        return groups[0].only(cells[0]).placed(frame)
    sizes = [group.sizes_of(some) for group, some in zip(groups, cells, strict=True)]
    lengths = np.cumsum([0, *(size.sum() for size in sizes)])
    kind = np.float32 if frame.single else np.float64
    points = np.empty((lengths[-1], groups[0].points.shape[1]), dtype=kind)
    names = ("cells", "starts", "centers", "radii")
    parts: dict[str, list[Array]] = {name: [] for name in names}
    for g, (first, last) in enumerate(pairwise(lengths.tolist())):
        part = groups[g].only(cells[g])
        points[first:last] = part.placed(frame).points
        for name in names:
            parts[name].append(getattr(part, name))
    whole = {name: np.concatenate(each) for name, each in parts.items()}
    offsets = np.concatenate(([0], np.cumsum(np.concatenate(sizes))))
    return Group(points, offsets=offsets, **whole, scaled=True)


def cells_near(
    groups: Sequence[Group],
    target: Group,
    rows: Sequence[LongArray] | None,
    partners: CellLists,
) -> list[LongArray]:
    """The cells of each of some groups that a screen of near cells looks into.

    These are cells of the target that have partners in the groups, and the partners. With rows of
    each group, only partners that have any of these count.
    """
    ends, others = partners.pairs()
    last = max(int(groups[-1].cells[-1]), int(others.max(initial=0)))
    wanted = np.zeros(last + 1, dtype=np.bool_)
    for g, group in enumerate(groups):
        here = group.cells
        if rows is not None:
            here = here[np.unique(np.searchsorted(group.starts, rows[g], side="right") - 1)]
        wanted[here] = True
    used = wanted[others] & np.isin(ends, target.cells)
    if rows is None:  # a pair belongs to the later cell
        used &= others <= ends
    needed = np.zeros_like(wanted)
    needed[ends[used]] = True
    needed[others[used]] = True
    return [group.cells[needed[group.cells]] for group in groups]


def met_cells(
    frame: Frame,
    target: Group,
    other: Group,
    upper: FloatArray,
    other_upper: FloatArray,
    rows: LongArray | None,
    way: str,
) -> tuple[Group, Group]:
    """The cells of two groups that a screen looks into; see `Window.screen`.

    Bounds have one entry for each point of the groups.
    """
    same = target is other
    if same and rows is None:
        return target, target
    wanted = np.ones(len(other.cells), dtype=np.bool_)
    if rows is not None:
        wanted[:] = False
        wanted[np.searchsorted(other.starts, rows, side="right") - 1] = True
    if way == "plain":
        meets = np.ones((len(target.cells), len(other.cells)), dtype=np.bool_)
    else:
        meets = meeting_cells(_bounds(frame, target, upper), _bounds(frame, other, other_upper))
    meets &= wanted
    if same:
        some = target.only(target.cells[meets.any(axis=1) | meets.any(axis=0)]).placed(frame)
        return some, some
    return (
        target.only(target.cells[meets.any(axis=1)]).placed(frame),
        other.only(other.cells[meets.any(axis=0)]).placed(frame),
    )


def _bounds(frame: Frame, group: Group, upper: FloatArray) -> Ball:
    """Centers, radii and largest reaches of the cells of a group."""
    reach = reaches(upper, frame.factor, frame.half_power)
    return group.centers, group.radii, np.maximum.reduceat(reach, group.offsets[:-1])


class Window:
    """A cost of the points of some groups; results have the numbers of the whole cost."""

    def __init__(
        self, frame: Frame, groups: Sequence[Group], cells: Sequence[LongArray] | None = None
    ) -> None:
        """All cells of some groups, which are in order, or only these ``cells`` of each."""
        group = joined(groups, frame, cells)
        scaled = ScaledPoints(
            frame.own(group.points), frame.power, frame.factor, frame.scale, frame.placement,
            frame.identical,
        )  # fmt: skip
        self._cells = Partition(group.offsets, group.centers, group.radii)
        self._cost = EuclideanCost(scaled, workers=Workers(1), cells=self._cells, sizes=frame.sizes)
        self._numbers = group.cells
        self.members = group.members

    def neighbors(self, k: int, n_chosen: int, near_cells: CellLists) -> Found:
        """The k nearest points of those in some cells, in the cells near each; all are here."""
        tasks = self._cost.neighbor_tasks(self._local(near_cells).items())
        checked, chunks = 0, []
        for task in tasks:
            n_pairs, found = self._cost.neighbors_of_cell(k, n_chosen, task)
            checked += n_pairs
            chunks += found
        return checked, self._in_whole(chunks)

    def partners(
        self, rows: LongArray, k: int, near_cells: CellLists
    ) -> tuple[LongArray, FloatArray]:
        """The k nearest points of some points in the cells near to theirs, and their costs."""
        found, costs = self._cost.partners_in(self._local(near_cells), self._places(rows), k)
        return self.members[found].astype(np.int64), costs

    def nearest(
        self, k: int, target: Group, other: Group, before: list[NearLists] | None
    ) -> list[NearLists]:
        """Lists of the nearest of another group, merged into those of the groups before.

        One list for each block of rows of the target.
        """
        lists: list[NearLists] = []
        for first, last in self._row_blocks(target):
            best = before[len(lists)] if before else None
            for a, b in self._column_blocks(other):
                columns = np.arange(a, b, dtype=np.int32)
                points, costs = self._cost.nearest_in(k, (first, last), columns, before=best)
                points = np.where(points < 0, points, self.members[points])
                best = merged_lists(best, (points, costs))
            assert best is not None  # no group is empty
            lists.append(best)
        return lists

    def pairs_of(self, target: Group, lists: list[NearLists]) -> list[PairChunk]:
        """Lists of a whole group as pairs."""
        return [
            pairs_of_lists(int(self.members[first]), found)
            for (first, _), found in zip(self._row_blocks(target), lists, strict=True)
        ]

    def screen(
        self,
        target: Group,
        other: Group,
        upper: FloatArray,
        rows: LongArray | None,
        way: str,
    ) -> Found:
        """The pairs with c_ij < upper_i + upper_j of points of one group with those of another.

        The other group comes first, or is the same. If rows are given, those of these rows in it,
        and it may come later, too. ``way`` says how pairs are divided, and ``upper`` has an
        entry for every point of the window.
        """
        columns = self._range(target)
        ends = (int(self._cells.offsets[columns[0]]), int(self._cells.offsets[columns[1]]))
        some = None if rows is None else self._places(rows[np.isin(rows, self.members)])
        if some is None and target is not other:
            first, last = self._range(other)
            some = np.arange(self._cells.offsets[first], self._cells.offsets[last])
        division: AllPairs | NotExcluded
        if way == "plain":
            division = AllPairs(ends, self._cost.sizes.plain_columns, some)
        else:
            reach = self._cost._reach(upper)
            division = NotExcluded(self._cost.own, self._cells, reach, some, columns)
        return self._pairs_in(division, upper, ordered=some is None)

    def screen_near(
        self,
        target: Group,
        upper: FloatArray,
        rows: LongArray | None,
        way: str,
        partners: CellLists,
    ) -> Found:
        """The same of the points of one group in the partners of their cells.

        The window holds what `cells_near` lists. Partners that it does not hold are left out.
        """
        near = [np.empty(0, dtype=np.int64)] * self._cells.n_cells
        for cell, cells in self._local(partners).items():
            near[cell] = cells
        some = None if rows is None else self._places(rows[np.isin(rows, self.members)])
        ends = np.searchsorted(self._numbers, (target.cells[0], target.cells[-1] + 1))
        columns = (int(ends[0]), int(ends[1]))
        division = NearCells(self._cells, near, some, columns, chosen=way == "chosen")
        return self._pairs_in(division, upper, ordered=some is None)

    def _pairs_in(
        self, division: AllPairs | NearCells | NotExcluded, upper: FloatArray, *, ordered: bool
    ) -> Found:
        checked, chunks = self._cost.pairs_in(division, upper, ordered=ordered)
        return checked, self._in_whole(chunks)

    def shortest(
        self, bunches: Bunches, held: Array, labels: LongArray, k: int, *, inside: bool
    ) -> ShortPairs:
        """The k cheapest pairs of each bunch with points of the window; see `EuclideanCost`.

        ``held`` are the points of the bunches as they are held, ``labels`` those of the window.
        """
        found = self._cost.shortest_of_bunches(bunches, held, labels, k, inside=inside)
        return found._replace(j=self.members[found.j].astype(np.int64))

    def costs_from(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Costs from some points to those of the window, for each block of columns."""
        squares = row_squares(points)
        for block in self._blocks_of(self._cells):
            yield slice(*block), self._cost.costs_to(points, squares, block)

    def _local(self, lists: CellLists) -> dict[int, LongArray]:
        """Cells that belong to each of some cells, by their places in the window.

        Those that the window does not hold are left out.
        """
        first, last = int(self._numbers[0]), int(self._numbers[-1])
        place = np.full(last - first + 3, -1)  # the first and the last entry are for cells outside
        place[self._numbers - first + 1] = np.arange(len(self._numbers))
        cells, others = (
            place[np.clip(numbers - first + 1, 0, last - first + 2)]
            for numbers in (lists.cells, lists.others)
        )
        found = {}
        for cell, (a, b) in zip(cells.tolist(), pairwise(lists.bounds.tolist()), strict=True):
            if cell >= 0:
                own = others[a:b]
                found[cell] = own[own >= 0]
        return found

    def _places(self, rows: LongArray) -> LongArray:
        """Places of some points."""
        return np.searchsorted(self.members, rows)

    def _range(self, group: Group) -> tuple[int, int]:
        """Places of the cells of a group."""
        first = int(np.searchsorted(self._numbers, group.cells[0]))
        return first, first + len(group.cells)

    def _column_blocks(self, group: Group) -> list[tuple[int, int]]:
        """Blocks of columns of a whole group."""
        start = int(self._cells.offsets[self._range(group)[0]])
        alone = Partition(group.offsets, group.centers, group.radii)
        return [(start + a, start + b) for a, b in self._blocks_of(alone)]

    def _blocks_of(self, cells: Partition) -> list[tuple[int, int]]:
        """Those of `EuclideanCost.column_blocks` that are within some cells."""
        blocks = cells.blocks(self._cost.sizes.block_rows)
        return [(int(cells.offsets[a]), int(cells.offsets[b])) for a, b in blocks]

    def _row_blocks(self, group: Group) -> list[tuple[int, int]]:
        """The blocks in which the neighbors of a whole group are looked for."""
        return [
            (first + a, first + b)
            for first, last in self._column_blocks(group)
            for a, b in row_blocks(last - first, NEIGHBOR_ROWS)
        ]

    def _in_whole(self, chunks: list[PairChunk]) -> list[PairChunk]:
        """Pairs by the numbers of the whole cost."""
        return [(self.members[i], self.members[j], costs) for i, j, costs in chunks]
