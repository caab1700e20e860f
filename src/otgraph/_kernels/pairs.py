"""Build and sort symmetric lists of pairs."""

from __future__ import annotations

import numpy as np

from otgraph._numba import borrowing, count_ones, inner, njit, trailing_zeros


@borrowing
def count_rows(i, counts):
    """Count every entry in its row."""
    for p in range(len(i)):
        counts[i[p]] += 1


@borrowing
def count_both(i, j, counts):
    """Count every pair (i, j) in both rows."""
    for p in range(len(i)):
        counts[i[p]] += 1
        counts[j[p]] += 1


@borrowing
def fill_both(i, j, costs, cursor, indices, out):
    """Write every pair into both rows; ``cursor`` holds the next free position of each row."""
    for p in range(len(i)):
        a, b = i[p], j[p]
        q = cursor[a]
        indices[q] = b
        out[q] = costs[p]
        cursor[a] = q + 1
        q = cursor[b]
        indices[q] = a
        out[q] = costs[p]
        cursor[b] = q + 1


ONE, NONE = np.uint64(1), np.uint64(0)
# A column has its bit in one of the words of a row, and this word one in a group of words.
WORD, IN_WORD, GROUP = np.uint64(6), np.uint64(63), np.uint64(12)


@njit
def sort_rows(indptr, indices, costs, n_columns, start, stop, counts):
    """Sort rows by column, drop repeated columns, and write the new row lengths to ``counts``.

    Columns are not compared: each sets a bit, and the place of a column is the number of bits
    before its own. That takes 3 to 4 ns for an entry, and Shellsort took 10 to 15.

    A repeated column was found from both ends, whose costs may differ by rounding. The smaller one
    is kept in both rows, in whatever order they come.
    """
    longest = 0
    for row in range(start, stop):
        longest = max(longest, indptr[row + 1] - indptr[row])
    words = np.zeros((n_columns >> 6) + 1, np.uint64)
    before = np.zeros((n_columns >> 6) + 1, np.uint64)  # where the columns of a word begin
    groups = np.zeros((n_columns >> 12) + 1, np.uint64)
    columns, values = np.empty(longest, np.uint64), np.empty(longest)
    for row in range(start, stop):
        first = np.uint64(indptr[row])
        size = np.uint64(indptr[row + 1]) - first
        least, most = np.uint64(len(groups)), NONE
        for k in range(size):
            j = np.uint64(np.uint32(indices[first + k]))
            columns[k], values[k] = j, costs[first + k]
            costs[first + k] = np.inf
            words[j >> WORD] |= ONE << (j & IN_WORD)
            group = j >> GROUP
            groups[group] |= ONE << ((j >> WORD) & IN_WORD)
            least, most = min(least, group), max(most, group)
        place = first
        for group in range(least, most + ONE):
            while groups[group] != NONE:
                word = (group << WORD) | trailing_zeros(groups[group])
                groups[group] &= groups[group] - ONE
                before[word] = place
                place += count_ones(words[word])
        counts[row] = place - first
        for k in range(size):
            j = columns[k]
            lower = (ONE << (j & IN_WORD)) - ONE
            place = before[j >> WORD] + count_ones(words[j >> WORD] & lower)
            indices[place] = j
            costs[place] = min(costs[place], values[k])
        for k in range(size):
            words[columns[k] >> WORD] = NONE


@borrowing
def sort_pairs(i, j, costs, cursor, indptr, indices, out):
    """Write a list of pairs into sorted rows, each once: all steps for few points, in one call.

    ``cursor`` is zero for every row.
    """
    n = len(cursor)
    count_both(i, j, cursor)
    indptr[0] = 0
    for row in range(n):
        indptr[row + 1] = indptr[row] + cursor[row]
        cursor[row] = indptr[row]
    fill_both(i, j, costs, cursor, indices, out)
    sort_rows(indptr, indices, out, n, 0, n, cursor)
    target = np.int64(0)
    for row in range(n):
        first, count = indptr[row], cursor[row]
        indptr[row] = target
        if first > target:  # repeated pairs have left gaps
            for p in range(count):
                indices[target + p] = indices[first + p]
                out[target + p] = out[first + p]
        target += count
    indptr[n] = target


