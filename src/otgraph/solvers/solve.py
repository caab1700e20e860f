"""The one loop: candidates, Newton, screen, grow and prune, certificate.

    candidates -> Newton to a loose tolerance -> screen all pairs with slack
               -> Newton to the tolerance -> did u stay below the screened bound? -> done

A screen with the bound ``upper`` finds every pair that any u <= upper could use. It therefore
adds what was missing and drops what is idle in one go, and proves optimality for the final u
as long as that stays below the bound.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import InfeasibleError, MemoryLimitError
from otgraph.solvers.certificate import Certificate, Status
from otgraph.solvers.cg import conjugate_gradients
from otgraph.solvers.newton import newton
from otgraph.solvers.sampling import excess_ratio

if TYPE_CHECKING:
    from otgraph.costs import Cost, Screen
    from otgraph.costs.interface import PairSet, Restricted, TransportPlan
    from otgraph.solvers.screening import Screener
    from otgraph.typing import BoolArray, FloatArray, LongArray

logger = logging.getLogger("otgraph")

# Marginal error at which the potentials are good enough to choose pairs by.
LOOSE_TOL = 0.05
LOOSE_STEPS = 20
MAX_ROUNDS = 40
# Rounds that drop idle pairs. After these candidates only grow, which ends the loop: potentials
# of a bipartite component are not unique, and could wander off again and again.
PRUNING_ROUNDS = 2
# Candidates taken over from another eps are cut down if they are this many times the active ones.
IDLE_FACTOR = 3.0
# Rounds of a direct attempt; after these eps comes down from a larger value by this factor, at
# most so many times, from where it equals the costs of all but the farthest neighbors.
ROUNDS_BEFORE_DESCENT = 6
DESCENT_RATIO = 3.0
MAX_RISES = 12
FAR_QUANTILE = 0.99
PATH_TOL = 1e-3  # of the larger eps
# A first screen whose rows would sum to more than this multiple of their targets is put off
# until candidates with more neighbors have brought the potentials down.
TOLERATED_EXCESS = 4.0
MORE_NEIGHBORS = 3
# The bound is raised above u by this share of the mean excess eps·m_i/degree_i of a row.
# In d dimensions that multiplies the number of pairs by at most e^SLACK.
SLACK = 0.5
# Rows of few neighbors change more from one round to the next; extra candidates are cheap there.
EXTRA_SLACK = 4.0
START_SWEEPS = 2
# Price of mass that finds no partner on the candidates, in units of what a row's candidates
# cost; raised by the second factor while it is still used although no pair is missing.
OVERFLOW_PRICE = 2.0
OVERFLOW_GROWTH = 8.0
MAX_OVERFLOW_RAISES = 7  # to four million times what the candidates cost
RAISES_BEFORE_WIDENING = 3
NAMED_POINTS = 10  # in an error message
# The feasible plan of the duality gap meets the marginals this closely, relative to the mass.
FEASIBLE_TOL = 1e-9
POLISH_STEPS = 3
FEASIBLE_CG = 0.1  # the linear residual, as a share of what is allowed
FEASIBLE_PRODUCTS = 300
# Linear residuals fall in the Euclidean norm, of which a row may have most: a few solves.
FEASIBLE_SOLVES = 4


@dataclass(frozen=True)
class Start:
    """Candidates and potentials to begin with.

    ``k`` is the number of nearest neighbors that the candidates are, None if they are others;
    ``upper`` and ``screen`` are those of the screen that they come from, if they do.
    """

    problem: Restricted
    u: FloatArray
    k: int | None = None
    upper: FloatArray | None = None
    screen: Screen | None = None


@dataclass(frozen=True)
class Solution:
    """Potentials, the plan they give, and what was proved about them."""

    u: FloatArray
    plan: TransportPlan
    certificate: Certificate
    problem: Restricted
    upper: FloatArray | None = None  # bound of the last screen
    screen: Screen | None = None

    @property
    def start(self) -> Start:
        """Where the solution of a similar problem may begin."""
        return Start(self.problem, self.u, upper=self.upper, screen=self.screen)

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors, a point itself not counted."""
        return self.plan.mean_degree


