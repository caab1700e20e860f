"""Semismooth Newton on the marginals of a restricted problem.

Minimizes F(u) = 1/4 sum (u_i + u_j - c_ij)_+² - eps <u, m>, whose gradient is
eps (row sums of the plan - m) and whose generalized Hessian diag(sigma 1) + sigma lives on the
active pairs. F is convex and piecewise quadratic, so that once the active pairs are right
one step is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph.solvers.certificate import Reason
from otgraph.solvers.cg import conjugate_gradients

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs.interface import Evaluation, Restricted
    from otgraph.typing import FloatArray

# Line search: share of the predicted decrease that a step must bring, share of the slope that
# may be left at its end, factor by which a step grows, trials before it gives up.
ARMIJO = 1e-4
CURVATURE = 0.9
EXPANSION = 8.0
MAX_TRIALS = 20
# Newton gives up after this many steps in which neither the largest error nor the misplaced
# mass was smaller than ever before.
PATIENCE = 60
# The linear residual follows this share of the marginal error, between two ends: far from the
# solution an accurate direction is wasted.
CG_SHARE = 0.1
LOOSEST_CG = 0.1
TIGHTEST_CG = 1e-8
MAX_PRODUCTS = 500
# The Hessian's diagonal is shifted by this share of itself times the share of the mass that is
# misplaced. The shift bounds the step where the Hessian is singular (a component of the active
# pairs is bipartite), and vanishes fast enough to leave the convergence quadratic.
RIDGE = 0.03
SMALLEST_RIDGE = 1e-9
# A decrease of F below this multiple of its own terms is lost in rounding.
ROUNDING = 1e-13
# A row sum of u_i + u_j - c_ij is off by a few units of rounding of its terms.
ROW_SUM_ROUNDING = 4.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class NewtonResult:
    """Potentials on a restricted problem; ``errors`` are those at the start and after each step.

    ``reason`` says why the tolerance was not reached, if it was not.
    """

    u: FloatArray
    error: float
    n_steps: int
    n_products: int
    errors: tuple[float, ...]
    reason: Reason


def marginal_error(row_sums: FloatArray, target: FloatArray) -> float:
    """Largest relative deviation of the row sums."""
    return float(np.max(np.abs(row_sums - target) / target))


def rounding_level(problem: Restricted, u: FloatArray, target: FloatArray) -> float:
    """Largest relative error of a row sum that rounding can cause: no tolerance is below it."""
    sizes = problem.hessian(u).product(np.abs(u))  # sum of |u_i| + |u_j| over the active pairs
    return float(np.max(ROW_SUM_ROUNDING * sizes / target))


def newton(
    problem: Restricted,
    target: FloatArray,
    u: FloatArray,
    *,
    tol: float,
    max_iter: int,
    on_step: Callable[[float], None] | None = None,
) -> NewtonResult:
    """Bring all row sums of (u_i + u_j - c_ij)_+ to ``target`` within ``tol``.

    Ends at the best potentials met. ``on_step`` is told the marginal error after every step.
    """
    now = problem.evaluate(u)
    error = marginal_error(now.row_sums, target)
    steps = products = 0
    errors = [error]
    best, best_error, least_misplaced, since_best = u, error, np.inf, 0
    reason = Reason.NONE
    while error > tol:
        if steps >= max_iter:
            reason = Reason.OUT_OF_STEPS
            break
        direction, count = _direction(problem, target, u, now, error)
        products += count
        advanced = _line_search(problem, target, u, now, direction)
        steps += 1
        since_best += 1
        if advanced is None or since_best > PATIENCE:
            reason = Reason.NO_PROGRESS
            break
        u, now = advanced
        error = marginal_error(now.row_sums, target)
        errors.append(error)
        misplaced = _misplaced(now, target)
        if error < best_error:
            best, best_error, since_best = u, error, 0
        if misplaced < least_misplaced:
            least_misplaced, since_best = misplaced, 0
        if on_step is not None:
            on_step(error)
    if reason == Reason.NO_PROGRESS and best_error <= rounding_level(problem, best, target):
        reason = Reason.ROUNDING
    return NewtonResult(best, best_error, steps, products, tuple(errors), reason)


def _misplaced(at: Evaluation, target: FloatArray) -> float:
    """Share of the mass that is missing or too much."""
    return float(np.sum(np.abs(at.row_sums - target))) / float(np.sum(target))


def _direction(
    problem: Restricted, target: FloatArray, u: FloatArray, now: Evaluation, error: float
) -> tuple[FloatArray, int]:
    hessian = problem.hessian(u)
    rhs = target - now.row_sums
    empty = np.flatnonzero(hessian.degrees == 0)
    shift = max(SMALLEST_RIDGE, RIDGE * min(_misplaced(now, target), 1.0))
    ridge = shift * np.maximum(hessian.diagonal, 1.0)
    diagonal = hessian.diagonal + ridge
    rhs[empty] = 0.0  # such rows are in no other row's sum, and have no curvature of their own
    direction, count = conjugate_gradients(
        lambda v: hessian.product(v) + ridge * v,
        diagonal,
        rhs,
        rtol=min(LOOSEST_CG, max(TIGHTEST_CG, CG_SHARE * error)),
        max_products=MAX_PRODUCTS,
        units=target,
    )
    if len(empty):
        direction[empty] = problem.lift(u, empty, target) - u[empty]
    return direction, count


def _line_search(
    problem: Restricted,
    target: FloatArray,
    u: FloatArray,
    now: Evaluation,
    direction: FloatArray,
) -> tuple[FloatArray, Evaluation] | None:
    """A step that decreases F enough and uses up some of the slope, the full one if it does.

    F is convex, so that a slope <= 0 at the end of a step proves a decrease, without comparing
    values of F that agree to the last digit. Longer steps than 1 occur where F is linear: in a
    bipartite component whose two sides want different mass.
    """
    slope = float(np.sum((now.row_sums - target) * direction))
    value = _objective(now, u, target)
    noise = ROUNDING * (0.25 * now.square_sum + float(np.sum(np.abs(u) * target)))
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.inf
    step = 1.0
    best: tuple[FloatArray, Evaluation] | None = None
    for _ in range(MAX_TRIALS):
        trial = u + step * direction
        after = problem.evaluate(trial)
        end_slope = float(np.sum((after.row_sums - target) * direction))
        if end_slope <= 0.0:
            best = trial, after
            if end_slope >= CURVATURE * slope:
                return best
            low, low_slope = step, end_slope
            if high == np.inf:
                step *= EXPANSION
                continue
        else:
            decrease = value - _objective(after, trial, target)
            if decrease >= -ARMIJO * step * slope - noise:
                return trial, after
            high, high_slope = step, end_slope
        # Where the slope, were it linear, would vanish.
        share = -low_slope / (high_slope - low_slope)
        step = low + min(0.9, max(0.1, share)) * (high - low)
    return best


def _objective(at: Evaluation, u: FloatArray, target: FloatArray) -> float:
    return 0.25 * at.square_sum - float(np.sum(u * target))
