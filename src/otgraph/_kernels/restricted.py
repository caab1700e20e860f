"""Sums over the candidate pairs, row by row.

Pairs are stored twice, as symmetric CSR, so the result of a row depends on this row only. Any
number of threads therefore gives the same bits. The diagonal is stored separately; its cost is
infinite if a point may not keep mass.

Places have no sign in the loops that take long: numba allows negative ones and tests every signed
one, which is a quarter to a half of the time of these loops.
"""

from __future__ import annotations

import numpy as np

from otgraph._numba import borrowing, inner, njit

# Steps of a place without a sign: together with a signed number it would become a float.
ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(1, 5))


@borrowing
def evaluate(
    indptr, indices, cost, diagonal, u, start, stop, row_sums, square_sums, ends, active
):  # fmt: skip
    """Row sums of (u_i + u_j - c_ij)_+ and of its square, and the active columns of every row.

    The active columns of row i are ``active[indptr[i]:ends[i]]``. Without a branch: every column
    is written, and only an active one advances the position.
    """
    for i in range(start, stop):
        ui = u[i]
        total = 0.0
        square = 0.0
        q = np.uint64(indptr[i])
        for p in range(q, np.uint64(indptr[i + 1])):
            j = indices[p]
            excess = ui + u[np.uint32(j)] - cost[p]
            used = excess > 0.0
            excess = excess if used else 0.0
            total += excess
            square += excess * excess
            active[q] = j
            q += np.uint64(used)
        ends[i] = q
        excess = 2.0 * ui - diagonal[i]
        if excess > 0.0:
            total += excess
            square += excess * excess
        row_sums[i] = total
        square_sums[i] = square


@borrowing
def fill_degrees(starts, ends, diagonal, u, start, stop, degrees, hessian_diagonal):
    """Active entries of every row with the diagonal, which counts twice in the Hessian's."""
    for i in range(start, stop):
        loop = 1.0 if 2.0 * u[i] > diagonal[i] else 0.0
        degrees[i] = (ends[i] - starts[i]) + loop
        hessian_diagonal[i] = degrees[i] + loop


@borrowing
def number_locally(columns, place, n_own, outside):
    """Replace columns by their places, where they are: the list is as long as all pairs.

    Columns without a place get the next one behind the ``n_own`` own points, and are listed in
    ``outside``. Returns how many these are.
    """
    count = 0
    for p in range(len(columns)):
        j = columns[p]
        if place[j] < 0:
            place[j] = n_own + count
            outside[count] = j
            count += 1
        columns[p] = place[j]
    return count


@borrowing
def add_outer_squares(indptr, indices, cost, u, start, stop, square_sums):
    """Add the squares of (u_i + u_j - c_ij)_+ for columns j that are not rows."""
    n = len(square_sums)
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            if j >= n:
                excess = max(u[i] + u[j] - cost[p], 0.0)
                square_sums[i] += excess * excess


@borrowing
def copy_rows(indptr, indices, cost, rows, ends, start, stop, out_indices, out_cost):
    """Copy the pairs of some rows, so that those of each end at its place in ``ends``."""
    for r in range(start, stop):
        first, last = indptr[rows[r]], indptr[rows[r] + 1]
        target = ends[r] - (last - first)
        for p in range(first, last):
            out_indices[target + p - first] = indices[p]
            out_cost[target + p - first] = cost[p]


@borrowing
def count_active(indptr, indices, cost, u, start, stop, counts):
    """Number of pairs of a row with u_i + u_j > c_ij."""
    for i in range(start, stop):
        ui = u[i]
        count = 0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            count += 1 if ui + u[np.uint32(indices[p])] > cost[p] else 0
        counts[i] = count


@borrowing
def select_active_costs(indptr, indices, cost, u, start, stop, out_indptr, out_indices, out_cost):
    """Column indices and costs of the pairs that `count_active` counted.

    Every pair is written, and only an active one advances the position. The only branch is the
    test for the end of the row, which is easy to predict.
    """
    for i in range(start, stop):
        ui = u[i]
        q, end = np.uint64(out_indptr[i]), np.uint64(out_indptr[i + 1])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if q == end:
                break
            j = indices[p]
            out_indices[q] = j
            out_cost[q] = cost[p]
            q += np.uint64(ui + u[np.uint32(j)] > cost[p])


