"""First candidates for a problem between two clouds, from problems on fewer points.

Between two clouds the nearest points are no good candidates: mass may have to travel far, and
where it goes is decided by all points together. So the problem is solved for every fourth point
first, which is a problem of the same kind, and so on down to a thousand points, where all pairs
fit. The potentials of a coarse problem give those of all points, up to its resolution. Pairs that
are worth using at these are the candidates of the finer problem.

A chosen point has the mass of those it stands for. If every r-th point of X and every s-th of Y
is chosen, a pair stands for r·s pairs, and eps / (r·s) gives the same potentials. But fewer points
need a larger eps, or the plan would be a matching. So each problem has the eps of the finest one or
that of a wanted degree, whichever is larger.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.costs.between import BetweenClouds, Coarse
from otgraph.costs.restricted import Plan
from otgraph.solvers.degree import (
    DegreeSearch,
    Guess,
    eps_limits,
    search_on_candidates,
)
from otgraph.solvers.laws import USUAL_SLOPE, row_law
from otgraph.solvers.newton import newton
from otgraph.solvers.room import near_pairs
from otgraph.solvers.rounds import (
    LOOSE_STEPS,
    LOOSE_TOL,
    approach,
    more_neighbors,
    too_high,
)
from otgraph.solvers.screening import Screener
from otgraph.solvers.state import Effort, State, first_state

if TYPE_CHECKING:
    from otgraph.solvers.state import Goal
    from otgraph.typing import LongArray

logger = logging.getLogger("otgraph")

COARSEST = 1500  # points of a cloud for which all pairs are candidates
LEVEL_DEGREE = 15  # least mean degree of a coarse problem
# Candidates per point, relative to the degree that is expected, and at least this many.
CANDIDATES_PER_DEGREE = 2.0
FEWEST_CANDIDATES = 30
# How far above the potentials of a coarse problem those of the finer one may be before mass stays
# unplaced, in units of the mean excess of a pair. Otherwise a part of the clouds whose candidates
# cannot carry its masses would rise until a screen returns all pairs.
CAP_UNITS = 2.0
# Least slope of the degree by which eps is guessed for more points. Where it is too large, eps is
# too large and the first problem a little denser; with too small an eps it would be a hard one.
CAREFUL_SLOPE = 0.8
LEVEL_STEPS = 100  # limit of Newton steps of a coarse problem
EPS_RATIO = 4.0  # of successive eps in the coarsest problem


def start_between(
    screener: Screener, goal: Goal, *, eps: float | None = None, degree: float | None = None
) -> Guess:
    """The start of a problem with a given eps, or with a wanted mean degree."""
    cost = screener.cost
    assert isinstance(cost, BetweenClouds)  # others have `nearest_are_partners`
    degree = max(LEVEL_DEGREE, degree or 0.0)
    thinned = cost.thinned(COARSEST)
    if thinned is None:
        return _coarsest(cost, goal, eps, degree)
    thin, rows, factor = thinned
    few = replace(goal, mass=np.add.reduceat(goal.mass, rows)[thin.order], max_iter=LEVEL_STEPS)
    below = Screener(thin)
    start = start_between(below, few, eps=None if eps is None else eps / factor, degree=degree)
    few = replace(few, eps=start.eps, tol=max(LOOSE_TOL, goal.tol))
    state = approach(below, few, start.state, Effort())
    logger.debug(
        "%d points: eps %.3g, mean degree %.1f, error %.1e",
        thin.n, few.eps, state.mean_degree, state.error(few),
    )  # fmt: skip
    found = replace(start, state=state)
    return _refined(screener, goal, few, found, rows[thin.order], factor, eps, degree)


def _coarsest(cost: BetweenClouds, goal: Goal, eps: float | None, degree: float) -> Guess:
    """All pairs, and decreasing eps down to the given one or to that of the degree."""
    pairs = near_pairs(cost, cost.most_partners)
    half = 0.5 * min(cost.n_left, cost.n_right)
    value, _ = row_law(cost, pairs, half, goal.mass)
    state = first_state(cost, pairs, goal.at(value))
    del pairs
    lowest = eps_limits(cost, goal.mass, state.problem.largest_costs())[0]
    while True:
        state = _solved_loosely(state, goal.at(value))
        if state.mean_degree <= degree or value <= max(eps or 0.0, lowest):
            break
        value /= EPS_RATIO
    slope = USUAL_SLOPE
    if eps is None or value > eps:
        limits = lowest, eps_limits(cost, goal.mass, state.problem.largest_costs())[1]
        search = DegreeSearch(degree, limits=limits)
        value, state = search_on_candidates(state, goal, value, search)
        slope = search.slope
    value = max(value, eps or 0.0)
    return Guess(_solved_loosely(state, goal.at(value)), value, slope)


def _refined(
    screener: Screener,
    goal: Goal,
    few: Goal,
    coarse: Guess,
    rows: LongArray,
    factor: int,
    eps: float | None,
    degree: float,
) -> Guess:
    """Candidates and potentials of all points, from the solution for some of them."""
    cost = screener.cost
    assert isinstance(cost, BetweenClouds)
    solved, slope = coarse.state, coarse.slope
    plan = solved.problem.plan(solved.u, few.eps)
    assert isinstance(plan, Plan)  # a cost in this process gives a plan in this process
    u, units = cost.lifted(rows, Coarse(solved.u, few.target, plan.indptr, plan.indices))
    u = np.minimum(u, goal.highest)
    # The plan of all points with the same potentials, and the degree that is wanted instead.
    same, dense = factor * few.eps, factor * plan.mean_degree * len(rows) / cost.n
    wanted = degree if eps is None else max(degree, dense * min(eps / same, 1.0) ** slope)
    careful = max(slope, CAREFUL_SLOPE)
    value = max(same * min(wanted / dense, 1.0) ** (1.0 / careful), eps or 0.0)
    k = int(max(FEWEST_CANDIDATES, CANDIDATES_PER_DEGREE * wanted))
    while True:
        screen = screener.screen(u, cost.slack(u, units, k) * units)
        problem = cost.restrict(screen.pairs, np.full(cost.n, np.inf))
        state = State(problem, u, CAP_UNITS * units, screen, base=u)
        state = _solved_loosely(state, goal.at(value))
        if not too_high(cost, goal.at(value), state.u, k):
            return Guess(state, value, slope)
        k = more_neighbors(cost, k)


def _solved_loosely(state: State, goal: Goal) -> State:
    state = state.priced(goal)
    result = newton(state.problem, goal.target, state.u, tol=LOOSE_TOL, max_iter=LOOSE_STEPS)
    return replace(state, u=result.u)
