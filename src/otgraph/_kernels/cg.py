"""Vector updates of the conjugate gradient method; all sums have a fixed order."""

from __future__ import annotations

from otgraph._kernels.restricted import sum_at
from otgraph._numba import njit


@njit
def start_cg(residual, preconditioner, weights, z, p):
    """Set z = p = M^-1 r and return r·z and the weighted sum of the squares of r."""
    rz = 0.0
    rr = 0.0
    for i in range(len(residual)):
        r = residual[i]
        z[i] = r * preconditioner[i]
        p[i] = z[i]
        rz += r * z[i]
        rr += weights[i] * (r * r)
    return rz, rr


@njit
def dot(a, b):
    """Sum of products in the order of the indices; in BLAS the order depends on the threads."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@njit
def advance_cg(alpha, p, q, preconditioner, weights, x, residual, z):
    """x += alpha p, r -= alpha q, z = M^-1 r; returns r·z and the weighted sum of squares of r."""
    rz = 0.0
    rr = 0.0
    for i in range(len(x)):
        x[i] += alpha * p[i]
        r = residual[i] - alpha * q[i]
        residual[i] = r
        z[i] = r * preconditioner[i]
        rz += r * z[i]
        rr += weights[i] * (r * r)
    return rz, rr


@njit
def next_direction(beta, z, p):
    """Set p = z + beta p."""
    for i in range(len(p)):
        p[i] = z[i] + beta * p[i]


@njit
def solve_cg(
    starts, ends, indices, diagonal, shift, rhs, weights, rtol, max_products,
    x, residual, z, p, q,
):  # fmt: skip
    """All steps of `solvers.cg` for the Hessian plus a shift: the same bits, in one call.

    Columns beyond the rows belong to fixed points; ``p`` is zero there. Returns the number of
    products.
    """
    n = len(rhs)
    rz = 0.0
    rr = 0.0
    for i in range(n):
        r = rhs[i]
        residual[i] = r
        x[i] = 0.0
        z[i] = r * (1.0 / (diagonal[i] + shift[i]))
        p[i] = z[i]
        rz += r * z[i]
        rr += weights[i] * (r * r)
    goal = rtol * rtol * rr
    for count in range(max_products):
        if rr <= goal:
            return count
        curvature = 0.0
        for i in range(n):
            total = sum_at(p, indices, starts[i], ends[i], diagonal[i] * p[i])
            q[i] = total + shift[i] * p[i]
            curvature += p[i] * q[i]
        if curvature <= 0.0:
            return count + 1
        previous = rz
        alpha = previous / curvature
        rz = 0.0
        rr = 0.0
        for i in range(n):
            x[i] += alpha * p[i]
            r = residual[i] - alpha * q[i]
            residual[i] = r
            z[i] = r * (1.0 / (diagonal[i] + shift[i]))
            rz += r * z[i]
            rr += weights[i] * (r * r)
        beta = rz / previous
        for i in range(n):
            p[i] = z[i] + beta * p[i]
    return max_products