@borrowing
def select_plan(
    indptr, indices, cost, u, eps, start, stop, out_indptr, out_indices, out_cost, weights, sums
):  # fmt: skip
    """The same, for the active pairs that `evaluate` found, with pi_ij = (u_i + u_j - c_ij) / eps.

    ``sums`` gets those of pi_ij, c_ij pi_ij and pi_ij² of every row, as `scaled_plan_values` adds
    them up, and the smallest weight or cost.
    """
    for i in range(start, stop):
        ui = u[i]
        total = linear = square = 0.0
        least = np.inf
        q, end = np.uint64(out_indptr[i]), np.uint64(out_indptr[i + 1])
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            if q == end:
                break
            j = indices[p]
            c = cost[p]
            excess = ui + u[np.uint32(j)] - c
            used = excess > 0.0
            weight = excess / eps if used else 0.0
            out_indices[q] = j
            out_cost[q] = c
            weights[q] = weight
            q += np.uint64(used)
            total += weight
            linear += c * weight
            square += weight * weight
            smaller = weight if weight < c else c
            smaller = smaller if used else np.inf
            least = smaller if smaller < least else least
        sums[0, i], sums[1, i], sums[2, i], sums[3, i] = total, linear, square, least


@njit
def sums_of_plan(indptr, indices, cost, u, eps, start, stop, sums):
    """The sums of `select_plan`, the same bits, where the entries are not needed.

    The division is never left out: a branch that nobody can predict takes longer.
    """
    for i in range(start, stop):
        ui = u[i]
        total = linear = square = 0.0
        least = np.inf
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            c = cost[p]
            excess = ui + u[np.uint32(indices[p])] - c
            used = excess > 0.0
            weight = (excess if used else 0.0) / eps
            total += weight
            linear += c * weight
            square += weight * weight
            least = min(least, min(weight, c) if used else np.inf)
        sums[0, i], sums[1, i], sums[2, i], sums[3, i] = total, linear, square, least


@inner
def sum_at(v, indices, first, last, total):
    """``total`` plus the entries of v at the indices; four partial sums, as in distances."""
    s1 = s2 = s3 = 0.0
    p, end = np.uint64(first), np.uint64(last)
    while p + FOUR <= end:
        total += v[np.uint32(indices[p])]
        s1 += v[np.uint32(indices[p + ONE])]
        s2 += v[np.uint32(indices[p + TWO])]
        s3 += v[np.uint32(indices[p + THREE])]
        p += FOUR
    while p < end:
        total += v[np.uint32(indices[p])]
        p += ONE
    return (total + s1) + (s2 + s3)


@borrowing
def hessian_product(starts, ends, indices, diagonal, v, start, stop, out):
    """(diag(degree) + sigma) v, where ``diagonal`` holds degree + sigma_ii."""
    for i in range(start, stop):
        out[i] = sum_at(v, indices, starts[i], ends[i], diagonal[i] * v[i])


@borrowing
def shifted_product(starts, ends, indices, diagonal, shift, v, start, stop, out):
    """`hessian_product` with a shift of the diagonal, the same bits as adding shift · v."""
    for i in range(start, stop):
        out[i] = sum_at(v, indices, starts[i], ends[i], diagonal[i] * v[i]) + shift[i] * v[i]


@borrowing
def largest_of_rows(indptr, values, start, stop, out):
    """Largest value of every row, 0 for a row without entries."""
    for i in range(start, stop):
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        largest = values[first] if first < last else 0.0
        for p in range(first, last):
            largest = values[p] if values[p] > largest else largest
        out[i] = largest


@borrowing
def sums_of_rows(indptr, values, start, stop, out):
    """Add the sum of every row."""
    for i in range(start, stop):
        total = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += values[p]
        out[i] += total


@borrowing
def mark_columns(starts, ends, indices, rows, marked):
    """Mark the active columns of some rows."""
    for i in rows:
        for p in range(np.uint64(starts[i]), np.uint64(ends[i])):
            marked[np.uint32(indices[p])] = True


@borrowing
def plan_product(indptr, indices, weights, diagonal, v, start, stop, out):
    """(diag(row sums) + plan) v, where ``diagonal`` holds row sum + plan_ii."""
    for i in range(start, stop):
        total = diagonal[i] * v[i]
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += weights[p] * v[np.uint32(indices[p])]
        out[i] = total


@borrowing
def scaled_plan_values(indptr, indices, weights, cost, w, start, stop, linear, square):
    """Row sums of c·q and q² for the plan q_ij = weight_ij (1 + w_i + w_j)."""
    for i in range(start, stop):
        a = 0.0
        b = 0.0
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            q = weights[p] * (1.0 + (w[i] + w[np.uint32(indices[p])]))
            a += cost[p] * q
            b += q * q
        linear[i] = a
        square[i] = b


FEW = 40  # entries of most rows
PLACE_BITS = 31  # of a sort key, for the place of an entry in its row
PLACE_MASK = (1 << PLACE_BITS) - 1


