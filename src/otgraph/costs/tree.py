"""Powers of Euclidean distances between points in few dimensions.

A k-d tree finds neighbors, and the bounding boxes of its leaves exclude nearly all pairs. A screen
computes a few hundred pairs per point, for any number of points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import tree as kernels
from otgraph._parallel import row_blocks
from otgraph.costs.partition import leaf_order
from otgraph.costs.powers import DirectPowers, DistancePowers
from otgraph.costs.search import Work

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
FEWEST_NEIGHBORS = 3  # least rank of the near neighbor that sets a bound
# Factor on the number of first candidates. They are cheap here, and more of them save Newton
# steps.
MORE_PAIRS = 1.5
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

    def leaf_numbers(self) -> LongArray:
        """The leaf of every point of the tree."""
        return np.repeat(np.arange(self.n_leaves), np.diff(self.offsets))

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


def tree_order(points: FloatArray) -> LongArray:
    """The points in the order of the leaves of a k-d tree."""
    return leaf_order(points, LEAF_POINTS)


class TreePowers(DistancePowers):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale; every screen covers all pairs."""

    def __init__(self, scaled: ScaledPoints, workers: Workers) -> None:
        super().__init__(scaled, workers, self._order(scaled.points))
        self._trees = self._grow()
        self._leaf_of = np.concatenate([tree.leaf_numbers() for tree in self._trees])
        self._coordinates = np.ascontiguousarray(self.own.T)

    def _order(self, points: FloatArray) -> LongArray:
        return tree_order(points)

    def _grow(self) -> tuple[BoxTree, ...]:
        return (BoxTree.around(self.own, 0, self.n),)

    def neighbor_work(self, k: int) -> Work:
        """The search for pairs with c_ij < a_i + a_j, for costs a_i of near neighbors.

        Unlike lists of nearest neighbors, these pairs are symmetric. For evenly spread points
        they are 2^(d/2) times as many as the neighbors nearer than a_i. Ties are excluded;
        otherwise duplicates would add all pairs among themselves. A point without any pair here
        gets its pairs from the first screen.
        """
        rank = max(FEWEST_NEIGHBORS, round(k * MORE_PAIRS / 2.0 ** (self.own.shape[1] / 2.0)))
        return self.screen_work(TIE_MARGIN * self._neighbor_costs(min(rank, self.n - 1)))

    def _neighbor_costs(self, rank: int) -> FloatArray:
        """Cost of every point's neighbor of that rank."""
        from scipy.spatial import KDTree

        tree = KDTree(self.own, leafsize=LEAF_POINTS, copy_data=False)
        distance = np.empty(self.n)

        def find(block: tuple[int, int]) -> None:
            rows = slice(*block)
            # The nearest point is the point itself or a duplicate.
            found, _ = tree.query(self.own[rows], k=[rank + 1])
            distance[rows] = found[:, 0]

        self.workers.run(find, row_blocks(self.n, BLOCK_ROWS), label="search")
        return self.factor * np.square(distance) ** self._half_power

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        reach = self._reach(upper)
        reach = reach + REACH_MARGIN * np.abs(reach)
        node_reaches = self._node_reaches(reach)
        wanted = np.arange(self.n) if rows is None else np.sort(rows)
        find = partial(self._find, upper, reach, node_reaches)
        return Work(self._parts(wanted), find, complete=True, whole_rows=rows is None)

    def _node_reaches(self, reach: FloatArray) -> list[NodeReaches]:
        return [tree.reaches(reach) for tree in self._trees]

    def _parts(self, rows: LongArray) -> list[TreePart]:
        """Blocks of rows with the numbers of their own tree and of the tree of their partners."""
        return [(0, 0, rows[slice(*block)]) for block in row_blocks(len(rows), BLOCK_ROWS)]

    def _find(
        self, upper: FloatArray, reach: FloatArray, node_reaches: list[NodeReaches], part: TreePart
    ) -> tuple[int, list[PairChunk]]:
        own, other, rows = part
        leaves = slice(self._trees[own].n_leaves, None)
        own_reach, own_tilts = node_reaches[own]
        own_tilts = None if own_tilts is None else own_tilts[leaves]
        tree = self._trees[other]
        capacity = max(BUFFER_PAIRS, self.n)
        j, c = np.empty(capacity, np.int32), np.empty(capacity)
        counts = np.empty(len(rows), dtype=np.int64)
        chunks, row = [], 0
        while row < len(rows):
            first = row
            row, count = kernels.collect_near(
                self.own, self._coordinates, self._leaf_of, self._trees[own].lower[leaves],
                self._trees[own].upper[leaves], own_reach[leaves], own_tilts, tree.offsets,
                tree.lower, tree.upper, reach, *node_reaches[other], upper, self.factor,
                self._half_power, rows, counts, j, c, row,
            )  # fmt: skip
            i = np.repeat(rows[first:row].astype(np.int32), counts[first:row])
            chunks.append((i, j[:count].copy(), c[:count].copy()))
        return len(rows) * self.n, chunks


class TreeCost(TreePowers, DirectPowers):
    """Powers of distances within one cloud, in few dimensions."""
