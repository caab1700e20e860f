"""Sort entries (row, column, value) by blocks of rows, and by the rows of one block."""

from __future__ import annotations

from otgraph._numba import njit


@njit
def count_keys(keys, first, size, counts):
    """Count the keys by their value of (key - first) // size."""
    for p in range(len(keys)):
        counts[(keys[p] - first) // size] += 1


@njit
def group_entries(rows, columns, values, size, cursor, out_rows, out_columns, out_values):
    """Copy entries to their block; ``cursor`` holds the next free position of each block."""
    for p in range(len(rows)):
        block = rows[p] // size
        q = cursor[block]
        out_rows[q] = rows[p]
        out_columns[q] = columns[p]
        out_values[q] = values[p]
        cursor[block] = q + 1


@njit
def fill_rows(rows, columns, values, first, cursor, out_columns, out_values):
    """Copy entries to their row; ``cursor`` holds the next free position of each row."""
    for p in range(len(rows)):
        row = rows[p] - first
        q = cursor[row]
        out_columns[q] = columns[p]
        out_values[q] = values[p]
        cursor[row] = q + 1
