"""Candidate pairs given by the caller; all other pairs are forbidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph.costs.base import Cost, Screen
from otgraph.costs.pairs import Pairs, symmetric_pairs
from otgraph.costs.scaling import positive_scale

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.typing import BoolArray, FloatArray, LongArray


UNPLACED_RTOL = 1e-6  # unplaced share of the mass; larger than the tolerance of the linear program


class CandidateCost(Cost):
    """Costs of the stored entries of a sparse matrix.

    A pair may be stored as (i, j), as (j, i) or as both. Explicit zeros are pairs of cost zero.
    The diagonal is ignored.

    Parameters
    ----------
    matrix
        Canonical CSR, costs >= 0.
    normalize
        Divide by the mean of the stored costs.
    """

    exact = False
    has_other_pairs = False

    def __init__(self, matrix: Any, *, normalize: bool, workers: Workers) -> None:
        self.n = matrix.shape[0]
        self.order = np.arange(self.n)
        self.workers = workers
        coo = matrix.tocoo()
        apart = coo.row != coo.col
        i, j, c = coo.row[apart], coo.col[apart], coo.data[apart]
        chunk = (i.astype(np.int32), j.astype(np.int32), c.astype(np.float64))
        pairs = symmetric_pairs(self.n, [chunk], workers)
        self.scale = positive_scale(float(np.mean(pairs.costs))) if normalize and len(c) else 1.0
        self._pairs = Pairs(pairs.indptr, pairs.indices, pairs.costs / self.scale)
        self.largest = float(np.max(self._pairs.costs, initial=0.0))

    def neighbors(self, k: int) -> Pairs:
        """All candidates, however many."""
        return self._pairs

    def screen(self, upper: FloatArray, rows: LongArray | None = None) -> Screen:
        """The candidates that a solution below ``upper`` could use."""
        pairs = self._pairs.below(upper, self.workers)
        return Screen(upper, pairs, complete=False, pairs_checked=len(self._pairs.indices) // 2)

    def unplaceable(self, mass: FloatArray) -> BoolArray:
        """Points that together have more mass than all their candidates can take.

        A linear program finds the plan with the largest total mass. If mass is left over, its
        dual variables are 0 at the points that have too few partners.
        """
        from scipy.optimize import linprog
        from scipy.sparse.csgraph import connected_components

        rows = np.repeat(np.arange(self.n), np.diff(self._pairs.indptr))
        once = rows < self._pairs.indices
        i, j = rows[once], self._pairs.indices[once]
        pairs = np.tile(np.arange(len(i)), 2)
        incidence = sp.csr_matrix(
            (np.ones(2 * len(i)), (np.concatenate([i, j]), pairs)), shape=(self.n, len(i))
        )
        if not len(i):
            return np.ones(self.n, dtype=np.bool_)
        largest = linprog(-np.ones(len(i)), A_ub=incidence, b_ub=mass, method="highs")
        _, component = connected_components(incidence @ incidence.T, directed=False)
        left_over = np.bincount(component, mass - incidence @ largest.x)
        short = left_over > UNPLACED_RTOL * np.bincount(component, mass)
        return short[component] & (-largest.ineqlin.marginals < 0.25)

    def sample(self, rows: LongArray) -> FloatArray:
        """Costs from some points to all points; infinite for pairs that are not candidates."""
        out = np.full((len(rows), self.n), np.inf)
        for r, row in enumerate(rows):
            entries = slice(*self._pairs.indptr[row : row + 2])
            out[r, self._pairs.indices[entries]] = self._pairs.costs[entries]
        return out
