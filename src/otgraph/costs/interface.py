"""The interface between the solver and pairs, the problem on them, and its solution.

None of these classes shows where pairs are kept: in this process, or in blocks of rows on a
cluster. Sums over all points are taken here, in a fixed order from one number per point, so
results are bitwise identical wherever the pairs are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from otgraph._kernels.newton import deviations
from otgraph.costs.branches import Branches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from otgraph._parallel import Workers
    from otgraph.costs.coarse import Multilevel
    from otgraph.costs.parts import Move, Places
    from otgraph.typing import BoolArray, FloatArray, IntArray, LongArray


class Moved(Protocol):
    """What a solver finds: the potentials, and more."""

    @property
    def u(self) -> FloatArray:
        """Potentials."""


M = TypeVar("M", bound=Moved)


class PairSet(ABC):
    """Pairs with their costs. Solvers pass them on and never look inside.

    ``workers`` are the threads of this process. Pairs on a cluster ignore them. ``reach`` is a cost
    for every point, if that is known: no pair is missing below the mean of those of its ends.
    """

    reach: FloatArray | None = None

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of pairs, each counted once."""

    @abstractmethod
    def below(self, upper: FloatArray, workers: Workers) -> Self:
        """The pairs with c_ij < upper_i + upper_j."""

    @abstractmethod
    def merged(self, other: Self, workers: Workers) -> Self:
        """The pairs of either set."""

    def grown(self, other: Self, workers: Workers) -> Self:
        """The pairs of either set, where the others are few; these may grow themselves."""
        return self.merged(other, workers)

    def overlaid(self, other: Self, workers: Workers) -> Self:
        """The pairs of either set, with the costs of the others where they are in both.

        These may change themselves, until `restore` gives them back their own costs.
        """
        return other.merged(self, workers)

    def restore(self, listed: Callable[[], Self]) -> None:
        """Undo `overlaid`, given the others with the costs that they have here."""
        del listed  # nothing has changed here

    @abstractmethod
    def restricted(self, diagonal: FloatArray, workers: Workers) -> Restricted:
        """The transport problem on these pairs and a diagonal."""


def marginal_error(row_sums: FloatArray, target: FloatArray) -> float:
    """Largest relative deviation of the row sums."""
    return float(deviations(row_sums, target)[0])


@dataclass(frozen=True)
class Evaluation:
    """Row sums of (u_i + u_j - c_ij)_+ and of its squares."""

    row_sums: FloatArray
    square_sums: FloatArray
    _errors: tuple[FloatArray, float] | None = None

    @property
    def square_sum(self) -> float:
        """Sum of the squares over all ordered pairs."""
        return float(self.square_sums.sum())

    def error(self, target: FloatArray) -> float:
        """Largest relative deviation of the row sums from their targets; the last is kept."""
        last = self._errors
        if last is None or last[0] is not target:
            last = target, marginal_error(self.row_sums, target)
            self.set_error(*last)
        return last[1]

    def deviations(self, target: FloatArray) -> tuple[float, float]:
        """The same, which is kept, and the share of the mass that is misplaced."""
        error, share = deviations(self.row_sums, target)
        self.set_error(target, error)
        return error, share

    def set_error(self, target: FloatArray, error: float) -> None:
        """Tell what `error` is for some targets."""
        object.__setattr__(self, "_errors", (target, error))


class FullSteps(NamedTuple):
    """Newton steps that were taken in one call, or none if ``u`` is within the tolerance.

    ``now`` is the evaluation at ``u``, the last potentials; ``errors`` are those at the start and
    after each step. ``counts`` are the numbers of steps and of products, the smallest error, which
    is that of ``best``, the least misplaced mass, and the steps since either was found.
    """

    u: FloatArray
    now: Evaluation
    best: FloatArray
    errors: list[float]
    counts: tuple[int, int, float, float, int]


class Marginals(ABC):
    """Row sums of (u_i + u_j - c_ij)_+ as functions of potentials: all that Newton needs."""

    n: int

    @abstractmethod
    def evaluate(self, u: FloatArray) -> Evaluation:
        """Row sums and square sum at ``u``."""

    @abstractmethod
    def hessian(self, u: FloatArray) -> Curvature:
        """Generalized Hessian diag(sigma 1) + sigma at ``u``, valid until the next call."""

    @abstractmethod
    def lift(self, u: FloatArray, rows: LongArray, target: FloatArray) -> FloatArray:
        """Potentials of some rows that meet their targets while all others stay fixed."""

    @abstractmethod
    def moved(self, move: Move, chosen: BoolArray) -> FloatArray:
        """Potentials after a full step, and after one of its own length for every chosen part."""

    def full_steps(
        self,
        u: FloatArray,
        target: FloatArray,
        tol: float,
        most: int,
    ) -> FullSteps | None:
        """The first Newton steps from ``u``, while full steps do.

        None where they cannot be taken in one call; callers then take them one by one.
        """
        return None


