"""Everything that is said about a solution, computed from its final plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.solvers.certificate import Certificate, Reason, Status
from otgraph.solvers.cg import conjugate_gradients
from otgraph.solvers.newton import marginal_error, newton, rounding_level
from otgraph.solvers.sampling import Missing, missing_pairs
from otgraph.solvers.state import Solution

if TYPE_CHECKING:
    from otgraph.costs.interface import TransportPlan
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Effort, Goal, State
    from otgraph.typing import FloatArray

# The feasible plan of the duality gap meets the marginals this closely, relative to the mass,
# or to rounding where that is coarser.
FEASIBLE_TOL = 1e-9
# Newton steps towards it: a few, which nearly always do, and more where they did not.
POLISH_STEPS = (3, 60)
# The linear system of the feasible plan: residual as a share of what is allowed, products, and
# solves in a row, because residuals fall in the Euclidean norm, of which one row may have most.
FEASIBLE_CG = 0.1
FEASIBLE_PRODUCTS = 300
FEASIBLE_SOLVES = 4


def certify(
    screener: Screener, goal: Goal, state: State, effort: Effort, n_screens: int
) -> Solution:
    """The plan of the final potentials, and what is proved about it."""
    if state.solved(goal):
        state, plan, gap = _polished(goal, state, effort)
    else:
        plan, gap = state.problem.plan(state.u, goal.eps), np.inf
    screen, violations = state.screen, 0
    if not state.covered:
        screen = screener.screen(state.u, np.zeros_like(state.u))
        violations = screen.pairs.n_pairs - state.problem.hessian(state.u).n_active // 2
    status, reason = _verdict(goal, state, effort, gap)
    missing = Missing(np.nan, np.nan)
    if status == Status.EXACT:
        missing = Missing()
    elif status == Status.EXACT_ON_CANDIDATES and screener.cost.samples:
        missing = missing_pairs(screener.cost, state.u, plan, goal.seed)
    certificate = Certificate(
        status=status,
        marginal_error=plan_error(plan, goal),
        duality_gap=gap,
        pairs_checked=max(screen.pairs_checked if screen else 0, missing.pairs_checked),
        violations=violations,
        n_steps=effort.steps,
        eps=goal.eps,
        n_screens=n_screens,
        missing_pairs=missing.estimate,
        missing_pairs_bound=missing.bound,
        n_edges=int(np.sum(plan.degrees)) // 2,
        reason=reason,
        history=tuple(effort.history),
    )
    return Solution(state, plan, certificate)


def _verdict(goal: Goal, state: State, effort: Effort, gap: float) -> tuple[Status, Reason]:
    if not state.solved(goal):
        return Status.NOT_CONVERGED, effort.reason or Reason.OUT_OF_STEPS
    if not np.isfinite(gap):
        return Status.NOT_CONVERGED, Reason.NO_FEASIBLE_PLAN
    complete = state.screen is not None and state.screen.complete
    return (Status.EXACT if complete else Status.EXACT_ON_CANDIDATES), Reason.NONE


def plan_error(plan: TransportPlan, goal: Goal) -> float:
    """Largest relative error of a row sum; mass that a hollow plan keeps does not count."""
    row_sums = plan.row_sums if goal.self_loops else plan.row_sums - plan.loops
    return marginal_error(row_sums, goal.mass)


def _polished(goal: Goal, state: State, effort: Effort) -> tuple[State, TransportPlan, float]:
    """Potentials whose plan is feasible, or nearly, with that plan and its duality gap.

    Newton converges quadratically at the end: one step, which costs less than finding a
    feasible plan nearby.
    """
    gap = np.inf
    for max_iter in POLISH_STEPS:
        tol = max(FEASIBLE_TOL, rounding_level(state.problem, state.u, goal.target))
        result = newton(state.problem, goal.target, state.u, tol=tol, max_iter=max_iter)
        better = replace(state, u=result.u)
        if better.solved(goal):
            state = better
            effort.steps += result.n_steps
            effort.history.append(result.errors)
        plan = state.problem.plan(state.u, goal.eps)
        gap = duality_gap(plan, state.u, goal.eps, goal.mass, tol)
        if np.isfinite(gap):
            break
    return state, plan, gap


def duality_gap(
    plan: TransportPlan,
    u: FloatArray,
    eps: float,
    mass: FloatArray,
    tol: float = FEASIBLE_TOL,
) -> float:
    """Primal value of a feasible plan minus the dual value of ``u``, relative to the former.

    The plan of ``u`` misses the marginals by the tolerance. Scaled to
    pi_ij (1 + w_i + w_j), with w from one linear system, it meets them to ``tol`` and stays
    non-negative. Infinite where such a plan was not found.
    """
    row_sums = plan.row_sums
    diagonal = row_sums + plan.loops
    if np.any(diagonal <= 0.0):
        return np.inf
    w, missing = np.zeros_like(mass), mass - row_sums
    for _ in range(FEASIBLE_SOLVES):  # the residual of each is what the next one corrects
        missed = float(np.max(np.abs(missing) / mass))
        if missed <= tol:
            break
        step, _ = conjugate_gradients(
            lambda v: plan.product(v, diagonal),
            diagonal,
            missing,
            rtol=FEASIBLE_CG * tol / missed,
            max_products=FEASIBLE_PRODUCTS,
            units=mass,
        )
        w += step
        missing = mass - row_sums - plan.product(w, diagonal)
    if np.max(np.abs(missing) / mass) > tol or np.min(w) < -0.5:
        return np.inf
    primal = plan.primal_value(w, eps)
    dual = 2.0 * float(np.sum(u * mass)) - 0.5 * eps * plan.square_sum
    return (primal - dual) / max(abs(primal), abs(dual), np.finfo(float).tiny)
