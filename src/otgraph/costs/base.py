"""What the solver may ask of a cost.

    neighbors(k)     first candidate pairs
    restrict(pairs)  the transport problem on those pairs only
    screen(upper)    every pair that a solution u <= upper could use

Screening with an upper bound of the potentials, rather than the potentials themselves, is
what makes one pass suffice: the pairs outside the result satisfy u_i + u_j <= c_ij for
*every* u <= upper, so that the last Newton steps may still move u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.restricted import RestrictedProblem

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.pairs import Pairs
    from otgraph.typing import BoolArray, FloatArray, LongArray


@dataclass(frozen=True)
class Screen:
    """Result of a pass over the pairs.

    Parameters
    ----------
    pairs
        The pairs with c_ij < upper_i + upper_j that the pass found.
    complete
        Whether every pair was decided, seen or excluded.
    pairs_checked
        Number of pairs decided.
    """

    pairs: Pairs
    complete: bool
    pairs_checked: int


class Cost(ABC):
    """Points, or a matrix, that know what it costs to send mass between two of them.

    Vectors that go in and out are in the order of the cost: ``order[i]`` is the place in
    the input of its i-th point.
    """

    n: int
    order: LongArray
    scale: float
    workers: Workers
    exact: bool | None = True  # whether screens cover all pairs; None: not decided yet
    samples: bool = True  # whether `sample` tells something that `screen` does not
    identical: bool = False  # whether all points coincide

    @property
    def n_pairs(self) -> int:
        """Number of pairs i < j."""
        return self.n * (self.n - 1) // 2

    @abstractmethod
    def neighbors(self, k: int) -> Pairs:
        """Pairs of near points, about k per point: a first guess, not a promise."""

    @abstractmethod
    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """Every pair with c_ij < upper_i + upper_j, or only those of some points."""

    @abstractmethod
    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points, shape (len(rows), n)."""

    def widen(self) -> bool:
        """Look further from now on, if that is possible; says whether it is."""
        return False

    def unplaceable(self, mass: FloatArray) -> BoolArray:
        """Points that together have more mass than all their allowed partners can take."""
        return np.zeros(self.n, dtype=np.bool_)

    def restrict(self, pairs: Pairs, diagonal: FloatArray) -> RestrictedProblem:
        """The transport problem on ``pairs``."""
        return RestrictedProblem(pairs, diagonal, self.workers)

    def predict_pairs(self, upper: FloatArray, n_rows: int = 16) -> float:
        """Estimated number of pairs that `screen` would return, from evenly spread rows."""
        rows = np.unique(np.linspace(0, self.n - 1, min(n_rows, self.n)).astype(np.int64))
        costs = self.sample(rows)
        costs[np.arange(len(rows)), rows] = np.inf
        hits = np.count_nonzero(costs < upper[rows, None] + upper)
        return 0.5 * hits * self.n / len(rows)
