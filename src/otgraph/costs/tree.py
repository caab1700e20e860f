"""Powers of Euclidean distances between points in few dimensions.

A k-d tree finds neighbors, and its leaves with their boxes exclude nearly all pairs: a screen
looks at a few hundred pairs per point, whatever their number.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import KDTree

from otgraph._kernels import tree as kernels
from otgraph._parallel import row_blocks
from otgraph.costs.powers import DistancePowers
from otgraph.costs.search import Work

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.pairs import PairChunk
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.typing import FloatArray, LongArray

# At most; smaller leaves exclude more pairs, larger ones ask fewer questions.
LEAF_POINTS = 16
BLOCK_ROWS = 8192
BUFFER_PAIRS = 1 << 19  # of a block, before it is cut
FEWEST_NEIGHBORS = 3
# Pairs cost little here, and candidates that hold most of the solution save Newton steps.
MORE_PAIRS = 1.5
TIE_MARGIN = 1.0 - 1e-9
# Reaches are raised by more than the rounding errors of their sum.
REACH_MARGIN = 1e-12


class TreeCost(DistancePowers):
    """Cost c_ij = (|x_i - x_j| · unit)^p / scale; every screen covers all pairs."""

    def __init__(self, scaled: ScaledPoints, workers: Workers) -> None:
        n, d = scaled.points.shape
        depth = max(0, int(np.ceil(np.log2(n / LEAF_POINTS))))
        # The tree halves the points again and again, as the offsets do.
        order = KDTree(scaled.points, leafsize=LEAF_POINTS, copy_data=False).indices
        super().__init__(scaled, workers, order)
        self._offsets = (np.arange(2**depth + 1) * n) >> depth
        self._leaf_of = np.repeat(np.arange(2**depth), np.diff(self._offsets))
        self._lower, self._upper = np.empty((2, 2 ** (depth + 1), d))
        kernels.fill_boxes(self.own, self._offsets, self._lower, self._upper)

    def neighbor_work(self, k: int) -> Work:
        """The search for pairs no longer than the distances to a near neighbor of both.

        Pairs with c_ij < a_i + a_j, a_i the cost of a near neighbor of i, are symmetric as they
        come, unlike lists of neighbors. Where points are spread evenly they are 2^(d/2) times as
        many as those nearer than it. Ties do not count, or copies of a point would bring all
        pairs of them along; a point that finds no pair here gets them from the first screen.
        """
        rank = max(FEWEST_NEIGHBORS, round(k * MORE_PAIRS / 2.0 ** (self.own.shape[1] / 2.0)))
        return self.screen_work(TIE_MARGIN * self._neighbor_costs(min(rank, self.n - 1)))

    def _neighbor_costs(self, rank: int) -> FloatArray:
        """Cost of every point's neighbor of that rank."""
        tree = KDTree(self.own, leafsize=LEAF_POINTS, copy_data=False)
        distance = np.empty(self.n)

        def find(block: tuple[int, int]) -> None:
            rows = slice(*block)
            # The nearest of all is the point itself, or a copy of it.
            found, _ = tree.query(self.own[rows], k=[rank + 1])
            distance[rows] = found[:, 0]

        self.workers.run(find, row_blocks(self.n, BLOCK_ROWS), label="search")
        return self.factor * np.square(distance) ** self._half_power

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        reach = self._reach(upper)
        reach = reach + REACH_MARGIN * np.abs(reach)
        most = np.empty(len(self._lower))
        kernels.fill_reaches(reach, self._offsets, most)
        wanted = np.arange(self.n) if rows is None else np.sort(rows)
        parts = [wanted[slice(*block)] for block in row_blocks(len(wanted), BLOCK_ROWS)]
        find = partial(self._find, upper, reach, most)
        return Work(parts, find, complete=True, whole_rows=rows is None)

    def _find(
        self, upper: FloatArray, reach: FloatArray, most: FloatArray, rows: LongArray
    ) -> tuple[int, list[PairChunk]]:
        capacity = max(BUFFER_PAIRS, self.n)
        j, c = np.empty(capacity, np.int32), np.empty(capacity)
        counts = np.empty(len(rows), dtype=np.int64)
        chunks, row = [], 0
        while row < len(rows):
            first = row
            row, count = kernels.collect_near(
                self.own, self._leaf_of, self._offsets, self._lower, self._upper, reach, most,
                upper, self.factor, self._half_power, rows, counts, j, c, row,
            )  # fmt: skip
            i = np.repeat(rows[first:row].astype(np.int32), counts[first:row])
            chunks.append((i, j[:count].copy(), c[:count].copy()))
        return len(rows) * self.n, chunks
