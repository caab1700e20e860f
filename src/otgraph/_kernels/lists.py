"""Short lists of the best points of a query, which bound what can still enter them.

A list holds values v_j and points j. Its rule says which values can belong to the result, given
those found so far. Every rule gives a bound that never rises when more points are found, so a
point above it is excluded for good:

* `NEAREST`: the k smallest values; among equal values the smaller number of the point counts.
* `TRANSPORT`: the values below the level v with sum (v - v_j)_+ = mass. A part of the points needs
  a level that is at least as high as that of all points.
* `SHARE`: the values with exp(-v_j / eps) >= share · sum exp(-v_j / eps). A part of the points has
  a smaller sum.
"""

from __future__ import annotations

import numpy as np

from otgraph._kernels.euclidean import power, squared_distance
from otgraph._numba import njit

NEAREST, TRANSPORT, SHARE = 0, 1, 2
# Relative increase of bounds, to cover rounding errors of the sums behind them.
BOUND_MARGIN = 1e-12
# A list is shortened again when it has grown by a half, and by at least this many entries.
FEWEST_NEW = 8
# Up to this length, insertion sort is faster than numpy's sort, which takes longer to begin.
INSERTION_SORT_LENGTH = 128


@njit
def shorten(kind, first, second, values, columns, count):
    """Drop what the rule excludes; returns the new length and the bound.

    ``first`` and ``second`` are the numbers of the rule: k; the mass; eps and log(1 / share). The
    entries that remain are sorted by value and column for `NEAREST`, and in any order otherwise.
    """
    if count == 0:
        return 0, np.inf
    if kind == NEAREST:
        k = int(first)
        sort_entries(values, columns, count)
        if count < k:
            return count, np.inf
        return k, values[k - 1]
    if kind == TRANSPORT:
        bound = level_of(values, count, first)
    else:
        smallest = values[0]
        for p in range(1, count):
            smallest = min(smallest, values[p])
        total = 0.0
        for p in range(count):
            total += np.exp((smallest - values[p]) / first)
        bound = smallest + first * (second - np.log(total))
    bound += BOUND_MARGIN * (abs(bound) + first)
    kept = 0
    for p in range(count):
        if values[p] <= bound:
            values[kept] = values[p]
            columns[kept] = columns[p]
            kept += 1
    return kept, bound


@njit
def next_length(count):
    """Length at which a list is shortened again."""
    return count + max(FEWEST_NEW, count // 2)


@njit
def level_of(values, count, mass):
    """The level v with sum (v - values)_+ = mass.

    The level of a part of the values is at least that of all. So the level of the values below the
    last level falls until it excludes none.
    """
    smallest = values[0]
    for p in range(1, count):
        smallest = min(smallest, values[p])
    # Relative to the smallest value, so that far points keep their digits.
    level, active = mass, -1
    while True:
        total, n_below = mass, 0
        for p in range(count):
            excess = values[p] - smallest
            if excess < level:
                total += excess
                n_below += 1
        if n_below == active or n_below == 0:
            return smallest + level
        level, active = total / n_below, n_below


@njit
def sort_entries(values, columns, count):
    """Sort by value, then by column."""
    if count > INSERTION_SORT_LENGTH:
        by_column = np.argsort(columns[:count], kind="mergesort")
        order = by_column[np.argsort(values[:count][by_column], kind="mergesort")]
        values[:count] = values[:count][order]
        columns[:count] = columns[:count][order]
        return
    # A list that was shortened before begins with sorted entries, which stay where they are.
    for p in range(1, count):
        value, column = values[p], columns[p]
        q = p - 1
        while q >= 0 and (values[q] > value or (values[q] == value and columns[q] > column)):
            values[q + 1] = values[q]
            columns[q + 1] = columns[q]
            q -= 1
        values[q + 1] = value
        columns[q + 1] = column


@njit
def start(kind, first, counts, bounds, lengths):
    """Empty lists, and the lengths at which they are shortened for the first time."""
    counts[:] = 0
    bounds[:] = np.inf
    lengths[:] = FEWEST_NEW
    if kind == NEAREST:
        lengths[:] = first


@njit
def shorten_all(kind, first, second, values, columns, counts, bounds):
    """Shorten the lists of all queries; ``first`` has a number for each of them."""
    for r in range(len(counts)):
        counts[r], bounds[r] = shorten(kind, first[r], second, values[r], columns[r], counts[r])


@njit
def sort_by_column(values, columns, counts):
    """Sort every list by column."""
    for r in range(len(counts)):
        order = np.argsort(columns[r, : counts[r]])
        values[r, : counts[r]] = values[r, : counts[r]][order]
        columns[r, : counts[r]] = columns[r, : counts[r]][order]


@njit
def put_rows(rows, indptr, columns, values, out_columns, out_values):
    """Copy lists that follow each other to their rows."""
    p = 0
    for row in rows:
        for q in range(indptr[row], indptr[row + 1]):
            out_columns[q] = columns[p]
            out_values[q] = values[p]
            p += 1


@njit
def trim(eps, share, values, columns, counts):
    """Drop the smallest exp(-v / eps) of every list, up to a share of the sum of the list."""
    for r in range(len(counts)):
        count = counts[r]
        if count == 0:
            continue
        some = values[r, :count]
        order = np.argsort(some)
        values[r, :count] = some[order]
        columns[r, :count] = columns[r, :count][order]
        weights = np.exp((values[r, 0] - values[r, :count]) / eps[r])
        room = share * weights.sum()
        while count > 1 and weights[count - 1] <= room:
            room -= weights[count - 1]
            count -= 1
        counts[r] = count


@njit
def list_costs(X, indptr, columns, factor, half_power, start, stop, out):
    """Costs of listed pairs; the same bits for (i, j) and (j, i)."""
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = power(squared_distance(X, i, columns[p]), factor, half_power)


@njit
def fill_transport(indptr, values, masses, eps):
    """Replace the values of every list by (level - v)_+ / eps, which sum to mass / eps."""
    for row in range(len(masses)):
        some = values[indptr[row] : indptr[row + 1]]
        # Relative to the smallest value, so that far points keep their digits.
        some -= some.min()
        level = level_of(some, len(some), masses[row])
        for p in range(len(some)):
            some[p] = max(level - some[p], 0.0) / eps


@njit
def fill_entropic(indptr, values, masses, eps):
    """Replace the values of every list by weights like exp(-v / eps) that sum to the mass."""
    for row in range(len(masses)):
        some = values[indptr[row] : indptr[row + 1]]
        smallest = some.min()
        for p in range(len(some)):
            some[p] = np.exp((smallest - some[p]) / eps)
        some *= masses[row] / some.sum()
