"""The solver: candidates, Newton, screen, descend, certify.

    candidates -> Newton, loosely -> screen all pairs -> Newton to the tolerance -> certify
                        ^                                         |
                        +------------ pairs still missing --------+

A screen with the bound ``upper`` finds every pair that any u <= upper could use. It therefore
adds what was missing and drops what is idle in one go, and proves optimality for the final u
as long as that stays below the bound.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import InfeasibleError, MemoryLimitError
from otgraph.solvers.certificate import Reason
from otgraph.solvers.certify import certify
from otgraph.solvers.newton import newton
from otgraph.solvers.sampling import excess_ratio
from otgraph.solvers.state import Effort, first_state, start_potentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs import Cost
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Goal, Solution, State
    from otgraph.typing import FloatArray, LongArray

logger = logging.getLogger("otgraph")

# Marginal error at which the potentials are good enough to choose pairs by, and the Newton
# steps spent on it.
LOOSE_TOL = 0.05
LOOSE_STEPS = 20
MAX_ROUNDS = 40
# A direct attempt ends when so many rounds have not reached the loose tolerance in their steps:
# the solution is then followed down from a larger eps.
FAILED_ROUNDS = 2
# Rounds that drop idle pairs. After these candidates only grow, which ends the loop: potentials
# of a bipartite component are not unique, and could wander off again and again.
PRUNING_ROUNDS = 2
# Candidates taken over from another eps are cut down if they are this many times the active ones.
IDLE_FACTOR = 3.0
NAMED_POINTS = 10  # in an error message


def solve(screener: Screener, goal: Goal, start: State) -> Solution:
    """Solve to the tolerance among all pairs that the cost screens.

    ``start`` comes from `first_state`, or from the solution of a similar problem.
    """

    def attempt(state: State) -> Solution:
        effort, first_pass = Effort(), screener.n_passes
        state = approach(screener, goal, state, effort)
        return certify(screener, goal, state, effort, screener.n_passes - first_pass)

    return looking_further(screener, goal, attempt, start)


def looking_further(
    screener: Screener, goal: Goal, attempt: Callable[[State], Solution], start: State
) -> Solution:
    """Repeat an attempt while an approximate search misses more pairs than allowed."""
    solution = attempt(start)
    while solution.certificate.missing_share > goal.max_missing and screener.widen():
        logger.debug("%s; looking further", solution.certificate.missing_text)
        solution = attempt(replace(solution.state, screen=None))
    return solution


def approach(screener: Screener, goal: Goal, start: State, effort: Effort) -> State:
    """Candidates and potentials that solve the problem, or as near as it gets."""
    state = start.priced(goal)
    if state.covered and state.problem.n_pairs > 0.5 * IDLE_FACTOR * state.mean_degree * len(
        state.u
    ):
        state = screened(screener, goal, state, prune=True)
    state = _rounds(screener, goal, state, effort, patient=False)
    if not state.solved(goal):
        refuse_infeasible(screener.cost, goal)
        if effort.steps < goal.max_iter:
            state = _descend(screener, goal, state, effort)
    return state


def _rounds(
    screener: Screener, goal: Goal, state: State, effort: Effort, *, patient: bool
) -> State:
    """Improve the potentials and change the candidates in turn; ends with an improvement."""
    failures = 0
    for done in range(MAX_ROUNDS):
        if done:
            state = _other_candidates(screener, goal, state, prune=done <= PRUNING_ROUNDS)
        state = _improved(screener.cost, goal, state, effort, patient=patient)
        for _ in range(MAX_RAISES):
            if not state.covered or state.complete(goal) or _suspicious(goal, state):
                break
            state = _with_higher_price(goal, state)
            state = _improved(screener.cost, goal, state, effort, patient=patient)
        failed = not patient and state.error(goal) > LOOSE_TOL
        failures += failed
        out_of_luck = effort.steps >= goal.max_iter or failures >= FAILED_ROUNDS
        if out_of_luck or (state.complete(goal) and not failed):
            return state
    effort.reason = Reason.MASS_LEFT_OVER if state.covered else Reason.CANDIDATES_CHANGE
    return state


def _improved(cost: Cost, goal: Goal, state: State, effort: Effort, *, patient: bool) -> State:
    """Newton on the candidates: loosely, and to the tolerance once nothing is missing."""
    state = newton_on(cost, goal, state, effort, max(LOOSE_TOL, goal.tol), LOOSE_STEPS)
    if state.complete(goal) and (patient or state.error(goal) <= LOOSE_TOL):
        state = newton_on(cost, goal, state, effort, goal.tol, goal.max_iter)
    return state


def newton_on(
    cost: Cost, goal: Goal, state: State, effort: Effort, tol: float, max_iter: int
) -> State:
    """The state with better potentials; steps are counted and the bar is moved."""
    left = min(max_iter, goal.max_iter - effort.steps)
    with cost.workers.error_bar("solve", goal.tol) as bar:
        result = newton(
            state.problem, goal.target, state.u, tol=tol, max_iter=left, on_step=bar.update
        )
    effort.steps += result.n_steps
    effort.reason = result.reason
    effort.history.append(result.errors)
    logger.debug(
        "eps %.3g: %d pairs, %d steps, %d products, marginal error %.1e",
        goal.eps, state.problem.n_pairs, effort.steps, result.n_products, result.error,
    )  # fmt: skip
    return replace(state, u=result.u)


# Candidates -----------------------------------------------------------------------------

# The bound of a screen is above u by this share of the mean excess eps·m_i/degree_i of a row.
# In d dimensions that multiplies the number of pairs by at most e^SLACK.
SLACK = 0.5
# Rows of few neighbors change more from one round to the next; extra candidates are cheap there.
EXTRA_SLACK = 4.0
# A first screen whose rows would sum to more than this multiple of their targets is put off
# until candidates with more neighbors have brought the potentials down.
TOLERATED_EXCESS = 4.0
MORE_NEIGHBORS = 3
# Mass that stays over although no pair is missing costs this many times as much from then on.
OVERFLOW_GROWTH = 8.0
MAX_RAISES = 24  # in a round: to 8^24 times what the candidates cost
# Above this multiple of what its candidates cost, an approximate search has missed partners.
SUSPICIOUS_PRICE = 500.0


def _other_candidates(screener: Screener, goal: Goal, state: State, *, prune: bool) -> State:
    """What to do about candidates on which the problem is not solved."""
    if state.complete(goal):
        return state  # what is missing is not pairs, but Newton steps
    if state.covered:  # and yet mass is left over, at a price that all partners would be worth
        if not screener.widen():
            return _with_higher_price(goal, state)
        state = replace(state, screen=None)
    if _too_few_neighbors(screener.cost, goal, state):
        return _with_more_neighbors(screener.cost, goal, state)
    return screened(screener, goal, state, prune=prune)


def screened(screener: Screener, goal: Goal, state: State, *, prune: bool) -> State:
    """New candidates: all that a solution not far above the current one could use."""
    degrees = np.maximum(state.problem.hessian(state.u).degrees, 1.0)
    slack = 0.5 * (SLACK + EXTRA_SLACK / degrees) * goal.target / degrees
    screen = screener.screen(state.u, slack, prune=prune)
    problem = screener.cost.restrict(screen.pairs, state.problem.diagonal)
    return replace(state, problem=problem, screen=screen, k=None)


def _too_few_neighbors(cost: Cost, goal: Goal, state: State) -> bool:
    """Whether a screen at these potentials would return a large part of all pairs."""
    if state.k is None or state.k >= cost.n - 1:
        return False
    return excess_ratio(cost, state.u, goal.target) > TOLERATED_EXCESS


def _with_more_neighbors(cost: Cost, goal: Goal, state: State) -> State:
    assert state.k is not None  # only nearest neighbors can be too few
    k = min(MORE_NEIGHBORS * state.k, cost.n - 1)
    return first_state(cost, cost.neighbors(k), goal, k=k)


def _with_higher_price(goal: Goal, state: State) -> State:
    """No pair is missing and yet mass is left over: make leaving it more expensive."""
    dearer = OVERFLOW_GROWTH * (state.reach + goal.target)
    reach = np.where(state.overflow(goal), dearer, state.reach)
    return replace(state, reach=reach).priced(goal)


def _suspicious(goal: Goal, state: State) -> bool:
    """Whether mass is left over because an incomplete screen did not see the partners."""
    if state.screen is None or state.screen.complete:
        return False
    usual = state.problem.largest_costs() + goal.target
    return bool(np.any(state.overflow(goal) & (state.reach > SUSPICIOUS_PRICE * usual)))


# Descent from larger eps ----------------------------------------------------------------

DESCENT_RATIO = 3.0  # of successive eps
MAX_RISES = 20
FAR_QUANTILE = 0.99  # the first eps equals the costs of all but the farthest neighbors
DESCENT_TOL = 1e-3  # of the larger eps


def _descend(screener: Screener, goal: Goal, failed: State, effort: Effort) -> State:
    """Come from larger eps, whose solutions have more neighbors and are easier to find.

    As eps falls towards zero the plan becomes a matching and the active pairs a forest, on
    which Newton steps from afar are poor. Each solution starts the next.
    """
    far = float(np.quantile(failed.problem.largest_costs(), FAR_QUANTILE))
    rises = int(np.ceil(np.log(max(far / goal.eps, 1.0)) / np.log(DESCENT_RATIO)))
    rises = min(max(rises, 1), MAX_RISES)
    top = goal.at(DESCENT_RATIO**rises * goal.eps)
    state = replace(failed, screen=None, k=None).priced(top)
    state = replace(state, u=start_potentials(state.problem, top.target))
    before: tuple[float, FloatArray] | None = None
    for rise in range(rises, -1, -1):
        level = goal.at(DESCENT_RATIO**rise * goal.eps)
        if rise:
            level = replace(level, tol=max(DESCENT_TOL, goal.tol))
        try:
            after = _rounds(screener, level, state.priced(level), effort, patient=True)
        except MemoryLimitError:
            if rise == 0:
                raise
            continue  # more neighbors than fit: begin lower
        state = after
        if rise and before is not None:
            # Potentials are piecewise linear in eps: the next ones are near the line.
            eps, u = before
            slope = (after.u - u) / (level.eps - eps)
            state = replace(after, u=after.u + (level.eps / DESCENT_RATIO - level.eps) * slope)
        before = level.eps, after.u
    return state


# Infeasible problems --------------------------------------------------------------------


def refuse_infeasible(cost: Cost, goal: Goal) -> None:
    """Raise where the allowed pairs cannot carry the masses; only given candidates can be so."""
    if not goal.self_loops and (unplaceable := cost.unplaceable(goal.mass)).any():
        raise InfeasibleError(_infeasible_message(cost.order[unplaceable]))


def _infeasible_message(points: LongArray) -> str:
    named = ", ".join(str(i) for i in np.sort(points)[:NAMED_POINTS])
    more = "" if len(points) <= NAMED_POINTS else f" and {len(points) - NAMED_POINTS} more"
    return (
        f"The candidate pairs cannot carry the masses: {len(points)} point(s) do not find enough "
        f"partners (points {named}{more}). Give these points more candidates, change `mass`, or "
        "pass `self_loops=True`."
    )