@borrowing
def pack_rows(indptr, indices, costs, packed):
    """Move the first entries of each row to where ``packed``, the new ``indptr``, has them."""
    for row in range(len(indptr) - 1):
        first, target = indptr[row], packed[row]
        for p in range(packed[row + 1] - target):
            indices[target + p] = indices[first + p]
            costs[target + p] = costs[first + p]


@borrowing
def count_union(indptr, indices, other_indptr, other_indices, start, stop, counts):
    """Number of different columns in a row of either set; rows are sorted."""
    for row in range(start, stop):
        p, q = indptr[row], other_indptr[row]
        p_end, q_end = indptr[row + 1], other_indptr[row + 1]
        count = 0
        while p < p_end and q < q_end:
            a, b = indices[p], other_indices[q]
            p += a <= b
            q += b <= a
            count += 1
        counts[row] = count + (p_end - p) + (q_end - q)


@borrowing
def fill_union(
    indptr, indices, costs, other_indptr, other_indices, other_costs,
    start, stop, out_indptr, out_indices, out_costs,
):  # fmt: skip
    """Merge sorted rows of two sets; a pair that is in both has the same cost in both."""
    for row in range(start, stop):
        p, q = indptr[row], other_indptr[row]
        p_end, q_end = indptr[row + 1], other_indptr[row + 1]
        for target in range(out_indptr[row], out_indptr[row + 1]):
            take = q == q_end or (p < p_end and indices[p] <= other_indices[q])
            if take:
                if q < q_end and indices[p] == other_indices[q]:
                    q += 1
                out_indices[target] = indices[p]
                out_costs[target] = costs[p]
                p += 1
            else:
                out_indices[target] = other_indices[q]
                out_costs[target] = other_costs[q]
                q += 1


@borrowing
def grow_rows(
    indptr, indices, costs, more, other_indptr, other_indices, other_costs, other_more, grown,
    start, stop, head, head_costs, head_more,
):  # fmt: skip
    """Merge sorted rows into arrays that have room for them; ``grown`` is the new ``indptr``.

    Rows are moved from the last to the first, and entries from right to left, so that nothing is
    overwritten before it has moved. What the rows before these may overwrite meanwhile, their first
    entries, is in ``head`` and so on. A pair that is in both sets keeps its cost. ``more`` is a
    second value of every pair, or None.
    """
    begin = indptr[start]
    kept = begin + len(head)
    for row in range(stop - 1, start - 1, -1):
        p, q = indptr[row + 1] - 1, other_indptr[row + 1] - 1
        p_first, q_first = indptr[row], other_indptr[row]
        for target in range(grown[row + 1] - 1, grown[row] - 1, -1):
            column = -1
            if p >= p_first:
                column = indices[p] if p >= kept else head[p - begin]
            if q >= q_first and other_indices[q] >= column:
                both = other_indices[q] == column
                if not both:
                    indices[target], costs[target] = other_indices[q], other_costs[q]
                    if more is not None:
                        more[target] = other_more[q]
                    q -= 1
                    continue
                q -= 1
            indices[target] = column
            costs[target] = costs[p] if p >= kept else head_costs[p - begin]
            if more is not None:
                more[target] = more[p] if p >= kept else head_more[p - begin]
            p -= 1


@borrowing
def set_entries(indptr, indices, costs, other_indptr, other_indices, other_costs):
    """Replace the costs of some pairs, if they are there; rows are sorted."""
    for row in range(len(indptr) - 1):
        p, end = indptr[row], indptr[row + 1]
        for q in range(other_indptr[row], other_indptr[row + 1]):
            while p < end and indices[p] < other_indices[q]:
                p += 1
            if p < end and indices[p] == other_indices[q]:
                costs[p] = other_costs[q]


@borrowing
def collect_rows(block, rows, upper, i_out, j_out, c_out, first_row):
    """Append the pairs of some rows with upper_i + upper_j > c_ij; see `collect_block`."""
    n_rows, n_columns = block.shape
    count = 0
    for r in range(first_row, n_rows):
        if count + n_columns > len(i_out):
            return r, count
        i = rows[r]
        for j in range(n_columns):
            if j != i and upper[i] + upper[j] > block[r, j]:
                i_out[count] = i
                j_out[count] = j
                c_out[count] = block[r, j]
                count += 1
    return n_rows, count