def start_on(
    cost: Cost,
    pairs: PairSet,
    target: FloatArray,
    *,
    self_loops: bool,
    u0: FloatArray | None = None,
    k: int | None = None,
) -> Start:
    """First candidates, and potentials on them that are not far off."""
    diagonal = np.zeros(cost.n) if self_loops else np.full(cost.n, np.inf)
    problem = cost.restrict(pairs, diagonal)
    if not self_loops:
        problem = problem.with_diagonal(OVERFLOW_PRICE * (problem.largest_costs() + target))
    return Start(problem, start_potentials(problem, target) if u0 is None else u0, k)


def solve(
    screener: Screener,
    eps: float,
    mass: FloatArray,
    *,
    self_loops: bool,
    tol: float,
    max_steps: int,
    start: Start,
) -> Solution:
    """Solve to ``tol`` among all pairs that the cost screens.

    ``start`` comes from `start_on`, or from the solution of a similar problem.
    """
    run = approach(
        screener, eps, mass, self_loops=self_loops, tol=tol, max_steps=max_steps, start=start
    )
    return run.solution()


def approach(
    screener: Screener,
    eps: float,
    mass: FloatArray,
    *,
    self_loops: bool,
    tol: float,
    max_steps: int,
    start: Start,
) -> Run:
    """The same up to the potentials: the plan and what is proved of it are not worked out."""
    run = Run(screener, eps, mass, start, self_loops=self_loops, tol=tol, max_steps=max_steps)
    run.rounds_allowed = ROUNDS_BEFORE_DESCENT
    run.go()
    if not run.solved:
        _refuse_infeasible(screener.cost, mass, self_loops=self_loops)
    if not run.solved and run.steps < max_steps:
        run = _descend(run)
    return run


def _refuse_infeasible(cost: Cost, mass: FloatArray, *, self_loops: bool) -> None:
    """Raise where the allowed pairs cannot carry the masses; only given candidates can be so."""
    if not self_loops and (unplaceable := cost.unplaceable(mass)).any():
        raise InfeasibleError(_infeasible_message(cost.order[unplaceable]))


def _descend(failed: Run) -> Run:
    """Come from larger eps, whose solutions have more neighbors and are easier to find.

    As eps falls towards zero the plan becomes a matching and the active pairs a forest, on
    which Newton steps from afar are poor. Each solution starts the next.
    """
    steps = failed.steps
    far = float(np.quantile(failed.problem.largest_costs(), FAR_QUANTILE))
    rises = int(np.ceil(np.log(max(far / failed.eps, 1.0)) / np.log(DESCENT_RATIO)))
    rises = min(max(rises, 1), MAX_RISES)
    top = DESCENT_RATIO**rises * failed.target
    start = Start(failed.problem, start_potentials(failed.problem, top))
    for rise in range(rises, -1, -1):
        run = failed.again(DESCENT_RATIO**rise * failed.eps, start, steps, last=rise == 0)
        try:
            run.go()
        except MemoryLimitError:
            if rise == 0:
                raise
            continue  # more neighbors than fit: begin lower
        steps, start = run.steps, Start(run.problem, run.u)
    return run


