"""Powers of Euclidean distances between points in few dimensions.

A k-d tree finds neighbors, and the bounding boxes of its leaves exclude nearly all pairs. A screen
computes a few hundred pairs per point, for any number of points.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import tree as kernels
from otgraph._parallel import row_blocks
from otgraph.costs.near import nearest_points
from otgraph.costs.pairs import empty_chunk
from otgraph.costs.partition import leaf_order
from otgraph.costs.powers import DirectPowers, DistancePowers
from otgraph.costs.search import Work
from otgraph.costs.sweeps import Lists, SortedByTree, Values

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.typing import FloatArray, LongArray

    TreePart = tuple[int, int, LongArray]
    NodeReaches = tuple[FloatArray, FloatArray | None]

# Maximum leaf size: smaller leaves exclude more pairs, larger ones have fewer nodes to visit.
LEAF_POINTS = 16
BLOCK_ROWS = 8192  # rows per task
BUFFER_PAIRS = 1 << 19  # size of the buffer for the pairs of a block
# First candidates of a point, for every neighbor asked for. At a mean degree of 15 that makes 28
# or a few more, and 95 to 99 of 100 points find all their partners among them. With a sixth fewer,
# a million points on a spiral need the pairs of so many that the graph takes longer.
PAIRS_PER_NEIGHBOR = 0.95
# The scale of a point is the cost of its neighbor of this rank among so many leaves around it.
NEAR_RANK, NEAR_LEAVES = 6, 4
NEAR_BLOCK = 1024  # leaves or points per task
# Share of that cost which bounds do not fall below. Potentials of points in sparse regions are
# smaller, at the median a quarter of it.
LEAST_SHARE = 0.5
# The farthest points, all but this share, need some of their nearest as partners.
FAR_RANK = 0.98
FAR_NEIGHBOR = 10
SAMPLED_ROWS = 512  # rows that tell the number of pairs within a few percent
FACTOR_GROWTH = 2.0  # of the bounds, while these rows find too few pairs
MOST_FACTORS = 12
FACTOR_DIGITS = 12  # binary ones
TIE_MARGIN = 1.0 - 1e-9  # factor that excludes pairs exactly at the bound
# Relative increase of reaches, to cover rounding errors of their sums.
REACH_MARGIN = 1e-12


@dataclass(frozen=True)
class BoxTree:
    """Leaves of consecutive points, and a binary tree of the boxes around them.

    ``lower`` and ``upper`` are the corners of the boxes; see the kernels for their order.
    """

    offsets: LongArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def around(cls, points: FloatArray, first: int, last: int) -> BoxTree:
        """The tree of the points ``first:last``, which are in the order of `tree_order`."""
        n, d = last - first, points.shape[1]
        depth = max(0, int(np.ceil(np.log2(n / LEAF_POINTS))))
        # The tree halves the points repeatedly; the offsets do the same.
        offsets = first + ((np.arange(2**depth + 1) * n) >> depth)
        lower, upper = np.empty((2, 2 ** (depth + 1), d))
        kernels.fill_boxes(points, offsets, lower, upper)
        return cls(offsets, lower, upper)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> LongArray:
        """Number of points of every leaf."""
        return np.diff(self.offsets)

    def leaf_numbers(self) -> LongArray:
        """The leaf of every point of the tree."""
        return np.repeat(np.arange(self.n_leaves), self.sizes)

    def reaches(self, reach: FloatArray) -> NodeReaches:
        """The largest reach of every node."""
        node_reach = np.empty(len(self.lower))
        kernels.fill_reaches(reach, self.offsets, node_reach)
        return node_reach, None

    def tilted_reaches(self, points: FloatArray, reach: FloatArray) -> NodeReaches:
        """The largest reach of every node above its tilt, and the tilts; see the kernels."""
        node_reach, tilts = np.empty(len(self.lower)), np.empty_like(self.lower)
        kernels.fill_tilts(points, reach, self.offsets, self.lower, self.upper, tilts, node_reach)
        return node_reach, tilts


def tree_order(points: FloatArray, workers: Workers) -> LongArray:
    """The points in the order of the leaves of a k-d tree."""
    return leaf_order(points, workers, LEAF_POINTS)


class TreePowers(DistancePowers):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale; every screen covers all pairs."""

    def __init__(self, scaled: ScaledPoints, workers: Workers) -> None:
        super().__init__(scaled, workers, self._order(scaled.points, workers))
        self._trees = self._grow()
        self._leaf_of = np.concatenate([tree.leaf_numbers() for tree in self._trees])
        self._coordinates = np.ascontiguousarray(self.own.T)

    def _order(self, points: FloatArray, workers: Workers) -> LongArray:
        return tree_order(points, workers)

    def _grow(self) -> tuple[BoxTree, ...]:
        return (BoxTree.around(self.own, 0, self.n),)

    def neighbor_work(self, k: int) -> Work:
        """The search for pairs with c_ij < b_i + b_j, for bounds b_i that resemble potentials.

        It is a screen, which need not be repeated for potentials below these bounds. Where a point
        has (c / a)^(d/p) neighbors of cost less than c, the equation of its row gives a potential
        in proportion to a^(d/(d + p)). So the bounds are this power of the cost of a near neighbor,
        times a factor that gives as many pairs as wanted. Far points, whose partners are not
        around them, need a share of that cost. Ties are excluded; otherwise duplicates would add
        all pairs among themselves. A point without any pair here gets its pairs from the first
        screen.
        """
        near, tree, d = self._near_costs(), self._trees[0], self.own.shape[1]
        with np.errstate(divide="ignore"):  # leaves of copies have scale 0
            logs = np.log(near)
        # The mean of the leaf corrects those that have found too few neighbors in their leaves.
        means = np.add.reduceat(logs, tree.offsets[:-1]) / tree.sizes
        logs += np.repeat(means, tree.sizes)
        shape = np.exp((0.5 * d / (d + 2.0 * self._half_power)) * logs)
        upper = TIE_MARGIN * self._bounds(shape, self._least_bounds(near, shape), k)
        return replace(self.screen_work(upper), reach=2.0 * upper)

    def _near_costs(self) -> FloatArray:
        """About the cost of a near neighbor of every point."""
        costs, tree = np.empty(self.n), self._trees[0]

        def fill(block: tuple[int, int]) -> None:
            kernels.near_costs(
                self.own, self._coordinates, tree.offsets, *block, NEAR_LEAVES, NEAR_RANK,
                self.factor, self._half_power, costs,
            )  # fmt: skip

        self.workers.run(fill, row_blocks(tree.n_leaves, NEAR_BLOCK))
        return costs

    def _least_bounds(self, near: FloatArray, shape: FloatArray) -> FloatArray:
        """What points need whose partners are not around them: a share of the cost of a near one.

        For the farthest the near ones are really looked for: a group of leaves may be so large
        there that it says nothing.
        """
        ratios = near / np.where(shape > 0.0, shape, 1.0)
        rank = int(FAR_RANK * len(ratios))
        rows = np.flatnonzero(ratios >= np.partition(ratios, rank)[rank])
        least = LEAST_SHARE * near
        least[rows] = self._neighbor_costs(min(FAR_NEIGHBOR, self.n - 1), rows)
        return least

    def _neighbor_costs(self, rank: int, rows: LongArray) -> FloatArray:
        """Cost of the neighbor of that rank of some points."""
        tree, costs, everyone = self._trees[0], np.empty(len(rows)), np.zeros(self.n)
        found = SortedByTree(self.own, np.arange(self.n), tree.offsets, tree.lower, tree.upper)
        values = Values(self.factor, self._half_power, everyone)
        largest, rule = found.reduced(everyone), nearest_points(rank)

        def find(block: tuple[int, int]) -> None:
            here = rows[slice(*block)]
            lists = Lists(rule, np.full(len(here), float(rank)), rule.room)
            found.fill(self.own[here], here, values, largest, lists)
            costs[slice(*block)] = lists.values[:, rank - 1]

        self.workers.run(find, row_blocks(len(rows), NEAR_BLOCK))
        return costs

    def _bounds(self, shape: FloatArray, least: FloatArray, k: int) -> FloatArray:
        """A multiple of ``shape``, at least ``least``, with about k candidates per point."""
        rows = np.linspace(0, self.n - 1, min(SAMPLED_ROWS, self.n)).astype(np.int64)
        wanted = min(max(1, round(PAIRS_PER_NEIGHBOR * k)), self.n - 1) * len(rows)
        some = shape > 0.0
        if not some.any():  # all points are copies
            return least
        low, high = 0.0, float(np.median(least[some] / shape[some])) / LEAST_SHARE
        for _ in range(MOST_FACTORS):
            bounds = np.maximum(high * shape, least)
            work = self.screen_work(bounds, rows)
            found = [chunk for part in work.parts for chunk in work.find(part)[1]]
            i, j, costs = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
            if len(costs) >= wanted:
                break
            low, high = high, FACTOR_GROWTH * high
        for _ in range(FACTOR_DIGITS):
            factor = 0.5 * (low + high)
            ends = np.maximum(factor * shape[i], least[i]) + np.maximum(factor * shape[j], least[j])
            if np.count_nonzero(costs < ends) >= wanted:
                high = factor
            else:
                low = factor
        return np.maximum(high * shape, least)

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        reach = self._reach(upper)
        reach = reach + REACH_MARGIN * np.abs(reach)
        node_reaches = self._node_reaches(reach)
        wanted = np.arange(self.n) if rows is None else np.sort(rows)
        spare: deque[PairChunk] = deque()  # buffers whose pairs were copied
        whole = rows is None
        find = partial(self._find, upper, reach, node_reaches, spare, whole)
        parts, free = self._parts(wanted), spare.append if whole else None
        return Work(parts, find, complete=True, whole_rows=whole, free=free)

    def _node_reaches(self, reach: FloatArray) -> list[NodeReaches]:
        return [tree.reaches(reach) for tree in self._trees]

    def _parts(self, rows: LongArray) -> list[TreePart]:
        """Blocks of rows with the numbers of their own tree and of the tree of their partners."""
        return [(0, 0, rows[slice(*block)]) for block in row_blocks(len(rows), BLOCK_ROWS)]

    def _find(
        self,
        upper: FloatArray,
        reach: FloatArray,
        node_reaches: list[NodeReaches],
        spare: deque[PairChunk],
        whole: bool,
        part: TreePart,
    ) -> tuple[int, list[PairChunk]]:
        own, other, rows = part
        leaves = slice(self._trees[own].n_leaves, None)
        own_reach, own_tilts = node_reaches[own]
        own_tilts = None if own_tilts is None else own_tilts[leaves]
        tree = self._trees[other]
        chunks, row = [], 0
        while row < len(rows):
            try:
                buffers = spare.pop()
            except IndexError:  # other threads take from it, too
                buffers = empty_chunk(max(BUFFER_PAIRS, self.n))
            row, count = kernels.collect_near(
                self.own, self._coordinates, self._leaf_of, self._trees[own].lower[leaves],
                self._trees[own].upper[leaves], own_reach[leaves], own_tilts, tree.offsets,
                tree.lower, tree.upper, reach, *node_reaches[other], upper, self.factor,
                self._half_power, rows, *buffers, row,
            )  # fmt: skip
            i, j, c = buffers
            if whole:
                chunks.append((i[:count], j[:count], c[:count]))
            else:
                chunks.append((i[:count].copy(), j[:count].copy(), c[:count].copy()))
                spare.append(buffers)
        return len(rows) * self.n, chunks


class TreeCost(TreePowers, DirectPowers):
    """Powers of distances within one cloud, in few dimensions."""

    compares_all = True
