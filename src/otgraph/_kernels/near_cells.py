"""Nearest points of the points of a cell, each in those of some cells that it is nearest to.

Cells that are near to the center of a cell are not always near to its points: of as many cells,
those near the point hold more of its neighbors. float32 products choose the cells and the points,
so that what is found does not depend on anything but the cell and those near it.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import (
    CHUNK,
    above_limit,
    copy_rows,
    largest_exceed,
    lowest,
    squared_distance_between,
)
from otgraph._numba import allocating_inner, inner, njit


@njit
def nearest_in_cells(X, first, last, center, starts, stops, towards, n_chosen, n_points, out):
    """Lists of the nearest points of each row in the ``n_chosen`` cells that it is nearest to.

    Row r is point ``first + r``, up to ``last``. Cell c has the points from ``starts[c]`` to
    ``stops[c]``, and ``towards[c]`` is its center relative to ``center``; the nearest cells come
    first, so that few of the later points are among the nearest. If the cells of a row have fewer
    than ``n_points``, it looks into all. Where there are too few points, the rest of ``out`` is -1.
    Returns the number of pairs compared.
    """
    k = out.shape[1]
    m, d, n_cells = last - first, X.shape[1], len(starts)
    left = np.empty((m, d + 1), np.float32)
    _relative(X, first, last, center, np.float32(2.0), left)
    left[:, d] = 1.0
    chosen = _chosen_cells(left, towards, n_chosen, stops - starts, n_points)
    widest = 0
    for c in range(n_cells):
        widest = max(widest, stops[c] - starts[c])
    right = np.empty((widest, d + 1), np.float32)
    some, block = np.empty((m, d + 1), np.float32), np.empty(m * widest, np.float32)
    rows = np.empty(m + 1, np.int64)  # one more is written than counts
    # Lists of the nearest points so far, which are shortened to k when they are twice as long.
    room = 2 * k + widest
    values, points = np.empty((m, room), np.float32), np.empty((m, room), np.int32)
    counts, limits = np.zeros(m, np.int64), np.full(m, np.float32(-np.inf))
    n_pairs = 0
    for c in range(n_cells):
        width, n_rows = stops[c] - starts[c], _rows_of(chosen, c, rows)
        if n_rows == 0:
            continue
        _relative(X, starts[c], stops[c], center, np.float32(1.0), right)
        product = block[: n_rows * width].reshape((n_rows, width))
        if n_rows == m:
            np.dot(left, right[:width].T, product)
        else:
            copy_rows(left, rows, n_rows, some)
            np.dot(some[:n_rows], right[:width].T, product)
        n_pairs += n_rows * width
        _list_near(product, starts[c], first, rows, k, values, points, counts, limits)
    _finish(values, points, counts, out)
    return n_pairs


@inner
def _rows_of(chosen, c, rows):
    """The rows that look into a cell; returns their number."""
    count = 0
    for r in range(len(chosen)):
        rows[np.uint64(count)] = r
        count += chosen[r, c]
    return count


@inner
def _list_near(product, begin, first, rows, k, values, points, counts, limits):
    """Append the near points of a cell to the lists of some rows."""
    for p in range(len(product)):
        r = rows[p]
        count = _listed(product[p], begin, first + r, limits[r], values[r], points[r], counts[r])
        if count >= 2 * k:
            count, limits[r] = _shortened(values[r], points[r], count, k)
        counts[r] = count


@inner
def _finish(values, points, counts, out):
    """The best points of every list, and -1 where there are too few."""
    for r in range(len(out)):
        count, _ = _shortened(values[r], points[r], counts[r], out.shape[1])
        for q in range(out.shape[1]):
            out[r, q] = points[r, q] if q < count else -1


@inner
def _relative(X, first, last, center, scale, out):
    """Points relative to a center, times a scale, and minus their squared distances from it."""
    d = X.shape[1]
    centers = center.reshape(1, -1)
    for i in range(first, last):
        source, target = X[i], out[i - first]
        for q in range(d):
            target[q] = scale * np.float32(source[q] - center[q])
        target[d] = -squared_distance_between(X, i, centers, 0)


@allocating_inner
def _chosen_cells(left, towards, n_chosen, sizes, n_points):
    """Which cells each row looks into: those with the nearest centers, or all if they are small."""
    (m, columns), n_cells = left.shape, len(towards)
    table = np.empty((n_cells, columns), np.float32)
    for c in range(n_cells):
        total = 0.0
        for q in range(columns - 1):
            table[c, q] = towards[c, q]
            total += towards[c, q] * towards[c, q]
        table[c, columns - 1] = -total
    product, chosen = np.dot(left, table.T), np.empty((m, n_cells), np.bool_)
    for r in range(m):
        least, _ = largest_exceed(product[r], np.int64(n_cells), np.int64(n_chosen))
        total = 0
        for c in range(n_cells):
            chosen[r, c] = product[r, c] > least
            if chosen[r, c]:
                total += sizes[c]
        if total < n_points:
            chosen[r] = True
    return chosen


@inner
def _listed(line, begin, own, limit, values, points, count):
    """Append the points of a cell with products above the limit to a list, but for the own one."""
    width = len(line)
    for chunk in range(0, width, CHUNK):
        # The last chunk is moved back to be whole, without those that were in the one before.
        back = max(min(chunk, chunk + CHUNK - width), 0)
        mask = above_limit(line, chunk - back, limit) >> np.uint64(back)
        while mask != 0:
            bit, place = lowest(mask)
            mask ^= bit
            here, point = np.uint64(count), begin + chunk + place
            values[here] = line[np.uint64(chunk + place)]
            points[here] = point
            count += point != own
    return count


@inner
def _shortened(values, points, count, k):
    """Keep the k largest of a list; of equal ones the first. Returns the length and a limit."""
    if count <= k:
        return count, np.float32(-np.inf)
    low, high = largest_exceed(values, np.int64(count), np.int64(k))
    above_high = 0
    for p in range(count):
        above_high += values[p] > high
    equal, kept = k - above_high, 0
    for p in range(count):
        value = values[p]
        if value > high or (equal > 0 and value > low):
            equal -= value <= high
            values[kept], points[kept] = value, points[p]
            kept += 1
    return kept, high
