"""Draw many thin lines as pixels."""

from __future__ import annotations

from math import floor, sqrt

from otgraph._numba import njit


@njit
def add_lines(x, y, i, j, value, half_width, out):
    """Add value[e] times the covered share of each pixel, for all lines e from i[e] to j[e].

    Coordinates are in pixels. The pixel out[row, column] is the square [column, column + 1] x
    [row, row + 1]. Parts of lines outside the picture are ignored.
    """
    n_rows, n_columns = out.shape
    for e in range(len(i)):
        x0, y0, x1, y1 = x[i[e]], y[i[e]], x[j[e]], y[j[e]]
        if max(x0, x1) < 0.0 or max(y0, y1) < 0.0:
            continue
        if min(x0, x1) > n_columns or min(y0, y1) > n_rows:
            continue
        steep = abs(y1 - y0) > abs(x1 - x0)
        if steep:  # go along the axis in which the line is longer
            x0, y0, x1, y1 = y0, x0, y1, x1
        if x0 > x1:
            x0, y0, x1, y1 = x1, y1, x0, y0
        if x1 == x0:
            continue
        slope = (y1 - y0) / (x1 - x0)
        half = half_width * sqrt(1.0 + slope * slope)
        n_along, n_across = (n_rows, n_columns) if steep else (n_columns, n_rows)
        for a in range(floor(max(x0, 0.0)), min(floor(x1) + 1, n_along)):
            left, right = max(x0, a), min(x1, a + 1.0)
            middle = y0 + slope * (0.5 * (left + right) - x0)
            low, high = middle - half, middle + half
            for b in range(floor(max(low, 0.0)), min(floor(high) + 1, n_across)):
                covered = (right - left) * (min(high, b + 1.0) - max(low, b))
                if steep:
                    out[a, b] += value[e] * covered
                else:
                    out[b, a] += value[e] * covered
