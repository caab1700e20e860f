"""Costs between two clouds: only pairs of a point of X and a point of Y are allowed.

The clouds are stacked, X before Y, and the solver sees one set of points. What makes the problem
that of two clouds is the cost: searches and screens look across only. Cells and leaves hold points
of one cloud each, so that a bound of the potentials of a cell is one of its cloud; the potentials
of the other cloud may be smaller by any number.
"""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._kernels import clouds as cloud_kernels
from otgraph._kernels import pairs as kernels
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.base import SAMPLE_ROWS, Cost
from otgraph.costs.blocks import BlockCost, MetricCost, SparsePointsCost
from otgraph.costs.direct import check_costs
from otgraph.costs.pairs import drain
from otgraph.costs.search import Work
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import square_distances

if TYPE_CHECKING:
    from otgraph.costs.between_points import ScaledClouds
    from otgraph.costs.pairs import PairChunk
    from otgraph.typing import FloatArray, IntArray, LongArray, Metric, Points, PointsLike

    Found = tuple[int, list[PairChunk]]

LIFTED_ROWS = 512  # points whose costs to all chosen points are in memory at once
SLACK_ROWS = 48  # sample size for the number of pairs per point
# Points of either cloud, at least, in a small problem that stands for the whole one.
FEWEST_OF_A_CLOUD = 16


@dataclass(frozen=True)
class Coarse:
    """The solution of a problem on some of the points.

    Parameters
    ----------
    u, target
        Potentials, and wanted row sums of (u_i + u_j - c_ij)_+.
    indptr, indices
        The pairs in use: partners of every point, by their number in the problem.
    """

    u: FloatArray
    target: FloatArray
    indptr: LongArray
    indices: IntArray

    @property
    def units(self) -> FloatArray:
        """Mean excess of the pairs of every point."""
        return self.target / np.maximum(np.diff(self.indptr), 1)


