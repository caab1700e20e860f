"""The transport problem in which points may hold mass back, at a price that rises with its share.

The plan meets pi 1 + b = m with b >= 0, and b_i costs (C / 2) b_i² / m_i. Optimal is b_i = m_i u_i
/ (C / 2) for u_i > 0: the row sums of (u_i + u_j - c_ij)_+ get one more term, linear in u_i. To
Newton's method this is the same problem with something added to the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.interface import Curvature, Evaluation, Restricted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otgraph.costs.branches import Branches
    from otgraph.costs.coarse import Multilevel
    from otgraph.costs.interface import TransportPlan
    from otgraph.typing import FloatArray, IntArray, LongArray


def with_held_back(problem: Restricted, target: FloatArray, highest: float) -> Restricted:
    """The problem in which a point holds all its mass back at the potential ``highest``.

    Infinite for the problem in which no mass may be held back.
    """
    if isinstance(problem, SoftProblem):
        problem = problem.hard
    return problem if highest == np.inf else SoftProblem(problem, target / highest, highest)


class SoftProblem(Restricted):
    """Row sums of a problem, with the mass that is held back.

    Parameters
    ----------
    hard
        The problem without it.
    rates
        Derivative of the mass that is held back, in units of (u_i + u_j - c_ij)_+.
    highest
        Potential at which all mass is held back; no solution exceeds it.
    """

    def __init__(self, hard: Restricted, rates: FloatArray, highest: float) -> None:
        self.hard, self.highest = hard, highest
        self.n, self.diagonal = hard.n, hard.diagonal
        self._rates = rates

    @property
    def n_pairs(self) -> int:
        """Number of stored pairs, each counted once."""
        return self.hard.n_pairs

    def with_diagonal(self, diagonal: FloatArray) -> SoftProblem:
        """The same pairs with other diagonal costs."""
        return SoftProblem(self.hard.with_diagonal(diagonal), self._rates, self.highest)

    def forget(self) -> None:
        """Free what was computed at the last potentials."""
        self.hard.forget()

    def release(self) -> None:
        """Free the pairs."""
        self.hard.release()

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``.

        The square sum grows by what adds rate·u²/2 to its quarter, the objective of Newton.
        """
        at, above = self.hard.evaluate(u), np.maximum(u, 0.0)
        held = self._rates * above
        return Evaluation(at.row_sums + held, at.square_sums + 2.0 * held * above)

    def hessian(self, u: FloatArray) -> Curvature:
        """Generalized Hessian at ``u``, valid until the next call."""
        hard = self.hard.hessian(u)
        added = np.where(u > 0.0, self._rates, 0.0)
        return _SoftCurvature(hard, hard.degrees, hard.diagonal + added, added)

    def start(self, target: FloatArray) -> FloatArray:
        """Start potentials; those of the hard problem are not below them."""
        return np.minimum(self.hard.start(target), self.highest)

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets or more while all others stay fixed."""
        return np.minimum(self.hard.lift(u, rows, target), self.highest)

    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""
        return self.hard.largest_costs()

    def entries_of(self, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
        """The pairs of some points, sorted: number per point, partners, costs."""
        return self.hard.entries_of(rows)

    def plan(self, u: FloatArray, eps: float) -> TransportPlan:
        """The transport plan of ``u`` on the stored pairs, without what is held back."""
        return self.hard.plan(u, eps)

    def late_plan(self, u: FloatArray, eps: float) -> TransportPlan:
        """The same, where its entries may never be needed."""
        return self.hard.late_plan(u, eps)


@dataclass(frozen=True)
class _SoftCurvature(Curvature):
    """A Hessian with something added to its diagonal."""

    hard: Curvature
    degrees: FloatArray
    diagonal: FloatArray
    added: FloatArray

    @property
    def n_active(self) -> int:
        """Number of active ordered pairs, without the diagonal."""
        return self.hard.n_active

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        return self.hard.product(v) + self.added * v

    @property
    def run(self) -> Callable[[Callable[[int], None], Iterable[int]], None] | None:
        """Calls a function for several items in threads, if there are any for vectors."""
        return self.hard.run

    def branches(self, shift: FloatArray) -> Branches | None:
        """Branches of the Hessian plus a shift of its diagonal."""
        return self.hard.branches(self.added + shift)

    def multilevel(self, shift: FloatArray) -> Multilevel | None:
        """A preconditioner for the Hessian plus a shift of its diagonal."""
        return self.hard.multilevel(self.added + shift)
