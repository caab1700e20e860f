"""The interface between the solver and a cost.

Every cost implements

    neighbors(k)     first candidate pairs
    screen(upper)    every pair that a solution u <= upper could use
    sample(rows)     costs of some points to all points

and inherits

    restrict(pairs)  the transport problem on those pairs only
    decide(upper)    whether screens will cover all pairs: what search="auto" means

A screen takes an upper bound of the potentials, not the potentials themselves. The pairs outside
its result satisfy u_i + u_j <= c_ij for *every* u <= upper. One pass is therefore enough, even
though the last Newton steps still change u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from otgraph._kernels import pairs as kernels
from otgraph._memory import available_bytes
from otgraph._parallel import CACHE_ENTRIES, row_blocks
from otgraph.costs.pairs import symmetric_pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph._parallel import Workers
    from otgraph.costs.interface import PairSet, Restricted
    from otgraph.typing import BoolArray, FloatArray, LongArray

# Sampled rows whose costs to all points are in memory at once, and most costs of them: 64 MB. Where
# more rows fit into the cache, sums over rows take more.
SAMPLE_ROWS = 8
SAMPLE_ENTRIES = 1 << 23
# Points of a group from which short pairs to the rest are looked for first, and how often both ends
# of the pairs are then replaced by nearer points.
TRIED_POINTS = 32
IMPROVEMENTS = 2
# Peak bytes per pair in one process. Sorting the list into both rows takes 16 + 2·12; candidates
# and plan together take 2·12 + 2·20, because active pairs are forgotten before a plan is made.
BYTES_PER_PAIR = 64
MEMORY_SHARE = 0.7  # share of the free memory that pairs may use


@dataclass(frozen=True)
class Screen:
    """Result of a pass over the pairs.

    Parameters
    ----------
    upper
        Bound of the potentials: for u <= upper, no pair outside has a positive weight.
    pairs
        The pairs with c_ij < upper_i + upper_j that the pass found.
    complete
        Whether every pair was either computed or excluded by a bound.
    pairs_checked
        Number of pairs that were computed or excluded.
    """

    upper: FloatArray
    pairs: PairSet
    complete: bool
    pairs_checked: int


class Cost(ABC):
    """Transport cost between points.

    All vectors are in the order of the cost, which may differ from that of the input:
    ``order[i]`` is the index of its i-th point in the input.
    """

    n: int
    order: LongArray
    scale: float
    largest: float  # upper bound of all costs
    workers: Workers
    exact: bool | None = True  # whether screens cover all pairs; None: not decided yet
    raised: PairSet | None = None  # pairs that cost more than their distance, see `with_raised`
    # False if the first candidates are all pairs that are allowed.
    has_other_pairs: bool = True
    identical: bool = False  # whether all points coincide
    # Whether nearest points are good first candidates. Between two clouds they are not, and the
    # solver begins with fewer points (`solvers/scales.py`).
    nearest_are_partners: bool = True
    # Whether the search for neighbors compares all points, or excludes them by bounds, and so is a
    # screen of all pairs.
    compares_all: bool = False
    bytes_per_pair: int = BYTES_PER_PAIR
    # Told eps and potentials whenever the solver has improved them; for checkpoints.
    on_improved: Callable[[float, FloatArray], None] | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs i < j."""
        return self.n * (self.n - 1) // 2

    @property
    def most_partners(self) -> int:
        """Largest number of pairs of one point."""
        return self.n - 1

    @property
    def clouds(self) -> list[tuple[int, int]]:
        """Ranges of the points; those of a range have the same possible partners."""
        return [(0, self.n)]

    def partners(self, row: int) -> tuple[int, int]:
        """The range of the points that can be partners of a point."""
        return 0, self.n

    @property
    def partner_rows(self) -> int:
        """Sampled rows whose partners are looked for at once."""
        return max(1, SAMPLE_ENTRIES // self.n)

    @property
    def sample_rows(self) -> int:
        """Sampled rows whose costs are computed at once, if there are many points."""
        return min(SAMPLE_ROWS, self.partner_rows)

    def pairs_of(self, rows: LongArray) -> int:
        """Number of pairs of some points, each counted once."""
        return len(rows) * self.n - len(rows) * (len(rows) + 1) // 2

    @abstractmethod
    def neighbors(self, k: int) -> PairSet:
        """Pairs of near points, about k per point; they need not be the k nearest."""

    @abstractmethod
    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""

    @abstractmethod
    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points, shape (len(rows), n)."""

    def decide(self, upper: FloatArray) -> bool:
        """Decide, before a pass with ``upper``, whether screens cover all pairs from now on."""
        return self.exact is not False

    def widen(self) -> bool:
        """Widen the approximate search; returns False if it cannot be widened."""
        return False

    def forget_points(self) -> None:
        """Free the points, if they are here; no cost can be computed any more."""
        vars(self).pop("own", None)

    def imbalance(self, u: FloatArray) -> FloatArray | None:
        """What to add to potentials so that they are small; it changes no sum of two partners.

        None within one cloud, where potentials are unique or nearly so.
        """
        return None

    def unplaceable(self, mass: FloatArray) -> BoolArray:
        """Points that together have more mass than all their allowed partners can take."""
        return np.zeros(self.n, dtype=np.bool_)

    def restrict(self, pairs: PairSet, diagonal: FloatArray) -> Restricted:
        """The transport problem on ``pairs``, and on the raised ones."""
        if self.raised is not None:
            pairs = pairs.overlaid(self.raised, self.workers)  # a pair in both is raised
        return pairs.restricted(diagonal, self.workers)

    def pair_set(self, i: LongArray, j: LongArray, costs: FloatArray) -> PairSet:
        """Listed pairs, each once, with any costs."""
        chunk = (i.astype(np.int32), j.astype(np.int32), costs)
        return symmetric_pairs(self.n, [chunk], self.workers)

    def with_raised(self, raised: PairSet | None) -> Self:
        """The same cost, but higher for some pairs.

        Searches and screens do not know of it. They may find too many pairs, never too few. Pairs
        on which problems are made may be raised where they are (`PairSet.restore`).
        """
        other = copy(self)
        other.raised = raised
        return other

    def nearest_pairs(self, rows: LongArray, k: int) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs of each of some points, sorted by point and cost."""
        return self.shortest_pairs(rows, np.arange(self.n), k)

    def shortest_pairs(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs from each group of some points to points outside the group.

        ``labels`` are the groups of all points. Returns both ends and the costs; fewer than k
        pairs if there are no more. Only some points of a large group are tried first. Then both
        ends of its pairs are replaced in turns by nearer points, so that its pairs are short, but
        not always the shortest.
        """
        rows, large = _tried_first(rows, labels)
        i, j, costs = self.shortest_of_groups(rows, labels, k)
        for _ in range(IMPROVEMENTS if large.any() else 0):
            again = large[labels[i]]
            nearer = self.nearest_inside(j[again], labels[i[again]], labels)
            nearer = np.setdiff1d(nearer, rows)  # whose pairs are known
            if not len(nearer):
                break
            rows = np.concatenate([rows, nearer])
            found = self.shortest_of_groups(nearer, labels, k)
            i, j, costs = (np.concatenate(pair) for pair in zip((i, j, costs), found, strict=True))
            i, j, costs = cheapest_of_each(labels[i], i, j, costs, k)
        return i, j, self.refined(i, j, costs)

    def shortest_of_groups(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs from some points of each group to points outside the group."""
        i, j, costs = self._partners(rows, labels[rows], labels, k, inside=False)
        return cheapest_of_each(labels[i], i, j, costs, k)

    def nearest_inside(self, rows: LongArray, groups: LongArray, labels: LongArray) -> LongArray:
        """For every row, the cheapest partner inside a group that is not its own."""
        return self._partners(rows, groups, labels, 1, inside=True)[1]

    def _partners(
        self, rows: LongArray, groups: LongArray, labels: LongArray, k: int, *, inside: bool
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """For every row, its k cheapest partners inside or outside a group."""
        near = np.zeros((len(rows), k), dtype=np.int64)
        found = np.empty((len(rows), k))
        for a, b in row_blocks(len(rows), self.partner_rows):
            block = (self.sample(rows[a:b]), groups[a:b], labels, inside)
            fill = partial(kernels.cheapest_partners, *block, near[a:b], found[a:b])
            self.workers.run(fill, row_blocks(b - a, SAMPLE_ROWS))
        allowed = np.isfinite(found)
        return np.repeat(rows, allowed.sum(axis=1)), near[allowed], found[allowed]

    def refined(self, i: LongArray, j: LongArray, costs: FloatArray) -> FloatArray:
        """Sampled costs of listed pairs, as accurate as those of a screen."""
        return costs

    def among(self, rows: LongArray) -> FloatArray:
        """Costs of a few points with each other."""
        blocks = row_blocks(len(rows), self.sample_rows)
        return np.vstack([self.sample(rows[a:b])[:, rows] for a, b in blocks])

    def few(self, count: int, mass: FloatArray) -> tuple[Cost, FloatArray, float]:
        """A small problem whose potentials are about those of the whole one.

        Returns the cost of evenly spread points, their masses, and the factor on eps.
        """
        from otgraph.costs.blocks import MatrixCost  # circular import

        rows = np.linspace(0, self.n - 1, count).astype(np.int64)
        small = MatrixCost(self.among(rows), workers=self.workers)
        return small, mass[rows], (count - 1) / (self.n - 1)

    def usable_bytes(self) -> float:
        """Memory that pairs may use in the process or the workers that hold them."""
        return MEMORY_SHARE * available_bytes()

    def count_below(self, rows: LongArray, upper: FloatArray) -> LongArray:
        """Number of pairs with c_ij < upper_i + upper_j for some points i and all j."""
        return self._row_totals(rows, upper, positive_counts).astype(np.int64)

    def excess(self, rows: LongArray, u: FloatArray) -> FloatArray:
        """Sum of (u_i + u_j - c_ij)_+ over all j for some points i."""
        return self._row_totals(rows, u, positive_sums)

    def _row_totals(
        self, rows: LongArray, u: FloatArray, measure: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Sums over rows of u_i + u_j - c_ij, zero for a point with itself, of some points i."""
        totals = []
        for a, b in row_blocks(len(rows), max(self.sample_rows, CACHE_ENTRIES // self.n)):
            some = rows[a:b]
            gap = u[some, None] + u - self.sample(some)
            gap[np.arange(len(some)), some] = 0.0
            totals.append(measure(gap))
        return np.concatenate(totals)

    def predict_pairs(self, upper: FloatArray, n_rows: int = 16) -> float:
        """Estimated number of pairs that `screen` would return, from evenly spread rows."""
        rows = np.unique(np.linspace(0, self.n - 1, min(n_rows, self.n)).astype(np.int64))
        hits = int(self.count_below(rows, upper).sum())
        return 0.5 * hits * self.n / len(rows)


def positive_counts(values: FloatArray) -> FloatArray:
    """How many entries of each row are positive."""
    return np.count_nonzero(values > 0.0, axis=1)


def positive_sums(values: FloatArray) -> FloatArray:
    """Sums of the positive entries of each row."""
    return np.asarray(np.maximum(values, 0.0).sum(axis=1))


def _tried_first(rows: LongArray, labels: LongArray) -> tuple[LongArray, BoolArray]:
    """A few evenly spread points of every group, and which groups have more."""
    order = rows[np.argsort(labels[rows], kind="stable")]
    sizes = np.bincount(labels[rows], minlength=int(labels.max()) + 1)
    size = sizes[labels[order]]
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[labels[order]]
    step = np.maximum(size / TRIED_POINTS, 1.0)
    tried = np.floor(rank / step) != np.floor((rank - 1) / step)
    return np.sort(order[tried]), sizes > TRIED_POINTS


def cheapest_of_each(
    groups: LongArray, i: LongArray, j: LongArray, costs: FloatArray, k: int
) -> tuple[LongArray, LongArray, FloatArray]:
    """The k cheapest pairs of every group, each pair once."""
    order = np.lexsort((j, i, costs, groups))
    same = np.zeros(len(order), dtype=np.bool_)
    same[1:] = (np.diff(i[order]) == 0) & (np.diff(j[order]) == 0)
    order = order[~same]
    group = groups[order]
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    chosen = order[rank < k]
    return i[chosen], j[chosen], costs[chosen]
