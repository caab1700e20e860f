"""A binary tree of bounding boxes that finds the leaves near a leaf.

Points are sorted by leaf. Node 1 is the root, and the children of node i are 2i and 2i + 1. With
2^depth leaves, leaf b is node 2^depth + b. Every node has the box around its points and the
largest of their reaches. Leaves are visited from left to right, so the pairs of a row are sorted.

Between two clouds reaches are steep: if mass moves by v, those of its points have the gradient 2 v,
and the largest reach of a box says little about the others. So every node has a tilt t, any vector,
and the largest of r_j - 2 t·x_j in the place of the largest r_j. A point x has a pair in the node
only if the sum of both reaches exceeds a squared distance, hence only if

    r + max (r_j - 2 t·x_j) + max (2 t·y - |x - y|²) > 0

with the last maximum over the box. It is a sum over coordinates, each at the point of the interval
that is nearest to x + t. Between two boxes the same holds with the terms of both.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import power, squared_distance
from otgraph._numba import allocating_inner, inlined, inner, njit

# Factor on distances of boxes, to cover their rounding errors.
DISTANCE_MARGIN = 1.0 - 1e-12
# The same for tilts: a share of the terms that are added up.
TILT_MARGIN = 1e-12
RUN_LEAVES = 8  # most leaves, one after the other, whose points are looked at at once
# Neighbors of a point are looked for within this multiple of what the point before it needed: twice
# as many points in three dimensions, among which those of the point nearly always are.
LIMIT_GROWTH = 1.35
TILT_SWEEPS = 8  # over the coordinates, to fit the tilt of a leaf; three leave a tenth of it


@njit
def fill_boxes(X, offsets, lower, upper):
    """Boxes of all nodes, from the leaves up."""
    n_leaves, d = len(offsets) - 1, X.shape[1]
    for b in range(n_leaves):
        node = n_leaves + b
        for k in range(d):
            low = high = X[offsets[b], k]
            for i in range(offsets[b] + 1, offsets[b + 1]):
                low = min(low, X[i, k])
                high = max(high, X[i, k])
            lower[node, k] = low
            upper[node, k] = high
    for node in range(n_leaves - 1, 0, -1):
        for k in range(d):
            lower[node, k] = min(lower[2 * node, k], lower[2 * node + 1, k])
            upper[node, k] = max(upper[2 * node, k], upper[2 * node + 1, k])


@njit
def fill_reaches(reach, offsets, node_reach):
    """Largest reach of every node, from the leaves up."""
    n_leaves = len(offsets) - 1
    for b in range(n_leaves):
        largest = reach[offsets[b]]
        for i in range(offsets[b] + 1, offsets[b + 1]):
            largest = max(largest, reach[i])
        node_reach[n_leaves + b] = largest
    for node in range(n_leaves - 1, 0, -1):
        node_reach[node] = max(node_reach[2 * node], node_reach[2 * node + 1])


@njit
def fill_tilts(X, reach, offsets, lower, upper, tilts, node_reach):
    """A tilt of every node, and the largest reach above it, from the leaves up.

    A leaf has half the gradient of an affine fit of its reaches, and a node the mean of its
    children. The reach of a node includes a margin for rounding errors.
    """
    n_leaves, d = len(offsets) - 1, X.shape[1]
    for b in range(n_leaves):
        _fit_tilt(X, reach, offsets[b], offsets[b + 1], tilts[n_leaves + b])
    for node in range(n_leaves - 1, 0, -1):
        for k in range(d):
            tilts[node, k] = 0.5 * (tilts[2 * node, k] + tilts[2 * node + 1, k])
    width, level = n_leaves, 1  # leaves of a node, and its first node on this level
    while level <= n_leaves:
        for node in range(level, 2 * level):
            first = (node - level) * width
            largest = size = -np.inf
            for i in range(offsets[first], offsets[first + width]):
                value = reach[i]
                for k in range(d):
                    value -= 2.0 * tilts[node, k] * X[i, k]
                largest = max(largest, value)
                size = max(size, abs(reach[i]))
            for k in range(d):
                farthest = max(abs(lower[node, k]), abs(upper[node, k]))
                size += 4.0 * abs(tilts[node, k]) * farthest + tilts[node, k] * tilts[node, k]
            node_reach[node] = largest + TILT_MARGIN * size
        width //= 2
        level *= 2


@allocating_inner
def _fit_tilt(X, reach, first, last, tilt):
    """Half the gradient of an affine fit, by least squares, one coordinate after the other."""
    rest = np.empty(last - first)
    mean = 0.0
    for i in range(first, last):
        mean += reach[i]
    for i in range(first, last):
        rest[i - first] = reach[i] - mean / (last - first)
    tilt[:] = 0.0
    for _ in range(TILT_SWEEPS):
        for k in range(X.shape[1]):
            center = above = square = 0.0
            for i in range(first, last):
                center += X[i, k]
            center /= last - first
            for i in range(first, last):
                above += (X[i, k] - center) * rest[i - first]
                square += (X[i, k] - center) * (X[i, k] - center)
            if square > 0.0:
                slope = above / square
                tilt[k] += 0.5 * slope
                for i in range(first, last):
                    rest[i - first] -= slope * (X[i, k] - center)


@njit
def near_costs(
    X, coordinates, offsets, first, last, width, rank, factor, half_power, out
):  # fmt: skip
    """Cost of the neighbor of some rank of every point of the leaves ``first:last``.

    It is looked for in the group of ``width`` leaves that the point is in; ``first`` begins one.
    Copies of the point do not count. Zero where there are only these.
    """
    squares, near = np.empty((2, width * np.max(offsets[1:] - offsets[:-1])))
    nearest = np.empty(rank)
    for b in range(first, last, width):
        begin, end = offsets[b], offsets[min(b + width, last)]
        limit = np.inf
        for i in range(begin, end):
            _leaf_squares(X, coordinates, i, begin, end - begin, squares)
            count = _list_below(squares, end - begin, limit, near)
            if count < rank and limit < np.inf:
                count = _list_below(squares, end - begin, np.inf, near)
            nearest[:] = np.inf
            for t in range(count):
                value = near[t]
                if value < nearest[rank - 1]:
                    q = rank - 1
                    while q > 0 and nearest[q - 1] > value:
                        nearest[q] = nearest[q - 1]
                        q -= 1
                    nearest[q] = value
            limit = LIMIT_GROWTH * nearest[rank - 1]
            q = rank - 1
            while q >= 0 and nearest[q] == np.inf:
                q -= 1
            out[i] = power(nearest[q], factor, half_power) if q >= 0 else 0.0


@inner
def _list_below(values, size, limit, out):
    """List the positive values below a limit, without a branch; returns how many they are."""
    count = np.uint64(0)
    for t in range(size):
        out[count] = values[t]
        count += np.uint64((values[t] > 0.0) & (values[t] < limit))
    return np.int64(count)


@njit
def collect_near(
    X, coordinates, leaf_of, leaf_lower, leaf_upper, leaf_reach, leaf_tilts, offsets, lower, upper,
    reach, node_reach, tilts, bound, factor, half_power, rows, i_out, j_out, c_out, first,
):  # fmt: skip
    """Append all pairs with bound_i + bound_j > c_ij of each row i, sorted by j.

    ``coordinates`` are the points again, one row for each coordinate.

    The leaves of the rows have boxes and reaches of their own, because they may belong to another
    tree than the columns. Tilts are None if all are zero. Stops before a row for which the buffers
    may be too short. Returns (next row, number of pairs written).
    """
    n_leaves, d = len(offsets) - 1, X.shape[1]
    near, hits = np.empty((2, n_leaves), dtype=np.int64)
    near_lower, near_upper = np.empty((2, d, n_leaves))
    near_reach, apart = np.empty((2, n_leaves))
    squares = np.empty(RUN_LEAVES * np.max(offsets[1:] - offsets[:-1]))
    n_near = n_points = 0
    listed = -1  # the leaf whose near leaves are in `near`
    count = 0
    for r in range(first, len(rows)):
        i = rows[r]
        if leaf_of[i] != listed:
            listed = leaf_of[i]
            n_near, n_points = _near_leaves(
                offsets, lower, upper, node_reach, tilts,
                leaf_lower[listed], leaf_upper[listed], leaf_reach[listed],
                None if leaf_tilts is None else leaf_tilts[listed], near,
            )  # fmt: skip
            for s in range(n_near):
                node = n_leaves + near[s]
                near_reach[s] = node_reach[node]
                for k in range(d):
                    near_lower[k, s] = lower[node, k]
                    near_upper[k, s] = upper[node, k]
        if count + n_points > len(j_out):
            return r, count
        if tilts is None:
            _point_to_boxes(X, i, near_lower, near_upper, n_near, apart)
        else:
            for s in range(n_near):
                apart[s] = _tilted_point_to_box(X, i, lower, upper, tilts, n_leaves + near[s])
        begin, mine, own_reach = count, bound[i], reach[i]
        n_hits = 0
        for s in range(n_near):
            hits[n_hits] = near[s]
            n_hits += apart[s] < own_reach + near_reach[s]
        s = 0
        while s < n_hits:
            b, run = hits[s], 1
            while run < RUN_LEAVES and s + run < n_hits and hits[s + run] == b + run:
                run += 1
            s += run
            begin_leaf, size = offsets[b], offsets[b + run] - offsets[b]
            _leaf_squares(X, coordinates, i, begin_leaf, size, squares)
            for t in range(size):
                j = begin_leaf + t
                cost = power(squares[t], factor, half_power)
                j_out[count] = j
                c_out[count] = cost
                # Without a branch: every pair is written, and only a hit advances the count.
                count += (mine + bound[j] > cost) & (j != i)
        i_out[begin:count] = i
    return len(rows), count


@inner
def _leaf_squares(X, coordinates, i, first, size, out):
    """Squared distances from a point to those of a leaf, the same bits as `squared_distance`.

    One coordinate of all points at a time: that is a few vector instructions.
    """
    d = X.shape[1]
    if d > 4:
        for t in range(size):
            out[t] = squared_distance(X, i, first + t)
    elif d == 4:
        x, y, z, w = X[i, 0], X[i, 1], X[i, 2], X[i, 3]
        first_row, second_row = coordinates[0, first:][:size], coordinates[1, first:][:size]
        third_row, fourth_row = coordinates[2, first:][:size], coordinates[3, first:][:size]
        for t in range(size):
            a, b, c, e = x - first_row[t], y - second_row[t], z - third_row[t], w - fourth_row[t]
            out[t] = (a * a + b * b) + (c * c + e * e)
    elif d == 3:
        x, y, z = X[i, 0], X[i, 1], X[i, 2]
        first_row, second_row = coordinates[0, first:][:size], coordinates[1, first:][:size]
        third_row = coordinates[2, first:][:size]
        for t in range(size):
            a, b, c = x - first_row[t], y - second_row[t], z - third_row[t]
            out[t] = (a * a + b * b) + c * c
    else:
        out[:size] = 0.0
        for k in range(d):
            x, row = X[i, k], coordinates[k, first:][:size]
            for t in range(size):
                difference = x - row[t]
                out[t] += difference * difference


@allocating_inner
def _near_leaves(
    offsets, lower, upper, node_reach, tilts, own_lower, own_upper, own_reach, own_tilt, near
):
    """List the leaves that may have a pair with a leaf; count them and their points."""
    n_leaves = len(offsets) - 1
    stack = np.empty(64, dtype=np.int64)
    stack[0] = 1
    height = 1
    n_near = n_points = 0
    while height:
        height -= 1
        node = stack[height]
        if tilts is None:
            apart = _box_to_box(own_lower, own_upper, lower, upper, node)
        else:
            apart = _tilted_box_to_box(own_lower, own_upper, own_tilt, lower, upper, tilts, node)
        if apart >= own_reach + node_reach[node]:
            continue
        if node >= n_leaves:
            b = node - n_leaves
            near[n_near] = b
            n_near += 1
            n_points += offsets[b + 1] - offsets[b]
        else:
            stack[height] = 2 * node + 1
            stack[height + 1] = 2 * node
            height += 2
    return n_near, n_points


@inlined
def _box_to_box(own_lower, own_upper, lower, upper, node):
    """Lower bound of the squared distance between points of a leaf and of a node."""
    total = 0.0
    for k in range(lower.shape[1]):
        gap = max(own_lower[k] - upper[node, k], lower[node, k] - own_upper[k], 0.0)
        total += gap * gap
    return DISTANCE_MARGIN * total


@inlined
def _point_to_box(X, i, lower, upper, node):
    """Lower bound of the squared distance from a point to the points of a node."""
    total = 0.0
    for k in range(X.shape[1]):
        gap = max(lower[node, k] - X[i, k], X[i, k] - upper[node, k], 0.0)
        total += gap * gap
    return DISTANCE_MARGIN * total


@inner
def _point_to_boxes(X, i, lower, upper, count, out):
    """The same for some boxes whose corners are columns: a few vector instructions."""
    out[:count] = 0.0
    for k in range(X.shape[1]):
        x, low, high = X[i, k], lower[k, :count], upper[k, :count]
        for s in range(count):
            gap = max(low[s] - x, x - high[s], 0.0)
            out[s] += gap * gap
    for s in range(count):
        out[s] *= DISTANCE_MARGIN


@inner
def _tilted_box_to_box(own_lower, own_upper, own_tilt, lower, upper, tilts, node):
    """Lower bound of |x - y|² - 2 s·x - 2 t·y for points of a leaf and of a node."""
    total = 0.0
    for k in range(lower.shape[1]):
        s, t = own_tilt[k], tilts[node, k]
        # With y nearest to x + t, the slope in x is 2 (x - y - s): it is s + t that decides at
        # which end of the node it changes its sign.
        end = upper[node, k] if s + t > 0.0 else lower[node, k]
        x = min(max(end + s, own_lower[k]), own_upper[k])
        y = min(max(x + t, lower[node, k]), upper[node, k])
        total += DISTANCE_MARGIN * (x - y) * (x - y) - 2.0 * (s * x + t * y)
    return total


@inner
def _tilted_point_to_box(X, i, lower, upper, tilts, node):
    """Lower bound of |x - y|² - 2 t·y for a point and the points of a node."""
    total = 0.0
    for k in range(X.shape[1]):
        t, x = tilts[node, k], X[i, k]
        y = min(max(x + t, lower[node, k]), upper[node, k])
        total += DISTANCE_MARGIN * (x - y) * (x - y) - 2.0 * t * y
    return total
