"""Data classes that the parts of the solver exchange."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from otgraph.costs.base import Screen
from otgraph.costs.soft import with_held_back
from otgraph.solvers.certificate import Reason
from otgraph.solvers.newton import nearly_met

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import PairSet, Restricted, TransportPlan
    from otgraph.solvers.certificate import Certificate
    from otgraph.solvers.floors import Floors
    from otgraph.typing import BoolArray, FloatArray

T = TypeVar("T")

# A second sweep takes as long as a Newton step, and hardly ever saves one.
START_SWEEPS = 1
# Price of mass that is not placed on the candidates, relative to the largest candidate cost of the
# row plus eps·m_i. At a factor of two a pair is nearly always cheaper.
OVERFLOW_PRICE = 2.0


def changed(record: T, **values: object) -> T:
    """A goal, state or screen with other values; `dataclasses.replace` takes five times as long."""
    other, own = object.__new__(type(record)), record.__dict__
    names = type(record).__dataclass_fields__  # type: ignore[attr-defined]
    other.__dict__.update({name: own[name] for name in names}, **values)
    return other


@dataclass(frozen=True)
class Goal:
    """What a solution must satisfy.

    Parameters
    ----------
    eps
        Regularization.
    mass
        Wanted row sums.
    self_loops
        Whether points may keep mass.
    tol
        Largest relative error of a row sum.
    max_iter
        Limit of Newton steps in all rounds together.
    max_missing
        Largest estimated share of missing pairs, relative to the edges. An approximate search
        is widened while more are missing.
    seed
        Seed of the rows from which missing pairs are estimated.
    floors
        Minimum flows that are subtracted from ``mass`` and added to costs, if there are any.
    outlier_cost
        Price of mass that a point holds back; infinite if none may be.
    late_plan
        Whether the entries of the plan may never be needed.
    """

    eps: float
    mass: FloatArray
    self_loops: bool
    tol: float
    max_iter: int
    max_missing: float = np.inf
    seed: int = 0
    floors: Floors | None = None
    outlier_cost: float = np.inf
    late_plan: bool = False

    @cached_property
    def target(self) -> FloatArray:
        """Wanted row sums of (u_i + u_j - c_ij)_+."""
        return self.eps * self.mass

    @property
    def soft(self) -> bool:
        """Whether points may hold mass back; then no candidates are too few."""
        return self.outlier_cost < np.inf

    @property
    def highest(self) -> float:
        """Potential at which a point holds all its mass back; infinite if it may not."""
        return 0.5 * self.outlier_cost

    def held_back(self, u: FloatArray) -> FloatArray:
        """Mass that the points hold back at these potentials."""
        return self.mass * np.maximum(u, 0.0) / self.highest

    def softened(self, problem: Restricted) -> Restricted:
        """The problem on some pairs in which points hold back what this goal lets them."""
        return with_held_back(problem, self.target, self.highest)

    def at(self, eps: float) -> Goal:
        """The same for another eps; the last is kept, so that its target is computed once."""
        if eps == self.eps:
            return self
        if eps not in self._last:
            self._last.clear()
            self._last[eps] = changed(self, eps=eps)
        return self._last[eps]

    @cached_property
    def _last(self) -> dict[float, Goal]:
        return {}


@dataclass(frozen=True)
class State:
    """Candidates and potentials; everything else is computed from them.

    Parameters
    ----------
    problem
        The problem on the candidates. Without self-loops its diagonal is the price of unplaced
        mass, which keeps the problem feasible if there are too few candidates. Where points may
        hold mass back it always is.
    u
        Potentials.
    reach
        Cost of a partner, per point, up to which placing mass is cheaper than keeping it.
    screen
        The pass over all pairs that the candidates come from, None for first candidates from a
        search among some points only.
    k
        Number of nearest neighbors, if these are first candidates, else None.
    base
        Potentials that are already known to about ``reach``, if there are any. The price of
        unplaced mass then keeps ``u`` near them, while pairs are missing.
    prices
        What the diagonal was computed from: targets, reaches and base.
    spare
        Whether nobody needs the candidates once others have been found. They are freed then.
    """

    problem: Restricted
    u: FloatArray
    reach: FloatArray
    screen: Screen | None = None
    k: int | None = None
    base: FloatArray | None = None
    prices: tuple[FloatArray, FloatArray, FloatArray | None] | None = None
    spare: bool = False

    def priced(self, goal: Goal) -> State:
        """The same candidates with the diagonal that belongs to a goal."""
        source = goal.target, self.reach, self.base
        if self.prices is not None and all(map(operator.is_, self.prices, source)):
            return self
        diagonal = np.zeros(self.problem.n)
        if not goal.self_loops:
            above = goal.target if self.base is None else self.base
            diagonal = OVERFLOW_PRICE * (self.reach + above)
            if goal.soft:
                diagonal = np.full_like(diagonal, np.inf)
        if np.array_equal(diagonal, self.problem.diagonal):  # as known, what was computed with it
            diagonal = self.problem.diagonal
        problem = goal.softened(self.problem.with_diagonal(diagonal))
        return changed(self, problem=problem, prices=source)

    def plan(self, goal: Goal) -> TransportPlan:
        """The plan of the potentials."""
        problem = self.problem
        return (problem.late_plan if goal.late_plan else problem.plan)(self.u, goal.eps)

    def at(self, u: FloatArray) -> State:
        """The same candidates with other potentials."""
        return self if u is self.u else changed(self, u=u)

    def on(self, other: State) -> State:
        """The same potentials and prices on the pairs of another state, with nothing evaluated."""
        other.problem.forget()
        return changed(self, problem=other.problem.with_diagonal(self.problem.diagonal))

    def moved(self, by: FloatArray) -> State:
        """The same candidates, prices and bounds for potentials that are moved."""
        return changed(
            self,
            problem=self.problem.with_diagonal(self.problem.diagonal + 2.0 * by),
            u=self.u + by,
            screen=self.screen and changed(self.screen, upper=self.screen.upper + by),
            base=None if self.base is None else self.base + by,
            prices=None,
        )

    @cached_property
    def covered(self) -> bool:
        """Whether no pair outside the candidates is worth using at these potentials."""
        return self.screen is not None and bool((self.u <= self.screen.upper).all())

    @cached_property
    def mean_degree(self) -> float:
        """Mean number of neighbors at these potentials."""
        return self.problem.hessian(self.u).n_active / self.problem.n

    def overflow(self, goal: Goal) -> BoolArray:
        """Points with unplaced mass: they have too few partners."""
        if goal.self_loops:
            return np.zeros(self.problem.n, dtype=np.bool_)
        return self._keep

    @cached_property
    def _keep(self) -> BoolArray:
        """Points that keep mass at the price of the diagonal."""
        return np.asarray(2.0 * self.u > self.problem.diagonal)

    @cached_property
    def _nobody_keeps(self) -> bool:
        return not self._keep.any()

    def complete(self, goal: Goal) -> bool:
        """Whether the solution on the candidates solves the problem on all pairs screened."""
        return self.covered and (goal.self_loops or self._nobody_keeps)

    def solved(self, goal: Goal) -> bool:
        """Whether it is complete and the row sums are within the tolerance."""
        return self.complete(goal) and self.error(goal) <= goal.tol

    def error(self, goal: Goal) -> float:
        """Largest relative error of a row sum on the candidates."""
        return self.problem.evaluate(self.u).error(goal.target)

    def nearly_met(self, goal: Goal, tol: float, left: int) -> bool:
        """Whether all row sums but ``left`` are within a tolerance on the candidates."""
        return nearly_met(self.problem.evaluate(self.u).row_sums, goal.target, tol, left)


@dataclass
class Effort:
    """Newton steps, errors and screens so far, and why the last Newton iteration ended."""

    steps: int = 0
    history: list[tuple[float, ...]] = field(default_factory=list)
    screens: int = 0
    reason: Reason = Reason.NONE

    @classmethod
    def behind(cls, certificate: Certificate) -> Effort:
        """The work that a certificate tells of."""
        return cls(certificate.n_steps, list(certificate.history), certificate.n_screens)

    def add(self, other: Effort) -> None:
        """Count the work that followed, too."""
        self.steps += other.steps
        self.history = self.history + other.history
        self.screens += other.screens
        self.reason = other.reason


@dataclass(frozen=True)
class Solution:
    """Potentials, the plan they give with its minimum flows, and what was proved about them."""

    state: State
    plan: TransportPlan
    certificate: Certificate
    floors: Floors | None = None

    @property
    def u(self) -> FloatArray:
        """Potentials."""
        return self.state.u

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors; the point itself does not count."""
        return self.plan.mean_degree


