"""The cost of points that the workers share, in groups of whole cells.

The driver knows center, radius and bound of every cell, and from these which groups can have pairs
with each other. A part of a search is a task that depends on these groups, so that Dask moves and
frees them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._blas import single_threaded_blas
from otgraph._kernels import pairs as kernels
from otgraph._parallel import row_blocks
from otgraph.costs.base import Screen, cheapest_of_each
from otgraph.costs.cells import InCells, enough_points
from otgraph.costs.exclusion import NotExcluded, meeting_cells, share_rows
from otgraph.costs.near import Bunches
from otgraph.costs.powers import raised, reaches
from otgraph.costs.squares import subtracted_squares
from otgraph.costs.windows import NEAR_WAYS, CellLists, Window, cells_near, met_cells
from otgraph.distributed._blocks import Vector, segment_rows
from otgraph.distributed._cost import DistributedCost, found_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from distributed import Future

    from otgraph._parallel import Workers
    from otgraph.costs.near import ShortPairs
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.points import NearLists
    from otgraph.costs.windows import Frame, Group
    from otgraph.distributed._blocks import Entries, Pieces
    from otgraph.distributed._cluster import Kept
    from otgraph.distributed._pairs import DistributedPairs
    from otgraph.distributed._points import SharedPoints
    from otgraph.typing import Array, FloatArray, LongArray

    FoundPairs = Kept[dict[int, Entries], tuple[int, set[int]]]

# Groups that a task compares with one group, where memory allows: it holds all of them.
MOST_OTHERS = 4
# Least number of tasks of a search for each thread: so that threads end at about the same time, as
# Dask does not always give two workers as many tasks. But messages of small ones take longer.
TASKS_PER_THREAD = 8
LEAST_TASK_POINTS = 1 << 15


class SharedCost(InCells, DistributedCost):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale of points in groups on the workers."""

    def __init__(
        self,
        points: SharedPoints,
        *,
        exact: bool | None,
        block_rows: int,
        pair_bytes: int,
        workers: Workers,
    ) -> None:
        super().__init__(
            points.cluster, points.order, block_rows=block_rows, pair_bytes=pair_bytes,
            workers=workers,
        )  # fmt: skip
        self.points = points
        self.frame = points.frame
        self.scale, self.identical = self.frame.scale, self.frame.identical
        self.largest = points.largest
        self.sizes = self.frame.sizes
        self.searched_cells = self.sizes.screen_cells
        self.exact = exact
        self._cells = points.cells
        self._sampled: FloatArray | None = None

    def forget_points(self) -> None:
        """Free the groups on the workers; no cost can be computed any more."""
        self.points.groups.clear()

    def _reach(self, upper: FloatArray) -> FloatArray:
        return reaches(upper, self.frame.factor, self.frame.half_power)

    def _surviving_share(self, upper: FloatArray) -> float:
        if self._sampled is None:
            self._sampled = self.points.rows(share_rows(np.arange(self.n)))
        return NotExcluded(None, self._cells, self._reach(upper), None).share(self._sampled)

    def _points_of(self, rows: LongArray) -> FloatArray:
        return self.points.rows(rows)

    # Neighbors -------------------------------------------------------------------------

    def neighbors(self, k: int) -> DistributedPairs:
        """Pairs of near points, about k per point; they need not be the k nearest."""
        k = min(k, self.n - 1)
        with single_threaded_blas():
            near = self._near_cells(k)
        if near is None:
            found = self._nearest_of_all(self._neighbors_of_hubs(k))
        else:
            near_cells, n_chosen = near
            own, end = (self.frame, k, n_chosen), (self.n, self._ranges[0][1])
            found = self._among_near("search", _find_neighbors, near_cells, *own, *end)
            if self.exact is False:
                with single_threaded_blas():
                    self.partner_cells()  # for screens; workers would wait for the driver there
        return self._collected("search", found)[1]

    def _nearest_of_all(self, k: int) -> list[Future]:
        """The neighbors of all groups, from all groups, some at a time."""
        groups, sizes, pace = self.points.groups, self.points.group_bytes(), self.cluster.paced()
        lists: dict[int, Future] = {}
        for a, b in row_blocks(len(groups), self._others_per_task(len(groups) ** 2)):
            end = (self.n, self._ranges[0][1]) if b == len(groups) else None
            for g, group in enumerate(groups):
                same = g - a if a <= g < b else None
                pace.make_room(size := int(sizes[g] + sizes[a:b].sum()))
                task = (self.frame, k, group, groups[a:b], same, lists.get(g), end)
                lists[g] = self.cluster.submit("search", _merge_nearest, *task)
                pace.add(lists[g], size)
        return list(lists.values())

    def _others_per_task(self, n_meetings: int) -> int:
        """Groups that a task compares with one group; it may get no more than its input."""
        fit = self.cluster.input_bytes // int(self.points.group_bytes().max()) - 1
        fair = n_meetings * self._task_points() // self.n
        return max(1, min(MOST_OTHERS, fit, fair))

    def _task_points(self) -> int:
        """Points for which a task of a search looks for neighbors, about."""
        return max(LEAST_TASK_POINTS, -(-self.n // (TASKS_PER_THREAD * self.cluster.n_threads)))

    def _among_near(
        self, label: str, function: Any, near: list[LongArray], *arguments: Any,
        rows: LongArray | None = None,
    ) -> list[Future]:  # fmt: skip
        """Tasks for the cells of each group, with those near them, or for the cells of some points.

        A group sends only the cells that are needed, unless a task may get all of the groups: a
        worker keeps these for its other tasks, and each cut is a task of its own.
        """
        points, bounds, offsets = self.points, self.points.bounds, self._cells.offsets
        sizes = points.group_bytes()
        wanted = np.arange(self._cells.n_cells)
        if rows is not None:
            wanted = np.unique(np.searchsorted(offsets, rows, side="right") - 1)
        tasks, pace = [], self.cluster.paced()
        for cells, needed, size in self._divided(wanted, near):
            own = []
            if rows is not None:
                own = [rows[slice(*np.searchsorted(rows, offsets[[cells[0], cells[-1] + 1]]))]]
            parts = np.split(needed, np.searchsorted(needed, bounds[1:-1]))
            met = [s for s, part in enumerate(parts) if len(part)]
            whole = int(sizes[met].sum())
            if whole <= self.cluster.input_bytes:
                size = whole
            pace.make_room(size)
            pieces = [
                points.groups[s]
                if size == whole or len(parts[s]) == bounds[s + 1] - bounds[s]
                else self.cluster.submit("cells", _only, points.groups[s], parts[s])
                for s in met
            ]
            near_cells = CellLists.of(cells, [near[b] for b in cells])
            task = (pieces, [parts[s] for s in met], near_cells, *own, *arguments)
            tasks.append(self.cluster.submit(label, function, *task))
            pace.add(tasks[-1], size)
        return tasks

    def _divided(
        self, wanted: LongArray, near: list[LongArray]
    ) -> Iterator[tuple[list[int], LongArray, int]]:
        """Cells of one group at a time, and all that are near them, which take ``input_bytes``.

        Only those near a single cell may take more. Yields the cells, those near them, sorted, and
        the size of the latter.
        """
        sizes, limit = self.points.cell_bytes(), self.cluster.input_bytes
        needed = np.zeros(self._cells.n_cells, dtype=np.bool_)
        for group in self._equal_parts(wanted):
            cells: list[int] = []
            size = 0
            for b in group.tolist():
                around = np.append(near[b], b)  # the cell itself is one of its nearest, or not
                more = int(sizes[np.unique(around[~needed[around]])].sum())
                if cells and size + more > limit:
                    yield cells, np.flatnonzero(needed), size
                    cells, size, needed[:] = [], 0, False
                    more = int(sizes[np.unique(around)].sum())
                needed[around] = True
                cells.append(b)
                size += more
            if cells:
                yield cells, np.flatnonzero(needed), size
                needed[:] = False

    def _equal_parts(self, wanted: LongArray) -> Iterator[LongArray]:
        """Some cells, those of each group in parts of about equal size."""
        most = self._task_points()
        sizes = np.diff(self._cells.offsets)
        for group in np.split(wanted, np.searchsorted(wanted, self.points.bounds[1:-1])):
            ends = np.cumsum(sizes[group])
            n_parts = -(-int(ends[-1]) // most) if len(group) else 0
            cuts = np.searchsorted(ends, [ends[-1] * p / n_parts for p in range(1, n_parts)])
            yield from np.split(group, np.unique(cuts))

    def nearest_pairs(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, which are sorted.

        As `EuclideanCost.nearest_pairs`.
        """
        with single_threaded_blas():
            near = self._cells.nearest(self.sizes.nearest_cells, n_points=enough_points(k))
        tasks = self._among_near("partners", _find_partners, near, self.frame, k, rows=rows)
        found = self.cluster.gather(tasks)
        partners, costs = (np.concatenate(parts) for parts in zip(*found, strict=True))
        if self.exact is False:  # look only where first candidates come from
            ends = np.repeat(rows, k)
            return cheapest_of_each(ends, ends, partners.ravel(), costs.ravel(), k)
        upper = np.zeros(self.n)
        upper[rows] = raised(costs.max(axis=1))
        pairs = self._screened(upper, rows)[1]
        i, j, costs = pairs.cheapest(rows, k)
        counts = np.diff(np.searchsorted(i, np.append(rows, self.n)))
        short = rows[counts < min(k, self.n - 1)]  # an approximate screen misses pairs
        if not len(short):
            return i, j, costs
        more = super().nearest_pairs(short, k)
        i, j, costs = (np.concatenate(both) for both in zip((i, j, costs), more, strict=True))
        return cheapest_of_each(i, i, j, costs, k)

    # Screens ---------------------------------------------------------------------------

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""
        checked, pairs = self._screened(upper, rows)
        complete = self.exact is not False
        return Screen(upper, pairs, complete, self.n_pairs if complete else checked)

    def _screened(self, upper: FloatArray, rows: LongArray | None) -> tuple[int, DistributedPairs]:
        """Number of pairs computed, and those found."""
        with single_threaded_blas():
            way = self._way(upper)
            meetings = self._meetings(way, self._reach(upper), rows)
        bound = Vector.send(self.cluster, upper)
        partners = self.partner_cells() if way in NEAR_WAYS else None
        groups, ranges, found = self.points.groups, self.points.ranges(), []
        sizes, pace = self.points.group_bytes(), self.cluster.paced()
        n_others = self._others_per_task(sum(map(len, meetings)))
        for g, others in enumerate(meetings):
            for a, b in row_blocks(len(others), n_others):
                some = others[a:b].tolist()
                near = None if partners is None else self._near_in(partners, g, others[a:b])
                own = None
                if rows is not None:
                    cuts = [np.searchsorted(rows, ranges[s]) for s in some]
                    own = [rows[slice(*cut)] for cut in cuts]
                part = self._part(bound, [ranges[s] for s in {g, *some}])
                same = some.index(g) if g in some else None
                pace.make_room(size := int(sizes[[*{g, *some}]].sum()))
                found.append(
                    self.cluster.submit(
                        "screen", _screen, self.frame, groups[g],
                        [groups[s] for s in some if s != g], same, own, way, near, part, self.n,
                        self._ranges[0][1],
                    )
                )  # fmt: skip
                pace.add(found[-1], size)
        return self._collected("screen", found)

    def _near_in(self, partners: list[LongArray], g: int, others: LongArray) -> CellLists:
        """The partners of the cells of a group that are in some other groups."""
        bounds = self.points.bounds
        inside = np.isin(np.arange(len(bounds) - 1), others)
        inside = np.repeat(inside, np.diff(bounds))
        cells = range(bounds[g], bounds[g + 1])
        return CellLists.of(cells, [partners[b][inside[partners[b]]] for b in cells])

    def _way(self, upper: FloatArray) -> str:
        """How a screen divides the pairs; see `EuclideanCost._choose_blocks`."""
        if self.exact is False:
            return "chosen" if self.chooses else "near"
        return "cells" if self._surviving_share(upper) < self.sizes.plain_share else "plain"

    def _meetings(self, way: str, reach: FloatArray, rows: LongArray | None) -> list[LongArray]:
        """For every group those that come before it, or have some of the rows, and can meet it."""
        bounds = self.points.bounds
        every = np.arange(len(bounds) - 1)
        wanted = np.ones(len(every), dtype=np.bool_)
        if rows is not None:
            cuts = np.searchsorted(rows, self._cells.offsets[bounds])
            wanted = np.diff(cuts) > 0
        largest = np.maximum.reduceat(reach, self._cells.offsets[:-1])
        centers, radii = self._cells.centers, self._cells.radii
        found = []
        for g, (first, last) in enumerate(pairwise(bounds.tolist())):
            if way == "plain":
                meets = np.ones(len(every), dtype=np.bool_)
            elif way in NEAR_WAYS:
                near = np.concatenate(self.partner_cells()[first:last])
                meets = np.isin(every, np.searchsorted(bounds, near, side="right") - 1)
            else:
                mine = (centers[first:last], radii[first:last], largest[first:last])
                cells = meeting_cells(mine, (centers, radii, largest)).any(axis=0)
                meets = np.logical_or.reduceat(cells, bounds[:-1])
            if rows is None:
                meets[g + 1 :] = False
            found.append(np.flatnonzero(meets & wanted))
        return found

    # Some points with all others -------------------------------------------------------

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points."""
        parts = self._sampled_by_groups(rows, len(rows), _costs)
        return np.concatenate([np.concatenate(part) for part in parts], axis=1)

    def _row_totals(
        self, rows: LongArray, u: FloatArray, measure: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """As in `DistancePowers`: the sum of what is measured in each block of columns."""
        parts = self._sampled_by_groups(rows, len(rows), _totals, u, measure)
        return np.asarray(np.sum([total for (totals,) in parts for total in totals], axis=0))

    def _partners(
        self, rows: LongArray, groups: LongArray, labels: LongArray, k: int, *, inside: bool
    ) -> tuple[LongArray, LongArray, FloatArray]:
        parts = self._sampled_by_groups(
            rows, self.partner_rows, _cheapest, labels, groups, k, inside
        )
        near, found = (
            np.concatenate([np.concatenate([some[p] for some in part]) for part in parts], axis=1)
            for p in (0, 1)
        )
        order = np.argsort(found, axis=1, kind="stable")[:, :k]
        near, found = (np.take_along_axis(values, order, axis=1) for values in (near, found))
        allowed = np.isfinite(found)
        return np.repeat(rows, allowed.sum(axis=1)), near[allowed], found[allowed]

    def shortest_of_groups(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """As `EuclideanCost.shortest_of_groups`, from the pairs with each group of cells."""
        i, j, costs = self._shortest(Bunches.by_group(rows, labels), labels, k, inside=False)
        return i, j, self.refined(i, j, costs)

    def nearest_inside(self, rows: LongArray, groups: LongArray, labels: LongArray) -> LongArray:
        """For every row, the cheapest partner inside a group that is not its own."""
        return self._shortest(Bunches.one_by_one(rows, groups), labels, 1, inside=True)[1]

    def _shortest(
        self, bunches: Bunches, labels: LongArray, k: int, *, inside: bool
    ) -> tuple[LongArray, LongArray, FloatArray]:
        held = self.points.held_there(bunches.rows)
        sent = Vector.send(self.cluster, labels)
        tasks = []
        for group, ends in zip(self.points.groups, self.points.ranges(), strict=True):
            part = self._part(sent, [ends])
            task = (self.frame, group, bunches, held, part, k, inside)
            tasks.append(self.cluster.submit("sample", _shortest_pairs, *task))
        found = self.cluster.gather(tasks)
        bunch, costs, i, j = (np.concatenate(some) for some in zip(*found, strict=True))
        return cheapest_of_each(bunch, i, j, costs, k)

    def _sampled_by_groups(
        self, rows: LongArray, n_rows: int, function: Any, vector: Array | None = None, *more: Any
    ) -> list[Any]:
        """What a function says of the costs from some rows to each group."""
        some = self.points.rows_there(rows)
        own = None if vector is None else vector[rows]
        sent = None if vector is None else Vector.send(self.cluster, vector)
        tasks = []
        for group, ends in zip(self.points.groups, self.points.ranges(), strict=True):
            part = None if sent is None else self._part(sent, [ends])
            task = (self.frame, group, rows, some, own, part, n_rows, function, more)
            tasks.append(self.cluster.submit("sample", _sample, *task))
        return self.cluster.gather(tasks)

    def among(self, rows: LongArray) -> FloatArray:
        """Costs of a few points with each other."""
        few = len(rows)
        points = self.points.rows(rows)
        ends = np.repeat(np.arange(few), few), np.tile(np.arange(few), few)
        return self._listed(points, *ends).reshape(few, few)

    def refined(self, i: LongArray, j: LongArray, costs: FloatArray) -> FloatArray:
        """Costs of listed pairs by subtraction; sampled ones come from matrix products."""
        if not len(i):
            return costs
        rows, places = np.unique(np.concatenate([i, j]), return_inverse=True)
        return self._listed(self.points.rows(rows), places[: len(i)], places[len(i) :])

    def _listed(self, points: FloatArray, i: LongArray, j: LongArray) -> FloatArray:
        """As `DistancePowers.listed`."""
        squares = subtracted_squares(points, points, i, j)
        if self.frame.half_power != 1.0:
            squares = squares**self.frame.half_power
        if self.frame.factor != 1.0:
            squares *= self.frame.factor
        return squares

    def _part(self, vector: Vector, ranges: Sequence[tuple[int, int]]) -> dict[int, Future]:
        """The pieces of a vector that hold some ranges of rows."""
        size = segment_rows(self.n)
        return vector.part(np.concatenate([np.arange(a // size, -(-b // size)) for a, b in ranges]))


# Tasks ---------------------------------------------------------------------------------


def _only(group: Group, cells: LongArray) -> Group:
    return group.only(cells)


def _find_neighbors(
    groups: Sequence[Group],
    cells: Sequence[LongArray],
    near_cells: CellLists,
    frame: Frame,
    k: int,
    n_chosen: int,
    n: int,
    block_rows: int,
) -> FoundPairs:
    """The neighbors of the points of some cells in near cells; ``cells`` are all, by group."""
    with single_threaded_blas():
        found = Window(frame, groups, cells).neighbors(k, n_chosen, near_cells)
    return found_pairs(*found, n, block_rows)


def _find_partners(
    groups: Sequence[Group],
    cells: Sequence[LongArray],
    near_cells: CellLists,
    rows: LongArray,
    frame: Frame,
    k: int,
) -> tuple[LongArray, FloatArray]:
    """The k nearest points of some points in near cells, and their costs."""
    with single_threaded_blas():
        return Window(frame, groups, cells).partners(rows, k, near_cells)


def _merge_nearest(
    frame: Frame,
    k: int,
    target: Group,
    others: Sequence[Group],
    same: int | None,
    lists: list[NearLists] | None,
    end: tuple[int, int] | None,
) -> list[NearLists] | FoundPairs:
    """The nearest points of a group in some more groups; at the end all of them as pairs.

    ``same`` is the place of the group itself among the others.
    """
    with single_threaded_blas():
        for place, other in enumerate(others):
            both = [target] if place == same else _in_order([target, other])
            window = Window(frame, both)
            lists = window.nearest(k, target, target if place == same else other, lists)
    assert lists is not None  # there are others
    if end is None:
        return lists
    pairs = Window(frame, [target]).pairs_of(target, lists)
    return found_pairs(0, pairs, *end)


def _screen(
    frame: Frame,
    target: Group,
    others: list[Group],
    same: int | None,
    rows: list[LongArray] | None,
    way: str,
    partners: CellLists | None,
    upper: Pieces,
    n: int,
    block_rows: int,
) -> FoundPairs:
    """The pairs below a bound of one group with some others.

    ``same`` is the place of the group itself among the others, where it is left out.
    """
    if same is not None:
        others = [*others[:same], target, *others[same:]]
    if partners is not None:
        with single_threaded_blas():
            found = _screen_near(frame, target, others, rows, way, partners, upper)
        return found_pairs(*found, n, block_rows)
    checked, chunks = 0, []
    with single_threaded_blas():
        if rows is None:  # otherwise few of its cells may be needed
            target = target.placed(frame)
        bound = _entries(upper, target.members)
        for place, other in enumerate(others):
            some = None if rows is None else rows[place]
            both = (target, target, bound, bound)
            if place != same:
                both = (target, other, bound, _entries(upper, other.members))
            left, right = met_cells(frame, *both, some, way)
            if not len(left.cells) or not len(right.cells):
                continue
            window = Window(frame, [left] if left is right else _in_order([left, right]))
            n_pairs, found_here = window.screen(
                left, right, _entries(upper, window.members), some, way
            )
            checked += n_pairs
            chunks += found_here
    return found_pairs(checked, chunks, n, block_rows)


def _screen_near(
    frame: Frame,
    target: Group,
    others: list[Group],
    rows: list[LongArray] | None,
    way: str,
    partners: CellLists,
    upper: Pieces,
) -> tuple[int, list[PairChunk]]:
    """The same in the partners of each cell: all groups in one window.

    A window for each two groups would cut the partners of a cell into many short blocks.
    """
    none = np.empty(0, dtype=np.int64)
    own = {int(other.starts[0]): none for other in [target, *others]}
    if rows is not None:
        own |= {int(other.starts[0]): some for other, some in zip(others, rows, strict=True)}
    groups = _in_order({int(other.starts[0]): other for other in [target, *others]}.values())
    some = None if rows is None else [own[int(group.starts[0])] for group in groups]
    cells = cells_near(groups, target, some, partners)
    if not any(map(len, cells)):
        return 0, []
    window = Window(frame, groups, cells)
    listed = None if some is None else np.concatenate(some)
    return window.screen_near(target, _entries(upper, window.members), listed, way, partners)


def _in_order(groups: Iterable[Group]) -> list[Group]:
    """Groups in the order of their points."""
    return sorted(groups, key=lambda group: int(group.starts[0]))


def _sample(
    frame: Frame,
    group: Group,
    rows: LongArray,
    points: FloatArray,
    own: Array | None,
    vector: Pieces | None,
    n_rows: int,
    function: Any,
    more: tuple[Any, ...],
) -> list[Any]:
    """What a function says of the costs from some points to those of a group, some at a time.

    It gets the window, the points, their numbers, their entries of a vector, those of the group,
    the place of the points among all, and more.
    """
    window = Window(frame, [group])
    here = None if vector is None else _entries(vector, window.members)
    results = []
    with single_threaded_blas():
        for block in row_blocks(len(points), n_rows):
            some = slice(*block)
            mine = None if own is None else own[some]
            results.append(function(window, points[some], rows[some], mine, here, block, *more))
    return results


def _shortest_pairs(
    frame: Frame,
    group: Group,
    bunches: Bunches,
    held: Array,
    labels: Pieces,
    k: int,
    inside: bool,
) -> ShortPairs:
    """The k cheapest pairs of each bunch of points with those of a group of cells."""
    window = Window(frame, [group])
    here = _entries(labels, window.members)
    return window.shortest(bunches, held, here, k, inside=inside)


def _costs(window: Window, points: FloatArray, *_: object) -> FloatArray:
    return np.concatenate([costs for _, costs in window.costs_from(points)], axis=1)


def _totals(
    window: Window,
    points: FloatArray,
    rows: LongArray,
    own: FloatArray,
    here: FloatArray,
    block: tuple[int, int],
    measure: Callable[[FloatArray], FloatArray],
) -> list[FloatArray]:
    """Sums over rows of u_i + u_j - c_ij, zero for a point with itself, by block of columns."""
    totals = []
    places = np.searchsorted(window.members, rows)
    for part, costs in window.costs_from(points):
        gap = own[:, None] + here[part] - costs
        inside = np.flatnonzero((places >= part.start) & (places < part.stop))
        inside = inside[window.members[places[inside]] == rows[inside]]
        gap[inside, places[inside] - part.start] = 0.0
        totals.append(measure(gap))
    return totals


def _cheapest(
    window: Window,
    points: FloatArray,
    rows: LongArray,
    own: LongArray,
    labels: LongArray,
    block: tuple[int, int],
    groups: LongArray,
    k: int,
    inside: bool,
) -> tuple[LongArray, FloatArray]:
    """The k cheapest partners inside or outside a group, in order of cost."""
    near, found = np.zeros((len(rows), k), dtype=np.int64), np.empty((len(rows), k))
    source = (_costs(window, points), groups[slice(*block)], labels, inside)
    kernels.cheapest_partners(*source, near, found, (0, len(rows)))
    return window.members[near].astype(np.int64), found


def _entries(vector: Pieces, members: Array) -> Array:
    """Entries of a vector, from the pieces that hold them."""
    like = next(iter(vector.values()))
    out = np.empty(len(members), like.dtype)
    for start, piece in vector.items():
        a, b = np.searchsorted(members, (start, start + len(piece)))
        out[a:b] = piece[members[a:b] - start]
    return out
