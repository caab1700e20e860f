"""Find the regularization that gives a wanted mean degree."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import MemoryLimitError
from otgraph.solvers.certificate import Status
from otgraph.solvers.certify import certify
from otgraph.solvers.floors import Wish, expected_degree, surely_lonely, with_floors
from otgraph.solvers.laws import (
    LARGEST_SLOPE,
    SMALLEST_SLOPE,
    USUAL_SLOPE,
    law_of_all_pairs,
    row_law,
)
from otgraph.solvers.newton import newton
from otgraph.solvers.room import near_pairs
from otgraph.solvers.rounds import (
    LOOSE_STEPS,
    LOOSE_TOL,
    approach,
    looking_further,
    more_neighbors,
    most_left,
    screened,
    too_few_neighbors,
)
from otgraph.solvers.screening import MANY_PAIRS
from otgraph.solvers.state import Effort, Solution, changed, first_state

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Goal, State
    from otgraph.typing import FloatArray

logger = logging.getLogger("otgraph")

DEGREE_TOL = 0.02  # accepted relative distance from the wanted degree
CANDIDATE_TRIALS = 8  # limit of trials on the first candidates, which are cheap
# From a trial within this relative distance the next eps is right without another one.
NEAR_DEGREE = 0.05
# Limit of trials among all pairs. Two or three are usual. Many are needed where the degree jumps
# as a function of eps and the search bisects toward the jump.
MAX_TRIALS = 120
# Largest change of log eps on the first candidates. Beyond it they saturate: a point cannot have
# more neighbors than candidates.
CANDIDATE_RANGE = 3.0
# Limit of trials with minimum flows. None or two are usual.
FLOORED_TRIALS = 12
# Of these, so many may be refused before all points are solved, if log eps changes by less than
# this. Floors change the degree by some percent; a search that goes far may have no end.
MAX_DRAFTS = 3
DRAFT_RANGE = 0.2
# Up to this many points one edge may change the mean degree by more than the accepted distance, and
# the degree may fall where eps rises. Trials take a millisecond each, so if the search ends at a
# jump, eps on a whole grid (`SCANNED_RATIOS`) are tried.
FEW_POINTS = 500
# Part of the first guess which is tried too, even below `SMALLEST_EPS` times the largest costs:
# between clusters far apart these are large, and no edge has them.
LAW_RANGE = 1e-3
# Marginal error of a trial. At this error the degree is usually right to a fraction of a percent.
TRIAL_TOL = 0.01


@dataclass(frozen=True)
class Guess:
    """An eps with about its solution on some candidates.

    ``slope`` is d log degree / d log eps, as far as it is known.
    """

    state: State
    eps: float
    slope: float


def solve_for_degree(
    screener: Screener,
    degree: float,
    goal: Goal,
    wish: Wish,
    *,
    n_candidates: int,
    start: Guess | None = None,
) -> Solution:
    """The solution whose mean degree is within two percent of ``degree``, or the nearest.

    ``goal.eps`` is ignored. A rough search uses only the first candidates and takes a few loose
    solves. Warm-started solves among all pairs then correct the result. Only the last solve
    goes to the tolerance. Minimum flows add edges. If these are too many, a smaller eps makes
    room for them. ``start`` replaces the rough search, if it is given.
    """
    cost, k = screener.cost, n_candidates
    few = cost.n <= FEW_POINTS
    if start is not None:
        eps, slope, plain = start.eps, start.slope, start.state
        limits = eps_limits(cost, goal.mass, plain.problem.largest_costs())
    law = None  # before the candidates: cells near others are looked for once, for more neighbors
    if start is None and cost.has_other_pairs and not (few or cost.compares_all):
        law = law_of_all_pairs(cost, degree, goal.mass)
    while start is None:
        pairs = near_pairs(cost, k)
        eps, slope = law or row_law(cost, pairs, degree, goal.mass)
        plain = first_state(cost, pairs, goal.at(eps), k=k, spare=True)
        del pairs
        limits = eps_limits(cost, goal.mass, plain.problem.largest_costs())
        limits = min(limits[0], LAW_RANGE * eps), limits[1]
        eps = min(eps, limits[1])
        if law is None:
            search = DegreeSearch(degree, slope, limits)
            eps, plain = search_on_candidates(plain, goal, eps, search)
        else:  # few candidates would ask for a larger eps, and a screen there finds more pairs
            plain = loosely_solved(plain, goal, eps, most_left(cost, goal))
        if not too_few_neighbors(screener, goal.at(eps), plain):
            plain = changed(plain, k=None)  # found to be enough, not to be looked at again
            break
        plain.problem.release()
        k = more_neighbors(cost, k)

    rough = False  # whether there will be floors, so that a plain solution is not needed
    trial_miss = np.inf  # distance of the last trial from the wanted degree

    def reached_by(state: State, counted: Wish, effort: Effort) -> State:
        """Search among all pairs, counting the edges of some wish.

        The last solve goes to the tolerance, unless floors will change its solution anyway.
        """
        nonlocal eps, rough, trial_miss
        for tol in (goal.tol,) if few else (max(goal.tol, TRIAL_TOL), goal.tol):
            search = DegreeSearch(degree, slope, limits, scan=few)
            level, last = goal if tol == goal.tol else changed(goal, tol=tol), Effort()
            eps, state = _search_among_all(screener, level, eps, state, counted, search, effort)
            state = search.start(state, eps)
            found = search.best_miss <= DEGREE_TOL
            here = level.at(eps)
            rough = found and tol > goal.tol and state.solved(here)
            if rough and surely_lonely(state, here, wish):
                return state
            rough = False
            if tol > goal.tol or eps != search.last_eps:  # otherwise it is solved already
                state = approach(screener, goal.at(eps), state, last)
            while search.correct(eps, reached := expected_degree(screener, state, counted)):
                eps = search.best_eps or eps
                state = approach(screener, goal.at(eps), search.start(state, eps), last)
            effort.add(last)
            trial_miss = search.miss(reached)
            if trial_miss <= DEGREE_TOL or not found or tol == goal.tol:
                break
        return state

    def completed(
        effort: Effort, shift: FloatArray | None = None, drafts: DegreeSearch | None = None
    ) -> Solution:
        """The certified solution, from as few pairs as possible: floors need them twice.

        With ``drafts``, other eps are tried while floors give another degree.
        """
        nonlocal plain
        while True:  # not a call of itself: its variables, and all pairs, would outlive the solve
            level = goal.at(eps)
            if wish and not few and (rough or plain.solved(level)):
                plain = screened(screener, level, plain, prune=True)
                screener.keep(plain.screen)
            state, plain = plain, plain.on(plain)
            # Among few points most graphs need no floors, and looking for them takes a plan.
            certified = certify(screener, level, state, effort) if few and shift is None else None
            if certified is not None and certified.certificate.status == Status.NOT_CONVERGED:
                certified = None
            accepts = None if drafts is None else drafts.accepts
            found = with_floors(
                screener, level, state, effort, wish,
                shift=shift, certified=certified, rough=rough, accepts=accepts,
            )  # fmt: skip
            if isinstance(found, Solution):
                return found
            del state, certified
            logger.debug("eps %.4g: mean degree %.2f with minimum flows", eps, found.mean_degree)
            assert drafts is not None  # who refuses
            following, shift = drafts.propose(eps, found.mean_degree), found.u - plain.u
            far = following is None or abs(math.log(following / eps)) > DRAFT_RANGE
            if following is None or far or drafts.n_trials > MAX_DRAFTS:
                drafts = None  # a solution must decide
            else:
                advance(following, effort)

    def advance(following: float, effort: Effort) -> None:
        """Solve for another eps, without floors."""
        nonlocal plain, eps
        eps, tol = following, max(goal.tol, TRIAL_TOL) if rough else goal.tol
        level = goal.at(eps)
        level = level if tol == goal.tol else changed(level, tol=tol)
        plain = approach(screener, level, plain, effort)

    def attempt(again: State | None) -> Solution:
        nonlocal plain
        effort, plain = Effort(), again or plain
        # A graph that needs no minimum flows must not depend on the wish for them.
        plain = reached_by(plain, Wish(), effort)
        if DegreeSearch(degree).miss(expected_degree(screener, plain, wish)) > DEGREE_TOL:
            plain = reached_by(plain, wish, effort)
        return completed(effort, drafts=None if few else DegreeSearch(degree, slope, limits))

    best = solution = looking_further(screener, goal, attempt)
    # The certified plan is more accurate than a trial, and may lack its faintest edges.
    lost = few and DegreeSearch(degree).miss(solution.mean_degree) > max(DEGREE_TOL, trial_miss)
    if solution.floors is None and not lost:
        return solution
    limits = eps_limits(cost, goal.mass, plain.problem.largest_costs())
    search = DegreeSearch(degree, slope, limits, scan=few)
    while search.n_trials < (MAX_TRIALS if few else FLOORED_TRIALS):
        if search.n_trials and solution.certificate.status == Status.NOT_CONVERGED:
            following = search.skip()  # eps is too small for double precision
        else:
            nearer = search.miss(solution.mean_degree) < search.best_miss
            best = solution if nearer else best
            following = search.propose(solution.certificate.eps, solution.mean_degree)
        if following is None:
            break
        effort, shift = Effort(), solution.u - plain.u
        advance(following, effort)
        solution = completed(effort, shift)
    return best


def guess_from(
    screener: Screener, degree: float, goal: Goal, u: FloatArray, *, n_candidates: int
) -> Guess:
    """The guess of an earlier search that reached ``goal.eps`` and the potentials ``u``."""
    cost = screener.cost
    pairs = near_pairs(cost, n_candidates)
    _, slope = row_law(cost, pairs, degree, goal.mass)
    return Guess(first_state(cost, pairs, goal, u0=u), goal.eps, slope)


# Range of eps, relative to the costs.
SMALLEST_EPS = 1e-8  # below, row sums are dominated by rounding errors
LARGEST_EPS = 1e4  # above, costs no longer matter


def eps_limits(cost: Cost, mass: FloatArray, row_costs: FloatArray) -> tuple[float, float]:
    """Range of eps in which the degree can change; ``row_costs`` are typical costs of the rows."""
    lightest = float(np.min(mass))
    smallest = float(np.min(row_costs, where=row_costs > 0.0, initial=np.inf))
    if not math.isfinite(smallest):
        return 1.0, 1.0  # all points are identical: any eps gives the same graph
    ceiling = LARGEST_EPS * cost.n * cost.largest / lightest
    return min(SMALLEST_EPS * smallest / lightest, ceiling), ceiling


def search_on_candidates(
    state: State, goal: Goal, eps: float, search: DegreeSearch
) -> tuple[float, State]:
    """Loose solves on fixed candidates; returns eps and a state with about its potentials.

    The slope found here is not used later: few candidates saturate.
    """
    first = eps
    before: tuple[float, FloatArray] | None = None
    for _ in range(CANDIDATE_TRIALS):
        state = loosely_solved(state, goal, eps)
        logger.debug("eps %.4g: mean degree %.2f on the first candidates", eps, state.mean_degree)
        following = search.propose(eps, state.mean_degree)
        if following is None or abs(math.log(following / first)) > CANDIDATE_RANGE:
            break
        last, before = before, (eps, state.u)
        if last is not None:  # potentials are piecewise linear in eps
            slope = (state.u - last[1]) / (eps - last[0])
            state = changed(state, u=state.u + (following - eps) * slope)
        eps = following
        if search.best_miss <= NEAR_DEGREE:
            break
    return eps, state


def loosely_solved(state: State, goal: Goal, eps: float, left: int = 0) -> State:
    """The state with loosely solved potentials for another eps, on the same candidates.

    Only ``left`` points may miss the loose tolerance.
    """
    level = goal.at(eps)
    state = state.priced(level)
    result = newton(
        state.problem, level.target, state.u, tol=LOOSE_TOL, max_iter=LOOSE_STEPS, left=left
    )
    return state.at(result.u)


def _search_among_all(
    screener: Screener,
    goal: Goal,
    eps: float,
    state: State,
    wish: Wish,
    search: DegreeSearch,
    total: Effort,
) -> tuple[float, State]:
    """The best eps found, and the last candidates and potentials."""
    trial: float | None = eps
    # Among few points there is no later solve that could still reach the tolerance.
    allowed = goal.tol if search.scans else LOOSE_TOL
    while trial is not None and search.n_trials < MAX_TRIALS:
        level, effort = goal.at(trial), Effort()
        # After the first trial, the state is needed again if a larger eps does not fit into memory.
        # Very many pairs are not kept for that: beside others they might be what does not fit.
        spare = state.spare if search.n_trials == 0 else state.problem.n_pairs > MANY_PAIRS
        state = changed(state, spare=spare)
        try:
            state = approach(screener, level, state, effort)
            state = changed(state, spare=state.spare and search.n_trials == 0)
            reached = expected_degree(screener, state, wish)
        except MemoryLimitError:
            if search.n_trials == 0 or spare:
                raise
            reached = np.inf  # more neighbors than fit into memory: eps is too large
        total.add(effort)
        logger.debug("eps %.4g: mean degree %.2f", trial, reached)
        if math.isfinite(reached) and state.error(level) > allowed:
            trial = search.skip()
            continue
        search.keep(state, trial)
        trial = search.propose(trial, reached)
    return search.best_eps or eps, state


FIRST_LOG_STEP = 2.5  # largest first step in log eps
STEP_GROWTH = 2.0  # factor between steps in one direction until the goal is bracketed,
PROGRESS = 0.5  # unless the last step has divided the distance in log degree by two
JUMP_WIDTH = 1e-5  # a bracket of log eps narrower than this encloses a jump of the degree
# Multiples of the best eps to try if the goal cannot be reached.
RATIOS_BESIDE = tuple(s for r in (600.0, 30.0, 8.0, 3.0, 1.5) for s in (1.0 / r, r))
# The same for few points, from the largest: decreasing eps starts each solve near its solution.
SCANNED_RATIOS = tuple(10.0 ** np.linspace(3.0, -3.0, 61))
PLATEAU = 16  # equal degrees in a row below the center after which smaller eps are not tried
LEAST_DEGREE = 1e-3  # used in logarithms instead of zero


class DegreeSearch:
    """Secant search for log degree as a function of log eps, kept inside the bracket."""

    def __init__(
        self,
        degree: float,
        slope: float = USUAL_SLOPE,
        limits: tuple[float, float] = (0.0, np.inf),
        *,
        scan: bool = False,
    ) -> None:
        self.goal = math.log(degree)
        self.slope = slope
        self.n_trials = 0
        self.last_eps: float | None = None  # of the last trial, None if that failed
        self._misses: dict[float, float] = {}  # of the trials, by eps
        self._potentials: dict[float, FloatArray] = {}  # of the trials with few points, by eps
        self._confirmed: set[float] = set()
        self._last_miss, self._equal = np.inf, 0
        self._limits = _log(limits[0]), _log(limits[1])
        self._below = -np.inf  # largest log eps so far whose degree is too small
        self._above = np.inf
        self._last: tuple[float, float] | None = None
        self.scans = scan
        self._center: float | None = None  # of the ratios, once the search has ended at a jump
        self._ratios = list(SCANNED_RATIOS if scan else RATIOS_BESIDE)

    @property
    def best_eps(self) -> float | None:
        """The trial that came nearest to the goal, None before the first."""
        return min(self._misses, key=lambda eps: self._misses[eps], default=None)

    @property
    def best_miss(self) -> float:
        """How near that was."""
        return min(self._misses.values(), default=np.inf)

    def miss(self, degree: float) -> float:
        """Distance from the goal in log degree."""
        return abs(_log_degree(degree) - self.goal)

    def propose(self, eps: float, degree: float) -> float | None:
        """The next value to try; None if the goal is reached or nothing is left to try."""
        self.n_trials += 1
        self.last_eps = eps
        miss = self.miss(degree)
        self._misses[eps] = min(miss, self._misses.get(eps, np.inf))
        below = self._center is not None and eps < self._center
        self._equal = self._equal + 1 if below and miss == self._last_miss else 0
        self._last_miss = miss
        if miss <= DEGREE_TOL:
            return None
        if self._center is not None:
            ended = self.scans and self._equal >= PLATEAU
            return None if ended else self._beside_the_best()
        x, y = math.log(eps), _log_degree(degree)
        last_step, nearer = 0.0, False
        if self._last is not None:
            last_step, nearer = x - self._last[0], miss <= PROGRESS * abs(self._last[1] - self.goal)
        self._learn_slope(x, y)
        if y < self.goal:
            self._below = max(self._below, x)
        else:
            self._above = min(self._above, x)
        if math.isfinite(self._below) and math.isfinite(self._above):
            following = self._within_bracket(x + (self.goal - y) / self.slope)
        else:
            following = x + self._outward_step(y, 0.0 if nearer else last_step)
        following = min(max(following, self._limits[0]), self._limits[1])
        if abs(following - x) < JUMP_WIDTH or self._above - self._below < JUMP_WIDTH:
            return self._beside_the_best()
        return float(np.exp(following))

    def correct(self, eps: float, degree: float) -> bool:
        """Record the degree of a solution; whether another trial may be nearer than this.

        Beside a jump the degree of a trial is a matter of rounding. With few points other trials
        are worth a second look.
        """
        self._misses[eps] = self.miss(degree)
        self._confirmed.add(eps)
        return self.scans and self.best_eps not in self._confirmed

    def keep(self, state: State, eps: float) -> None:
        """Remember the potentials of a trial, if there are few points."""
        if self.scans:
            self._potentials[eps] = state.u

    def start(self, state: State, eps: float) -> State:
        """The state with the potentials that are remembered for an eps.

        At a tiny eps, Newton may not find them again from those of another eps.
        """
        return changed(state, u=self._potentials.get(eps, state.u))

    def accepts(self, degree: float) -> bool:
        """Whether a degree is near enough to the wanted one."""
        return self.miss(degree) <= DEGREE_TOL

    def skip(self) -> float | None:
        """The next value after one that could not be solved; smaller ones cannot be either."""
        scanning, self.last_eps = self._center is not None, None
        return None if scanning or not self.scans else self._beside_the_best()

    def _beside_the_best(self) -> float | None:
        """Values around the best one, for a goal that no eps reaches.

        Uneven masses limit the degree, and the largest degree is not at the largest eps. With few
        points the degree is not monotone at all.
        """
        if self.best_eps is None or not self._ratios:
            return None
        bracketed = math.isfinite(self._below) and math.isfinite(self._above)
        if bracketed and not self.scans:
            return None
        if self._center is None or not self.scans:
            self._center = self.best_eps
        return self._center * self._ratios.pop(0)

    def _learn_slope(self, x: float, y: float) -> None:
        if not math.isfinite(y):
            return
        if self._last is not None and x != self._last[0]:
            slope = (y - self._last[1]) / (x - self._last[0])
            self.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)
        self._last = x, y

    def _outward_step(self, y: float, last_step: float) -> float:
        """A step toward the unseen side of the goal; repeated steps grow to leave plateaus."""
        secant = (self.goal - y) / self.slope
        longest = max(FIRST_LOG_STEP, STEP_GROWTH * abs(last_step))
        size = min(abs(secant), longest)
        if self.n_trials > 1:
            size = max(size, STEP_GROWTH * abs(last_step))
        return float(np.copysign(size, secant))

    def _within_bracket(self, following: float) -> float:
        """The secant step, or the midpoint in every third trial: secants fail at jumps."""
        if self._below < following < self._above and self.n_trials % 3:
            return following
        return 0.5 * (self._below + self._above)


def _log(value: float) -> float:
    return math.log(value) if value > 0.0 else -math.inf


def _log_degree(degree: float) -> float:
    return math.log(max(degree, LEAST_DEGREE))