class Run:
    """One solve in progress: the current candidates, potentials and what is known of them."""

    def __init__(
        self,
        screener: Screener,
        eps: float,
        mass: FloatArray,
        start: Start,
        *,
        self_loops: bool,
        tol: float,
        max_steps: int,
    ) -> None:
        self.screener, self.cost = screener, screener.cost
        self.problem, self.u = start.problem, start.u
        self.k = start.k if self.cost.samples else None
        self.eps, self.mass, self.target = eps, mass, eps * mass
        self.self_loops, self.tol, self.max_steps = self_loops, tol, max_steps
        self.upper = start.upper  # every u <= upper is covered by the candidates
        self.last_screen = start.screen
        self.error = np.inf
        self.steps = self.rounds = self.raises = 0
        self.history: list[tuple[float, ...]] = []
        self.first_pass = screener.n_passes
        self.rounds_allowed = MAX_ROUNDS

    def again(self, eps: float, start: Start, steps: int, *, last: bool) -> Run:
        """The same problem for another eps, loosely unless it is the last."""
        run = Run(
            self.screener,
            eps,
            self.mass,
            start,
            self_loops=self.self_loops,
            tol=self.tol if last else max(PATH_TOL, self.tol),
            max_steps=self.max_steps,
        )
        run.steps, run.first_pass = steps, self.first_pass
        run.history = self.history
        return run

    def go(self) -> None:
        """Improve, and change the candidates, until solved or out of steps or rounds."""
        if self.covered and self.problem.n_pairs > self._idle_limit():
            self.screen()
        while self.rounds < self.rounds_allowed:
            self.improve()
            if self.finished:
                return
            if self.covered:
                self.raise_price()
            elif self.needs_more_neighbors():
                self.take_more_neighbors()
            else:
                self.screen()

    def _idle_limit(self) -> float:
        return 0.5 * IDLE_FACTOR * self.problem.hessian(self.u).n_active

    def improve(self) -> None:
        """Newton on the candidates: loosely, and to the tolerance once nothing is missing."""
        self._newton(max(LOOSE_TOL, self.tol), LOOSE_STEPS)
        if self.covered and not self.overflow.any():
            self._newton(self.tol, self.max_steps)

    def _newton(self, tol: float, max_steps: int) -> None:
        left = min(max_steps, self.max_steps - self.steps)
        with self.cost.workers.error_bar("solve", self.tol) as bar:
            result = newton(
                self.problem, self.target, self.u, tol=tol, max_steps=left, on_step=bar.update
            )
        self.u, self.error = result.u, result.error
        self.steps += result.n_steps
        self.history.append(result.errors)
        logger.debug(
            "eps %.3g: %d pairs, %d steps, %d products, marginal error %.1e",
            self.eps, self.problem.n_pairs, self.steps, result.n_products, self.error,
        )  # fmt: skip

    @property
    def start(self) -> Start:
        """Where the solution of a similar problem may begin."""
        return Start(self.problem, self.u, upper=self.upper, screen=self.last_screen)

    @property
    def mean_degree(self) -> float:
        """Mean number of neighbors at the current potentials."""
        return self.problem.hessian(self.u).n_active / len(self.u)

    @property
    def covered(self) -> bool:
        """Whether no pair outside the candidates is worth using."""
        return self.upper is not None and bool(np.all(self.u <= self.upper))

    @property
    def overflow(self) -> BoolArray:
        """Points whose mass does not find enough partners on the candidates."""
        if self.self_loops:
            return np.zeros(len(self.u), dtype=np.bool_)
        return np.asarray(2.0 * self.u > self.problem.diagonal)

    @property
    def finished(self) -> bool:
        """Solved, or out of steps."""
        return self.steps >= self.max_steps or (self.covered and not self.overflow.any())

    def needs_more_neighbors(self) -> bool:
        """Whether a screen at these potentials would return a large part of all pairs."""
        if self.upper is not None or self.k is None or self.k >= self.cost.n - 1:
            return False
        return excess_ratio(self.cost, self.u, self.target) > TOLERATED_EXCESS

    def take_more_neighbors(self) -> None:
        """Begin again on more nearest neighbors."""
        assert self.k is not None  # asked before
        self.k = min(MORE_NEIGHBORS * self.k, self.cost.n - 1)
        pairs = self.cost.neighbors(self.k)
        start = start_on(self.cost, pairs, self.target, self_loops=self.self_loops)
        self.problem, self.u = start.problem, start.u

    def screen(self) -> None:
        """New candidates: all that a solution not far above the current one could use."""
        degrees = np.maximum(self.problem.hessian(self.u).degrees, 1.0)
        slack = 0.5 * (SLACK + EXTRA_SLACK / degrees) * self.target / degrees
        self.rounds += 1
        prune = self.rounds <= PRUNING_ROUNDS
        diagonal = self.problem.diagonal
        del self.problem, self.last_screen  # room for the new pairs
        self.upper, self.last_screen = self.screener.screen(self.u, slack, prune=prune)
        self.problem = self.cost.restrict(self.last_screen.pairs, diagonal)

    def raise_price(self) -> None:
        """No pair is missing and yet mass is left over: make leaving it dearer."""
        overflow = self.overflow
        self.raises += 1
        if self.raises > MAX_OVERFLOW_RAISES:
            raise InfeasibleError(_infeasible_message(self.cost.order[overflow]))
        factor = np.where(overflow, OVERFLOW_GROWTH, 1.0)
        self.problem = self.problem.with_diagonal(self.problem.diagonal * factor)
        if self.raises % RAISES_BEFORE_WIDENING == 0 and self.cost.widen():
            self.screener.forget()
            self.upper = None

    def solution(self) -> Solution:
        """The plan and its certificate."""
        if self.solved and self.error > FEASIBLE_TOL:
            self._polish()
        plan = self.problem.plan(self.u, self.eps)
        gap = duality_gap(plan, self.u, self.eps, self.mass)
        violations = 0 if self.covered else self._count_violations()
        screen = self.last_screen
        status = self._status()
        certificate = Certificate(
            status=status,
            marginal_error=self.error,
            duality_gap=gap,
            pairs_checked=screen.pairs_checked if screen else 0,
            violations=violations,
            n_steps=self.steps,
            eps=self.eps,
            n_screens=self.screener.n_passes - self.first_pass,
            history=tuple(self.history),
        )
        return Solution(self.u, plan, certificate, self.problem, self.upper, self.last_screen)

    def _polish(self) -> None:
        """Meet the marginals so closely that the plan itself is feasible.

        Newton converges quadratically at the end: one step, which costs less than finding a
        feasible plan nearby.
        """
        u, error = self.u, self.error
        self._newton(FEASIBLE_TOL, POLISH_STEPS)
        if not self.solved:
            self.u, self.error = u, error

    @property
    def solved(self) -> bool:
        """Whether marginals hold on candidates that miss nothing."""
        return self.covered and not self.overflow.any() and self.error <= self.tol

    def _status(self) -> Status:
        if not self.solved:
            return Status.NOT_CONVERGED
        complete = self.last_screen is not None and self.last_screen.complete
        return Status.EXACT if complete else Status.EXACT_ON_CANDIDATES

    def _count_violations(self) -> int:
        """Pairs outside the candidates that the current potentials would use."""
        _, self.last_screen = self.screener.screen(self.u, np.zeros_like(self.u))
        wanted = self.last_screen.pairs.n_pairs
        return wanted - self.problem.hessian(self.u).n_active // 2


