"""Lists of the best points of a block of queries, filled cell by cell.

The value of point j for query q is v = c(|q - x_j|) - lift_j. Cells are visited from near to far.
A cell is skipped for the queries whose bound it cannot reach; for the others a float32 product
preselects points, as in `euclidean.py`, and the value in float64 decides. Everything is relative to
the center of the block, so that float32 errors are small compared with near distances.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import copy_rows, gather, power, squared_distance_between
from otgraph._kernels.lists import next_length, shorten
from otgraph._numba import inner, njit

FLOAT32_UNIT = 2.0**-24  # relative rounding error of one operation
# Roundings of one product of d numbers and of what is added to it.
MORE_ROUNDINGS = 16
TINY = 1e-35  # added to error bounds, to cover underflow in float32
# Squared norms from which float32 might overflow; such cells and queries exclude nothing.
FAR = 1e30
# Relative increase of reaches, to cover rounding errors of values and bounds in float64.
REACH_MARGIN = 1e-11


@njit
def lower_bounds(left, squares, centers, center, radii, out):
    """out[b, r] is at most the squared distance from query r to any point of cell b.

    Row r of ``left`` is twice the query relative to ``center``, then a one.
    """
    n_cells, d = centers.shape
    right, center_squares = np.empty((n_cells, d + 1), np.float32), np.empty(n_cells)
    gather(centers, np.arange(n_cells), center, 1.0, right, center_squares)
    right[:, d] = 0.0
    np.dot(right, left.T, out)
    unit = np.float32((d + MORE_ROUNDINGS) * FLOAT32_UNIT)
    below = np.float32(1.0 - MORE_ROUNDINGS * FLOAT32_UNIT)
    norms, squares32 = np.sqrt(squares).astype(np.float32), squares.astype(np.float32)
    for b in range(n_cells):
        square = np.float32(center_squares[b])
        norm = np.float32(np.sqrt(center_squares[b]))
        radius = np.float32(radii[b] * (1.0 + MORE_ROUNDINGS * FLOAT32_UNIT))
        for r in range(len(squares)):
            both = norms[r] + norm
            distance = squares32[r] + square - out[b, r] - unit * both * both
            gap = below * np.sqrt(max(distance, np.float32(0.0))) - radius
            gap = max(gap, np.float32(0.0))
            out[b, r] = below * gap * gap
        if not center_squares[b] < FAR:
            out[b] = 0.0
    for r in range(len(squares)):
        if not squares[r] < FAR:
            out[:, r] = 0.0


@njit
def reach_of(bound, lift, factor, half_power):
    """Squared distance up to which a point with this lift may have a value up to the bound."""
    cost = bound + lift
    cost += REACH_MARGIN * (abs(bound) + abs(lift))
    if half_power == 1.0:
        return cost / factor
    return -1.0 if cost < 0.0 else (1.0 + REACH_MARGIN) * (cost / factor) ** (1.0 / half_power)


@inner
def _limit(bound, lift, factor, half_power, square, largest_square, largest_last, d):
    """Number that the product of a point exceeds if its value is at most the bound.

    The product is 2 y·z - |z|² for y and z relative to the center of the block, so that
    |y - z|² <= reach means a product of at least |y|² - reach. That is lowered by a bound of all
    rounding errors.
    """
    if not (square < FAR and largest_square < FAR):
        return np.float32(-np.inf)
    limit = square - reach_of(bound, lift, factor, half_power)
    size = 2.0 * np.sqrt(square * largest_square) + largest_last + abs(limit)
    return np.float32(limit - (d + MORE_ROUNDINGS) * FLOAT32_UNIT * size - TINY)


@njit
def sweep(
    X, order, offsets, lift, cell_lift, factor, half_power,
    Q, own, center, left, squares, lower, cells, kind, first, second,
    values, columns, counts, bounds, lengths, position,
):  # fmt: skip
    """Look through the cells from ``position`` on.

    Point j of the cells is point ``order[j]`` of the input; ``own`` has the numbers to leave out.
    ``lengths`` are those at which lists are shortened. Stops before a cell for which a list may be
    too short. Returns the position of that cell, or the number of cells.
    """
    m, d = Q.shape
    widest = 0
    for b in range(len(offsets) - 1):
        widest = max(widest, offsets[b + 1] - offsets[b])
    right, right_squares = np.empty((widest, d + 1), np.float32), np.empty(widest)
    some, chosen = np.empty((m, d + 1), np.float32), np.empty(m, np.int64)
    buffer = np.empty(m * widest, np.float32)
    for p in range(position, len(cells)):
        b = cells[p]
        begin, end = offsets[b], offsets[b + 1]
        width = end - begin
        n_chosen = _reachable(lower[b], bounds, cell_lift[b], factor, half_power, chosen)
        if n_chosen == 0:
            continue
        if not _has_room(
            width, chosen, n_chosen, kind, first, second, values, columns, counts, bounds, lengths
        ):
            return p
        gather(X, np.arange(begin, end), center, 1.0, right, right_squares)
        largest_square, largest_last = _lift_columns(
            right, right_squares, lift, begin, width, factor, half_power
        )
        product = buffer[: n_chosen * width].reshape((n_chosen, width))
        if n_chosen == m:
            np.dot(left, right[:width].T, product)
        else:
            copy_rows(left, chosen, n_chosen, some)
            np.dot(some[:n_chosen], right[:width].T, product)
        # For p = 2 the lifts are in the product.
        above = 0.0 if half_power == 1.0 else cell_lift[b]
        _append_near(
            X, order, begin, lift, above, factor, half_power, Q, own, squares, largest_square,
            largest_last, product, chosen, kind, first, second, values, columns, counts, bounds,
            lengths,
        )  # fmt: skip
    return len(cells)


@inner
def _reachable(lower, bounds, lift, factor, half_power, chosen):
    """The queries whose lists a cell can still enter; returns their number."""
    count = 0
    for r in range(len(bounds)):
        if not lower[r] > reach_of(bounds[r], lift, factor, half_power):
            chosen[count] = r
            count += 1
    return count


@inner
def _has_room(
    width, chosen, n_chosen, kind, first, second, values, columns, counts, bounds, lengths
):
    """Whether the lists of some queries have room for a cell; they are shortened if they must."""
    for s in range(n_chosen):
        r = chosen[s]
        if counts[r] + width > values.shape[1]:
            counts[r], bounds[r] = shorten(kind, first[r], second, values[r], columns[r], counts[r])
            lengths[r] = next_length(counts[r])
        if counts[r] + width > values.shape[1]:
            return False
    return True


@inner
def _lift_columns(right, squares, lift, begin, width, factor, half_power):
    """Fill the last column of the points of a cell; returns the largest square and last entry."""
    largest_square = largest_last = 0.0
    last_column = right.shape[1] - 1
    for s in range(width):
        last = -squares[s]
        if half_power == 1.0:
            last += lift[begin + s] / factor
        right[s, last_column] = last
        largest_square = max(largest_square, squares[s])
        largest_last = max(largest_last, abs(last))
    return largest_square, largest_last


@inner
def _append_near(
    X, order, begin, lift, above, factor, half_power, Q, own, squares, largest_square, largest_last,
    product, chosen, kind, first, second, values, columns, counts, bounds, lengths,
):  # fmt: skip
    """Append the points of a cell with values up to the bound to the lists of some queries."""
    d, width = Q.shape[1], product.shape[1]
    for s in range(len(product)):
        r = chosen[s]
        limit = _limit(
            bounds[r], above, factor, half_power, squares[r], largest_square, largest_last, d
        )
        row = product[s]
        hits = 0
        for t in range(width):
            hits += not row[t] < limit  # what is no number passes
        if hits == 0:
            continue
        for t in range(width):
            if row[t] < limit:
                continue
            j = begin + t
            value = power(squared_distance_between(Q, r, X, j), factor, half_power) - lift[j]
            if not value <= bounds[r] or order[j] == own[r]:
                continue
            values[r, counts[r]] = value
            columns[r, counts[r]] = order[j]
            counts[r] += 1
            if counts[r] >= lengths[r]:
                counts[r], bounds[r] = shorten(
                    kind, first[r], second, values[r], columns[r], counts[r]
                )
                lengths[r] = next_length(counts[r])
                limit = _limit(
                    bounds[r], above, factor, half_power, squares[r], largest_square, largest_last,
                    d,
                )  # fmt: skip


@njit
def shortest_pairs(
    X, offsets, cell_labels, labels, group, inside, factor, half_power,
    Q, rows, center, left, squares, lower, cells, values, ends, others,
):  # fmt: skip
    """The cheapest pairs of some points with those inside or outside a group, for all in common.

    ``values``, ``ends`` and ``others`` are a sorted list of pairs, at first of infinite values. Its
    last value bounds what any of the points still looks for. All points of a cell have the label
    ``cell_labels[b]``, or different ones where it is negative.
    """
    m, d = Q.shape
    widest = 0
    for b in range(len(offsets) - 1):
        widest = max(widest, offsets[b + 1] - offsets[b])
    right, right_squares = np.empty((widest, d + 1), np.float32), np.empty(widest)
    some, chosen = np.empty((m, d + 1), np.float32), np.empty(m, np.int64)
    members = np.empty(widest, np.int64)
    buffer = np.empty(m * widest, np.float32)
    for b in cells:
        if cell_labels[b] >= 0 and (cell_labels[b] == group) != inside:
            continue
        reach = reach_of(values[-1], 0.0, factor, half_power)
        n_chosen = 0
        for r in range(m):
            if not lower[b, r] > reach:
                chosen[n_chosen] = r
                n_chosen += 1
        if n_chosen == 0:
            continue
        copy_rows(left, chosen, n_chosen, some)
        width = 0
        for j in range(offsets[b], offsets[b + 1]):
            if (labels[j] == group) == inside:
                members[width] = j
                width += 1
        gather(X, members[:width], center, 1.0, right, right_squares)
        largest_square = 0.0
        for t in range(width):
            right[t, d] = -right_squares[t]
            largest_square = max(largest_square, right_squares[t])
        product = buffer[: n_chosen * width].reshape((n_chosen, width))
        np.dot(some[:n_chosen], right[:width].T, product)
        for s in range(n_chosen):
            r = chosen[s]
            bound = (values[-1], 0.0, factor, half_power)
            limit = _limit(*bound, squares[r], largest_square, largest_square, d)
            for t in range(width):
                if product[s, t] < limit:
                    continue
                j = members[t]
                value = power(squared_distance_between(Q, r, X, j), factor, half_power)
                if _insert_pair(values, ends, others, value, rows[r], j):
                    bound = (values[-1], 0.0, factor, half_power)
                    limit = _limit(*bound, squares[r], largest_square, largest_square, d)


@inner
def _insert_pair(values, ends, others, value, end, other):
    """Insert a pair into a list sorted by value and ends, if it is better than the last one."""
    p = len(values)
    while p > 0:
        last = values[p - 1]
        if value > last or not value < np.inf:
            break
        if value == last and (end, other) > (ends[p - 1], others[p - 1]):
            break
        if p < len(values):
            values[p], ends[p], others[p] = values[p - 1], ends[p - 1], others[p - 1]
        p -= 1
    if p == len(values):
        return False
    values[p], ends[p], others[p] = value, end, other
    return True
