"""Sums and products of an entropic plan exp((u_i + u_j - c_ij) / eps) on listed pairs."""

from __future__ import annotations

import numpy as np

from otgraph._numba import njit


@njit
def log_sums(indptr, indices, costs, loops, u, eps, start, stop, out):
    """Logarithm of the sum of exp((u_j - c_ij) / eps) of some rows; loops have cost zero."""
    for i in range(start, stop):
        top = u[i] if loops else -np.inf
        for p in range(indptr[i], indptr[i + 1]):
            top = max(top, u[indices[p]] - costs[p])
        total = np.exp((u[i] - top) / eps) if loops else 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += np.exp((u[indices[p]] - costs[p] - top) / eps)
        out[i] = top / eps + np.log(total)


@njit
def fill_plan(indptr, indices, costs, u, eps, start, stop, out):
    """Weights of some rows; the same bits for (i, j) and (j, i)."""
    for i in range(start, stop):
        for p in range(indptr[i], indptr[i + 1]):
            out[p] = np.exp(((u[i] + u[indices[p]]) - costs[p]) / eps)