@njit
def reordered(
    indptr, indices, weights, costs, loops, order, place, start, stop,
    out_indptr, out_indices, out_weights, out_costs,
):  # fmt: skip
    """Rows of the plan with its diagonal, in the order of the input, with sorted columns.

    A sort key holds the column and, in its last bits, the place of the entry in its row.
    """
    keys = np.empty(FEW, dtype=np.int64)
    for r in range(start, stop):
        first = indptr[place[r]]
        degree = indptr[place[r] + 1] - first
        if degree >= len(keys):
            keys = np.empty(2 * degree, dtype=np.int64)
        for s in range(degree):
            keys[s] = (np.int64(order[indices[first + s]]) << PLACE_BITS) | s
        keys[degree] = (np.int64(r) << PLACE_BITS) | degree
        row = keys[: degree + (loops[place[r]] > 0.0)]
        gap = len(row)
        while gap > 1:  # Shellsort with the gaps of Gonnet
            gap = max(1, (5 * gap - 1) // 11)
            for s in range(gap, len(row)):
                key = row[s]
                t = s
                while t >= gap and row[t - gap] > key:
                    row[t] = row[t - gap]
                    t -= gap
                row[t] = key
        q = out_indptr[r]
        for s in range(len(row)):
            key = row[s]
            p = key & PLACE_MASK
            out_indices[q] = key >> PLACE_BITS
            out_weights[q] = weights[first + p] if p < degree else loops[place[r]]
            out_costs[q] = costs[first + p] if p < degree else 0.0
            q += 1


@borrowing
def solve_row(costs, target, guess=np.inf):
    """The scalar t with sum_j (t - costs_j)_+ = target > 0; infinite costs do not count.

    This is Newton's method from the right on a convex, increasing function. Each step drops the
    costs above t. If none is dropped, t is exact. The number of costs decreases in every step, so
    the loop ends in spite of rounding. Two partial sums without a branch are faster than one.

    A step from a guess on either side leads to the right, if any cost is below the guess.
    """
    t = guess
    before = len(costs) + 1
    while True:
        total, more = target, 0.0
        count = others = 0
        for k in range(0, len(costs) - 1, 2):
            a, b = costs[k], costs[k + 1]
            total += a if a < t else 0.0
            more += b if b < t else 0.0
            count += 1 if a < t else 0
            others += 1 if b < t else 0
        if len(costs) % 2:
            a = costs[len(costs) - 1]
            total += a if a < t else 0.0
            count += 1 if a < t else 0
        total += more
        count += others
        if guess < np.inf:
            guess = np.inf
            t = total / count if count > 0 else np.inf
            continue
        if count >= before or count == 0:
            return t
        before = count
        t = total / count


@njit
def lift_rows(indptr, indices, cost, diagonal, u, rows, target, start, stop, out):
    """Solve sum_j (t_i + u_j - c_ij)_+ = target_i for t_i while the u of all others are fixed."""
    room = np.empty(FEW)
    for r in range(start, stop):
        i = rows[r]
        first, last = indptr[i], indptr[i + 1]
        if last - first >= len(room):
            room = np.empty(2 * (last - first))
        row = room[: last - first + 1]
        begin = np.uint64(first)
        for k in range(np.uint64(last - first)):
            row[k] = cost[begin + k] - u[np.uint32(indices[begin + k])]
        # The diagonal entry is (2t - g)_+ = 2 (t - g/2)_+. Only half of it is counted, which is
        # enough for a search direction.
        row[last - first] = 0.5 * diagonal[i]
        out[r] = solve_row(row, target[i], u[i] if u[i] > 0.0 else np.inf)


@borrowing
def row_excess(counts, costs, ranks, out):
    """Sum over the ``rank`` smallest costs of a row: the next larger one minus theirs.

    With this target and equal potentials, a row by itself has so many neighbors. A row with fewer
    costs uses all of them; ``counts`` says how many each row has, one row after the other.
    """
    first = 0
    for r in range(len(counts)):
        row = costs[first : first + counts[r]]
        first += counts[r]
        for k in range(len(ranks)):
            total = 0.0
            following = _ranked_cost(row, ranks[k])
            for p in range(len(row)):
                total += max(following - row[p], 0.0)
            out[k, r] = total


HALVINGS = 64  # more than a number in double precision has digits


@inner
def _ranked_cost(row, rank):
    """The smallest cost with more than ``rank`` costs up to it, or the largest of all."""
    low = high = 0.0
    for p in range(len(row)):
        high = max(high, row[p])
    if len(row) <= rank:
        return high
    for _ in range(HALVINGS):  # sorting takes longer: its branches cannot be predicted
        middle = 0.5 * (low + high)
        below = 0
        for p in range(len(row)):
            below += 1 if row[p] < middle else 0
        if below <= rank:
            low = middle
        else:
            high = middle
        if below == rank:
            break
    following = np.inf
    for p in range(len(row)):
        following = min(following, row[p] if row[p] >= low else np.inf)
    return following
