"""A binary tree over consecutive leaves of points: which leaves can hold a pair of a leaf.

Node 1 is the root, the children of node i are 2i and 2i + 1, and leaf b of 2^depth leaves is
node 2^depth + b. A node knows the box around its points and their largest reach. Leaves are met
from left to right, so that the pairs of a row come out sorted.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import power, squared_distance
from otgraph._numba import njit

# Box distances are lowered by more than the rounding error of computing them.
DISTANCE_MARGIN = 1.0 - 1e-12


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
def fill_reaches(reach, offsets, most):
    """Largest reach of every node, from the leaves up."""
    n_leaves = len(offsets) - 1
    for b in range(n_leaves):
        largest = reach[offsets[b]]
        for i in range(offsets[b] + 1, offsets[b + 1]):
            largest = max(largest, reach[i])
        most[n_leaves + b] = largest
    for node in range(n_leaves - 1, 0, -1):
        most[node] = max(most[2 * node], most[2 * node + 1])


@njit
def collect_near(
    X, leaf_of, offsets, lower, upper, reach, most, bound, factor, half_power, rows,
    counts, j_out, c_out, first,
):  # fmt: skip
    """Append all j with bound_i + bound_j > c_ij for each row i, sorted; ``counts`` says how many.

    Stops before a row that might not fit and returns (next row, number written).
    """
    n_leaves = len(offsets) - 1
    near = np.empty(n_leaves, dtype=np.int64)
    n_near = n_points = 0
    listed = -1  # leaf whose near leaves are listed
    count = 0
    for r in range(first, len(rows)):
        i = rows[r]
        if leaf_of[i] != listed:
            listed = leaf_of[i]
            n_near, n_points = _near_leaves(offsets, lower, upper, most, listed, near)
        if count + n_points > len(j_out):
            return r, count
        begin = count
        for s in range(n_near):
            b = near[s]
            node = n_leaves + b
            if _point_to_box(X, i, lower, upper, node) >= reach[i] + most[node]:
                continue
            for j in range(offsets[b], offsets[b + 1]):
                cost = power(squared_distance(X, i, j), factor, half_power)
                j_out[count] = j
                c_out[count] = cost
                # Written always, kept by moving on: no branch to guess wrongly.
                count += (bound[i] + bound[j] > cost) & (j != i)
        counts[r] = count - begin
    return len(rows), count


@njit
def _near_leaves(offsets, lower, upper, most, leaf, near):
    """Leaves that may hold a pair of ``leaf``, and how many points they have."""
    n_leaves = len(offsets) - 1
    own = n_leaves + leaf
    stack = np.empty(64, dtype=np.int64)
    stack[0] = 1
    height = 1
    n_near = n_points = 0
    while height:
        height -= 1
        node = stack[height]
        if _box_to_box(lower, upper, own, node) >= most[own] + most[node]:
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


@njit
def _box_to_box(lower, upper, a, b):
    total = 0.0
    for k in range(lower.shape[1]):
        gap = max(lower[a, k] - upper[b, k], lower[b, k] - upper[a, k], 0.0)
        total += gap * gap
    return DISTANCE_MARGIN * total


@njit
def _point_to_box(X, i, lower, upper, node):
    total = 0.0
    for k in range(X.shape[1]):
        gap = max(lower[node, k] - X[i, k], X[i, k] - upper[node, k], 0.0)
        total += gap * gap
    return DISTANCE_MARGIN * total
