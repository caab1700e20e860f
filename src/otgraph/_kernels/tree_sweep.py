"""The lists of `sweep.py`, filled leaf by leaf of a k-d tree, for points in few dimensions.

The tree is that of `tree.py`; ``node_lift`` has the largest lift of every node. The nearer child of
a node is visited first.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import power, squared_distance_between
from otgraph._kernels.lists import next_length, shorten
from otgraph._kernels.sweep import reach_of
from otgraph._kernels.tree import _point_to_box
from otgraph._numba import njit


@njit
def sweep_tree(
    X, order, offsets, lower, upper, lift, node_lift, factor, half_power,
    Q, own, kind, first, second, values, columns, counts, bounds, lengths, row,
):  # fmt: skip
    """Fill the lists of the queries from ``row`` on; they come out shortened.

    Stops if a list may be too short. Returns the number of that query, or the number of queries.
    """
    n_leaves, capacity = len(offsets) - 1, values.shape[1]
    stack, distances = np.empty(128, dtype=np.int64), np.empty(128)
    for r in range(row, len(Q)):
        count, bound, length = 0, np.inf, lengths[r]
        stack[0], distances[0] = 1, 0.0
        height = 1
        while height:
            height -= 1
            node = stack[height]
            if distances[height] > reach_of(bound, node_lift[node], factor, half_power):
                continue
            if node < n_leaves:
                near, far = 2 * node, 2 * node + 1
                to_near = _point_to_box(Q, r, lower, upper, near)
                to_far = _point_to_box(Q, r, lower, upper, far)
                if to_far < to_near:
                    near, far, to_near, to_far = far, near, to_far, to_near
                stack[height], distances[height] = far, to_far
                stack[height + 1], distances[height + 1] = near, to_near
                height += 2
                continue
            begin, end = offsets[node - n_leaves], offsets[node - n_leaves + 1]
            if count + end - begin > capacity:
                count, bound = shorten(kind, first[r], second, values[r], columns[r], count)
                if count + end - begin > capacity:
                    return r
            for j in range(begin, end):
                square = squared_distance_between(Q, r, X, j)
                value = power(square, factor, half_power) - lift[j]
                if value <= bound and order[j] != own[r]:
                    values[r, count] = value
                    columns[r, count] = order[j]
                    count += 1
            if count >= length:
                count, bound = shorten(kind, first[r], second, values[r], columns[r], count)
                length = next_length(count)
        counts[r], bounds[r] = shorten(kind, first[r], second, values[r], columns[r], count)
    return len(Q)
