"""Coarser versions of a linear system, in which groups of rows move together.

A system has a diagonal and the other entries by rows, ``indices[starts[i]:ends[i]]`` with their
``values``; if there are none, all entries are one. Where an entry is positive, its two rows move
against each other in a vector that the matrix makes small. So each group has one unknown, and each
of its rows a sign. ``codes`` hold both: k + 1 or -k - 1 for a row of group k, and 0 for a row that
is in no group because it has no other entries.

All kernels are serial, so that the order of every sum is fixed.
"""

from __future__ import annotations

import numpy as np

from otgraph._numba import inner, njit

# Share of a Jacobi step. The largest eigenvalue of the scaled matrix is 2 for a bipartite graph, so
# that a share of 2/3 damps the upper three quarters of the spectrum to a third.
DAMPING = 2.0 / 3.0
# A second step on a coarse level is left out if the first one made the residual so small. Without
# second steps errors add up over the levels; with this rule of AGMG their number does not matter.
ENOUGH = 0.25
# An entry below this share of the largest one of either row is weak. Its rows need not move
# together, and groups of rows that do not move together tell nothing about slow changes.
STRONG = 0.25
ROUNDING = 1e-15  # a coarse diagonal below this share of its terms is rounding error


@inner
def _entry(values, p):
    return values[p] if len(values) else 1.0


@inner
def _is_strong(values, least, i, j, p):
    entry = abs(_entry(values, p))
    return entry > 0.0 and entry >= least[i] and entry >= least[j]


@njit
def group_rows(starts, ends, indices, values, codes):
    """Put every row with other entries into a group; returns the number of groups.

    A row makes a group with the neighbors that it has strong entries with, if these are all free.
    Rows that are left over join the group of the neighbor with the largest entry.
    """
    n = len(codes)
    least = np.empty(n)  # of the entries of a row that are strong
    for i in range(n):
        codes[i] = 0
        least[i] = 0.0
        for p in range(starts[i], ends[i]):
            least[i] = max(least[i], STRONG * abs(_entry(values, p)))
    count = 0
    for i in range(n):
        free, strong = codes[i] == 0, False
        for p in range(starts[i], ends[i]):
            if _is_strong(values, least, i, indices[p], p):
                strong = True
                if codes[indices[p]] != 0:
                    free = False
                    break
        if not (free and strong):
            continue
        count += 1
        codes[i] = count
        for p in range(starts[i], ends[i]):
            if _is_strong(values, least, i, indices[p], p):
                codes[indices[p]] = -count if _entry(values, p) > 0.0 else count
    joined = codes.copy()
    for i in range(n):
        if codes[i] != 0:
            continue
        largest = 0.0
        for p in range(starts[i], ends[i]):
            entry, code = _entry(values, p), codes[indices[p]]
            if code != 0 and abs(entry) > largest:
                largest = abs(entry)
                joined[i] = -code if entry > 0.0 else code
    for i in range(n):
        codes[i] = joined[i]
    return count


@njit
def group_members(codes, count):
    """The rows of every group, group after group, and where each begins."""
    begins = np.zeros(count + 1, dtype=np.int64)
    for i in range(len(codes)):
        if codes[i] != 0:
            begins[abs(codes[i])] += 1
    for k in range(count):
        begins[k + 1] += begins[k]
    members = np.empty(begins[count], dtype=np.int32)
    following = begins.copy()
    for i in range(len(codes)):
        if codes[i] != 0:
            k = abs(codes[i]) - 1
            members[following[k]] = i
            following[k] += 1
    return begins, members


