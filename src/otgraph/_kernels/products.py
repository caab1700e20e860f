"""Products of a sparse matrix with vectors and with dense matrices, by rows."""

from __future__ import annotations

from otgraph._numba import njit


@njit
def multiply_vector(indptr, indices, weights, v, start, stop, out):
    """Some rows of the product with a vector, each summed in the order of its entries."""
    for i in range(start, stop):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += weights[p] * v[indices[p]]
        out[i] = total


@njit
def multiply_columns(indptr, indices, weights, V, start, stop, out):
    """Some rows of the product with a matrix."""
    n_columns = V.shape[1]
    for i in range(start, stop):
        row = out[i]
        for c in range(n_columns):
            row[c] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            weight, other = weights[p], V[indices[p]]
            for c in range(n_columns):
                row[c] += weight * other[c]


@njit
def renumber(indptr, indices, weights, order, place, new_indptr, start, stop, columns, values):
    """Rows ``order[start:stop]``, with the columns that ``place`` gives, in the same order."""
    for i in range(start, stop):
        q = new_indptr[i]
        for p in range(indptr[order[i]], indptr[order[i] + 1]):
            columns[q] = place[indices[p]]
            values[q] = weights[p]
            q += 1
