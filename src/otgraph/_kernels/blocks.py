"""Sort entries (row, column, value) by blocks of rows, and by the rows of one block.

With ``both``, an entry is a pair and belongs to the rows of both ends. It goes to the block of each
end, once if that is the same, and becomes two entries where the rows of that block are filled.
"""

from __future__ import annotations

from otgraph._numba import njit


@njit
def count_blocks(rows, columns, size, both, counts):
    """Count the entries of every block of ``size`` rows."""
    for p in range(len(rows)):
        block = rows[p] // size
        counts[block] += 1
        if both and columns[p] // size != block:
            counts[columns[p] // size] += 1


@njit
def group_entries(rows, columns, values, size, both, cursor, out_rows, out_columns, out_values):
    """Copy entries to their block; ``cursor`` holds the next free position of each block."""
    for p in range(len(rows)):
        block = rows[p] // size
        q = cursor[block]
        out_rows[q] = rows[p]
        out_columns[q] = columns[p]
        out_values[q] = values[p]
        cursor[block] = q + 1
        other = columns[p] // size
        if both and other != block:
            q = cursor[other]
            out_rows[q] = columns[p]
            out_columns[q] = rows[p]
            out_values[q] = values[p]
            cursor[other] = q + 1


@njit
def count_rows(rows, columns, first, last, both, counts):
    """Count the entries of every row in ``first:last``."""
    for p in range(len(rows)):
        counts[rows[p] - first] += 1
        if both and first <= columns[p] < last:
            counts[columns[p] - first] += 1


@njit
def fill_rows(rows, columns, values, first, last, both, cursor, out_columns, out_values):
    """Copy entries to their row; ``cursor`` holds the next free position of each row."""
    for p in range(len(rows)):
        row = rows[p] - first
        q = cursor[row]
        out_columns[q] = columns[p]
        out_values[q] = values[p]
        cursor[row] = q + 1
        if both and first <= columns[p] < last:
            row = columns[p] - first
            q = cursor[row]
            out_columns[q] = rows[p]
            out_values[q] = values[p]
            cursor[row] = q + 1


@njit
def pack_columns(starts, ends, columns, packed):
    """Move the parts ``starts:ends`` of a list to its beginning, in place; fill their bounds."""
    q = 0
    for row in range(len(starts)):
        for p in range(starts[row], ends[row]):
            columns[q] = columns[p]
            q += 1
        packed[row + 1] = q
