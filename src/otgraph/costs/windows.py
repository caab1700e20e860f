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
    from collections.abc import Iterator, Mapping, Sequence

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

    def place(self, points: Array) -> FloatArray:
        """Points as they were given, scaled and centered, as float64."""
        return np.asarray(self.own(self.held(points))[:])


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
        sizes = np.diff(self.offsets)[here]
        parts = [self.points[self.offsets[b] : self.offsets[b + 1]] for b in here]
        offsets = np.concatenate(([0], np.cumsum(sizes)))
        points = np.concatenate(parts) if parts else self.points[:0]
        return Group(
            points, cells, self.starts[here], offsets, self.centers[here], self.radii[here],
            self.scaled,
        )  # fmt: skip


def joined(groups: Sequence[Group], frame: Frame) -> Group:
    """Several groups as one, scaled; their cells must be in order.

    One group is scaled at a time, so that no more than one is in memory a third time.
    """
    if len(groups) == 1:
        return groups[0].placed(frame)
    lengths = np.cumsum([0, *(len(group.points) for group in groups)])
    kind = np.float32 if frame.single else np.float64
    points = np.empty((lengths[-1], groups[0].points.shape[1]), dtype=kind)
    for group, (first, last) in zip(groups, pairwise(lengths.tolist()), strict=True):
        points[first:last] = group.placed(frame).points
    offsets = [
        group.offsets[:-1] + length for group, length in zip(groups, lengths[:-1], strict=True)
    ]
    names = ("cells", "starts", "centers", "radii")
    whole = {name: np.concatenate([getattr(group, name) for group in groups]) for name in names}
    whole["offsets"] = np.concatenate((*offsets, lengths[-1:]))
    return Group(points, **whole, scaled=True)


def met_cells(
    frame: Frame,
    target: Group,
    other: Group,
    upper: FloatArray,
    other_upper: FloatArray,
    rows: LongArray | None,
    way: str,
    partners: Mapping[int, LongArray] | None,
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
    elif way in NEAR_WAYS:
        assert partners is not None  # the cells to look into
        meets = np.array([np.isin(other.cells, partners[b]) for b in target.cells.tolist()])
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

    def __init__(self, frame: Frame, groups: Sequence[Group]) -> None:
        groups = sorted(groups, key=lambda group: int(group.starts[0]))
        group = joined(groups, frame)
        scaled = ScaledPoints(
            frame.own(group.points), frame.power, frame.factor, frame.scale, frame.placement,
            frame.identical,
        )  # fmt: skip
        self._cells = Partition(group.offsets, group.centers, group.radii)
        self._cost = EuclideanCost(scaled, workers=Workers(1), cells=self._cells, sizes=frame.sizes)
        self._numbers = group.cells
        self.members = group.members

    def neighbors(self, k: int, near_cells: Mapping[int, LongArray]) -> Found:
        """The k nearest points of those in some cells, in the cells near each."""
        tasks = self._cost.neighbor_tasks(self._local(near_cells).items())
        checked, chunks = 0, []
        for task in tasks:
            n_pairs, found = self._cost.neighbors_of_cell(k, task)
            checked += n_pairs
            chunks += found
        return checked, self._in_whole(chunks)

    def partners(
        self, rows: LongArray, k: int, near_cells: Mapping[int, LongArray]
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
        partners: Mapping[int, LongArray] | None = None,
    ) -> Found:
        """The pairs with c_ij < upper_i + upper_j of points of one group with those of another.

        The other group comes first, or is the same. If rows are given, those of these rows in it,
        and it may come later, too. ``way`` says how pairs are divided, and ``upper`` has an
        entry for every point of the window.
        """
        columns = self._range(target)
        ends = (int(self._cells.offsets[columns[0]]), int(self._cells.offsets[columns[1]]))
        some = None if rows is None else self._places(rows[np.isin(rows, self.members)])
        if way in NEAR_WAYS:
            assert partners is not None  # the cells to look into
            near = [np.empty(0, dtype=np.int64)] * self._cells.n_cells
            for cell, cells in self._local(partners, within=other).items():
                near[cell] = cells
            division: AllPairs | NearCells | NotExcluded
            division = NearCells(self._cells, near, some, columns, chosen=way == "chosen")
        else:
            if some is None and target is not other:
                first, last = self._range(other)
                some = np.arange(self._cells.offsets[first], self._cells.offsets[last])
            if way == "plain":
                division = AllPairs(ends, self._cost.sizes.plain_columns, some)
            else:
                reach = self._cost._reach(upper)
                division = NotExcluded(self._cost.own, self._cells, reach, some, columns)
        checked, chunks = self._cost.pairs_in(division, upper, ordered=some is None)
        return checked, self._in_whole(chunks)

    def costs_from(self, points: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Costs from some points to those of the window, for each block of columns."""
        squares = row_squares(points)
        for block in self._blocks_of(self._cells):
            yield slice(*block), self._cost.costs_to(points, squares, block)

    def _local(
        self, cells: Mapping[int, LongArray], within: Group | None = None
    ) -> dict[int, LongArray]:
        """Cells that belong to each of some cells, by their places in the window."""
        found = {}
        for cell, others in cells.items():
            here = int(np.searchsorted(self._numbers, cell))
            if within is not None:
                if here == len(self._numbers) or self._numbers[here] != cell:
                    continue  # left out, because it has no partners
                others = others[np.isin(others, within.cells)]
            found[here] = np.searchsorted(self._numbers, others)
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
