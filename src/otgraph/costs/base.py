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
from typing import TYPE_CHECKING, Self

import numpy as np

from otgraph._memory import available_bytes
from otgraph._parallel import row_blocks
from otgraph.costs.pairs import symmetric_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph._parallel import Workers
    from otgraph.costs.interface import PairSet, Restricted
    from otgraph.typing import BoolArray, FloatArray, LongArray

# Sampled rows whose costs to all points are in memory at once: 64 MB for a million points.
SAMPLE_ROWS = 8


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

    @property
    def n_pairs(self) -> int:
        """Number of pairs i < j."""
        return self.n * (self.n - 1) // 2

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

    def unplaceable(self, mass: FloatArray) -> BoolArray:
        """Points that together have more mass than all their allowed partners can take."""
        return np.zeros(self.n, dtype=np.bool_)

    def restrict(self, pairs: PairSet, diagonal: FloatArray) -> Restricted:
        """The transport problem on ``pairs``, and on the raised ones."""
        if self.raised is not None:
            pairs = self.raised.merged(pairs, self.workers)  # a pair in both is raised
        return pairs.restricted(diagonal, self.workers)

    def pair_set(self, i: LongArray, j: LongArray, costs: FloatArray) -> PairSet:
        """Listed pairs, each once, with any costs."""
        chunk = (i.astype(np.int32), j.astype(np.int32), costs)
        return symmetric_pairs(self.n, [chunk], self.workers)

    def with_raised(self, raised: PairSet | None) -> Self:
        """The same cost, but higher for some pairs.

        Searches and screens do not know of it. They may find too many pairs, never too few.
        """
        other = copy(self)
        other.raised = raised
        return other

    def shortest_pairs(
        self, rows: LongArray, labels: LongArray, k: int
    ) -> tuple[LongArray, LongArray, FloatArray]:
        """The k cheapest pairs from each group of some points to points outside the group.

        ``labels`` are the groups of all points. Returns both ends and the costs; fewer than k
        pairs if there are no more.
        """
        parts = []
        for a, b in row_blocks(len(rows), SAMPLE_ROWS):
            some = rows[a:b]
            costs = self.sample(some)
            costs[labels[some][:, None] == labels] = np.inf
            near = np.argpartition(costs, min(k, self.n) - 1, axis=1)[:, :k]
            parts.append((np.repeat(some, near.shape[1]), near, np.take_along_axis(costs, near, 1)))
        i, j, c = (np.concatenate([part[p].ravel() for part in parts]) for p in range(3))
        order = np.lexsort((j, i, c, labels[i]))
        order = order[np.isfinite(c[order])]
        group = labels[i[order]]
        starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
        rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        chosen = order[rank < k]
        i, j = i[chosen], j[chosen]
        return i, j, self.refined(i, j, c[chosen])

    def refined(self, i: LongArray, j: LongArray, costs: FloatArray) -> FloatArray:
        """Sampled costs of listed pairs, as accurate as those of a screen."""
        return costs

    def among(self, rows: LongArray) -> FloatArray:
        """Costs of a few points with each other."""
        blocks = row_blocks(len(rows), SAMPLE_ROWS)
        return np.vstack([self.sample(rows[a:b])[:, rows] for a, b in blocks])

    def available_bytes(self) -> int:
        """Free memory in the process or the workers that hold the pairs."""
        return available_bytes()

    def count_below(self, rows: LongArray, upper: FloatArray) -> LongArray:
        """Number of pairs with c_ij < upper_i + upper_j for some points i and all j."""
        counts = [np.count_nonzero(gap > 0.0, axis=1) for gap in self._gaps(rows, upper)]
        return np.concatenate(counts)

    def excess(self, rows: LongArray, u: FloatArray) -> FloatArray:
        """Sum of (u_i + u_j - c_ij)_+ over all j for some points i."""
        return np.concatenate([np.maximum(gap, 0.0).sum(axis=1) for gap in self._gaps(rows, u)])

    def _gaps(self, rows: LongArray, u: FloatArray) -> Iterator[FloatArray]:
        """Blocks of u_i + u_j - c_ij, zero for a point with itself."""
        for a, b in row_blocks(len(rows), SAMPLE_ROWS):
            some = rows[a:b]
            gap = u[some, None] + u - self.sample(some)
            gap[np.arange(len(some)), some] = 0.0
            yield gap

    def predict_pairs(self, upper: FloatArray, n_rows: int = 16) -> float:
        """Estimated number of pairs that `screen` would return, from evenly spread rows."""
        rows = np.unique(np.linspace(0, self.n - 1, min(n_rows, self.n)).astype(np.int64))
        hits = int(self.count_below(rows, upper).sum())
        return 0.5 * hits * self.n / len(rows)
