"""Costs that are computed in blocks of rows: a given matrix, or any metric.

Nothing is known about these costs that would allow excluding pairs. Searches and screens compute
every pair, one block of rows at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._kernels import pairs as kernels
from otgraph._optional import importing
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.direct import (
    BEYOND_FLOAT64,
    DirectCost,
    check_costs,
    check_new_costs,
    check_new_points,
    mean_and_largest,
)
from otgraph.costs.metrics import check_function, has_tree_search, metric_keywords
from otgraph.costs.pairs import drain
from otgraph.costs.powers import DirectPowers, DistancePowers
from otgraph.costs.scaling import checked_factor, is_sound, positive_scale
from otgraph.costs.search import SearchedCost, Work
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import power_of_two, square_distances
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from otgraph.costs.pairs import PairChunk
    from otgraph.typing import FloatArray, LongArray, Metric, Points, PointsLike

    Found = tuple[int, list[PairChunk]]


# Distances whose powers are far from over- and underflow.
USUAL_DISTANCES = (1e-50, 1e50)


class BlockCost(SearchedCost):
    """A cost about which nothing is known: all pairs are computed, in blocks of rows."""

    sizes: SearchSizes

    @abstractmethod
    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """Costs from points ``start:stop`` to their partners from ``first`` on, before scaling."""

    def _normalize(self, normalize: bool, scale: float | None) -> None:
        """Set the divisor of raw costs: a known scale, their mean, or one."""
        unit = self._unit_cost()
        known = scale is not None and (not normalize or is_sound(scale, unit))
        if scale is not None and known:
            self.scale, self.largest = scale, np.inf  # a known scale needs no pass over the pairs
            self.factor = checked_factor(unit, scale)
            return
        mean, largest = self._mean_and_largest()
        if not np.isfinite(mean):
            raise argument_error(ValueError, "X", BEYOND_FLOAT64)
        self.identical = largest == 0.0
        if normalize:
            self.factor = checked_factor(1.0, positive_scale(mean))
            self.scale = mean * unit if mean > 0.0 else 1.0  # may be 0 or infinite
        else:
            self.factor, self.scale = checked_factor(unit, 1.0), 1.0
        self.largest = largest * self.factor

    def _mean_and_largest(self) -> tuple[float, float]:
        """Mean and maximum of all raw costs."""
        return mean_and_largest(self.block, self.n, self._blocks(0, self.n), self.workers)

    def _unit_cost(self) -> float:
        """Cost of a raw cost of one, before it is normalized."""
        return 1.0

    def _blocks(self, first: int, last: int) -> list[tuple[int, int]]:
        """Blocks of points ``first:last``, which have the same possible partners."""
        start, stop = self.partners(first)
        width = max(1, self.sizes.block_entries // max(1, stop - start))
        return [(first + a, first + b) for a, b in row_blocks(last - first, width)]

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points, infinite where pairs are forbidden."""
        out = np.full((len(rows), self.n), np.inf)
        for r, row in enumerate(rows.tolist()):
            first, last = self.partners(row)
            out[r, first:last] = self.block(row, row + 1, first)[0]
        return self._scaled(out)

    def neighbor_work(self, k: int) -> Work:
        """The search for the k nearest partners."""
        blocks = [block for cloud in self.clouds for block in self._blocks(*cloud)]
        return Work(blocks, partial(self._neighbors_of_block, k))

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        if rows is None:
            blocks = self._blocks(*self.clouds[0])  # every pair has an end there
            return Work(blocks, partial(self._screen_block, upper), complete=True)
        blocks = row_blocks(len(rows), max(1, self.sizes.block_entries // self.n))
        return Work(blocks, partial(self._screen_rows, upper, rows), complete=True)

    def _neighbors_of_block(self, k: int, rows: tuple[int, int]) -> Found:
        a, b = rows
        first, last = self.partners(a)
        costs = self._scaled(self.block(a, b, first))
        if first <= a < last:  # a point is no partner of itself
            costs[np.arange(b - a), np.arange(a - first, b - first)] = np.inf
        k = min(k, last - first)
        nearest = np.argpartition(costs, k - 1, axis=1)[:, :k]
        i = np.repeat(np.arange(a, b, dtype=np.int32), k)
        found = np.take_along_axis(costs, nearest, axis=1).ravel()
        return costs.size, [(i, (first + nearest.ravel()).astype(np.int32), found)]

    def _screen_block(self, upper: FloatArray, rows: tuple[int, int]) -> Found:
        a, b = rows
        first = max(a, self.partners(a)[0])
        costs = self._scaled(self.block(a, b, first))
        collect = partial(kernels.collect_block, costs, a, first, upper)
        return costs.size, drain(collect, b - a, 2 * self.n)

    def _screen_rows(self, upper: FloatArray, rows: LongArray, place: tuple[int, int]) -> Found:
        some = rows[slice(*place)]
        costs = self.sample(some)
        collect = partial(kernels.collect_rows, costs, some, upper)
        return costs.size, drain(collect, len(some), 2 * self.n)


class MatrixCost(BlockCost, DirectCost):
    """A dense cost matrix that the caller already holds; queries are rows of costs."""

    def __init__(
        self,
        matrix: FloatArray,
        *,
        normalize: bool = False,
        scale: float | None = None,
        workers: Workers,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        super().__init__(matrix, workers)
        self.sizes = sizes
        self._normalize(normalize, scale)

    def queries(self, X_new: PointsLike) -> FloatArray:
        """Costs from new points to all points."""
        return check_new_costs(X_new, self.n)

    def raw(
        self, queries: FloatArray, first: int = 0, start: int = 0, name: str = "X"
    ) -> FloatArray:
        """The queries themselves."""
        return queries[:, first:].copy()

    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """Rows of the matrix, made exactly symmetric by taking entries above the diagonal."""
        block = self.raw(self.own[start:stop], first)
        left = start - first
        if left > 0:
            block[:, :left] = self.own[first:start, start:stop].T
        square = block[:, left : left + stop - start]
        square[...] = np.triu(square) + np.triu(square, 1).T
        return block


class MetricPowers(BlockCost):
    """Power of any metric of scikit-learn, or of a function of two points."""

    def __init__(
        self,
        points: Points,
        metric: Metric,
        *,
        power: float,
        normalize: bool,
        scale: float | None = None,
        workers: Workers,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        super().__init__(_for_metric(points, metric), workers)
        self.sizes = sizes
        self._metric = metric
        if callable(metric):
            check_function(metric, points)
        self.keywords = metric_keywords(points, metric)
        self._power = power
        self._unit = self._length_unit()
        self._normalize(normalize, scale)

    def _raw_to(
        self, points: Points, queries: Points, start: int, first: int, name: str
    ) -> FloatArray:
        """Distances from queries to some points, in units near their size, to the power.

        ``start`` and ``first`` are the numbers of the first query and the first point.
        """
        with np.errstate(all="ignore"):  # what is no number is refused here
            distances = np.asarray(self._distances(queries, points), dtype=np.float64)
            check_costs(distances, start, first, name, self._metric)
            return self._powered(distances)

    def _distances(self, queries: Points, points: Points) -> Any:
        with importing():
            from sklearn.metrics import pairwise_distances

        return pairwise_distances(queries, points, metric=self._metric, n_jobs=1, **self.keywords)

    def _length_unit(self) -> float:
        """Power of two by which distances are divided, so that powers neither over- nor underflow.

        It is 1 for distances of usual size, whose bits stay the same.
        """
        with np.errstate(all="ignore"):
            largest = float(np.max(self._distances(self.own[:1], self.own)))
        usual = USUAL_DISTANCES[0] < largest < USUAL_DISTANCES[1]
        return 1.0 if usual or not 0.0 < largest < np.inf else power_of_two(largest)

    def _powered(self, distances: FloatArray) -> FloatArray:
        if self._unit != 1.0:
            distances = distances / self._unit
        return np.asarray(distances**self._power)

    def _unit_cost(self) -> float:
        with np.errstate(over="ignore", under="ignore"):  # happens only if the costs themselves do
            return float(np.float64(self._unit) ** self._power)


class MetricCost(MetricPowers, DirectCost):
    """Power of a metric within one cloud."""

    keywords: dict[str, Any]

    @property
    def search_metric(self) -> Metric | None:
        """The metric, if a tree finds its nearest points."""
        return self._metric if has_tree_search(self._metric) else None

    def queries(self, X_new: PointsLike) -> Any:
        """New points, checked."""
        return _for_metric(check_new_points(X_new, self.own), self._metric)

    def raw(self, queries: Points, first: int = 0, start: int = 0, name: str = "X") -> FloatArray:
        """Distances in units near their size, to the power."""
        return self._raw_to(self.own[first:], queries, start, first, name)

    def raw_of_neighbors(
        self, queries: Points, indices: LongArray, distances: FloatArray
    ) -> FloatArray:
        """Distances to the power."""
        with np.errstate(all="ignore"):  # what is no number is refused by `nearest`
            return self._powered(distances)

    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """Distances to the power; rounding on the diagonal is removed."""
        block = self.raw(self.own[start:stop], first, start)
        diagonal = np.arange(stop - start)
        block[diagonal, diagonal + start - first] = 0.0
        return block


def _for_metric(points: Points, metric: Metric) -> Any:
    with importing():
        from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

    return points.astype(bool) if metric in PAIRWISE_BOOLEAN_FUNCTIONS else points


class SparsePowers(DistancePowers, BlockCost):
    """Power of the Euclidean distance between sparse points, which stay sparse."""

    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """By matrix products, whose sums have the same order for (i, j) and (j, i)."""
        rows, columns = slice(start, stop), slice(first, self.partners(start)[1])
        squares = square_distances(
            self.own[rows], self._squares[rows], self.own[columns], self._squares[columns],
            near=False,
        )  # fmt: skip
        return self._powered(squares)


class SparsePointsCost(SparsePowers, DirectPowers):
    """Power of the Euclidean distance between sparse points of one cloud."""
