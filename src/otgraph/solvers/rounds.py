"""The solver: candidates, Newton, screen, descend, certify.

    candidates -> Newton, loosely -> screen all pairs -> Newton to the tolerance -> certify
                        ^                                         |
                        +------------ pairs still missing --------+

A screen with the bound ``upper`` finds every pair that any u <= upper could use. One screen
therefore adds missing pairs and drops idle ones. It also proves that the final u is optimal, if
that stays below the bound.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import InfeasibleError, MemoryLimitError
from otgraph.solvers.certificate import Reason
from otgraph.solvers.certify import certify
from otgraph.solvers.nearby import worst_solved
from otgraph.solvers.newton import newton
from otgraph.solvers.room import most_neighbors, near_pairs
from otgraph.solvers.sampling import EXCESS_ROWS, excess_ratio
from otgraph.solvers.state import Effort, changed, first_state, start_potentials

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs import Cost
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Goal, Solution, State
    from otgraph.typing import FloatArray, LongArray

logger = logging.getLogger("otgraph")

# Marginal error at which potentials are accurate enough for a screen, and the limit of Newton
# steps to reach it.
LOOSE_TOL = 0.05
LOOSE_STEPS = 60  # 10 are usual; far points that must find each other need some 25
# Share of the points that may miss this error, if there are many. A screen finds too many or too
# few pairs of these points only, and the steps for the last of them are half of all steps.
LOOSE_SHARE = 0.01
MANY_POINTS = 50_000
# The same with minimum flows, which start on the candidates of a solution without them: few pairs
# are missing, and a screen far from the solution would return too many.
FLOORED_STEPS = 100
MAX_ROUNDS = 40
# After this many rounds that do not reach the loose tolerance, the solver starts again from a
# larger eps (`_descend`).
FAILED_ROUNDS = 2
# Rounds that may drop idle pairs. Later, candidates only grow, so the loop ends. Potentials of a
# bipartite component are not unique and could otherwise change the candidates forever.
PRUNING_ROUNDS = 2
# Candidates from another eps are pruned if they are more than this many times the active pairs.
IDLE_FACTOR = 2.0
NAMED_POINTS = 10  # in an error message


def solve(screener: Screener, goal: Goal, start: State) -> Solution:
    """Solve to the tolerance among all pairs that the cost screens.

    ``start`` comes from `first_state`, or from the solution of a similar problem.
    """

    def attempt(state: State | None) -> Solution:
        effort = Effort()
        state = approach(screener, goal, state or start, effort)
        return certify(screener, goal, state, effort)

    return looking_further(screener, goal, attempt)


def looking_further(
    screener: Screener, goal: Goal, attempt: Callable[[State | None], Solution]
) -> Solution:
    """Repeat an attempt while an approximate search misses more pairs than allowed.

    The first attempt gets None, so that nothing here keeps the first candidates in memory.
    """
    solution = attempt(None)
    while solution.certificate.missing_share > goal.max_missing and screener.widen():
        logger.debug("%s; looking further", solution.certificate.missing_text)
        solution = attempt(changed(solution.state, screen=None))
    return solution


def approach(screener: Screener, goal: Goal, start: State, effort: Effort) -> State:
    """Like `solve`, but stop before the plan and the certificate are computed."""
    passes_before = screener.n_passes
    state = pruned(screener, goal, start.priced(goal))
    state = _rounds(screener, goal, state, effort, patient=False)
    if not state.solved(goal):
        refuse_infeasible(screener.cost, goal)
        if effort.steps < goal.max_iter:
            state = _descend(screener, goal, state, effort)
    effort.screens += screener.n_passes - passes_before
    return state


def pruned(screener: Screener, goal: Goal, state: State) -> State:
    """The state without most of its idle pairs, if these are many."""
    if not state.covered or state.problem.n_pairs <= _many_pairs(state):
        return state
    return screened(screener, goal, state, prune=True)


def _many_pairs(state: State) -> float:
    """A number of candidates above which most are idle."""
    return 0.5 * IDLE_FACTOR * state.mean_degree * state.problem.n


def _rounds(
    screener: Screener, goal: Goal, state: State, effort: Effort, *, patient: bool
) -> State:
    """Alternate Newton on the candidates and a change of candidates, ending with Newton."""
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
        failed = not (patient or _loosely_met(screener.cost, goal, state))
        failures += failed
        out_of_luck = effort.steps >= goal.max_iter or failures >= FAILED_ROUNDS
        if out_of_luck or (state.complete(goal) and not failed):
            return state
    effort.reason = Reason.MASS_LEFT_OVER if state.covered else Reason.CANDIDATES_CHANGE
    return state


def _improved(cost: Cost, goal: Goal, state: State, effort: Effort, *, patient: bool) -> State:
    """Newton to the loose tolerance, then to the final one if no pair is missing."""
    steps = LOOSE_STEPS if goal.floors is None else FLOORED_STEPS
    left = most_left(cost, goal)
    state = newton_on(cost, goal, state, effort, max(LOOSE_TOL, goal.tol), steps, left)
    if state.complete(goal) and (patient or _loosely_met(cost, goal, state)):
        state = newton_on(cost, goal, state, effort, goal.tol, goal.max_iter)
    return state


def most_left(cost: Cost, goal: Goal) -> int:
    """How many points may miss the loose tolerance."""
    return int(LOOSE_SHARE * cost.n) if _few_are_left(cost, goal) else 0


def _few_are_left(cost: Cost, goal: Goal) -> bool:
    """Whether a few points may be left behind, and then be solved by themselves.

    Between two clouds potentials are far less local, and mass that is held back is not in a part
    of the problem.
    """
    return cost.n >= MANY_POINTS and cost.nearest_are_partners and not goal.soft


def _loosely_met(cost: Cost, goal: Goal, state: State) -> bool:
    """Whether all points but a few meet the loose tolerance."""
    return state.nearly_met(goal, LOOSE_TOL, most_left(cost, goal))


def newton_on(
    cost: Cost, goal: Goal, state: State, effort: Effort, tol: float, max_iter: int, left: int = 0
) -> State:
    """The state after Newton; counts the steps and updates the progress bar."""
    if effort.history and state.error(goal) <= tol:
        effort.reason = Reason.NONE
        return state
    most = min(max_iter, goal.max_iter - effort.steps)
    settle: Callable[[FloatArray], FloatArray] | None = None
    # Before a screen without floors there are far more pairs than later: memory for two problems.
    if _few_are_left(cost, goal) and not (left and goal.floors is None):
        settle = partial(
            worst_solved, state.problem, goal.target, effort=effort, workers=cost.workers, tol=tol
        )  # fmt: skip
    with cost.workers.error_bar("solve", goal.tol) as bar:
        result = newton(
            state.problem, goal.target, state.u,
            tol=tol, max_iter=most, left=left, settle=settle, on_step=bar.update,
        )  # fmt: skip
    effort.steps += result.n_steps
    effort.reason = result.reason
    effort.history.append(result.errors)
    logger.debug(
        "eps %.3g: %d pairs, %d steps, %d products, marginal error %.1e",
        goal.eps, state.problem.n_pairs, effort.steps, result.n_products, result.error,
    )  # fmt: skip
    if cost.on_improved is not None:
        cost.on_improved(goal.eps, result.u)
    return state.at(result.u)


# Candidates -----------------------------------------------------------------------------

# The bound of a screen is u plus half this multiple of the mean excess eps·m_i/degree_i of a row.
# In d dimensions this multiplies the number of pairs by at most e^SLACK.
SLACK = 0.5
# Extra slack, divided by the degree. Rows with few neighbors change more between rounds.
EXTRA_SLACK = 4.0
# If sampled rows sum to more than this multiple of their targets, potentials are far too high for
# a screen. Candidates with more neighbors (by the factor below) come first.
TOLERATED_EXCESS = 4.0
FEW_POINTS = 512  # up to this many, a screen that returns all pairs takes no longer than the check
MORE_NEIGHBORS = 3
# Factor on the price of unplaced mass, if mass is left over although no pair is missing.
OVERFLOW_GROWTH = 8.0
MAX_RAISES = 24  # raises of the price per round, up to a factor of 8^24
# If a price exceeds the costs of the candidates this many times, an approximate search has
# probably missed partners.
SUSPICIOUS_PRICE = 500.0


def _other_candidates(screener: Screener, goal: Goal, state: State, *, prune: bool) -> State:
    """The next candidates, if the problem is not solved on the current ones."""
    if state.complete(goal):
        return state  # no pair is missing; more Newton steps are needed
    if state.covered:  # no pair is missing, but mass is left over
        if not screener.widen():
            return _with_higher_price(goal, state)
        state = changed(state, screen=None)
    if too_few_neighbors(screener, goal, state):
        return _with_more_neighbors(screener.cost, goal, state)
    return screened(screener, goal, state, prune=prune)


def screened(screener: Screener, goal: Goal, state: State, *, prune: bool) -> State:
    """New candidates: all pairs that a solution within the slack of ``u`` could use."""
    degrees = np.maximum(state.problem.hessian(state.u).degrees, 1.0)
    slack = 0.5 * (SLACK + EXTRA_SLACK / degrees) * goal.target / degrees
    slack = np.minimum(slack, np.maximum(goal.highest - state.u, 0.0))  # no solution is above
    many = _many_pairs(state)
    state.problem.forget()
    free = state.problem.release if state.spare else None
    screen = screener.screen(state.u, slack, prune=prune, before=state.screen, many=many, free=free)
    if state.spare:
        state.problem.release()
    problem = goal.softened(screener.cost.restrict(screen.pairs, state.problem.diagonal))
    return changed(state, problem=problem, screen=screen, k=None, spare=False)


def too_few_neighbors(screener: Screener, goal: Goal, state: State) -> bool:
    """Whether a screen at these potentials would return a large part of all pairs."""
    if state.k is None or (state.screen is not None and screener.is_cheap(state.screen, state.u)):
        return False
    return too_high(screener.cost, goal, state.u, state.k)


def too_high(cost: Cost, goal: Goal, u: FloatArray, k: int) -> bool:
    """Whether potentials on k candidates per point are too high for a screen, and k can grow."""
    if k >= cost.most_partners or cost.n <= FEW_POINTS:
        return False
    if excess_ratio(cost, u, goal.target) <= TOLERATED_EXCESS:
        return False
    # Far points exceed their targets by far where they should be partners of each other. They are
    # few, and a screen finds fewer pairs than a search for more neighbors.
    pairs_per_point = 2.0 * cost.predict_pairs(u, EXCESS_ROWS) / cost.n
    return pairs_per_point > MORE_NEIGHBORS * k and k < most_neighbors(cost)


def _with_more_neighbors(cost: Cost, goal: Goal, state: State) -> State:
    assert state.k is not None  # `too_few_neighbors` has checked it
    k = more_neighbors(cost, state.k)
    if state.spare:
        state.problem.release()
    return first_state(cost, near_pairs(cost, k), goal, k=k, spare=True)


def more_neighbors(cost: Cost, k: int) -> int:
    """The next larger number of first candidates per point."""
    return min(MORE_NEIGHBORS * k, most_neighbors(cost), cost.most_partners)


def _with_higher_price(goal: Goal, state: State) -> State:
    """Raise the price of unplaced mass at the points that have some."""
    dearer = OVERFLOW_GROWTH * (state.reach + goal.target)
    reach = np.where(state.overflow(goal), dearer, state.reach)
    return changed(state, reach=reach).priced(goal)


def _suspicious(goal: Goal, state: State) -> bool:
    """Whether mass is probably left over because an incomplete screen missed partners."""
    if state.screen is None or state.screen.complete:
        return False
    usual = state.problem.largest_costs() + goal.target
    return bool(np.any(state.overflow(goal) & (state.reach > SUSPICIOUS_PRICE * usual)))


# Descent from larger eps ----------------------------------------------------------------

DESCENT_RATIO = 3.0  # ratio of successive eps
MAX_RISES = 20  # limit of the number of larger eps
FAR_QUANTILE = 0.99  # quantile of the reaches that sets the first eps
DESCENT_TOL = 1e-3  # tolerance for the larger eps


def _descend(screener: Screener, goal: Goal, failed: State, effort: Effort) -> State:
    """Solve for a larger eps first and decrease it; each solution starts the next.

    As eps tends to zero, the plan tends to a matching and the active pairs to a forest. Newton
    steps from a distant start are poor there. Larger eps have more neighbors and are easier.
    """
    failed = changed(failed, spare=False)  # a larger eps that does not fit is given up
    if failed.base is not None:  # it was of no use
        failed = changed(failed, base=None, reach=failed.problem.largest_costs())
    far = min(float(np.quantile(failed.reach, FAR_QUANTILE)), screener.cost.largest)
    rises = int(np.ceil(np.log(max(far / goal.eps, 1.0)) / np.log(DESCENT_RATIO)))
    rises = min(max(rises, 1), MAX_RISES)
    top = goal.at(DESCENT_RATIO**rises * goal.eps)
    state = changed(failed, screen=None, k=None).priced(top)
    state = changed(state, u=start_potentials(state.problem, top.target))
    before: tuple[float, FloatArray] | None = None
    for rise in range(rises, -1, -1):
        level = goal.at(DESCENT_RATIO**rise * goal.eps)
        if rise:
            level = changed(level, tol=max(DESCENT_TOL, goal.tol))
        try:
            after = _rounds(screener, level, state.priced(level), effort, patient=True)
        except MemoryLimitError:
            if rise == 0:
                raise
            continue  # does not fit into memory: start at a smaller eps
        state = after
        if rise and before is not None:
            # Potentials are piecewise linear in eps: extrapolate them.
            eps, u = before
            slope = (after.u - u) / (level.eps - eps)
            state = changed(after, u=after.u + (level.eps / DESCENT_RATIO - level.eps) * slope)
        before = level.eps, after.u
    return state


# Infeasible problems --------------------------------------------------------------------


def refuse_infeasible(cost: Cost, goal: Goal) -> None:
    """Raise if the allowed pairs cannot carry the masses, possible for given candidates only."""
    if not (goal.self_loops or goal.soft) and (unplaceable := cost.unplaceable(goal.mass)).any():
        raise InfeasibleError(_infeasible_message(cost.order[unplaceable]))


def _infeasible_message(points: LongArray) -> str:
    named = ", ".join(str(i) for i in np.sort(points)[:NAMED_POINTS])
    more = "" if len(points) <= NAMED_POINTS else f" and {len(points) - NAMED_POINTS} more"
    return (
        f"The candidate pairs cannot carry the masses: {len(points)} point(s) have too few "
        f"partners (points {named}{more}). Give these points more candidates, change `mass`, or "
        "pass `self_loops=True`."
    )
