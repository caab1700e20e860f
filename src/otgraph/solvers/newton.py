"""Semismooth Newton on the marginals of a restricted problem.

Minimizes F(u) = 1/4 sum (u_i + u_j - c_ij)_+² - eps <u, m>, whose gradient is
eps (row sums of the plan - m). The generalized Hessian diag(sigma 1) + sigma has entries on
the active pairs only. F is convex and piecewise quadratic: once the active pairs are right, one
step is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels.newton import (
    MAX_PRODUCTS,
    RIDGE,
    SMALLEST_RIDGE,
    TIGHTEST_CG,
    deviations,
    linear_tolerance,
)
from otgraph.costs.interface import FullSteps
from otgraph.solvers.certificate import Reason
from otgraph.solvers.cg import (
    PLAIN_PRODUCTS,
    conjugate_gradients,
    flexible_gradients,
    residual_weights,
)
from otgraph.solvers.steps import common_step, line_search

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.costs.interface import Curvature, Evaluation, Marginals
    from otgraph.typing import FloatArray

# Newton gives up after this many steps without a new minimum of the largest error or of the
# misplaced mass. Neither changes while a bipartite component moves toward distant partners, and
# with very uneven masses it moves in many small steps.
PATIENCE = 200
# After this many steps that do not halve the largest error, Newton also goes on along the sum of
# its last two steps. Where two sets of active pairs take turns, each step undoes most of the step
# before it; a thousand of them led nowhere where a few along the sum arrive.
ZIGZAG = 8
# Systems with fewer products are solved as fast as those of a few points are set up.
FEW_PRODUCTS = 20
# Share of the mass that may be misplaced where some rows are left behind, relative to their share.
LEFT_MISPLACED = 0.1
# Relative rounding error of one term u_i + u_j - c_ij in a row sum.
ROW_SUM_ROUNDING = 4.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class NewtonResult:
    """Potentials on a restricted problem; ``errors`` are those at the start and after each step.

    ``reason`` says why the tolerance was not reached; it is empty if it was.
    """

    u: FloatArray
    error: float
    n_steps: int
    n_products: int
    errors: tuple[float, ...]
    reason: Reason


def nearly_met(row_sums: FloatArray, target: FloatArray, tol: float, left: int) -> bool:
    """Whether all rows but ``left`` meet the tolerance, and these misplace little mass.

    Far points, which should be partners of each other, are few, but far above their targets: a
    screen at such potentials would return all pairs.
    """
    off = int(np.count_nonzero(np.abs(row_sums - target) > tol * target))
    most = LEFT_MISPLACED * left / len(target)
    return off == 0 or (off <= left and deviations(row_sums, target)[1] <= most)


def rounding_level(problem: Marginals, u: FloatArray, target: FloatArray) -> float:
    """Largest relative error of a row sum that rounding can cause; `tol` cannot be smaller."""
    sizes = problem.hessian(u).product(np.abs(u))  # sum of |u_i| + |u_j| over the active pairs
    return float(np.max(ROW_SUM_ROUNDING * sizes / target))


def newton(
    problem: Marginals,
    target: FloatArray,
    u: FloatArray,
    *,
    tol: float,
    max_iter: int,
    left: int = 0,
    settle: Callable[[FloatArray], FloatArray] | None = None,
    on_step: Callable[[float], None] | None = None,
) -> NewtonResult:
    """Bring all row sums of (u_i + u_j - c_ij)_+ to ``target`` within ``tol``, but for ``left``.

    Returns the best potentials found, or the last ones if only ``left`` rows miss the tolerance.
    ``settle`` may improve potentials before a step, if the last one was expensive. ``on_step`` is
    called with the marginal error after every step.
    """
    taken = problem.full_steps(u, target, tol, max_iter)
    if taken is None:
        now = problem.evaluate(u)
        errors = [now.error(target)]
        taken = FullSteps(u, now, u, errors, (0, 0, errors[0], np.inf, 0))
    elif on_step is not None:
        for each in taken.errors[1:]:
            on_step(each)
    if taken.errors[-1] > tol:
        with np.errstate(under="ignore"):  # costs and masses may be far below others
            return _continued(problem, target, taken, tol, max_iter, left, settle, on_step)
    return NewtonResult(
        taken.best, taken.counts[2], *taken.counts[:2], tuple(taken.errors), Reason.NONE
    )


def _continued(
    problem: Marginals,
    target: FloatArray,
    taken: FullSteps,
    tol: float,
    max_iter: int,
    left: int,
    settle: Callable[[FloatArray], FloatArray] | None,
    on_step: Callable[[float], None] | None,
) -> NewtonResult:
    """Go on step by step."""
    u, now, best, errors = taken.u, taken.now, taken.best, taken.errors
    steps, products, best_error, least_misplaced, since_best = taken.counts
    error, weights = errors[-1], residual_weights(target)
    previous: FloatArray | None = None
    half, since_half = error, 0
    share = deviations(now.row_sums, target)[1]
    reason = Reason.NONE
    plain, count = PLAIN_PRODUCTS, 0
    while error > tol:
        if left and nearly_met(now.row_sums, target, tol, left):
            best, best_error = u, error
            break
        if steps >= max_iter:
            reason = Reason.OUT_OF_STEPS
            break
        if settle and (not steps or count > FEW_PRODUCTS) and (settled := settle(u)) is not u:
            u, now = settled, problem.evaluate(settled)
            error, share = now.deviations(target)
            if error < best_error:
                best, best_error = u, error
            if error <= tol:
                break
        ridge = max(SMALLEST_RIDGE, RIDGE * min(share, 1.0))
        cg_tol = linear_tolerance(error, tol)
        direction, count = _direction(
            problem, target, weights, u, now, ridge=ridge, cg_tol=cg_tol, plain=plain
        )
        products += count
        plain = 0 if count > plain else plain
        advanced = line_search(problem, target, u, now, direction)
        if advanced is not None and advanced.length > 1.0:
            # F is linear along a part of the direction, and the ridge has shortened that part.
            direction, count = _direction(
                problem, target, weights, u, now,
                ridge=SMALLEST_RIDGE, cg_tol=TIGHTEST_CG, plain=plain,
            )  # fmt: skip
            products += count
            longer = line_search(problem, target, u, now, direction)
            if longer is not None and longer.value < advanced.value:
                advanced = longer
        steps += 1
        since_best += 1
        since_half += 1
        if advanced is None or since_best > PATIENCE:
            reason = Reason.NO_PROGRESS
            break
        earlier, previous = previous, u if since_half >= ZIGZAG else None
        u, now = advanced.u, advanced.now
        del direction, advanced  # vectors of all points, in every process that solves
        if since_half > ZIGZAG and earlier is not None:
            u, now = common_step(problem, target, u, now, u - earlier)
        error, share = now.deviations(target)
        errors.append(error)
        if error < best_error:
            best, best_error, since_best = u, error, 0
        if error < 0.5 * half:
            half, since_half = error, 0
        if share < least_misplaced:
            least_misplaced, since_best = share, 0
        if on_step is not None:
            on_step(error)
    if reason == Reason.NO_PROGRESS and best_error <= rounding_level(problem, best, target):
        reason = Reason.ROUNDING
    return NewtonResult(best, best_error, steps, products, tuple(errors), reason)


def _direction(
    problem: Marginals,
    target: FloatArray,
    weights: FloatArray,
    u: FloatArray,
    now: Evaluation,
    *,
    ridge: float,
    cg_tol: float,
    plain: int,
) -> tuple[FloatArray, int]:
    hessian = problem.hessian(u)
    rhs = target - now.row_sums
    empty = (hessian.degrees == 0).nonzero()[0]
    shift = ridge * np.maximum(hessian.diagonal, 1.0)
    rhs[empty] = 0.0  # these rows have no active pair; they are solved one by one below
    direction, count = _solved(hessian, shift, rhs, weights, target, cg_tol, plain)
    if len(empty):
        direction[empty] = problem.lift(u, empty, target) - u[empty]
    return direction, count


def _solved(
    hessian: Curvature,
    shift: FloatArray,
    rhs: FloatArray,
    weights: FloatArray,
    target: FloatArray,
    rtol: float,
    plain: int,
) -> tuple[FloatArray, int]:
    """The solution of a Newton system and the number of products it took.

    Where there is a better preconditioner than the diagonal, it is used after ``plain`` products.
    """
    product = hessian.shifted(shift)
    multilevel = hessian.multilevel(shift)
    most = MAX_PRODUCTS if multilevel is None else plain
    found = hessian.solve(shift, rhs, weights, rtol, most)
    if found is None:
        branches = hessian.branches(shift) if multilevel is None else None
        x, count = conjugate_gradients(
            product, hessian.diagonal + shift, rhs,
            rtol=rtol, max_products=most, weights=weights, branches=branches, run=hessian.run,
        )  # fmt: skip
        found = x, count + (branches is not None)
    x, count = found
    if count < most or multilevel is None:
        return x, count
    x, more = flexible_gradients(
        product, multilevel, rhs, x, rtol=rtol, max_products=MAX_PRODUCTS, weights=weights
    )  # fmt: skip
    return x, count + more
