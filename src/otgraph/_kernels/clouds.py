"""Potentials of all points from those of some points, for problems between two clouds."""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import power, squared_distance
from otgraph._kernels.restricted import solve_row
from otgraph._numba import njit


@njit
def near_chosen(X, chosen, first, last, width, start, stop, out):
    """For each point the place of a near one among ``chosen[first:last]``.

    Points are sorted so that neighbors in memory are near in space: only the chosen points among
    the ``width`` places before and after the point are compared.
    """
    place = first
    for i in range(start, stop):
        while place + 1 < last and chosen[place + 1] <= i:
            place += 1
        best = np.inf
        for p in range(max(first, place - width), min(last, place + width + 1)):
            square = squared_distance(X, i, chosen[p])
            if square < best:
                best = square
                out[i] = p


@njit
def lifted_by_parents(
    X, factor, half_power, parents, indptr, columns, u, target, start, stop, out
):  # fmt: skip
    """Solve sum_j (t_i + u_j - c_ij)_+ = target over the partners j and the target of the parent.

    ``columns`` are partners as points, and ``u`` are potentials of all points.
    """
    for i in range(start, stop):
        parent = parents[i]
        first, last = indptr[parent], indptr[parent + 1]
        row = np.empty(last - first)
        for p in range(first, last):
            j = columns[p]
            row[p - first] = power(squared_distance(X, i, j), factor, half_power) - u[j]
        out[i] = solve_row(row, target[parent])


@njit
def lifted_rows(costs, u, target, out):
    """Solve sum_j (t_i + u_j - c_ij)_+ = target_i over all columns of a block of costs."""
    row = np.empty(costs.shape[1])
    for i in range(costs.shape[0]):
        for j in range(costs.shape[1]):
            row[j] = costs[i, j] - u[j]
        out[i] = solve_row(row, target[i])