@borrowing
def collect_block(block, row_start, column_start, upper, i_out, j_out, c_out, first_row):
    """Append the pairs i < j of a block of costs with upper_i + upper_j > c_ij.

    Stops before a row for which the buffers may be too short. Returns (next row, number of pairs
    written).
    """
    n_rows, n_columns = block.shape
    count = 0
    for r in range(first_row, n_rows):
        if count + n_columns > len(i_out):
            return r, count
        i = row_start + r
        limit = upper[i]
        for s in range(max(0, i + 1 - column_start), n_columns):
            j = column_start + s
            if limit + upper[j] > block[r, s]:
                i_out[count] = i
                j_out[count] = j
                c_out[count] = block[r, s]
                count += 1
    return n_rows, count


@borrowing
def count_one_sided(near, costs, start, stop, counts):
    """Number of entries of every row i whose point does not have i in its own row.

    Rows are the nearest points with the costs in rising order, the same from both ends. So the cost
    tells it, unless it is equal to the largest one of the other row.
    """
    k = near.shape[1]
    for i in range(start, stop):
        count = 0
        for q in range(k):
            count += not _has(near, costs, near[i, q], costs[i, q], i)
        counts[i] = count


@borrowing
def list_one_sided(near, costs, start, stop, place, i_out, j_out, c_out):
    """Write the entries that `count_one_sided` counted, those of row i from ``place[i]`` on."""
    k = near.shape[1]
    for i in range(start, stop):
        p = place[i]
        for q in range(k):
            j, cost = near[i, q], costs[i, q]
            if not _has(near, costs, j, cost, i):
                i_out[p], j_out[p], c_out[p] = i, j, cost
                p += 1


@inner
def _has(near, costs, row, cost, column):
    """Whether a column at some cost is among the nearest points of a row."""
    last = costs[row, costs.shape[1] - 1]
    if cost != last:
        return cost < last
    found = False
    for q in range(near.shape[1]):
        found |= near[row, q] == column
    return found


@borrowing
def put_rows(near, costs, start, stop, indptr, indices, out):
    """Write the nearest points of every row to its beginning."""
    for i in range(start, stop):
        p = indptr[i]
        for q in range(near.shape[1]):
            indices[p + q] = near[i, q]
            out[p + q] = costs[i, q]


@borrowing
def put_back(i, j, costs, place, indices, out):
    """Write pairs (i, j) to rows j; ``place`` holds the next free position of each row."""
    for p in range(len(i)):
        q = place[j[p]]
        indices[q] = i[p]
        out[q] = costs[p]
        place[j[p]] = q + 1


@inner
def _insert(near, found, count, j, cost):
    """Insert a partner into a sorted list of the cheapest ones.

    Returns the new length, and the cost that the next partner must be below.
    """
    count = min(count + 1, len(found))
    place = count - 1
    while place > 0 and found[place - 1] > cost:
        found[place] = found[place - 1]
        near[place] = near[place - 1]
        place -= 1
    found[place] = cost
    near[place] = j
    return count, found[count - 1] if count == len(found) else np.inf


@borrowing
def cheapest_partners(costs, groups, labels, inside, near, found, rows):
    """The cheapest partners of some rows inside or outside their groups, in order of cost.

    The number of columns of ``near`` and ``found`` says how many. Missing ones have infinite cost.
    """
    for r in range(rows[0], rows[1]):
        row_near, row_found = near[r], found[r]
        row_found[:] = np.inf
        row_near[:] = 0
        count, bound = 0, np.inf
        for j in range(costs.shape[1]):
            if costs[r, j] < bound and (labels[j] == groups[r]) == inside:
                count, bound = _insert(row_near, row_found, count, j, costs[r, j])


@borrowing
def cheapest_entries(indptr, indices, costs, rows, near, found, block):
    """The cheapest pairs of some rows, in order of cost; as `cheapest_partners`."""
    for r in range(block[0], block[1]):
        row_near, row_found = near[r], found[r]
        row_found[:] = np.inf
        row_near[:] = 0
        count, bound = 0, np.inf
        for p in range(indptr[rows[r]], indptr[rows[r] + 1]):
            if costs[p] < bound:
                count, bound = _insert(row_near, row_found, count, indices[p], costs[p])