def first_state(
    cost: Cost,
    pairs: PairSet,
    goal: Goal,
    *,
    u0: FloatArray | None = None,
    k: int | None = None,
    spare: bool = False,
) -> State:
    """First candidates with start potentials, or with ``u0``."""
    problem = cost.restrict(pairs, np.full(cost.n, np.inf))
    costs = problem.largest_costs()
    reach = np.maximum(costs, middle(costs))  # duplicates have cost 0
    state = State(
        problem,
        np.zeros(cost.n),
        reach,
        screen=_screen_of(cost, pairs),
        k=k if cost.has_other_pairs else None,
        spare=spare,
    ).priced(goal)
    return changed(state, u=start_potentials(state.problem, goal.target) if u0 is None else u0)


def _screen_of(cost: Cost, pairs: PairSet) -> Screen | None:
    """A search for nearest points as a screen, if it has compared all points.

    A pair that it has not found costs at least the mean of the reaches of its ends.
    """
    if pairs.reach is None:
        return None
    return Screen(0.5 * pairs.reach, pairs, complete=True, pairs_checked=cost.n_pairs)


def middle(values: FloatArray) -> float:
    """The upper median; numpy's takes as long as a step with a hundred points."""
    half = len(values) // 2
    return float(np.partition(values, half)[half])


def start_potentials(problem: Restricted, target: FloatArray) -> FloatArray:
    """Potentials whose row sums are at least their targets, and not far above.

    Row sums are convex functions of u. Newton steps from above therefore stay above and are
    taken in full; from below the line search would shorten them.
    """
    return problem.start_above(target, START_SWEEPS)