@njit
def coarse_system(starts, ends, indices, values, diagonal, codes, begins, members):
    """The system of the groups: the matrix between vectors that are constant, up to signs, on them.

    Returns its diagonal, and the other entries by rows.
    """
    n = len(begins) - 1
    coarse_diagonal = np.empty(n)
    indptr = np.zeros(n + 1, dtype=np.int64)
    room = max(16, len(members))
    columns, entries = np.empty(room, dtype=np.int32), np.empty(room)
    place = np.full(n, -1, dtype=np.int64)  # of the entry of a column, if it is in this row
    used = 0
    for k in range(n):
        first, total, size = used, 0.0, 0.0
        for m in range(begins[k], begins[k + 1]):
            i = members[m]
            total += diagonal[i]
            size += diagonal[i]
            for p in range(starts[i], ends[i]):
                code = codes[indices[p]]
                entry = _entry(values, p)
                if (code > 0) != (codes[i] > 0):
                    entry = -entry
                column = abs(code) - 1
                if column == k:
                    total += entry
                    continue
                if place[column] < first:
                    if used == room:
                        columns = np.concatenate((columns, np.empty(room, dtype=np.int32)))
                        entries = np.concatenate((entries, np.empty(room)))
                        room *= 2
                    place[column] = used
                    columns[used] = column
                    entries[used] = 0.0
                    used += 1
                entries[place[column]] += entry
        coarse_diagonal[k] = max(total, ROUNDING * size)
        indptr[k + 1] = used
    return coarse_diagonal, indptr, columns[:used].copy(), entries[:used].copy()


@njit
def to_groups(codes, residual, right, first, last):
    """Sum the residuals of every group, with their signs; the groups are ``first:last``."""
    for k in range(first, last):
        right[k] = 0.0
    for i in range(len(residual)):
        if codes[i] > 0:
            right[codes[i] - 1] += residual[i]
        elif codes[i] < 0:
            right[-codes[i] - 1] -= residual[i]


@njit
def add_from_groups(codes, x, z):
    """Add the values of the groups to those of their rows."""
    for i in range(len(z)):
        if codes[i] > 0:
            z[i] += x[codes[i] - 1]
        elif codes[i] < 0:
            z[i] -= x[-codes[i] - 1]


@njit
def solve_coarse(level, firsts, indptr, indices, values, diagonal, codes, right, x, work):
    """Solve the system of a level roughly: one or two steps of conjugate gradients.

    Rows of all levels are numbered one after the other: level l has ``firsts[l]:firsts[l + 1]``,
    and codes and columns are such numbers. Each step is preconditioned by a Jacobi step, the
    solution of the next level, and another Jacobi step. ``right`` is used up.
    """
    a, b = firsts[level], firsts[level + 1]
    z, residual, direction, image = work[0], work[1], work[2], work[3]
    if level + 2 == len(firsts):  # no entries beside the diagonal
        for i in range(a, b):
            x[i] = right[i] / diagonal[i]
        return
    first_curvature = first_share = 0.0
    for step in range(2):
        for i in range(a, b):
            z[i] = DAMPING * right[i] / diagonal[i]
        for i in range(a, b):
            residual[i] = right[i] - _row_product(i, indptr, indices, values, diagonal, z)
        to_groups(codes[a:b], residual[a:b], right, b, firsts[level + 2])
        solve_coarse(level + 1, firsts, indptr, indices, values, diagonal, codes, right, x, work)
        add_from_groups(codes[a:b], x, z[a:b])
        for i in range(a, b):
            residual[i] = right[i] - _row_product(i, indptr, indices, values, diagonal, z)
        for i in range(a, b):
            share = DAMPING if codes[i] != 0 else 1.0
            z[i] += share * residual[i] / diagonal[i]
        curvature = mixed = slope = 0.0
        for i in range(a, b):
            residual[i] = _row_product(i, indptr, indices, values, diagonal, z)
            curvature += z[i] * residual[i]
            slope += z[i] * right[i]
            if step == 1:
                mixed += z[i] * image[i]
        if step == 0:
            if curvature <= 0.0:
                for i in range(a, b):
                    x[i] = z[i]
                return
            first_curvature, first_share = curvature, slope / curvature
            before = after = 0.0
            for i in range(a, b):
                direction[i], image[i] = z[i], residual[i]
                before += right[i] * right[i]
                right[i] -= first_share * image[i]
                after += right[i] * right[i]
            if after <= ENOUGH * ENOUGH * before:
                break
        else:
            remaining = curvature - mixed * mixed / first_curvature
            if remaining <= 0.0:
                break
            share = slope / remaining
            first_share -= mixed * share / first_curvature
            for i in range(a, b):
                x[i] = first_share * direction[i] + share * z[i]
            return
    for i in range(a, b):
        x[i] = first_share * direction[i]


@inner
def _row_product(i, indptr, indices, values, diagonal, v):
    total = diagonal[i] * v[i]
    for p in range(indptr[i], indptr[i + 1]):
        total += values[p] * v[indices[p]]
    return total
