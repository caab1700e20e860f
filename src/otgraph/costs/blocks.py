"""Costs that come in blocks of rows: a matrix that is there, or any metric.

Nothing is known about these costs that would exclude pairs unseen, so that searching and
screening look at every pair, a block of rows at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import PAIRWISE_BOOLEAN_FUNCTIONS

from otgraph._kernels import pairs as kernels
from otgraph._parallel import Workers, row_blocks, single_threaded_blas
from otgraph.costs.pairs import drain
from otgraph.costs.search import SearchedCost, Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs.pairs import PairChunk
    from otgraph.typing import FloatArray, LongArray

    Found = tuple[int, list[PairChunk]]

# Numbers in one block of costs: 64 MB a thread, and thousands of rows for small problems.
BLOCK_ENTRIES = 1 << 23


class BlockCost(SearchedCost):
    """A cost that can fill blocks ``c[a:b, a:]``; the part left of it is known by symmetry."""

    def __init__(self, n: int, workers: Workers) -> None:
        self.n = n
        self.order = np.arange(n)
        self.scale = 1.0
        self.workers = workers
        self._divisor = 1.0
        self._blocks = row_blocks(n, max(1, min(n, BLOCK_ENTRIES // n)))

    @abstractmethod
    def block(self, start: int, stop: int, first_column: int) -> FloatArray:
        """Costs from points ``start:stop`` to points ``first_column:``, before scaling."""

    def _mean_and_largest(self) -> tuple[float, float]:
        """Over all ordered pairs, a point with itself included at cost 0."""

        def total(rows: tuple[int, int]) -> tuple[float, float]:
            costs = np.triu(self.block(*rows, rows[0]), 1)
            return float(costs.sum()), float(costs.max(initial=0.0))

        sums, largest = zip(*self._map(total), strict=True)
        return 2.0 * float(sum(sums)) / self.n**2, max(largest)

    def _normalize(self, normalize: bool, unit_cost: float = 1.0) -> None:
        """Set what blocks, given in units of ``unit_cost``, are divided by."""
        mean, largest = self._mean_and_largest()
        self.identical = mean == 0.0
        self._divisor = positive_scale(mean) if normalize else 1.0 / unit_cost
        self.scale = self._divisor * unit_cost
        self.largest = largest / self._divisor

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points."""
        return np.vstack([self.block(int(r), int(r) + 1, 0) for r in rows]) / self._divisor

    def neighbor_work(self, k: int) -> Work:
        """The search for the k nearest points."""
        return Work(self._blocks, partial(self._neighbors_of_block, min(k, self.n - 1)))

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        if rows is None:
            return Work(self._blocks, partial(self._screen_block, upper), complete=True)
        blocks = row_blocks(len(rows), max(1, BLOCK_ENTRIES // self.n))
        return Work(blocks, partial(self._screen_rows, upper, rows), complete=True)

    def _map(self, function: Callable[[tuple[int, int]], Any]) -> Any:
        with single_threaded_blas():
            yield from self.workers.map(function, self._blocks)

    def _neighbors_of_block(self, k: int, rows: tuple[int, int]) -> Found:
        a, b = rows
        costs = self.block(a, b, 0) / self._divisor
        costs[np.arange(b - a), np.arange(a, b)] = np.inf
        nearest = np.argpartition(costs, k - 1, axis=1)[:, :k]
        i = np.repeat(np.arange(a, b, dtype=np.int32), k)
        nearest_costs = np.take_along_axis(costs, nearest, axis=1).ravel()
        return costs.size, [(i, nearest.ravel().astype(np.int32), nearest_costs)]

    def _screen_block(self, upper: FloatArray, rows: tuple[int, int]) -> Found:
        a, b = rows
        costs = self.block(a, b, a) / self._divisor
        collect = partial(kernels.collect_block, costs, a, a, upper)
        return costs.size, drain(collect, b - a, 2 * self.n)

    def _screen_rows(self, upper: FloatArray, rows: LongArray, place: tuple[int, int]) -> Found:
        some = rows[slice(*place)]
        costs = self.sample(some)
        collect = partial(kernels.collect_rows, costs, some, upper)
        return costs.size, drain(collect, len(some), 2 * self.n)


class MatrixCost(BlockCost):
    """A dense cost matrix that the caller already holds."""

    def __init__(self, matrix: FloatArray, *, normalize: bool, workers: Workers) -> None:
        super().__init__(len(matrix), workers)
        self._matrix = matrix
        self._normalize(normalize)

    def block(self, start: int, stop: int, first_column: int) -> FloatArray:
        """Rows of the matrix, made exactly symmetric: the entry above the diagonal counts."""
        block = self._matrix[start:stop, first_column:].copy()
        left = start - first_column
        if left > 0:
            block[:, :left] = self._matrix[first_column:start, start:stop].T
        square = block[:, left : left + stop - start]
        square[...] = np.triu(square) + np.triu(square, 1).T
        return block


class MetricCost(BlockCost):
    """Power of any metric of scikit-learn, or of a function of two points."""

    def __init__(
        self, points: Any, metric: Any, *, power: float, normalize: bool, workers: Workers
    ) -> None:
        super().__init__(points.shape[0], workers)
        if metric in PAIRWISE_BOOLEAN_FUNCTIONS:
            points = points.astype(bool)
        self._points = points
        self._metric = metric
        self._keywords = _metric_keywords(points, metric)
        self._power = power
        self._normalize(normalize)

    def block(self, start: int, stop: int, first_column: int) -> FloatArray:
        """Distances to the power."""
        points = self._points
        distances = pairwise_distances(
            points[start:stop],
            points[first_column:],
            metric=self._metric,
            n_jobs=1,
            **self._keywords,
        )
        diagonal = np.arange(stop - start)
        distances[diagonal, diagonal + start - first_column] = 0.0
        return np.asarray(distances, dtype=np.float64) ** self._power


def _metric_keywords(points: Any, metric: Any) -> dict[str, Any]:
    """What a metric learns from all points, and could not from a block of them."""
    if isinstance(metric, str) and metric == "seuclidean":
        return {"V": np.var(points, axis=0, ddof=1)}
    if isinstance(metric, str) and metric == "mahalanobis":
        return {"VI": np.linalg.inv(np.cov(points.T)).T}
    return {}


class SparsePointsCost(BlockCost):
    """Power of the Euclidean distance between sparse points, which stay sparse."""

    def __init__(
        self, points: Any, *, power: float, factor: float, normalize: bool, workers: Workers
    ) -> None:
        super().__init__(points.shape[0], workers)
        unit = power_of_two(float(np.abs(points.data).max()) if points.nnz else 0.0)
        self._points = points / unit
        self._transposed = self._points.T.tocsc()
        self._squares = np.asarray(self._points.multiply(self._points).sum(axis=1)).ravel()
        self._half_power = 0.5 * power
        self._normalize(normalize, factor * unit**power)

    def block(self, start: int, stop: int, first_column: int) -> FloatArray:
        """|x|² + |y|² - 2 x·y; the sums run over common features in one order both ways."""
        products = (self._points[start:stop] @ self._transposed[:, first_column:]).toarray()
        squares = self._squares[start:stop, None] + self._squares[None, first_column:]
        squares -= 2.0 * products
        np.maximum(squares, 0.0, out=squares)
        return squares**self._half_power


def positive_scale(mean: float) -> float:
    """Divisor for a mean cost: all points identical leaves nothing to divide by."""
    return mean if mean > 0.0 else 1.0


def power_of_two(largest: float) -> float:
    """Power of two near ``largest``: dividing by it changes no digit."""
    return float(2.0 ** np.floor(np.log2(largest))) if largest > 0.0 else 1.0
