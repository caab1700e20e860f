"""Powers of Euclidean distances between two clouds, with cells or with trees."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import KDTree

from otgraph._kernels import clouds as kernels
from otgraph._kernels.euclidean import costs_of
from otgraph._parallel import row_blocks
from otgraph.costs.between import BetweenClouds
from otgraph.costs.build import has_tree
from otgraph.costs.exclusion import Chained, NearCells, NotExcluded
from otgraph.costs.partition import cell_centers, nearest_center
from otgraph.costs.points import NEIGHBOR_ROWS, EuclideanPowers, cell_count
from otgraph.costs.powers import DistancePowers
from otgraph.costs.scaling import ScaledPoints
from otgraph.costs.search import Work
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import square_distances
from otgraph.costs.tree import BLOCK_ROWS, LEAF_POINTS, BoxTree, TreePowers, tree_order

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.between import Coarse
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.points import NeighborTask, Ways
    from otgraph.costs.tree import NodeReaches, TreePart
    from otgraph.typing import FloatArray, IntArray, LongArray


@dataclass(frozen=True)
class ScaledClouds(ScaledPoints):
    """Scaled points of both clouds, X before Y.

    For squared distances each cloud is centered by itself: with x = x' + a and y = y' + b, and
    d = a - b,

        |x - y|² = |x' - y'|² + (2 d·x' + |d|²/2) + (|d|²/2 - 2 d·y') .

    The terms in brackets depend on one point only. They change the potentials, not the plan. So
    the plan does not see a shift between the clouds, and bounds that exclude pairs stay tight.
    ``offsets`` are these terms, one per point.
    """

    n_left: int
    offsets: FloatArray | None


def cross_points(
    scaled: ScaledClouds, exact: bool | None, seed: int, workers: Workers, sizes: SearchSizes
) -> CrossTreeCost | CrossEuclideanCost:
    """The cost between dense clouds: with trees in few dimensions, with cells in many."""
    if has_tree(scaled.points.shape, sizes):
        return CrossTreeCost(scaled, workers)
    return CrossEuclideanCost(scaled, exact=exact, seed=seed, workers=workers, sizes=sizes)


# Chosen points before and after a point in memory, among which a near one is looked for.
PARENT_WIDTH = 16
# About every how many points one is chosen. The potentials of a coarser problem would be too far
# from those of the finer one, so that a screen of it returns hundreds of pairs per point.
THINNING = 4
# Points in near cells whose potentials are found together. If at least so many of them are chosen,
# the partners of these are partners of all.
LIFTED_POINTS = 256
FEWEST_CHOSEN = 8


class CrossPoints(BetweenClouds, DistancePowers):
    """Points in memory, in an order in which neighbors are near in space."""

    def _only(self, rows: LongArray, n_left: int) -> Any:
        few = ScaledClouds(
            self.own[rows], 2.0 * self._half_power, self.factor, self.scale, self._placement,
            self.identical, n_left, None,
        )  # fmt: skip
        return cross_points(few, self.exact, 0, self.workers, self.sizes)

    def _step(self, size: int, most: int) -> int:
        """About the same on every level."""
        ratio = max(size / most, 1.0)
        levels = max(1, round(np.log(ratio) / np.log(THINNING)))
        return int(np.ceil(ratio ** (1.0 / levels)))

    def between(self, start: int, stop: int, columns: LongArray) -> FloatArray:
        """Costs from points ``start:stop`` of one cloud to some points of the other one."""
        squares = square_distances(
            self.own[start:stop], self._squares[start:stop], self.own[columns],
            self._squares[columns], near=False,
        )  # fmt: skip
        return self._scaled(self._powered(squares))


class CrossEuclideanCost(CrossPoints, EuclideanPowers):
    """Points in any number of dimensions; cells hold points of one cloud."""

    def __init__(
        self,
        scaled: ScaledClouds,
        *,
        exact: bool | None = True,
        seed: int = 0,
        workers: Workers,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        self.n_left, labels = scaled.n_left, None
        points, n = scaled.points, len(scaled.points)
        if n >= sizes.fewest_cell_points:
            centers = cell_centers(points, cell_count(n), seed, workers)
            labels = nearest_center(points, centers, workers)
            labels[self.n_left :] += len(centers)  # X comes first, in its own cells
        super().__init__(
            scaled, exact=exact, seed=seed, workers=workers, labels=labels, sizes=sizes
        )
        if labels is not None:
            split = int(np.searchsorted(self._cells.offsets, self.n_left))
            self._cells = self._cells.divided(split)
        self.offsets = None if scaled.offsets is None else scaled.offsets[self.order]

    def _lifted_blocks(self) -> list[tuple[int, int]]:
        """Consecutive cells, which are near each other."""
        if self._cells.n_cells == 1:
            return super()._lifted_blocks()
        ends = [self._cells.offsets[last] for _, last in self._cells.blocks(LIFTED_POINTS)]
        return list(pairwise(np.unique([0, *ends, self.n_left]).tolist()))

    def _lifting(self, chosen: LongArray, coarse: Coarse) -> LongArray | None:
        """All partners of the chosen points, if these are not few."""
        if self._cells.n_cells == 1 or len(chosen) < FEWEST_CHOSEN:
            return None
        parts = [coarse.indices[coarse.indptr[p] : coarse.indptr[p + 1]] for p in chosen]
        return np.unique(np.concatenate(parts))

    def _cell_range(self, columns: tuple[int, int]) -> tuple[int, int]:
        """The cells of one cloud."""
        split = self._cells.split or 0
        return (0, split) if columns[0] == 0 else (split, self._cells.n_cells)

    def _surviving_share(self, upper: FloatArray) -> float:
        ((rows, columns),) = self.halves(None)
        cells = self._cell_range(columns)
        return NotExcluded(self.own, self._cells, self._reach(upper), rows, cells).share()

    def _near_share(self) -> float:
        cells = self._cells
        split = cells.split or 1
        return 2.0 * self.searched_cells / max(1, min(split, cells.n_cells - split))

    def _all_columns(self) -> list[NeighborTask]:
        tasks: list[NeighborTask] = []
        for first, last in self.clouds:
            columns = np.arange(*self.partners(first), dtype=np.int32)
            blocks = row_blocks(last - first, NEIGHBOR_ROWS)
            tasks += [(first + a, first + b, columns) for a, b in blocks]
        return tasks

    def _choose_blocks(self, reach: FloatArray, rows: LongArray | None) -> Ways:
        if self.exact is False and self._cells.n_cells > 1:
            return NearCells(self._cells, self._partner_cells(reach), rows)
        return Chained(
            [
                self._exact_blocks(reach, some, columns, self._cell_range(columns))
                for some, columns in self.halves(rows)
            ]
        )

    def _partner_cells(self, reach: FloatArray) -> list[LongArray]:
        """The cells in which an approximate search looks for pairs of each cell.

        The nearest cells would be wrong where mass travels. The potentials tell where it goes:
        the first screen has those of a coarser problem, and its choice is kept.
        """
        starts = self._cells.offsets[:-1]
        means = np.add.reduceat(reach, starts) / np.diff(self._cells.offsets)
        return self._cells.partners(self.searched_cells, means)


class CrossTreeCost(CrossPoints, TreePowers):
    """Points in few dimensions; each cloud has a tree."""

    def __init__(self, scaled: ScaledClouds, workers: Workers) -> None:
        self.n_left = scaled.n_left
        super().__init__(scaled, workers)
        self.offsets = None if scaled.offsets is None else scaled.offsets[self.order]

    def _order(self, points: FloatArray, workers: Workers) -> LongArray:
        left, right = points[: self.n_left], points[self.n_left :]
        orders = tree_order(left, workers), self.n_left + tree_order(right, workers)
        return np.concatenate(orders)

    def _grow(self) -> tuple[BoxTree, ...]:
        return tuple(BoxTree.around(self.own, *cloud) for cloud in self.clouds)

    def _parts(self, rows: LongArray) -> list[TreePart]:
        halves = (0, 1, rows[rows < self.n_left]), (1, 0, rows[rows >= self.n_left])
        return [
            (own, other, some[slice(*block)])
            for own, other, some in halves
            for block in row_blocks(len(some), BLOCK_ROWS)
        ]

    def _node_reaches(self, reach: FloatArray) -> list[NodeReaches]:
        """With tilts: potentials are as steep as mass travels far."""
        return [tree.tilted_reaches(self.own, reach) for tree in self._trees]

    def lifted(self, rows: LongArray, coarse: Coarse) -> tuple[FloatArray, FloatArray]:
        """Potentials of all points from those of some; see `BetweenClouds`.

        In few dimensions a point has about the partners of a near one, so that only these are
        looked at.
        """
        order = np.argsort(rows)
        chosen = rows[order]
        split = int(np.searchsorted(chosen, self.n_left))
        parents, u = np.empty(self.n, dtype=np.int64), np.empty(self.n)
        everyone = np.zeros(self.n)
        everyone[rows] = coarse.u
        columns = rows[coarse.indices]

        def lift(block: tuple[int, int]) -> None:
            first, last = (0, split) if block[0] < self.n_left else (split, len(chosen))
            near = (self.own, chosen, first, last, PARENT_WIDTH, *block, parents)
            kernels.near_chosen(*near)
            here = slice(*block)
            parents[here] = order[parents[here]]
            kernels.lifted_by_parents(
                self.own, self.factor, self._half_power, parents, coarse.indptr, columns,
                everyone, coarse.target, *block, u,
            )  # fmt: skip

        self.workers.run(lift, self._cloud_blocks(BLOCK_ROWS))
        return u, coarse.units[parents]

    def neighbor_work(self, k: int) -> Work:
        """The search for the k nearest points of the other cloud.

        The bounds of `TreePowers` would find far more pairs where the clouds are apart.
        """
        trees = [
            KDTree(self.own[a:b], leafsize=LEAF_POINTS, copy_data=False) for a, b in self.clouds
        ]

        def find(part: TreePart) -> tuple[int, list[PairChunk]]:
            _, other, rows = part
            columns = self.partners(int(rows[0]))
            count = min(k, columns[1] - columns[0])
            _, near = trees[other].query(self.own[rows], k=np.arange(1, count + 1))
            return 0, [self._costs_of_rows(int(rows[0]), (columns[0] + near).astype(np.int32))]

        return Work(self._parts(np.arange(self.n)), find)

    def _costs_of_rows(self, first: int, near: IntArray) -> PairChunk:
        """Lists of partners of consecutive points, as pairs with their costs."""
        i, j, c = np.empty(near.size, np.int32), np.empty(near.size, np.int32), np.empty(near.size)
        costs_of(self.own, first, near, self.factor, self._half_power, i, j, c)
        return i, j, c
