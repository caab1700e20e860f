"""The certificate of a solution, computed from its final plan."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.newton import FEASIBLE_TOL
from otgraph.costs.interface import marginal_error
from otgraph.solvers.certificate import Certificate, Reason, Status
from otgraph.solvers.cg import conjugate_gradients, residual_weights
from otgraph.solvers.newton import newton, rounding_level
from otgraph.solvers.sampling import Missing, missing_pairs
from otgraph.solvers.state import Solution

if TYPE_CHECKING:
    from otgraph.costs.interface import TransportPlan
    from otgraph.solvers.screening import Screener
    from otgraph.solvers.state import Effort, Goal, State
    from otgraph.typing import FloatArray

# If points may hold mass back, every plan is feasible, and the gap alone tells a good one. An error
# b of a row sum costs b² times the outlier cost, which may be many orders larger than all costs:
# then row sums within the tolerance are not enough.
LARGEST_SOFT_GAP = 1e-6
# Limits of Newton steps toward that plan: a few are nearly always enough. At tiny eps the active
# pairs are a forest that changes in every step, and a few problems in 100 000 need hundreds.
POLISH_STEPS = (3, 60, 600)
# Linear system of the feasible plan. CG measures residuals in the Euclidean norm, in which one
# row may dominate, so the system is solved again for what is left.
FEASIBLE_CG = 0.1  # residual, as a share of the allowed error
FEASIBLE_PRODUCTS = 300  # limit of products per solve
FEASIBLE_SOLVES = 4  # limit of solves
TINY = float(np.finfo(np.float64).tiny)


def certify(screener: Screener, goal: Goal, state: State, effort: Effort) -> Solution:
    """The plan of the final potentials, and what is proved about it."""
    # Where points hold mass back, potentials are unique.
    if not goal.soft and (by := screener.cost.imbalance(state.u)) is not None:
        state = state.moved(by)
    solved = state.solved(goal)
    if solved:
        state, plan, gap = _polished(screener, goal, state, effort)
    else:
        plan, gap = state.plan(goal), np.inf
    screen, violations = state.screen, 0
    if not state.covered:
        screen = screener.screen(state.u, np.zeros_like(state.u))
        violations = screen.pairs.n_pairs - state.problem.hessian(state.u).n_active // 2
    status, reason = _verdict(goal, state, effort, gap, solved=solved)
    missing = Missing(np.nan, np.nan)
    if status == Status.EXACT:
        missing = Missing()
    elif status == Status.EXACT_ON_CANDIDATES and screener.cost.has_other_pairs:
        missing = missing_pairs(screener.cost, goal, state.u, plan)
    certificate = Certificate(
        status=status,
        marginal_error=plan_error(plan, goal, state.u),
        duality_gap=gap,
        pairs_checked=max(screen.pairs_checked if screen else 0, missing.pairs_checked),
        violations=violations,
        n_steps=effort.steps,
        eps=goal.eps,
        n_screens=effort.screens,
        missing_pairs=missing.estimate,
        missing_pairs_bound=missing.bound,
        n_edges=plan.n_entries // 2,
        outlier_cost=goal.outlier_cost,
        reason=reason,
        history=tuple(effort.history),
    )
    return Solution(state, plan, certificate)


def _verdict(
    goal: Goal, state: State, effort: Effort, gap: float, *, solved: bool
) -> tuple[Status, Reason]:
    if not solved:
        return Status.NOT_CONVERGED, effort.reason or Reason.OUT_OF_STEPS
    if not _proves(goal, gap):
        rounding = goal.soft and np.isfinite(gap)
        return Status.NOT_CONVERGED, Reason.ROUNDING if rounding else Reason.NO_FEASIBLE_PLAN
    complete = state.screen is not None and state.screen.complete
    return (Status.EXACT if complete else Status.EXACT_ON_CANDIDATES), Reason.NONE


def plan_error(plan: TransportPlan, goal: Goal, u: FloatArray) -> float:
    """Largest relative error of a row sum; without self-loops the diagonal does not count.

    What a point holds back counts like what it shares.
    """
    row_sums = plan.row_sums if goal.self_loops else plan.row_sums - plan.loops
    return marginal_error(row_sums + goal.held_back(u), goal.mass)


def _polished(
    screener: Screener, goal: Goal, state: State, effort: Effort
) -> tuple[State, TransportPlan, float]:
    """Potentials with a more accurate plan, that plan, and the duality gap.

    Newton converges quadratically at the end. One more step usually makes the plan feasible,
    and costs less than solving for a feasible plan nearby.
    """
    start = state
    for max_iter in POLISH_STEPS:
        tol = FEASIBLE_TOL
        if goal.soft or start.error(goal) > tol or max_iter > POLISH_STEPS[0]:
            level = rounding_level(start.problem, start.u, goal.target)
            tol = level if goal.soft else max(tol, level)
        result = newton(start.problem, goal.target, start.u, tol=tol, max_iter=max_iter)
        better = start.at(result.u)
        if goal.soft and not better.complete(goal):
            # Where mass is held back at a high price, small errors move potentials far, beyond
            # the bound of the last screen. (Imported here: rounds imports this.)
            from otgraph.solvers.rounds import screened

            start = better = screened(screener, goal, better, prune=False)
        if better.solved(goal):
            start = state = better
            effort.steps += result.n_steps
            effort.history.append(result.errors)
        plan = state.plan(goal)  # of the active pairs that Newton has found
        gap = duality_gap(plan, state.u, goal, tol)
        if _proves(goal, gap):
            break
    return state, plan, gap


def _proves(goal: Goal, gap: float) -> bool:
    """Whether a gap belongs to a solution; see `LARGEST_SOFT_GAP`."""
    return gap <= LARGEST_SOFT_GAP if goal.soft else math.isfinite(gap)


def duality_gap(plan: TransportPlan, u: FloatArray, goal: Goal, tol: float = FEASIBLE_TOL) -> float:
    """Primal value of a feasible plan minus the dual value of ``u``, relative to the former.

    The plan of ``u`` meets the marginals only within the solver's tolerance. It is scaled to
    pi_ij (1 + w_i + w_j) to meet them. The result is infinite if this fails or if an entry could
    become negative.
    """
    eps, mass = goal.eps, goal.mass
    w = _within_masses(plan, mass) if goal.soft else _on_masses(plan, mass, tol)
    if w is None or w.min() < -0.5:
        return np.inf
    primal = plan.primal_value(w, eps)
    dual = 2.0 * float((u * mass).sum()) - 0.5 * eps * plan.square_sum
    if goal.soft:
        row_sums = plan.row_sums
        held = mass - row_sums - plan.product(w, row_sums + plan.loops)
        primal += goal.highest * float(np.sum(held**2 / mass))
        dual -= goal.highest * float(np.sum(goal.held_back(u) ** 2 / mass))
    return (primal - dual) / max(abs(primal), abs(dual), TINY)


def _within_masses(plan: TransportPlan, mass: FloatArray) -> FloatArray:
    """Factors that keep row sums r_i up to the masses: r_i (1 + w_i) = m_i x (2 - x) <= m_i."""
    return -np.maximum(plan.row_sums / mass - 1.0, 0.0)


def _on_masses(plan: TransportPlan, mass: FloatArray, tol: float) -> FloatArray | None:
    """Factors that bring row sums to the masses within ``tol``, from a linear system."""
    row_sums = plan.row_sums
    diagonal = row_sums + plan.loops
    if diagonal.min() <= 0.0:
        return None
    w, missing = np.zeros_like(mass), mass - row_sums
    for _ in range(FEASIBLE_SOLVES):  # each solve corrects the residual of the one before
        missed = float((np.abs(missing) / mass).max())
        if missed <= tol:
            break
        step, _ = conjugate_gradients(
            lambda v: plan.product(v, diagonal),
            diagonal,
            missing,
            rtol=FEASIBLE_CG * tol / missed,
            max_products=FEASIBLE_PRODUCTS,
            weights=residual_weights(mass),
        )
        w += step
        missing = mass - row_sums - plan.product(w, diagonal)
    else:
        missed = float((np.abs(missing) / mass).max())
    return w if missed <= tol else None
