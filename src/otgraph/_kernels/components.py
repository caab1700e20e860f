"""Connected components of a symmetric pattern."""

from __future__ import annotations

import numpy as np

from otgraph._numba import borrowing, inner, njit


def component_labels(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Component of every row of a symmetric CSR pattern, numbered by their first rows.

    scipy would transpose the matrix, which takes ten times as long as this pass.
    """
    indptr = indptr.astype(np.int64, copy=False)  # one type, compiled once
    return labels_of_rows(indptr[:-1], indptr[1:], indices)


def labels_of_rows(starts: np.ndarray, ends: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The same for rows with gaps between them. Columns beyond the rows connect nothing."""
    labels = np.empty(len(starts), dtype=np.int64)
    _label(starts, ends, indices, labels)
    return labels


@njit
def component_roots(n, rows, columns):
    """The first point of the component of every point, from a list of edges."""
    roots = np.arange(n)
    for p in range(len(rows)):
        a, b = _root(roots, np.int64(rows[p])), _root(roots, np.int64(columns[p]))
        if a < b:
            roots[b] = a
        else:
            roots[a] = b
    for i in range(n):
        roots[i] = roots[roots[i]]
    return roots


@borrowing
def _label(starts, ends, indices, labels):
    """Union of the ends of every edge; the root of a component is its first row."""
    for i in range(len(labels)):
        labels[i] = i
        a = i  # the root of this row
        for p in range(starts[i], ends[i]):
            j = np.int64(indices[p])  # one type of `_root`
            if j >= i:
                continue  # the edge comes again in the later row
            b = _root(labels, j)
            if a < b:
                labels[b] = a
            elif b < a:
                labels[a] = b
                a = b
    count = 0
    for i in range(len(labels)):
        if labels[i] == i:  # a first row: roots come before all other rows of their component
            labels[i] = count
            count += 1
        else:
            labels[i] = labels[labels[i]]


@inner
def _root(parents, i):
    """The root of a tree; every other node on the way is attached to its grandparent."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return i
