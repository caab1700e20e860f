"""The transport problem for some points, while the potentials of all others stay fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import restricted as kernels
from otgraph.costs.interface import Curvature, Evaluation, M, Marginals
from otgraph.costs.pairs import Pairs
from otgraph.costs.restricted import RestrictedProblem, SharedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otgraph._parallel import Workers
    from otgraph.costs.interface import Restricted
    from otgraph.costs.parts import Move
    from otgraph.costs.restricted import Hessian
    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray


def solved_locally(
    problem: Restricted,
    rows: LongArray,
    u: FloatArray,
    target: FloatArray,
    workers: Workers,
    solve: Callable[[LocalProblem, FloatArray, FloatArray], M],
) -> M:
    """What ``solve`` finds from the problem of some rows, their targets and potentials."""
    found: M | None = problem.solved_elsewhere(rows, u, target, solve)
    if found is None:
        found = solve(LocalProblem.of(problem, rows, u, workers), target[rows], u[rows])
    return found


# What was computed for all points is freed where a local problem has more of their entries than
# this: beside fewer it is no matter, and the system fills the memory with zeros when it is needed
# again.
FORGOTTEN_SHARE = 0.1


class LocalProblem(Marginals):
    """Row sums of some points as functions of their own potentials.

    Parameters
    ----------
    entries
        The pairs of the points: their number per point, partners, which are renumbered, and costs.
    diagonal
        Diagonal costs of the points.
    rows
        The points, sorted.
    u
        Potentials of all points; those outside ``rows`` stay.
    workers
        Threads that share the rows.
    """

    def __init__(
        self,
        entries: tuple[LongArray, IntArray, FloatArray],
        diagonal: FloatArray,
        rows: LongArray,
        u: FloatArray,
        workers: Workers,
    ) -> None:
        counts, columns, costs = entries
        place = np.full(len(u), -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        outside = np.empty(len(u) - len(rows), dtype=np.int32)
        outside = outside[: kernels.number_locally(columns, place, len(rows), outside)]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        self.n = len(rows)
        self._pairs = Pairs(indptr, columns, costs)
        self._rows = RestrictedProblem(self._pairs, diagonal, workers)
        self._shared = SharedRows.of(len(rows), workers)
        self._fixed = u[outside]
        self._last: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))

    @classmethod
    def of(
        cls, problem: Restricted, rows: LongArray, u: FloatArray, workers: Workers
    ) -> LocalProblem:
        """The problem of some rows of a whole problem."""
        entries = problem.entries_of(rows)
        if len(entries[1]) > FORGOTTEN_SHARE * 2 * problem.n_pairs:
            problem.forget()  # it is evaluated again when the points have moved
        return cls(entries, problem.diagonal[rows], rows, u, workers)

    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``.

        A pair with one end outside is stored once, and counts twice in the square sum.
        """
        everyone = self._everyone(u)
        here = self._rows.evaluate(everyone)
        squares = here.square_sums.copy()
        pairs = self._pairs
        source = (pairs.indptr, pairs.indices, pairs.costs, everyone)
        self._shared.run(lambda a, b: kernels.add_outer_squares(*source, a, b, squares))
        return Evaluation(here.row_sums, squares)

    def hessian(self, u: FloatArray) -> _OwnCurvature:
        """Generalized Hessian for the own potentials, valid until the next call."""
        whole = self._rows.hessian(self._everyone(u))
        return _OwnCurvature(whole, whole.degrees, whole.diagonal, np.zeros(len(self._fixed)))

    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets while all others stay fixed."""
        return self._rows.lift(self._everyone(u), rows, target)

    def moved(self, move: Move, chosen: BoolArray) -> FloatArray:
        """Potentials after a full step, and after one of its own length for every chosen part."""
        return move.taken(chosen, self._rows.places_of, self._rows.diagonal, self._fixed)

    def _everyone(self, u: FloatArray) -> FloatArray:
        """Own potentials, then the fixed ones; the same array for the same ``u``."""
        if self._last[0] is not u:
            self._last = u, np.concatenate((u, self._fixed))
        return self._last[1]


@dataclass(frozen=True)
class _OwnCurvature(Curvature):
    """The Hessian of a local problem; fixed potentials do not move."""

    whole: Hessian
    degrees: FloatArray
    diagonal: FloatArray
    rest: FloatArray

    @property
    def n_active(self) -> int:
        """Number of active entries, without the diagonal."""
        return self.whole.n_active

    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""
        return self.whole.product(np.concatenate((v, self.rest)))

    def parts(self) -> LongArray:
        """The part of every own point; fixed points connect nothing."""
        return self.whole.parts()

    def shifted(self, shift: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Products with the Hessian plus a shift of its diagonal, all in the same memory."""
        everyone = np.concatenate((np.zeros_like(shift), self.rest))
        product = self.whole.shifted(shift)

        def own(v: FloatArray) -> FloatArray:
            everyone[: len(v)] = v
            return product(everyone)

        return own

    @property
    def run(self) -> Callable[[Callable[[int], None], Iterable[int]], None] | None:
        """Calls a function for several items in threads, if there are any for vectors."""
        return self.whole.run

    def solve(
        self, shift: FloatArray, rhs: FloatArray, weights: FloatArray, rtol: float, most: int
    ) -> tuple[FloatArray, int] | None:
        """Conjugate gradients in one call, for few rows."""
        return self.whole.solve(shift, rhs, weights, rtol, most, len(self.rest))
