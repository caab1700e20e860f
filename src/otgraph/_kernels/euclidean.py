"""Blocks of Euclidean distances: a float32 product preselects pairs, and float64 decides.

Relative to a center b, the squared distance is |y|² + |z|² - 2 y·z with y = x_i - b, z = x_j - b.
The search is for pairs whose squared distance is smaller than r_i + r_j, that is

    2 y·z + (r_j - |z|²)  >  |y|² - r_i .

The left side is a float32 matrix product of [2y, 1] and [z, r - |z|²]. The right side is one number
per row, lowered by a bound of all rounding errors, so no such pair is lost. The costs of pairs that
pass are computed again from the points in float64, and these costs decide.
"""

from __future__ import annotations

import numpy as np

from otgraph._numba import LANES, borrowing, inlined, inner, njit, squares_in_lanes, trailing_zeros

CHUNK = 64  # entries that are compared with a limit at once: the bits of a mask
SAMPLE_STEP = 8  # one of so many entries tells which may be among the largest
BISECTIONS = 24  # as many as a float32 has digits
LAST_DIGIT = np.float32(2.0**-22)  # more than the relative distance of two float32 numbers
SMALL = np.float32(1e-30)  # more than the distance of those near zero
# Relative increase of reaches before they are rounded to float32, to cover rounding errors of
# their sums.
REACH_MARGIN = 8 * 2.0**-24


@inlined
def squared_distance(X, i, j):
    """Sum of squared differences; the same bits for (i, j) and (j, i)."""
    return squared_distance_between(X, i, X, j)


@inlined
def _square(q, x, k):
    """In float64, also for points in float32. Without a sign there is no test for negative ones."""
    difference = np.float64(q[np.uint64(k)]) - np.float64(x[np.uint64(k)])
    return difference * difference


@inlined
def squared_distance_between(Q, i, X, j):
    """The same for row i of Q and row j of X, by the fixed sums of `squares_in_lanes`.

    The rest has four partial sums, because independent additions are faster.
    """
    d = X.shape[1]
    q, x = Q[i], X[j]
    n = d - d % LANES
    total = squares_in_lanes(q, x, n) if n > 0 else 0.0
    s0 = s1 = s2 = s3 = 0.0
    rest = n
    if d - n >= 4:
        s0 += _square(q, x, n)
        s1 += _square(q, x, n + 1)
        s2 += _square(q, x, n + 2)
        s3 += _square(q, x, n + 3)
        rest = n + 4
    for k in range(rest, d):
        s0 += _square(q, x, k)
    return total + ((s0 + s1) + (s2 + s3))


@borrowing
def power(square, factor, half_power):
    """Cost of a squared distance."""
    if half_power == 1.0:
        return factor * square
    return factor * square**half_power


@njit
def gather(X, rows, center, scale, out, squares):
    """out[r] = scale * (X[rows[r]] - center) in float32, and the squared norms in float64.

    The caller fills the last column of ``out``.
    """
    d = X.shape[1]
    differences = np.empty(d)
    for r in range(len(rows)):
        i = rows[r]
        for k in range(d):
            differences[k] = X[i, k] - center[k]
        for k in range(d):
            out[r, k] = scale * differences[k]
        # Four partial sums, whose additions are independent.
        s0 = s1 = s2 = s3 = 0.0
        for k in range(0, d - 3, 4):
            s0 += differences[k] * differences[k]
            s1 += differences[k + 1] * differences[k + 1]
            s2 += differences[k + 2] * differences[k + 2]
            s3 += differences[k + 3] * differences[k + 3]
        for k in range(d - d % 4, d):
            s0 += differences[k] * differences[k]
        squares[r] = (s0 + s1) + (s2 + s3)


@inner
def copy_rows(source, rows, n_rows, out):
    """out[p] = source[rows[p]]."""
    for p in range(n_rows):
        line, target = source[rows[p]], out[p]
        for q in range(len(target)):
            target[q] = line[q]


@njit
def near_center(X, rows, center, square, reach, usual, share):
    """Which rows have |x - center|² < square + share · (their reach + a usual one).

    In float64 and row by row, so that the answer does not depend on the other rows.
    """
    centers = center.reshape(1, -1)
    near = np.empty(len(rows), np.bool_)
    for r in range(len(rows)):
        i = np.int64(rows[r])
        limit = square + share * max(reach[i] + usual, 0.0)
        near[r] = squared_distance_between(X, i, centers, 0) < limit
    return near


