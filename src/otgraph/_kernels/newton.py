"""Newton steps for few points, in one call: a step from Python takes longer than its sums."""

from __future__ import annotations

import numpy as np

from otgraph._kernels.cg import solve_cg
from otgraph._kernels.restricted import evaluate
from otgraph._numba import borrowing, inner, njit

# The constants of `solvers.newton`, which has the same steps for any number of points.
# Line search.
ARMIJO = 1e-4  # share of the predicted decrease that a step must achieve
CURVATURE = 0.9  # share of the slope that may be left at the end of a step
# A decrease of F smaller than this multiple of its terms may be rounding error.
ROUNDING = 1e-13
# Relative residual of the linear system: a share of the marginal error, within bounds. Far from
# the solution an accurate direction is a waste of time.
CG_SHARE = 0.1
LOOSEST_CG = 0.1
TIGHTEST_CG = 1e-8
# Below this error the active pairs are nearly right, and one step is exact if its system is solved
# well enough: as far as the error is from the goal. The largest error is then a hundredth of that.
# Where the goal is nearly reached, little is left to solve.
NEAR_ERROR = 1e-3
# Largest relative error of a marginal of the feasible plan behind the duality gap. Where rounding
# errors are larger, they are the limit.
FEASIBLE_TOL = 1e-9
MAX_PRODUCTS = 500  # limit of products per linear system
# The diagonal of the Hessian is increased by RIDGE times the share of misplaced mass. This limits
# the step if the Hessian is singular (a component of the active pairs is bipartite). The shift
# vanishes at the solution, fast enough for quadratic convergence.
RIDGE = 0.03
SMALLEST_RIDGE = 1e-9


def linear_tolerance(error: float, tol: float) -> float:
    """Relative residual of the linear system at a marginal error, on the way to a tolerance."""
    if error <= NEAR_ERROR:
        share = min(FEASIBLE_TOL, tol) / error
    else:
        share = CG_SHARE * max(error, tol / error)
    return min(LOOSEST_CG, max(TIGHTEST_CG, share))


_linear_tolerance = inner(linear_tolerance)


@borrowing
def deviations(row_sums, target):
    """Largest |row sum - target| / target, and the sum of |row sum - target| / that of targets.

    The first one is NaN if one of its terms is.
    """
    largest = 0.0
    total = 0.0
    wanted = 0.0
    for i in range(len(target)):
        off = abs(row_sums[i] - target[i])
        error = off / target[i]
        if not error <= largest and largest == largest:  # larger, or the first NaN
            largest = error
        total += off
        wanted += target[i]
    return largest, total / wanted


@njit
def full_steps(
    indptr, indices, cost, diagonal, target, tol, start, known, room, ends, active, errors
):  # fmt: skip
    """Full steps of `solvers.newton` while they are accepted: the same bits, in one call.

    The rows of ``room`` get the last potentials and what `evaluate` finds there, which is there
    already for ``start`` if that is ``known``, and the potentials with the smallest error. Ends at
    the tolerance, where ``errors`` is full, at a point without active pairs and at a step that must
    be shortened or lengthened. Returns the number of steps and of products, the smallest error, the
    least misplaced mass, and the number of steps since either of these was found.
    """
    n = len(target)
    row_sums, square_sums, u, best = room
    if not known:
        evaluate(
            indptr, indices, cost, diagonal, start, 0, n, row_sums, square_sums, ends, active
        )  # fmt: skip
    error, share = deviations(row_sums, target)
    errors[0] = error
    best_error = error
    least = np.inf
    steps = 0
    products = 0
    since = 0
    if error <= tol or len(errors) == 1:
        return steps, products, best_error, least, since
    width, shift, rhs, direction, residual, weights = np.empty((6, n))
    z, p, q, trial, sums, squares = np.empty((6, n))
    u[:] = start
    best[:] = start
    largest = target.max()
    for i in range(n):
        weights[i] = (largest / target[i]) ** 2
    while error > tol and steps + 1 < len(errors):
        ridge = max(SMALLEST_RIDGE, RIDGE * min(share, 1.0))
        for i in range(n):
            loop = 1.0 if 2.0 * u[i] > diagonal[i] else 0.0
            degree = (ends[i] - indptr[i]) + loop
            if degree == 0.0:
                return steps, products, best_error, least, since
            width[i] = degree + loop
            shift[i] = ridge * max(width[i], 1.0)
            rhs[i] = target[i] - row_sums[i]
        rtol = _linear_tolerance(error, tol)
        count = solve_cg(
            indptr[:-1], ends, active, width, shift, rhs, weights, rtol, MAX_PRODUCTS,
            direction, residual, z, p, q,
        )  # fmt: skip
        slope = 0.0
        for i in range(n):
            slope += (row_sums[i] - target[i]) * direction[i]
            trial[i] = u[i] + direction[i]
        evaluate(
            indptr, indices, cost, diagonal, trial, 0, n, sums, squares, ends, active
        )  # fmt: skip
        end_slope = 0.0
        for i in range(n):
            end_slope += (sums[i] - target[i]) * direction[i]
        if end_slope <= 0.0:
            accepted = end_slope >= CURVATURE * slope
        else:
            before = 0.0
            after = 0.0
            size = 0.0
            for i in range(n):
                before += 0.25 * square_sums[i] - u[i] * target[i]
                after += 0.25 * squares[i] - trial[i] * target[i]
                size += 0.25 * square_sums[i] + abs(u[i]) * target[i]
            accepted = before - after >= -ARMIJO * slope - ROUNDING * size
        if not accepted:
            evaluate(
                indptr, indices, cost, diagonal, u, 0, n, row_sums, square_sums, ends, active
            )  # fmt: skip
            break
        u[:] = trial
        row_sums[:] = sums
        square_sums[:] = squares
        steps += 1
        products += count
        since += 1
        error, share = deviations(row_sums, target)
        errors[steps] = error
        if error < best_error:
            best_error = error
            best[:] = u
            since = 0
        if share < least:
            least = share
            since = 0
    return steps, products, best_error, least, since