class BetweenClouds(Cost):
    """What all costs between two clouds share.

    Attributes
    ----------
    n_left
        Number of points of X. They come before those of Y, also in the order of the cost.
    offsets
        What to add to the potentials, in the order of the cost, if the clouds were moved.
    """

    n_left: int
    offsets: FloatArray | None = None
    nearest_are_partners = False

    @property
    def n_right(self) -> int:
        """Number of points of Y."""
        return self.n - self.n_left

    @property
    def n_pairs(self) -> int:
        """Number of pairs of a point of X and a point of Y."""
        return self.n_left * self.n_right

    @property
    def most_partners(self) -> int:
        """Largest number of pairs of one point."""
        return max(self.n_left, self.n_right)

    def pairs_of(self, rows: LongArray) -> int:
        """Number of pairs of some points, each counted once."""
        left = int(np.count_nonzero(rows < self.n_left))
        right = len(rows) - left
        return left * self.n_right + right * self.n_left - left * right

    def other(self, row: int) -> tuple[int, int]:
        """The range of the points that can be partners of a point."""
        return (self.n_left, self.n) if row < self.n_left else (0, self.n_left)

    def halves(self, rows: LongArray | None) -> list[tuple[LongArray, tuple[int, int]]]:
        """Some points of each cloud with the range of their partners; None: every pair once."""
        if rows is None:
            return [(np.arange(self.n_left), (self.n_left, self.n))]
        left = rows < self.n_left
        both = (rows[left], (self.n_left, self.n)), (rows[~left], (0, self.n_left))
        return [(some, range_) for some, range_ in both if len(some)]

    def imbalance(self, u: FloatArray) -> FloatArray:
        """What to move from one cloud to the other so that both have the same mean.

        Newton steps may have moved far more than the potentials differ, and digits would be lost.
        """
        moved = 0.5 * float(np.mean(u[: self.n_left]) - np.mean(u[self.n_left :]))
        return np.where(np.arange(self.n) < self.n_left, -moved, moved)

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points, infinite within a cloud."""
        costs = super().sample(rows)  # type: ignore[safe-super]
        left = rows < self.n_left
        costs[left, : self.n_left] = np.inf
        costs[~left, self.n_left :] = np.inf
        return costs

    def thinned(self, most: int) -> tuple[Self, LongArray, int] | None:
        """At most so many evenly spread points of each cloud; None if there are no more.

        Returns the same cost of these points, which they are, and the factor by which the number
        of pairs was divided. A chosen point stands for those that follow it in memory.
        """
        steps = [self._step(size, most) for size in (self.n_left, self.n_right)]
        if max(steps) == 1:
            return None
        left = np.arange(0, self.n_left, steps[0])
        rows = np.concatenate((left, np.arange(self.n_left, self.n, steps[1])))
        return self._only(rows, len(left)), rows, steps[0] * steps[1]

    def _step(self, size: int, most: int) -> int:
        """Every how many points of a cloud one is chosen."""
        return -(-size // most)

    @abstractmethod
    def _only(self, rows: LongArray, n_left: int) -> Self:
        """The same cost of some points only, the first ``n_left`` of them in X."""

    @abstractmethod
    def between(self, start: int, stop: int, columns: LongArray) -> FloatArray:
        """Costs from points ``start:stop`` of one cloud to some points of the other one."""

    def lifted(self, rows: LongArray, coarse: Coarse) -> tuple[FloatArray, FloatArray]:
        """Potentials of all points from those of the points ``rows``, and their uncertainty.

        Each point gets the potential that gives it its mass in the problem of the points
        ``rows``, which are in the order of that problem. The uncertainty is the mean excess of a
        pair there.
        """
        left = rows < self.n_left
        order = np.argsort(rows)
        stands_for = order[np.searchsorted(rows[order], np.arange(self.n), side="right") - 1]
        u = np.empty(self.n)

        def lift(block: tuple[int, int]) -> None:
            a, b = block
            columns = ~left if a < self.n_left else left
            costs = self.between(a, b, rows[columns])
            target = coarse.target[stands_for[a:b]]
            cloud_kernels.lifted_rows(costs, coarse.u[columns], target, u[a:b])

        with single_threaded_blas():
            self.workers.run(lift, self._cloud_blocks(LIFTED_ROWS))
        return u, coarse.units[stands_for]

    def _cloud_blocks(self, size: int) -> list[tuple[int, int]]:
        """Blocks of points of one cloud each."""
        return [
            (first + a, first + b)
            for first, last in ((0, self.n_left), (self.n_left, self.n))
            for a, b in row_blocks(last - first, size)
        ]

    _row_totals = Cost._row_totals  # by `sample`, which knows that a cloud has no pairs

    def slack(self, u: FloatArray, units: FloatArray, k: int) -> float:
        """The multiple of ``units`` that, added to ``u``, gives about k pairs per point."""
        rows = np.unique(np.linspace(0, self.n - 1, min(SLACK_ROWS, self.n)).astype(np.int64))
        found = []
        for a, b in row_blocks(len(rows), SAMPLE_ROWS):
            some = rows[a:b]
            short = self.sample(some) - u[some, None] - u
            found.append((short / (units[some, None] + units)).ravel())
        short = np.concatenate(found)
        rank = min(k * len(rows), int(np.count_nonzero(np.isfinite(short)))) - 1
        return float(np.partition(short, rank)[rank])

    def few(self, count: int, mass: FloatArray) -> tuple[Cost, FloatArray, float]:
        """A small problem on evenly spread points of both clouds; see `Cost.few`."""
        wanted = count * np.array([self.n_left, self.n_right]) / self.n
        size = np.maximum(np.round(wanted).astype(int), FEWEST_OF_A_CLOUD)
        left = _evenly_spread(self.n_left, size[0])
        right = self.n_left + _evenly_spread(self.n_right, size[1])
        small = CrossMatrixCost(self.sample(left)[:, right], scale=1.0, workers=self.workers)
        # The share of the pairs is that of the targets, and both clouds keep the same total.
        shares = len(left) / self.n_left, len(right) / self.n_right
        masses = np.concatenate((mass[left] * shares[1], mass[right] * shares[0]))
        masses[len(left) :] *= masses[: len(left)].sum() / masses[len(left) :].sum()
        return small, masses, 1.0


def _evenly_spread(n: int, count: int) -> LongArray:
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(np.int64))


class CrossBlocks(BetweenClouds, BlockCost):
    """A cost between clouds about which nothing is known: all pairs, in blocks of rows."""

    @abstractmethod
    def across(self, start: int, stop: int) -> FloatArray:
        """Raw costs from points ``start:stop`` of one cloud to all points of the other one."""

    def block(self, start: int, stop: int, first_column: int) -> FloatArray:
        """Only costs between the clouds exist."""
        raise NotImplementedError

    def between(self, start: int, stop: int, columns: LongArray) -> FloatArray:
        """Costs from points ``start:stop`` of one cloud to some points of the other one."""
        return self._scaled(self.across(start, stop)[:, columns - self.other(start)[0]])

    def _blocks_of(self, first: int, last: int) -> list[tuple[int, int]]:
        """Blocks of points of one cloud."""
        width = max(1, self.sizes.block_entries // max(1, self.n - (last - first)))
        return [(first + a, first + b) for a, b in row_blocks(last - first, width)]

    def _mean_and_largest(self) -> tuple[float, float]:
        """Mean and maximum of the raw costs between the clouds."""

        def total(rows: tuple[int, int]) -> tuple[float, float]:
            costs = self.across(*rows)
            return float(costs.sum()), float(costs.max(initial=0.0))

        blocks = self._blocks_of(0, self.n_left)
        with single_threaded_blas():
            sums, largest = zip(*self.workers.map(total, blocks, label="mean cost"), strict=True)
        return float(sum(sums)) / self.n_pairs, max(largest)

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points, infinite within a cloud."""
        out = np.full((len(rows), self.n), np.inf)
        for r, row in enumerate(rows.tolist()):
            first, last = self.other(row)
            out[r, first:last] = self._scaled(self.across(row, row + 1))[0]
        return out

    def neighbor_work(self, k: int) -> Work:
        """The search for the k nearest points of the other cloud."""
        blocks = self._blocks_of(0, self.n_left) + self._blocks_of(self.n_left, self.n)
        return Work(blocks, partial(self._neighbors_of_block, k))

    def _neighbors_of_block(self, k: int, rows: tuple[int, int]) -> Found:
        a, b = rows
        first, last = self.other(a)
        k = min(k, last - first)
        costs = self._scaled(self.across(a, b))
        nearest = np.argpartition(costs, k - 1, axis=1)[:, :k]
        i = np.repeat(np.arange(a, b, dtype=np.int32), k)
        found = np.take_along_axis(costs, nearest, axis=1).ravel()
        return costs.size, [(i, (first + nearest.ravel()).astype(np.int32), found)]

    def screen_work(self, upper: FloatArray, rows: LongArray | None = None) -> Work:
        """The search for every pair with c_ij < upper_i + upper_j, or those of some points."""
        if rows is not None:
            return super().screen_work(upper, rows)
        blocks = self._blocks_of(0, self.n_left)
        return Work(blocks, partial(self._screen_block, upper), complete=True)

    def _screen_block(self, upper: FloatArray, rows: tuple[int, int]) -> Found:
        a, b = rows
        costs = self._scaled(self.across(a, b))
        collect = partial(kernels.collect_block, costs, a, self.n_left, upper)
        return costs.size, drain(collect, b - a, 2 * self.n)