@inner
def above_limit(row, first, limit):
    """The entries of a chunk that are above the limit, as bits.

    The compiler makes a few vector instructions of the loop because its length is a constant.
    """
    chunk = row[first : first + CHUNK]
    mask = np.uint64(0)
    if len(chunk) == CHUNK:
        for s in range(CHUNK):
            mask |= np.uint64(chunk[s] > limit) << np.uint64(s)
    else:
        for s in range(len(chunk)):
            mask |= np.uint64(chunk[s] > limit) << np.uint64(s)
    return mask


@inner
def lowest(mask):
    """The lowest bit of a mask that is not zero, and its place."""
    return mask & (~mask + np.uint64(1)), np.int64(trailing_zeros(mask))


@borrowing
def collect(
    product, limits, rows, first_column, ordered, X, upper, factor, half_power,
    i_out, j_out, c_out, first_row,
):  # fmt: skip
    """Append the pairs with upper_i + upper_j > c_ij among those with a product above the limit.

    Column s is point ``first_column + s``. If ``ordered``, only pairs i < j are considered. Stops
    before a row for which the buffers may be too short. Returns (next row, number of pairs
    written).
    """
    n_rows, n_columns = product.shape
    count = 0
    for r in range(first_row, n_rows):
        if count + n_columns > len(i_out):
            return r, count
        i = np.int64(rows[r])  # one type: `squared_distance` is compiled for each
        limit = limits[r]
        begin = i + 1 - first_column if ordered and i >= first_column else 0
        row = product[r]
        for chunk in range(begin, n_columns, CHUNK):
            mask = above_limit(row, chunk, limit)
            while mask != 0:
                bit, place = lowest(mask)
                mask ^= bit
                j = first_column + chunk + place
                if j == i:
                    continue
                cost = power(squared_distance_between(X, i, X, j), factor, half_power)
                if upper[i] + upper[j] > cost:
                    i_out[count] = i
                    j_out[count] = j
                    c_out[count] = cost
                    count += 1
    return n_rows, count


@inner
def _enter(value, largest):
    """Put a value into a sorted list of the largest ones, if it belongs there."""
    if value > largest[0]:
        q = 1
        while q < len(largest) and largest[q] < value:
            largest[q - 1] = largest[q]
            q += 1
        largest[q - 1] = value


@njit
def nearest(product, first_row, columns, k, floor, out, beyond):
    """The k points with the largest products in each row, without the point of the row.

    No product of the others is above ``beyond``. Only products above ``floor`` count.

    Row r is point ``first_row + r``, and column s is point ``columns[s]``. If there are fewer than
    k points, the rest of ``out`` is -1. A sample of the row gives a limit that a little more than k
    products exceed. Among these, bisection finds one that exactly k exceed; of products that are
    equal, the first ones are taken.
    """
    n_rows, n_columns = product.shape
    share = (k + 1) / SAMPLE_STEP  # of the sample, if it is as large as on average
    rank = int(share + 2.0 * np.sqrt(share)) + 1
    sampled = n_columns > 2 * SAMPLE_STEP * rank
    largest = np.empty(rank, dtype=np.float32)
    values = np.empty(n_columns, dtype=np.float32)
    points = np.empty(n_columns, dtype=np.int32)
    for r in range(n_rows):
        own, row, found = first_row + r, product[r], out[r]
        limit = floor[r]
        if sampled and limit == -np.inf:
            for q in range(rank):
                largest[q] = limit  # sorted
            for s in range(0, n_columns, SAMPLE_STEP):
                _enter(row[s], largest)
            limit = largest[0]
        while True:
            count = 0
            for chunk in range(0, n_columns, CHUNK):
                mask = above_limit(row, chunk, limit)
                while mask != 0:
                    bit, place = lowest(mask)
                    mask ^= bit
                    # Without a sign there is no test for negative ones, which numba allows.
                    here, point = np.uint64(count), columns[np.uint64(chunk + place)]
                    values[here] = row[np.uint64(chunk + place)]
                    points[here] = point
                    count += point != own
            if count >= k or not limit > floor[r]:
                break
            limit = floor[r]
        low, high = largest_exceed(values, np.int64(count), np.int64(k))
        q = 0
        for p in range(count):
            if values[p] > high:
                found[q] = points[p]
                q += 1
        if q < k:  # those that are equal to float32, if they are more than wanted
            for p in range(count):
                if q < k and low < values[p] <= high:
                    found[q] = points[p]
                    q += 1
        for p in range(q, k):
            found[p] = -1
        beyond[r] = max(limit, high)