class Restricted(Marginals):
    """The transport problem on some pairs."""

    diagonal: FloatArray

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Number of stored pairs, each counted once."""

    @abstractmethod
    def with_diagonal(self, diagonal: FloatArray) -> Restricted:
        """The same pairs with other diagonal costs."""

    def forget(self) -> None:
        """Free what was computed at the last potentials; it is computed again when needed."""

    def release(self) -> None:
        """Free the pairs, for all problems on them; none of these can be used any more."""

    @abstractmethod
    def start(self, target: FloatArray) -> FloatArray:
        """Solve every row by itself, as if its neighbors had the same potential as the point."""

    def start_above(self, target: FloatArray, sweeps: int) -> FloatArray:
        """Potentials whose row sums are at least their targets, from those of `start`.

        In each sweep a row goes halfway to the value that meets its target while all others stay
        fixed; in the end it takes that value where it is larger.
        """
        rows, u = np.arange(self.n), self.start(target)
        for _ in range(sweeps):
            u = 0.5 * (u + self.lift(u, rows, target))
        return np.maximum(u, self.lift(u, rows, target))

    @abstractmethod
    def largest_costs(self) -> FloatArray:
        """Largest candidate cost of every row, 0 for a row without candidates."""

    @abstractmethod
    def entries_of(self, rows: LongArray) -> tuple[LongArray, IntArray, FloatArray]:
        """The pairs of some points, sorted: number per point, partners, costs."""

    def solved_elsewhere(
        self,
        rows: LongArray,
        u: FloatArray,
        target: FloatArray,
        solve: Callable[[Any, FloatArray, FloatArray], M],
    ) -> M | None:
        """As `costs.local.solved_locally`, in another process; None where this one must do it."""
        return None

    def places_of(self, rows: LongArray) -> Places:
        """The same where they are: first and last places of each point, all partners and costs."""
        counts, partners, costs = self.entries_of(rows)
        ends = np.cumsum(counts)
        return ends - counts, ends, partners, costs

    @abstractmethod
    def plan(self, u: FloatArray, eps: float) -> TransportPlan:
        """The transport plan of ``u`` on the stored pairs."""

    def late_plan(self, u: FloatArray, eps: float) -> TransportPlan:
        """The same, where its entries may never be needed; these may be made when they are."""
        return self.plan(u, eps)

    def moved(self, move: Move, chosen: BoolArray) -> FloatArray:
        """Potentials after a full step, and after one of its own length for every chosen part."""
        return move.taken(chosen, self.places_of, self.diagonal, np.empty(0))


class Curvature(ABC):
    """diag(sigma 1) + sigma on the active pairs; a signless Laplacian."""

    degrees: FloatArray
    diagonal: FloatArray

    @property
    @abstractmethod
    def n_active(self) -> int:
        """Number of active ordered pairs, without the diagonal."""

    @abstractmethod
    def product(self, v: FloatArray) -> FloatArray:
        """Hessian times ``v``."""

    def shifted(self, shift: FloatArray) -> Callable[[FloatArray], FloatArray]:
        """Products with the Hessian plus a shift of its diagonal; each may overwrite the last."""
        return lambda v: self.product(v) + shift * v

    def reached(self, points: BoolArray, hops: int = 1) -> BoolArray:
        """The points, and those that up to so many active pairs connect with one of them."""
        for _ in range(hops):
            points = np.asarray(points | (self.product(points.astype(np.float64)) > 0.0))
        return points

    def branches(self, shift: FloatArray) -> Branches | None:
        """Branches of the Hessian plus a shift of its diagonal, None if there are none."""
        return Branches.of(self.product, self.diagonal, shift)

    @property
    def run(self) -> Callable[[Callable[[int], None], Iterable[int]], None] | None:
        """Calls a function for several items in threads, if there are any for vectors."""
        return None

    def solve(
        self, shift: FloatArray, rhs: FloatArray, weights: FloatArray, rtol: float, most: int
    ) -> tuple[FloatArray, int] | None:
        """What conjugate gradients find with at most ``most`` products, and how many they took.

        None where this cannot be done in one call; callers then do it step by step.
        """
        return None

    def parts(self) -> LongArray | None:
        """The part of every point, where no active pair connects two parts, if that is known."""
        return None

    def multilevel(self, shift: FloatArray) -> Multilevel | None:
        """A preconditioner for the Hessian plus a shift of its diagonal, if there is one."""
        return None


class TransportPlan(ABC):
    """Positive entries of a transport plan, and the mass that each point keeps."""

    loops: FloatArray
    loop_costs: FloatArray

    @property
    @abstractmethod
    def degrees(self) -> LongArray:
        """Number of entries of every row, without the diagonal."""

    @property
    @abstractmethod
    def row_sums(self) -> FloatArray:
        """Row sums of the plan, with the diagonal."""

    @abstractmethod
    def product(self, v: FloatArray, diagonal: FloatArray) -> FloatArray:
        """(diag(row sums) + plan) times ``v``, given its diagonal."""

    @abstractmethod
    def scaled_sums(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·q and q² for q_ij = pi_ij (1 + w_i + w_j), without the diagonal."""

    @abstractmethod
    def with_entries(self, weights: Any, costs: Any) -> TransportPlan:
        """The plan with the weights and costs of some entries set, given as sets of pairs."""

    @abstractmethod
    def component_labels(self) -> LongArray:
        """Connected component of every point."""

    @property
    def n_entries(self) -> int:
        """Number of entries, without the diagonal."""
        return int(self.degrees.sum())

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors; the point itself does not count."""
        return self.n_entries / len(self.loops)

    @cached_property
    def _sums(self) -> tuple[FloatArray, FloatArray]:
        """Row sums of c·pi and pi², without the diagonal."""
        return self.scaled_sums(np.zeros(len(self.loops)))

    @property
    def square_sum(self) -> float:
        """Sum of the squared entries."""
        _, squares = self._sums
        return float(squares.sum() + np.square(self.loops).sum())

    def primal_value(self, w: FloatArray, eps: float) -> float:
        """Primal objective of the plan with entries pi_ij (1 + w_i + w_j)."""
        linear, square = self.scaled_sums(w) if w.any() else self._sums
        primal = float(linear.sum() + 0.5 * eps * square.sum())
        if self.loops.any():
            loops = self.loops * (1.0 + 2.0 * w)
            used = loops != 0  # a forbidden self-loop has infinite cost and mass zero
            loop_cost = (loops[used] * self.loop_costs[used]).sum()
            primal += float(loop_cost + 0.5 * eps * np.square(loops).sum())
        return primal