class CrossMatrixCost(CrossBlocks):
    """A dense matrix of costs from X (rows) to Y (columns)."""

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
        self.n_left = len(matrix)
        self.n = sum(matrix.shape)
        self.order = np.arange(self.n)
        self.sizes = sizes
        self._normalize(normalize, scale)

    def across(self, start: int, stop: int) -> FloatArray:
        """Rows or columns of the matrix."""
        if start < self.n_left:
            return np.array(self.own[start:stop])
        return np.array(self.own[:, start - self.n_left : stop - self.n_left].T)

    def _only(self, rows: LongArray, n_left: int) -> CrossMatrixCost:
        few = self.own[np.ix_(rows[:n_left], rows[n_left:] - self.n_left)]
        other = CrossMatrixCost(few, scale=1.0, workers=self.workers, sizes=self.sizes)
        other.factor, other.largest = self.factor, self.largest
        return other

    def queries(self, X_new: PointsLike) -> Any:
        """There are no new points."""
        raise NotImplementedError

    def raw(self, queries: Points, first: int = 0, start: int = 0, name: str = "X") -> FloatArray:
        """There are no new points."""
        raise NotImplementedError


class CrossMetricCost(CrossBlocks, MetricCost):
    """Power of any metric between the points of two clouds."""

    def __init__(
        self,
        points: Points,
        n_left: int,
        metric: Metric,
        *,
        power: float,
        normalize: bool,
        workers: Workers,
        sizes: SearchSizes = DEFAULT_SIZES,
    ) -> None:
        self.n_left = n_left
        super().__init__(
            points, metric, power=power, normalize=normalize, workers=workers, sizes=sizes
        )

    def _only(self, rows: LongArray, n_left: int) -> Self:
        return _copied(self, rows, n_left)

    def across(self, start: int, stop: int) -> FloatArray:
        """Distances to the power."""
        first, last = self.other(start)
        name = "X" if start < self.n_left else "Y"
        with np.errstate(all="ignore"):  # what is no number is refused here
            distances = np.asarray(
                self._distances(self.own[start:stop], self.own[first:last]), dtype=np.float64
            )
            start = start if start < self.n_left else start - self.n_left
            check_costs(distances, start, 0, name, self._metric)
            return self._powered(distances)


class CrossSparseCost(CrossBlocks, SparsePointsCost):
    """Power of the Euclidean distance between sparse points of two clouds."""

    def __init__(
        self, scaled: ScaledClouds, workers: Workers, sizes: SearchSizes = DEFAULT_SIZES
    ) -> None:
        self.n_left = scaled.n_left
        super().__init__(scaled, workers, sizes=sizes)
        self.offsets = scaled.offsets

    def _only(self, rows: LongArray, n_left: int) -> Self:
        other = _copied(self, rows, n_left)
        other._squares = self._squares[rows]
        return other

    def across(self, start: int, stop: int) -> FloatArray:
        """By matrix products."""
        rows, columns = slice(start, stop), slice(*self.other(start))
        squares = square_distances(
            self.own[rows], self._squares[rows], self.own[columns], self._squares[columns],
            near=False,
        )  # fmt: skip
        return self._powered(squares)


def stacked(X: Points, Y: Points) -> Points:
    """The points of both clouds, sparse if both are."""
    if sp.issparse(X) and sp.issparse(Y):
        return sp.csr_matrix(sp.vstack([X, Y], format="csr"))
    return np.vstack([part if isinstance(part, np.ndarray) else part.toarray() for part in (X, Y)])


Copied = TypeVar("Copied", bound=CrossBlocks)


def _copied(cost: Copied, rows: LongArray, n_left: int) -> Copied:
    """The same cost of some points only, which are in its order."""
    other = copy(cost)
    other.own, other.n, other.n_left = cost.own[rows], len(rows), n_left
    other.order = np.arange(len(rows))
    return other
