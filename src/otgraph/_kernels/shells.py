"""Pairs of some points with the points of some cells, below a bound: one call for many cells.

The points of a cell are sorted by how far from its center they can meet others, and divided into
shells. Point i has no pair in a shell with radius s and largest reach U if
|x_i - b| >= s + sqrt(r_i + U), so that most points meet only the first shells of a cell, if any.
What is left takes a float32 product, as in `euclidean.py`, and costs in float64 decide.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import (
    REACH_MARGIN,
    copy_rows,
    gather,
    is_near,
    lowest,
    power,
    squared_distance,
)
from otgraph._numba import allocating_inner, inner, njit

FLOAT32_UNIT = 2.0**-24  # relative rounding error of one operation
MORE_ROUNDINGS = 8  # beside those of one product of d numbers
TINY = 1e-35  # added to error bounds, to cover underflow in float32
CHUNK = 64  # rows that are tested at once: the bits of a mask
PIECE = 1 << 17  # products that are in memory at once: half of a megabyte


@njit
def screen_cells(
    X, rows, first_cells, reach, center, table, center_squares, norms,
    right, columns, offsets, widths, radii, reaches, cell_radii, cell_reach,
    alone, centers, right_norms, right_lasts,
    ordered, upper, factor, half_power,
):  # fmt: skip
    """Pairs (i, j, cost) with upper_i + upper_j > c_ij of some rows with the points of cells.

    Row r has no pairs with the cells before ``first_cells[r]``, which does not decrease. Row b of
    ``table`` is half the center of cell b relative to ``center``; ``offsets`` are where the points
    of cells begin in ``right`` and ``columns``, where padding has the number -1. ``widths`` are
    those of the shells of a cell, ``radii`` and ``reaches`` their bounds. Cells that are ``alone``
    have products relative to their own ``centers``. Returns the number of products, too.
    """
    m, d = len(rows), X.shape[1]
    n_cells, n_shells = radii.shape
    left, squares = np.empty((m, d + 1), np.float32), np.empty(m)
    gather(X, rows, center, 2.0, left, squares)
    left[:, d] = 1.0
    product = np.empty((n_cells, m), np.float32)
    np.dot(table, left.T, product)
    mine, base = np.empty(m, np.float32), np.empty(m, np.float32)
    largest = norms.max()
    for r in range(m):
        mine[r] = reach[r] + REACH_MARGIN * abs(reach[r])
        both = np.sqrt(squares[r]) + largest
        base[r] = squares[r] - (d + MORE_ROUNDINGS) * FLOAT32_UNIT * both * both
    near, shells = np.empty(m, np.int64), np.empty(m, np.int64)
    sorted_near, counts = np.empty(m, np.int64), np.empty(n_shells + 1, np.int64)
    some, some_squares = np.empty((m, d + 1), np.float32), np.empty(m)
    limits, buffer = np.empty(m, np.float32), np.empty(PIECE, np.float32)
    room = max(m, right.shape[0])  # at least for a row
    i_found, j_found, costs = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    count, n_products, n_rows = 0, 0, 0
    for b in range(n_cells):
        while n_rows < m and first_cells[n_rows] <= b:
            n_rows += 1
        n_near = _met_shells(
            product[b], base, mine, n_rows, center_squares[b], cell_radii[b], cell_reach[b],
            radii[b], reaches[b], near, shells, counts,
        )  # fmt: skip
        if n_near == 0:
            continue
        _sorted_by_shells(near, shells, n_near, counts, sorted_near)
        if alone[b]:
            for p in range(n_near):
                near[p] = rows[sorted_near[p]]
            gather(X, near[:n_near], centers[b], 2.0, some, some_squares)
            some[:n_near, d] = 1.0
        else:
            copy_rows(left, sorted_near, n_near, some)
            for p in range(n_near):
                some_squares[p] = squares[sorted_near[p]]
        for p in range(n_near):
            limit = some_squares[p] - reach[sorted_near[p]]
            size = 2.0 * np.sqrt(some_squares[p]) * right_norms[b] + right_lasts[b] + abs(limit)
            limit -= (d + MORE_ROUNDINGS) * FLOAT32_UNIT * size + TINY
            limits[p] = limit
        for shell in range(1, n_shells + 1):
            width = min(shell * widths[b], offsets[b + 1] - offsets[b])
            end = offsets[b] + width
            for first in range(counts[shell - 1], counts[shell], PIECE // width):
                last = min(first + PIECE // width, counts[shell])
                n_products += (last - first) * width
                block = buffer[: (last - first) * width].reshape((last - first, width))
                np.dot(some[first:last], right[offsets[b] : end].T, block)
                r = 0
                while True:
                    r, count = _append_pairs(
                        block, limits[first:last], rows, sorted_near[first:last], columns,
                        offsets[b], ordered, X, upper, factor, half_power, i_found, j_found,
                        costs, count, r,
                    )  # fmt: skip
                    if r == last - first:
                        break
                    i_found, j_found, costs = _longer(i_found, j_found, costs, count)
    return n_products, i_found[:count].copy(), j_found[:count].copy(), costs[:count].copy()


@inner
def _met_shells(
    product, base, mine, n_rows, center_square, cell_radius, cell_reach, radii, reaches,
    near, shells, counts,
):  # fmt: skip
    """The rows that meet a cell, how many of its shells each meets, and how many rows each number.

    Returns the number of rows.
    """
    n_near, n_shells = 0, len(radii)
    counts[:] = 0
    for chunk in range(0, n_rows, CHUNK):
        mask = _near_rows(
            product, base, mine, np.int64(chunk), np.int64(n_rows), center_square, cell_radius,
            cell_reach,
        )  # fmt: skip
        while mask != 0:
            bit, place = lowest(mask)
            mask ^= bit
            r = chunk + place
            shell = n_shells
            while shell > 0 and not is_near(
                product[r], center_square, radii[shell - 1], reaches[shell - 1], base[r], mine[r]
            ):
                shell -= 1
            if shell > 0:
                near[n_near] = r
                shells[n_near] = shell
                n_near += 1
                counts[shell] += 1
    return n_near


@inner
def _sorted_by_shells(near, shells, n_near, counts, out):
    """Rows that meet the same number of shells follow each other; ``counts`` becomes their ends."""
    begin = 0
    for shell in range(len(counts)):
        here, counts[shell] = counts[shell], begin
        begin += here
    for p in range(n_near):
        place = counts[shells[p]]
        out[place] = near[p]
        counts[shells[p]] = place + 1  # in the end, where the rows of this number end


@inner
def _append_pairs(
    block, limits, rows, near, columns, first, ordered, X, upper, factor, half_power,
    i_out, j_out, costs, count, first_row,
):  # fmt: skip
    """Append the pairs of a block with a product above the limit and a cost below the bound.

    Stops before a row for which there may be too little room. Returns the next row and the number
    of pairs.
    """
    n_rows, width = block.shape
    for p in range(first_row, n_rows):
        if count + width > len(i_out):
            return p, count
        limit, line = limits[p], block[p]
        hits = 0
        for t in range(width):
            hits += not line[t] <= limit  # what is no number passes
        if hits == 0:
            continue
        i = np.int64(rows[near[p]])
        for t in range(width):
            if line[t] <= limit:
                continue
            j = np.int64(columns[first + t])
            if j < 0 or j == i or (ordered and j < i):
                continue
            cost = power(squared_distance(X, i, j), factor, half_power)
            if upper[i] + upper[j] > cost:
                i_out[count] = i
                j_out[count] = j
                costs[count] = cost
                count += 1
    return n_rows, count


@inner
def _near_rows(product, base, mine, chunk, n_rows, center_square, radius, reach):
    """The rows of a chunk that are not excluded from a cell, as bits."""
    mask = np.uint64(0)
    if chunk + CHUNK <= n_rows:
        some, low, own = product[chunk:][:CHUNK], base[chunk:][:CHUNK], mine[chunk:][:CHUNK]
        for r in range(CHUNK):  # a constant length: a few vector instructions
            hit = is_near(some[r], center_square, radius, reach, low[r], own[r])
            mask |= np.uint64(hit) << np.uint64(r)
    else:
        for r in range(n_rows - chunk):
            hit = is_near(
                product[chunk + r], center_square, radius, reach, base[chunk + r], mine[chunk + r]
            )
            mask |= np.uint64(hit) << np.uint64(r)
    return mask


@allocating_inner
def _longer(i_found, j_found, costs, count):
    """Twice the room for pairs."""
    size = 2 * len(i_found)
    i, j, c = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size)
    i[:count], j[:count], c[:count] = i_found[:count], j_found[:count], costs[:count]
    return i, j, c