def start_potentials(problem: Restricted, target: FloatArray) -> FloatArray:
    """Potentials with every row sum at least its target, and not far above.

    Row sums are convex functions of u, so that Newton steps from above stay above and are
    taken in full, while from below the line search cuts them short.
    """
    rows = np.arange(problem.n)
    u = problem.start(target)
    for _ in range(START_SWEEPS):
        u = 0.5 * (u + problem.lift(u, rows, target))
    return np.maximum(u, problem.lift(u, rows, target))


def duality_gap(plan: TransportPlan, u: FloatArray, eps: float, mass: FloatArray) -> float:
    """Primal value of a feasible plan minus the dual value of ``u``, relative to the former.

    The plan of ``u`` misses the marginals by the tolerance. Scaled to
    pi_ij (1 + w_i + w_j), with w from one linear system, it meets them to rounding and stays
    non-negative. Infinite where such a plan was not found.
    """
    row_sums = plan.row_sums
    diagonal = row_sums + plan.loops
    if np.any(diagonal <= 0.0):
        return np.inf
    w, missing = np.zeros_like(mass), mass - row_sums
    for _ in range(FEASIBLE_SOLVES):  # the residual of each is what the next one corrects
        missed = float(np.max(np.abs(missing) / mass))
        if missed <= FEASIBLE_TOL:
            break
        step, _ = conjugate_gradients(
            lambda v: plan.product(v, diagonal),
            diagonal,
            missing,
            rtol=FEASIBLE_CG * FEASIBLE_TOL / missed,
            max_products=FEASIBLE_PRODUCTS,
        )
        w += step
        missing = mass - row_sums - plan.product(w, diagonal)
    if np.max(np.abs(missing) / mass) > FEASIBLE_TOL or np.min(w) < -0.5:
        return np.inf
    primal = plan.primal_value(w, eps)
    dual = 2.0 * float(np.sum(u * mass)) - 0.5 * eps * plan.square_sum
    return (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)


def _infeasible_message(points: LongArray) -> str:
    named = ", ".join(str(i) for i in np.sort(points)[:NAMED_POINTS])
    more = "" if len(points) <= NAMED_POINTS else f" and {len(points) - NAMED_POINTS} more"
    return (
        f"The candidate pairs cannot carry the masses: {len(points)} point(s) do not find enough "
        f"partners (points {named}{more}). Give these points more candidates, change `mass`, or "
        "pass `self_loops=True`."
    )
