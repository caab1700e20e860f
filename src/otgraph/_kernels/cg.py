"""Vector updates of the conjugate gradient method.

All sums have a fixed order: blocks of `SUM_ROWS` rows are summed each by itself, whoever does it.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.restricted import FOUR, ONE, THREE, TWO, sum_at
from otgraph._numba import borrowing, inner, njit

# Rows that one thread sums up. Fewer take no longer than to wake a thread.
SUM_ROWS = 1 << 16
# Least share of a diagonal that is left when branches are taken out. A star of shifted rows keeps
# about its shift; less is rounding error.
SMALLEST_PIVOT = 1e-15
TAKEN = -1.0  # in the place of the degree of a row that was taken out


@borrowing
def start_cg(residual, preconditioner, weights, z):
    """Set z = M^-1 r and return r·z and the weighted sum of the squares of r."""
    rz = 0.0
    rr = 0.0
    for i in range(len(residual)):
        r = residual[i]
        z[i] = r * preconditioner[i]
        rz += r * z[i]
        rr += weights[i] * (r * r)
    return rz, rr


@inner
def _dot(a, b, n):
    """Sum of n products: four partial sums, because each addition waits for the one before."""
    s0 = s1 = s2 = s3 = 0.0
    i, end = np.uint64(0), np.uint64(n)
    while i + FOUR <= end:
        s0 += a[i] * b[i]
        s1 += a[i + ONE] * b[i + ONE]
        s2 += a[i + TWO] * b[i + TWO]
        s3 += a[i + THREE] * b[i + THREE]
        i += FOUR
    while i < end:
        s0 += a[i] * b[i]
        i += ONE
    return (s0 + s1) + (s2 + s3)


@borrowing
def dot(a, b):
    """Sum of products in a fixed order; in BLAS the order depends on the threads."""
    return _dot(a, b, len(a))


@borrowing
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


@borrowing
def next_direction(beta, z, p):
    """Set p = z + beta p."""
    for i in range(len(p)):
        p[i] = z[i] + beta * p[i]


@njit
def find_branches(degrees, sums, diagonal):
    """Rows with one entry beside the diagonal, which is one, each taken out before the next.

    ``degrees`` are the numbers of entries, and two for an entry on the diagonal; ``sums`` are those
    of the columns plus one, without columns that are no rows. Both lose what is taken out, and
    ``diagonal`` changes as in Gauss's elimination. Returns these rows and their columns, but those
    of whole components.
    """
    n = len(degrees)
    whole = diagonal.copy()
    rows = np.empty(n, dtype=np.int64)
    columns = np.empty(n, dtype=np.int64)
    count = 0
    for first in range(n):
        i = first
        while degrees[i] == 1.0 and sums[i] > 0.0:
            j = np.int64(sums[i]) - 1
            rows[count] = i
            columns[count] = j
            count += 1
            degrees[i] = TAKEN
            degrees[j] -= 1.0
            sums[j] -= i + 1.0
            diagonal[j] = max(diagonal[j] - 1.0 / diagonal[i], SMALLEST_PIVOT * diagonal[j])
            i = j
    # Trees that hang on nothing are whole components and singular. They stay as they are: an exact
    # solution would move their points far, for what may be rounding errors.
    alone = degrees == 0.0
    for k in range(count - 1, -1, -1):
        alone[rows[k]] = alone[columns[k]]
    kept = 0
    for k in range(count):
        if not alone[rows[k]]:
            rows[kept], columns[kept] = rows[k], columns[k]
            kept += 1
    for i in range(n):
        if alone[i]:
            diagonal[i] = whole[i]
    return rows[:kept].copy(), columns[:kept].copy()


@borrowing
def solve_branches(rows, columns, diagonal, x, residual):
    """Set x so that nothing is left of the residuals of branches; it is zero elsewhere."""
    x[:] = 0.0
    for k in range(len(rows)):
        residual[columns[k]] -= residual[rows[k]] / diagonal[rows[k]]
    for k in range(len(rows) - 1, -1, -1):
        i = rows[k]
        x[i] = (residual[i] - x[columns[k]]) / diagonal[i]
        residual[i] = 0.0


@borrowing
def with_branches(rows, columns, diagonal, z):
    """Make M^-1 r of r divided by the diagonal.

    M is the matrix without the entries between rows that are no branches. Residuals of branches are
    rounding errors, but in a matrix that is nearly singular these would grow if they did not count.
    """
    for k in range(len(rows)):
        z[columns[k]] -= z[rows[k]] / diagonal[columns[k]]
    for k in range(len(rows) - 1, -1, -1):
        z[rows[k]] -= z[columns[k]] / diagonal[rows[k]]


@borrowing
def solve_cg(
    starts, ends, indices, diagonal, shift, rhs, weights, rtol, max_products,
    x, residual, z, p, q,
):  # fmt: skip
    """All steps of `solvers.cg` for the Hessian plus a shift: the same bits, in one call.

    Columns beyond the rows belong to fixed points; ``p`` is zero there. Returns the number of
    products.
    """
    n = len(rhs)
    rz, rr = 0.0, 0.0
    for first in range(0, n, SUM_ROWS):
        more_rz, more_rr = 0.0, 0.0
        last = first + SUM_ROWS if first + SUM_ROWS < n else n
        for i in range(first, last):
            r = rhs[i]
            residual[i] = r
            x[i] = 0.0
            z[i] = r * (1.0 / (diagonal[i] + shift[i]))
            p[i] = z[i]
            more_rz += r * z[i]
            more_rr += weights[i] * (r * r)
        rz += more_rz
        rr += more_rr
    goal = rtol * rtol * rr
    for count in range(max_products):
        if rr <= goal:
            return count
        for i in range(n):
            total = sum_at(p, indices, starts[i], ends[i], diagonal[i] * p[i])
            q[i] = total + shift[i] * p[i]
        curvature = 0.0
        for first in range(0, n, SUM_ROWS):
            last = first + SUM_ROWS if first + SUM_ROWS < n else n
            curvature += _dot(p[first:last], q[first:last], last - first)
        if curvature <= 0.0:
            return count + 1
        previous = rz
        alpha = previous / curvature
        rz, rr = 0.0, 0.0
        for first in range(0, n, SUM_ROWS):
            more_rz, more_rr = 0.0, 0.0
            last = first + SUM_ROWS if first + SUM_ROWS < n else n
            for i in range(first, last):
                x[i] += alpha * p[i]
                r = residual[i] - alpha * q[i]
                residual[i] = r
                z[i] = r * (1.0 / (diagonal[i] + shift[i]))
                more_rz += r * z[i]
                more_rr += weights[i] * (r * r)
            rz += more_rz
            rr += more_rr
        beta = rz / previous
        for i in range(n):
            p[i] = z[i] + beta * p[i]
    return max_products