@inner
def _ranked(values, limit, largest):
    """The smallest of the largest values, as many as ``largest`` has room for.

    It is known not to be below the limit. Without one the first values are all tried.
    """
    largest[:] = limit
    first = CHUNK if len(values) > CHUNK else len(values)
    first = first if limit == -np.inf else 0
    for s in range(first):
        _enter(values[s], largest)
    for chunk in range(first, len(values), CHUNK):
        mask = above_limit(values, chunk, largest[0])
        while mask != 0:
            bit, place = lowest(mask)
            mask ^= bit
            _enter(values[chunk + place], largest)
    return largest[0]


@njit
def near_in_sample(product, squares, first_row, step, lifts, rank, near, needed):
    """The rank-th smallest |x - y|² of each row x among sampled points y, and of |x - y|² - lift_y.

    No lift counts for more than half of the first number. ``product`` has 2 x·y - |y|², and
    ``squares`` |x|². Row r is point ``first_row + r``, and column s is point ``s * step``, which is
    left out of its own row. Lifts are not negative.
    """
    n_rows, n_columns = product.shape
    largest, values = np.empty(rank), np.empty(n_columns)
    for r in range(n_rows):
        row, i = product[r], first_row + r
        if i % step == 0:
            row[i // step] = -np.inf
        limit = _ranked(row, -np.inf, largest)
        near[r] = squares[r] - limit
        half = 0.5 * near[r] if near[r] > 0.0 else 0.0
        for s in range(n_columns):
            values[s] = row[s] + (lifts[s] if lifts[s] < half else half)
        needed[r] = squares[r] - _ranked(values, limit, largest)


@njit
def near_pairs(product, squares, k, X, factor, half_power, beyond, i_out, j_out, c_out):
    """Pairs i < j of a few points, in order: each point with at least k nearest ones.

    ``product`` has 2 x_i·x_j and ``squares`` |x_j|², in float32. The nearest points of a row have
    the largest 2 x_i·x_j - |x_j|²; those of pairs that are not written are at most ``beyond``.
    Points that are equally near are all taken. Returns the number of pairs.
    """
    n = len(squares)
    values = np.empty(n, dtype=np.float32)
    for i in range(n):
        row = product[i]
        for j in range(n):
            values[j] = row[j] - squares[j]
        values[i] = values[n - 1]  # the point itself does not count
        beyond[i], _ = largest_exceed(values, np.int64(n - 1), np.int64(k))
    count = 0
    for i in range(n):
        row, own, limit = product[i], squares[i], beyond[i]
        for j in range(i + 1, n):
            if row[j] - squares[j] > limit or row[j] - own > beyond[j]:
                i_out[count] = i
                j_out[count] = j
                c_out[count] = power(squared_distance(X, i, j), factor, half_power)
                count += 1
    return count


@borrowing
def pairs_of_rows(product, gaps, rows, X, factor, half_power, upper, i_out, j_out, c_out):
    """Pairs of some rows with upper_i + upper_j > c_ij, if 2 x_i·x_j + gap_i + gap_j >= 0."""
    count = 0
    for r in range(len(rows)):
        i = rows[r]
        row, limit = product[i], -gaps[i]
        for j in range(product.shape[1]):
            if row[j] + gaps[j] >= limit and i != j:
                cost = power(squared_distance(X, i, j), factor, half_power)
                if upper[i] + upper[j] > cost:
                    i_out[count] = i
                    j_out[count] = j
                    c_out[count] = cost
                    count += 1
    return count


@inner
def largest_exceed(values, count, k):
    """Two numbers: at most k values exceed the second, and at least k the first, if there are."""
    low = high = values[0]
    for p in range(count):
        low = min(low, values[p])
        high = max(high, values[p])
    if count <= k:
        return np.float32(-np.inf), np.float32(-np.inf)
    low -= abs(low) * LAST_DIGIT + SMALL  # below all values
    for _ in range(BISECTIONS):
        middle = np.float32(0.5) * (low + high)
        above = 0
        for p in range(count):
            above += values[p] > middle
        if above >= k:
            low = middle
        if above <= k:
            high = middle
        if above == k:
            break
    return low, high


@borrowing
def costs_of(X, first_row, neighbors, factor, half_power, i_out, j_out, c_out):
    """Write lists of neighbors as (i, j, cost), without entries -1; returns their number."""
    count = 0
    for r in range(neighbors.shape[0]):
        i = first_row + r
        for s in range(neighbors.shape[1]):
            j = np.int64(neighbors[r, s])
            if j >= 0:
                i_out[count] = i
                j_out[count] = j
                c_out[count] = power(squared_distance(X, i, j), factor, half_power)
                count += 1
    return count


@borrowing
def assign(product, out):
    """Column of the largest entry of each row; the first one if several are equal."""
    n_rows, n_columns = product.shape
    for r in range(n_rows):
        best = product[r, 0]
        column = 0
        for chunk in range(0, n_columns, CHUNK):
            if above_limit(product[r], chunk, best) == 0:
                continue
            for b in range(chunk, min(chunk + CHUNK, n_columns)):
                if product[r, b] > best:
                    best = product[r, b]
                    column = b
        out[r] = column


@njit
def assign_in_groups(rows, product, bounds, table, n_visited, out):
    """Like `assign`, for the products of rows and ``table`` in a few groups of its rows.

    These are, for each row, the groups with the largest entries of ``product``; group g begins at
    ``bounds[g]``. All rows that look into a group are multiplied with it at once.
    """
    n_rows, n_groups = product.shape
    n_visited = min(n_visited, n_groups)
    values, groups = np.empty(n_visited, np.float32), np.empty((n_rows, n_visited), np.int64)
    starts = np.zeros(n_groups + 1, np.int64)
    _visited_groups(product, values, groups, starts)
    for g in range(n_groups):
        starts[g + 1] += starts[g]
    members, ends = np.empty(n_rows * n_visited, np.int64), starts[:-1].copy()
    for r in range(n_rows):
        for q in range(n_visited):
            g = groups[r, q]
            if g >= 0:
                members[ends[g]] = r
                ends[g] += 1
    best = np.full(n_rows, -np.inf, np.float32)
    some, buffer = np.empty_like(rows), np.empty(n_rows * np.diff(bounds).max(), np.float32)
    out[:] = 0
    for g in range(n_groups):
        here = members[starts[g] : starts[g + 1]]
        first, last = bounds[g], bounds[g + 1]
        if len(here) == 0:
            continue
        copy_rows(rows, here, len(here), some)
        block = buffer[: len(here) * (last - first)].reshape((len(here), last - first))
        np.dot(some[: len(here)], table[first:last].T, block)
        _assign_nearer(block, here, first, best, out)


@inner
def _visited_groups(product, values, groups, starts):
    """The groups with the largest products of each row; counts the rows of each group."""
    n_rows, n_groups = product.shape
    n_visited = len(values)
    for r in range(n_rows):
        values[:] = -np.inf
        visited, line = groups[r], product[r]
        visited[:] = -1  # what is no number is in no group
        for chunk in range(0, n_groups, CHUNK):
            mask = above_limit(line, chunk, values[0])
            while mask != 0:
                bit, place = lowest(mask)
                mask ^= bit
                value = line[chunk + place]
                if value > values[0]:  # the smallest that is kept
                    q = 1
                    while q < n_visited and values[q] < value:
                        values[q - 1], visited[q - 1] = values[q], visited[q]
                        q += 1
                    values[q - 1], visited[q - 1] = value, chunk + place
        for q in range(n_visited):
            if visited[q] >= 0:
                starts[visited[q] + 1] += 1


@inner
def _assign_nearer(block, rows, first, best, out):
    """Assign rows to the column of their largest product, from ``first`` on, if it is the best."""
    n_columns = block.shape[1]
    for p in range(len(rows)):
        r, line = rows[p], block[p]
        # Four maxima, because comparisons that do not depend on each other are faster.
        m0 = m1 = m2 = m3 = best[r]
        for s in range(0, n_columns - 3, 4):
            m0, m1 = max(m0, line[s]), max(m1, line[s + 1])
            m2, m3 = max(m2, line[s + 2]), max(m3, line[s + 3])
        for s in range(n_columns - n_columns % 4, n_columns):
            m0 = max(m0, line[s])
        largest = max(max(m0, m1), max(m2, m3))
        if largest > best[r]:
            best[r] = largest
            s = 0
            while line[s] != largest:
                s += 1
            out[r] = first + s


@borrowing
def surviving_cells(product, squares, center_squares, radii, reach, cell_reach, slack):
    """Number of combinations (row, cell) in which a pair is not excluded.

    The distance to the center b of a cell is at least sqrt(|x|² + |b|² - 2 x·b - slack). The cell
    is excluded if this is at least its radius plus the square root of the sum of both reaches.
    """
    count = 0
    for r in range(product.shape[0]):
        base = np.float32(squares[r] - slack[r])
        mine = np.float32(reach[r] + REACH_MARGIN * abs(reach[r]))
        for b in range(product.shape[1]):
            count += is_near(product[r, b], center_squares[b], radii[b], cell_reach[b], base, mine)
    return count


@inner
def is_near(product, center_square, radius, cell_reach, base, mine):
    distance = base + center_square - np.float32(2.0) * product
    both = mine + cell_reach
    bound = radius + np.sqrt(max(both, np.float32(0.0)))
    return (distance < bound * bound) & (both > np.float32(0.0))
