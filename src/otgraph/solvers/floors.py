"""Minimum flows give lonely points neighbors; the plan is optimal among all plans with them.

A *floor* is a pair of points with a minimum flow: pi_ij >= l_ij. With rho = pi - l the problem is
the same as before, with masses m_i - sum_j l_ij and with costs c_ij + eps l_ij on the floors. The
plan is pi_ij = max(l_ij, (u_i + u_j - c_ij) / eps), so a floor that the plan exceeds anyway
changes nothing.

The rule is the same for points and for components: who is lonely gets `min_degree` floors. A point
with too few neighbors gets them to its nearest points. A small component, or every component if
all are to be connected, gets them on the shortest pairs to the rest. The problem is solved again
until there is nothing left to add.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph.exceptions import InfeasibleError
from otgraph.solvers.certificate import Status
from otgraph.solvers.certify import certify, plan_error
from otgraph.solvers.nearby import solved_nearby
from otgraph.solvers.rounds import approach, looking_further
from otgraph.solvers.state import Effort, Solution

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs import Cost
    from otgraph.costs.interface import Curvature, PairSet, TransportPlan
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Goal, State
    from otgraph.typing import BoolArray, FloatArray, LongArray

logger = logging.getLogger("otgraph")

# Share of the mass of a point that floors may take. Between 0.2 and 0.5 clusters and labels hardly
# depend on it (benchmarks/README.md).
FLOOR_SHARE = 0.3
# Components with a smaller share of the points are not clusters but fragments.
SMALL_SHARE = 0.03
LINKS = 5  # floors per component that is joined, if no `min_degree` says how many
# Share of the largest flows that the masses can carry without self-loops. Beyond it, the heaviest
# point would find too few partners.
AFFORDABLE = 0.5
LEAST_SHARE = 1e-3  # below, the masses leave no room for floors
# Around points that miss their targets, the points within this many edges move with them. Beyond,
# potentials change so little that a few Newton steps for all points correct the rest.
NEARBY_HOPS = 3
FAR_OFF = 0.01  # marginal error of such points
FLOORED_TOL = 1e-3  # of all points, before it is asked again whether anybody is lonely
# Potentials of a point change by less than this multiple of its marginal error times eps m_i in the
# last Newton steps: a point that would be lonely even then is lonely for sure.
SURE_MARGIN = 10.0


@dataclass(frozen=True)
class Wish:
    """What a graph must satisfy besides being optimal.

    Parameters
    ----------
    min_degree
        Neighbors that every point has at least; 0 leaves points and small components alone.
    connect
        Whether all components are joined.
    strict
        Whether it is an error if the allowed pairs or the masses cannot satisfy `min_degree`. It
        always is an error for `connect`.
    """

    min_degree: int = 0
    connect: bool = False
    strict: bool = False

    def __bool__(self) -> bool:
        """Whether anything is wished."""
        return self.min_degree > 0 or self.connect


@dataclass(frozen=True)
class Floors:
    """Pairs i < j with a minimum flow, sorted; ``costs`` are the costs c_ij without floors."""

    i: LongArray
    j: LongArray
    costs: FloatArray
    flows: FloatArray

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.i)

    def sums(self, n: int) -> FloatArray:
        """Minimum flow out of every point."""
        both = np.concatenate([self.i, self.j])
        return np.bincount(both, np.tile(self.flows, 2), minlength=n).astype(np.float64)

    def hidden(self, rows: LongArray, u: FloatArray, eps: float) -> LongArray:
        """Per row, the number of floors with c_ij < u_i + u_j <= c_ij + eps l_ij.

        Without the floor these pairs would count as missing. They are not: they carry exactly
        their floor.
        """
        excess = u[self.i] + u[self.j] - self.costs
        idle = (excess > 0.0) & (excess <= eps * self.flows)
        counts = np.bincount(np.concatenate([self.i[idle], self.j[idle]]), minlength=len(u))
        return counts[rows]


NO_FLOORS = Floors(*np.empty((2, 0), dtype=np.int64), *np.empty((2, 0)))


def finished(
    screener: Screener,
    goal: Goal,
    state: State,
    effort: Effort,
    wish: Wish,
    *,
    certified: Solution | None = None,
) -> Solution:
    """The certified solution from solved potentials, with the floors that a wish needs.

    ``certified`` is the solution without floors, if it is known already.
    """
    found = with_floors(screener, goal, state, effort, wish, certified=certified)
    assert isinstance(found, Solution)  # nothing is refused
    return found


def with_floors(
    screener: Screener,
    goal: Goal,
    state: State,
    effort: Effort,
    wish: Wish,
    *,
    shift: FloatArray | None = None,
    certified: Solution | None = None,
    rough: bool = False,
    accepts: Callable[[float], bool] | None = None,
) -> Solution | Draft:
    """Like `finished`, from potentials that need not be solved, and with a say in the degree.

    ``shift`` is how floors have changed the potentials for a similar eps. ``rough`` potentials are
    not solved to the tolerance, because it is known that there will be floors. ``accepts`` is asked
    for the mean degree of the local solves, before all points are solved. If it refuses, the result
    is a draft.
    """

    def without_floors() -> Solution:
        problem.lower(plain)
        solved = approach(screener, goal, plain, effort) if rough else plain
        return certify(screener, goal, solved, effort)

    if certified is None and not rough and not (wish and state.solved(goal)):
        return certify(screener, goal, state, effort)
    plain, problem = state.on(state), _WithFloors(screener, goal, NO_FLOORS)
    moved = state.u if shift is None else state.u + shift
    degrees, components = _degrees_and_components(state, goal, certified)
    core = _points_of_large_components(components)
    labels: LongArray | None = components
    del components
    settled = not rough  # whether the potentials of all points are solved,
    loosely = False  # or nearly
    try:
        while certified is None or certified.certificate.status != Status.NOT_CONVERGED:
            pairs = _missing_floors(screener, degrees, labels, wish, problem.floors, core)
            if len(pairs) > len(problem.floors):
                floors = _affordable(pairs, goal)
                if floors is None:
                    if wish.strict or wish.connect:
                        raise InfeasibleError(NO_ROOM)
                    return without_floors()
                logger.debug("eps %.4g: %d minimum flows", goal.eps, len(floors))
                if not len(problem.floors):
                    state = replace(state, u=moved)
                problem, settled, certified = _WithFloors(screener, goal, floors), False, None
                state = state.on(plain)
                state = problem.nearby(state, effort)
                degrees, labels = problem.degrees(state), None
            elif not settled:
                mean = float(np.mean(degrees))
                if accepts is not None and not loosely and not accepts(mean):
                    return Draft(state.u, mean)
                # Loosely first: if this makes points lonely, little is solved in vain.
                tol = goal.tol if loosely else max(FLOORED_TOL, goal.tol)
                try:
                    state = problem.approach(state, effort, tol)
                    loosely, settled = True, tol == goal.tol
                except InfeasibleError:  # given candidates cannot carry what the floors leave
                    if wish.strict or wish.connect:
                        raise
                    return without_floors()
                degrees = problem.degrees(state)
            elif certified is None:
                # Components, and edges of almost no weight, are looked at once more in the end.
                certified = problem.certify(state, effort)
                state, degrees = certified.state, certified.plan.degrees
                labels = certified.plan.component_labels()
            else:
                break
    finally:
        problem.lower(plain)
    return certified


class Draft(NamedTuple):
    """Potentials with floors, solved near these, and the mean degree that they give."""

    u: FloatArray
    mean_degree: float


class _WithFloors:
    """The problem for rho = pi - l, whose plan is completed by l."""

    def __init__(self, screener: Screener, goal: Goal, floors: Floors) -> None:
        self.floors = floors
        self._cost, self._whole_goal = screener.cost, goal
        self._screener, self._goal = screener, goal
        if len(floors):
            raised = self._listed(floors.costs + goal.eps * floors.flows)
            self._screener = screener.of(self._cost.with_raised(raised))
            mass = goal.mass - floors.sums(self._cost.n)
            self._goal = replace(goal, mass=mass, floors=floors)

    def lower(self, plain: State) -> None:
        """Give pairs, which were raised where they are, their own costs again."""
        if len(self.floors) and plain.screen is not None:
            plain.screen.pairs.restore(lambda: self._listed(self.floors.costs))
            plain.problem.forget()

    def approach(self, state: State, effort: Effort, tol: float) -> State:
        """Solve for all points within a tolerance, without a certificate."""
        goal, work = replace(self._goal, tol=tol), Effort()
        state = approach(self._screener, goal, replace(state, spare=True), work)
        effort.add(work)
        return replace(state, spare=False)

    def nearby(self, start: State, effort: Effort) -> State:
        """Solve for the points around those that miss their targets, with all others fixed.

        Floors change few points. Newton steps for these alone cost a fraction of a step for all.
        """
        assert start.screen is not None  # a solution that converged was screened
        self._screener.keep(start.screen)  # the last screen of all may be that of a larger eps
        problem = self._screener.cost.restrict(start.screen.pairs, start.problem.diagonal)
        u = solved_nearby(
            problem, self._goal.target, start.u, effort, self._cost.workers,
            far=FAR_OFF, hops=NEARBY_HOPS,
        )  # fmt: skip
        return replace(start, problem=problem, u=u)

    def degrees(self, state: State) -> LongArray:
        """Number of neighbors of every point in the plan of the potentials, with the floors."""
        floors, hessian = self.floors, state.problem.hessian(state.u)
        excess = state.u[floors.i] + state.u[floors.j] - floors.costs
        idle = excess <= self._goal.eps * floors.flows
        ends = np.concatenate([floors.i[idle], floors.j[idle]])
        counts = np.bincount(ends, minlength=self._cost.n)
        return _neighbor_counts(hessian) + counts

    def certify(self, state: State, effort: Effort) -> Solution:
        """The certified solution; an approximate search is widened if it must be."""
        if not len(self.floors):
            return certify(self._screener, self._goal, state, effort)

        def attempt(again: State | None) -> Solution:
            work, total = Effort(), replace(effort)
            solved = approach(self._screener, self._goal, again or state, work)
            total.add(work)
            return certify(self._screener, self._goal, solved, total)

        solution = looking_further(self._screener, self._goal, attempt)
        solution.state.problem.release()  # other floors begin with the pairs without any
        plan = self._completed(solution.plan, solution.u)
        goal, flows = self._whole_goal, self.floors.flows
        certificate = replace(
            solution.certificate,
            marginal_error=plan_error(plan, goal, solution.u),
            n_edges=int(np.sum(plan.degrees)) // 2,
            n_floors=len(flows),
            floor_share=float(2.0 * np.sum(flows) / np.sum(goal.mass)),
        )
        return replace(solution, plan=plan, certificate=certificate, floors=self.floors)

    def _completed(self, plan: TransportPlan, u: FloatArray) -> TransportPlan:
        floors = self.floors
        excess = u[floors.i] + u[floors.j] - floors.costs
        weights = np.maximum(floors.flows, excess / self._goal.eps)
        return plan.with_entries(self._listed(weights), self._listed(floors.costs))

    def _listed(self, values: FloatArray) -> PairSet:
        return self._cost.pair_set(self.floors.i, self.floors.j, values)


def surely_lonely(state: State, goal: Goal, wish: Wish) -> bool:
    """Whether a point has too few neighbors, however the last Newton steps change potentials."""
    hessian = state.problem.hessian(state.u)
    rows = np.flatnonzero(_neighbor_counts(hessian) < wish.min_degree)
    counts, partners, costs = state.problem.entries_of(rows)
    ends = np.repeat(np.arange(len(rows)), counts)
    own = rows[ends]
    margin = SURE_MARGIN * state.error(goal) * goal.target[own]
    near = costs < state.u[own] + state.u[partners] + margin
    return bool(np.any(np.bincount(ends[near], minlength=len(rows)) < wish.min_degree))


def expected_degree(screener: Screener, state: State, wish: Wish) -> float:
    """About the mean degree after lonely points get floors.

    Floors on pairs without any flow become edges. Others appear and disappear around them, about
    as many: the edges that are added are 0.92 to 1.11 times these (benchmarks/README.md).
    """
    if not wish.min_degree:
        return state.mean_degree
    degrees = _neighbor_counts(state.problem.hessian(state.u))
    if not np.any(degrees < wish.min_degree):
        return state.mean_degree
    wish = replace(wish, strict=False)  # another eps may leave nobody lonely
    floors = _missing_floors(screener, degrees, None, wish, NO_FLOORS, np.empty(0, np.bool_))
    idle = state.u[floors.i] + state.u[floors.j] <= floors.costs
    return state.mean_degree + 2.0 * np.count_nonzero(idle) / len(degrees)


def _degrees_and_components(
    state: State, goal: Goal, certified: Solution | None
) -> tuple[LongArray, LongArray]:
    """Neighbors and component of every point; without weights, if no plan is known yet."""
    if certified is None:
        hessian = state.problem.hessian(state.u)
        if (parts := hessian.parts()) is not None:
            return _neighbor_counts(hessian), parts
    plan = state.problem.plan(state.u, goal.eps) if certified is None else certified.plan
    return plan.degrees, plan.component_labels()


def _neighbor_counts(hessian: Curvature) -> LongArray:
    loops = hessian.diagonal - hessian.degrees
    return (hessian.degrees - loops).astype(np.int64)


def _affordable(pairs: Floors, goal: Goal) -> Floors | None:
    """The flows of some pairs, or None if the masses leave no room for them."""
    floors = _with_flows(pairs, goal.mass)
    share = 1.0 if goal.self_loops else _affordable_share(floors, goal.mass)
    return replace(floors, flows=share * floors.flows) if share >= LEAST_SHARE else None


def _affordable_share(floors: Floors, mass: FloatArray) -> float:
    """Share of the flows that leaves every point enough partners.

    Without self-loops no point may have more mass than all others together. Flows between the
    others take from these.
    """
    sums = floors.sums(len(mass))
    taken = np.sum(sums) - 2.0 * sums
    spare = np.sum(mass) - 2.0 * mass
    tight = taken > 0.0
    most = np.min(spare[tight] / taken[tight], initial=np.inf)
    return float(min(1.0, AFFORDABLE * most))


def _with_flows(floors: Floors, mass: FloatArray) -> Floors:
    """Flows that take at most the share of each point, divided equally among its floors."""
    n_floors = np.bincount(np.concatenate([floors.i, floors.j]), minlength=len(mass))
    each = FLOOR_SHARE * mass / np.maximum(n_floors, 1)
    return replace(floors, flows=np.minimum(each[floors.i], each[floors.j]))


# Which pairs get floors -----------------------------------------------------------------


def _missing_floors(
    screener: Screener,
    degrees: LongArray,
    labels: LongArray | None,
    wish: Wish,
    floors: Floors,
    core: BoolArray,
) -> Floors:
    """The floors, and those that a plan still needs; without ``labels`` only those of points."""
    cost, n = screener.cost, screener.cost.n
    wanted = min(wish.min_degree, n - 1)
    lonely = np.flatnonzero(degrees < wanted)
    if len(lonely):
        found = screener.nearest(lonely, wanted)
        if wish.strict and len(found[0]) < wanted * len(lonely):
            short = lonely[np.bincount(found[0], minlength=n)[lonely] < wanted]
            raise InfeasibleError(_too_few_message(cost, short, wish.min_degree))
        floors = _united(floors, *found, n)
    while labels is not None:
        labels = _joined(labels, floors)
        if not labels.any():  # one component
            return floors
        apart = _components_to_join(labels, wish, core)
        rows = np.flatnonzero(apart[labels])
        if not len(rows):
            return floors
        found = screener.shortest(rows, labels, wish.min_degree or LINKS)
        if wish.connect and len(np.unique(labels[found[0]])) < apart.sum():
            raise InfeasibleError(_apart_message(len(apart)))
        if not len(found[0]):
            return floors
        floors = _united(floors, *found, n)
    return floors


def _points_of_large_components(labels: LongArray) -> BoolArray:
    return np.asarray((np.bincount(labels) >= SMALL_SHARE * len(labels))[labels])


def _components_to_join(labels: LongArray, wish: Wish, core: BoolArray) -> BoolArray:
    """Which components get floors to the rest; the largest one never does.

    ``core`` marks the points of components that were large without floors. Fragments that join
    each other are still fragments, however many points they have together, until they reach one.
    """
    sizes = np.bincount(labels)
    small = sizes < SMALL_SHARE * len(labels)
    if core.any():
        small |= np.bincount(labels, core) == 0
    apart = np.full(len(sizes), wish.connect) | ((wish.min_degree > 0) & small)
    apart[np.argmax(sizes)] = False
    return apart


def _joined(labels: LongArray, floors: Floors) -> LongArray:
    """Components after the floors are added."""
    if not len(floors):
        return labels
    from scipy.sparse.csgraph import connected_components

    n = int(labels.max()) + 1
    links = sp.coo_matrix((np.ones(len(floors)), (labels[floors.i], labels[floors.j])), (n, n))
    return connected_components(links, directed=False)[1][labels]


def _united(floors: Floors, i: LongArray, j: LongArray, costs: FloatArray, n: int) -> Floors:
    """The floors and other pairs of n points, each once; flows are set later.

    Only the other pairs are sorted: later rounds add a few to hundreds of thousands.
    """
    known = floors.i * n + floors.j
    pairs, firsts = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_index=True)
    places = np.searchsorted(known, pairs)
    new = np.append(known, -1)[places] != pairs
    pairs, firsts, places = pairs[new], firsts[new], places[new]
    return Floors(
        np.insert(floors.i, places, pairs // n),
        np.insert(floors.j, places, pairs % n),
        np.insert(floors.costs, places, costs[firsts]),
        np.zeros(len(floors) + len(pairs)),
    )


NAMED_POINTS = 10  # in an error message
NO_ROOM = (
    "The masses leave no room for minimum flows: one point is as heavy as all others together. "
    "Change `mass`, pass `self_loops=True`, or `min_degree=0` and `connect=False`."
)


def _too_few_message(cost: Cost, points: LongArray, min_degree: int) -> str:
    named = ", ".join(str(p) for p in np.sort(cost.order[points])[:NAMED_POINTS])
    return (
        f"`min_degree`={min_degree} cannot be met: {len(points)} point(s) have fewer candidate "
        f"pairs (points {named}{', ...' if len(points) > NAMED_POINTS else ''}). Give more "
        "candidates, or lower `min_degree`."
    )


def _apart_message(n_components: int) -> str:
    return (
        f"`connect=True` cannot be met: the candidate pairs fall into {n_components} components "
        "that no pair connects. Give more candidates, or pass `connect=False`."
    )
