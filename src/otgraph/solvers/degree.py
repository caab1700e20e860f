"""Finding the regularization that gives a wanted mean degree."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.solvers.newton import newton
from otgraph.solvers.solve import LOOSE_STEPS, LOOSE_TOL, Start, approach, solve, start_on

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import PairSet
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.solve import Solution
    from otgraph.typing import FloatArray

logger = logging.getLogger("otgraph")

# How close the degree must come on the first candidates, and in the end.
LOOSE_DEGREE = 0.02
DEGREE_TOL = 0.02
MAX_LOOSE_TRIALS = 8
MAX_TRIALS = 8
# Marginal error at which the degree is known to a fraction of a percent.
TRIAL_TOL = 0.01
# A search that has no slope yet assumes degree ~ eps^SLOPE; the law is eps^(d/(d+2)), and slopes
# outside the bounds come from jumps of the degree.
SLOPE = 0.7
SMALLEST_SLOPE, LARGEST_SLOPE = 0.1, 2.0
# Relative to the costs: below, the row sums would be rounding errors.
SMALLEST_EPS = 1e-8
# Changes of log eps beyond this are not trusted.
MAX_LOG_STEP = 2.5


def solve_for_degree(
    screener: Screener,
    degree: float,
    mass: FloatArray,
    *,
    self_loops: bool,
    tol: float,
    max_steps: int,
    n_candidates: int,
) -> Solution:
    """The solution whose mean degree is closest to ``degree``, to about one percent.

    A rough search on the first candidates alone costs a few loose solves; then solves among all
    pairs, each warm-started, correct what the first candidates had missed. Only the last one goes
    to the tolerance.
    """
    pairs = screener.cost.neighbors(n_candidates)
    eps, slope = row_law(screener.cost, pairs, degree, mass)
    start = start_on(screener.cost, pairs, eps * mass, self_loops=self_loops)
    floor = SMALLEST_EPS * float(np.median(start.problem.largest_costs()))
    eps, start = _search_on_candidates(
        start, max(eps, floor), mass, DegreeSearch(degree, slope, floor)
    )
    search = DegreeSearch(degree, slope, floor)
    best, steps = (np.inf, eps), 0
    for _ in range(MAX_TRIALS):
        run = approach(
            screener, eps, mass,
            self_loops=self_loops, tol=max(tol, TRIAL_TOL), max_steps=max_steps, start=start,
        )  # fmt: skip
        start, reached = run.start, run.mean_degree
        steps += run.steps
        logger.debug("eps %.4g: mean degree %.2f", eps, reached)
        if run.error > LOOSE_TOL:
            break
        best = min(best, (search.miss(reached), eps))
        following = search.propose(eps, reached)
        if search.miss(reached) <= DEGREE_TOL or following is None:
            break
        eps = following
    del run  # its candidates are those of `start`, or outdated
    solution = solve(
        screener, best[1], mass,
        self_loops=self_loops, tol=tol, max_steps=max_steps, start=start,
    )  # fmt: skip
    certificate = replace(
        solution.certificate,
        n_steps=steps + solution.certificate.n_steps,
        n_screens=screener.n_passes,
    )
    return replace(solution, certificate=certificate)


def row_law(cost: Cost, pairs: PairSet, degree: float, mass: FloatArray) -> tuple[float, float]:
    """The eps for which the median row, by itself, would have the wanted degree, and the slope.

    The slope d log degree / d log eps is that between half the degree and the degree. It is
    d/(d + 2) in d dimensions, unknown as these may be.
    """
    problem = cost.restrict(pairs, np.full(cost.n, np.inf))
    rank = max(1, round(degree))
    half = max(1, rank // 2)
    eps = _median_positive(problem.row_excess(rank) / mass)
    rise = np.log(eps / _median_positive(problem.row_excess(half) / mass))
    slope = float(np.log(rank / half) / rise) if rise > 0.0 and rank > half else SLOPE
    return eps, min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)


def _median_positive(values: FloatArray) -> float:
    positive = values[values > 0.0]
    return float(np.median(positive)) if len(positive) else 1.0


def _search_on_candidates(
    start: Start, eps: float, mass: FloatArray, search: DegreeSearch
) -> tuple[float, Start]:
    """Loose solves on fixed candidates; returns eps and where it got to.

    Few candidates saturate, so that the slope seen here says nothing about all pairs.
    """
    for _ in range(MAX_LOOSE_TRIALS):
        problem = start.problem
        result = newton(problem, eps * mass, start.u, tol=LOOSE_TOL, max_steps=LOOSE_STEPS)
        start = Start(problem, result.u)
        reached = problem.hessian(result.u).n_active / problem.n
        logger.debug("eps %.4g: mean degree %.2f on the first candidates", eps, reached)
        following = search.propose(eps, reached)
        if search.miss(reached) <= LOOSE_DEGREE or following is None:
            break
        eps = following
    return eps, start


class DegreeSearch:
    """Secant steps for log degree as a function of log eps, kept within what is known."""

    def __init__(self, degree: float, slope: float = SLOPE, floor: float = 0.0) -> None:
        self.goal = float(np.log(degree))
        self.slope = slope
        self.floor = floor
        self._below = -np.inf  # largest log eps seen whose degree is too small
        self._above = np.inf
        self._last: tuple[float, float] | None = None

    def miss(self, degree: float) -> float:
        """Relative distance from the goal."""
        return abs(float(np.log(max(degree, 1e-3))) - self.goal)

    def propose(self, eps: float, degree: float) -> float | None:
        """The next value to try, None when it would not differ."""
        x, y = float(np.log(eps)), float(np.log(max(degree, 1e-3)))
        if self._last is not None and x != self._last[0]:
            slope = (y - self._last[1]) / (x - self._last[0])
            self.slope = min(max(slope, SMALLEST_SLOPE), LARGEST_SLOPE)
        self._last = x, y
        if y < self.goal:
            self._below = max(self._below, x)
        else:
            self._above = min(self._above, x)
        step = min(max((self.goal - y) / self.slope, -MAX_LOG_STEP), MAX_LOG_STEP)
        following = x + step
        if not self._below < following < self._above:
            following = 0.5 * (self._below + self._above)
        if not np.isfinite(following) or abs(following - x) < 1e-6:
            return None
        if np.exp(following) < self.floor:
            return None
        return float(np.exp(following))
