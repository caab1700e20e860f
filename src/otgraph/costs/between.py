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
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._kernels import clouds as cloud_kernels
from otgraph._parallel import Workers, row_blocks
from otgraph.costs.base import SAMPLE_ROWS, Cost
from otgraph.costs.blocks import BlockCost, MetricPowers, SparsePowers
from otgraph.costs.restricted import RestrictedProblem
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes

if TYPE_CHECKING:
    from otgraph.costs.between_points import ScaledClouds
    from otgraph.costs.interface import PairSet, Restricted
    from otgraph.typing import FloatArray, IntArray, LongArray, Metric, Points

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

    @property
    def clouds(self) -> list[tuple[int, int]]:
        """The points of X, and those of Y."""
        return [(0, self.n_left), (self.n_left, self.n)]

    def partners(self, row: int) -> tuple[int, int]:
        """The range of the points of the other cloud."""
        return (self.n_left, self.n) if row < self.n_left else (0, self.n_left)

    def halves(self, rows: LongArray | None) -> list[tuple[LongArray, tuple[int, int]]]:
        """Some points of each cloud with the range of their partners; None: every pair once."""
        if rows is None:
            return [(np.arange(self.n_left), (self.n_left, self.n))]
        left = rows < self.n_left
        both = (rows[left], (self.n_left, self.n)), (rows[~left], (0, self.n_left))
        return [(some, range_) for some, range_ in both if len(some)]

    def restrict(self, pairs: PairSet, diagonal: FloatArray) -> Restricted:
        """The transport problem on some pairs."""
        problem = super().restrict(pairs, diagonal)
        assert isinstance(problem, RestrictedProblem)  # no cluster has clouds
        problem.bipartite = True
        return problem

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
            columns = self._lifting(np.unique(stands_for[a:b]), coarse)
            if columns is None:
                columns = np.flatnonzero(~left if a < self.n_left else left)
            costs = self.between(a, b, rows[columns])
            target = coarse.target[stands_for[a:b]]
            cloud_kernels.lifted_rows(costs, coarse.u[columns], target, u[a:b])

        with single_threaded_blas():
            self.workers.run(lift, self._lifted_blocks())
        return u, coarse.units[stands_for]

    def _lifted_blocks(self) -> list[tuple[int, int]]:
        """Blocks of points whose potentials are found together."""
        return self._cloud_blocks(LIFTED_ROWS)

    def _lifting(self, chosen: LongArray, coarse: Coarse) -> LongArray | None:
        """Partners of the points around some of the chosen ones; None: all of the other cloud."""
        return None

    def _cloud_blocks(self, size: int) -> list[tuple[int, int]]:
        """Blocks of points of one cloud each."""
        return [
            (first + a, first + b)
            for first, last in self.clouds
            for a, b in row_blocks(last - first, size)
        ]

    # By `sample`, which knows that a cloud has no pairs.
    _row_totals = Cost._row_totals
    _partners = Cost._partners

    def slack(self, u: FloatArray, units: FloatArray, k: int) -> float:
        """The multiple of ``units`` that, added to ``u``, gives about k pairs per point."""
        rows = np.unique(np.linspace(0, self.n - 1, min(SLACK_ROWS, self.n)).astype(np.int64))
        found, wanted = np.empty(0), k * len(rows)
        for a, b in row_blocks(len(rows), SAMPLE_ROWS):
            some = rows[a:b]
            short = self.sample(some)
            short -= u[some, None]
            short -= u
            short /= units[some, None] + units
            found = np.concatenate((found, short[np.isfinite(short)]))
            if (
                len(found) > wanted
            ):  # the rest is large: a row has as many entries as there are points
                found = np.partition(found, wanted - 1)[:wanted]
        return float(found.max())

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
    """A cost between clouds about which nothing is known."""

    def between(self, start: int, stop: int, columns: LongArray) -> FloatArray:
        """Costs from points ``start:stop`` of one cloud to some points of the other one."""
        first, _ = self.partners(start)
        return self._scaled(self.block(start, stop, first)[:, columns - first])

    def _mean_and_largest(self) -> tuple[float, float]:
        """Mean and maximum of the raw costs between the clouds."""

        def total(rows: tuple[int, int]) -> tuple[float, float]:
            costs = self.block(*rows, self.n_left)
            return float(costs.sum()), float(costs.max(initial=0.0))

        blocks = self._blocks(0, self.n_left)
        with single_threaded_blas():
            sums, largest = zip(*self.workers.map(total, blocks, label="mean cost"), strict=True)
        return float(sum(sums)) / self.n_pairs, max(largest)


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

    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """Rows or columns of the matrix."""
        if start < self.n_left:
            return np.array(self.own[start:stop, first - self.n_left :])
        return np.array(self.own[first:, start - self.n_left : stop - self.n_left].T)

    def _only(self, rows: LongArray, n_left: int) -> CrossMatrixCost:
        few = self.own[np.ix_(rows[:n_left], rows[n_left:] - self.n_left)]
        other = CrossMatrixCost(few, scale=1.0, workers=self.workers, sizes=self.sizes)
        other.factor, other.largest = self.factor, self.largest
        return other


class CrossMetricCost(CrossBlocks, MetricPowers):
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

    def block(self, start: int, stop: int, first: int) -> FloatArray:
        """Distances to the power."""
        points = self.own[first : self.partners(start)[1]]
        name, number = ("X", start) if start < self.n_left else ("Y", start - self.n_left)
        return self._raw_to(points, self.own[start:stop], number, 0, name)


class CrossSparseCost(CrossBlocks, SparsePowers):
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
