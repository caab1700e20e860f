"""Costs between any rows and the points of a graph, in blocks: what all kinds have in common.

The comparison graphs and the extension to new points need plain blocks of costs, in float64.
The kinds are in `_cost_kinds`.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._parallel import Workers, row_blocks, single_threaded_blas
from otgraph._validation import check_points
from otgraph.costs.blocks import positive_scale
from otgraph.exceptions import argument_error
from otgraph.graphs._dense import BLOCK_ENTRIES

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, IndexArray, PointsLike

MIN_BLOCK_ROWS = 32  # fewer would turn products of matrices into products of vectors
# A cost scale outside these bounds was rounded by under- or overflow and is computed anew.
SMALLEST_SCALE, LARGEST_SCALE = 1e-290, 1e290


class PairCosts(ABC):
    """Costs c = factor · raw between queries and the n points.

    Attributes
    ----------
    points
        What the caller handed over, checked; None for a matrix.
    own
        The n points as queries.
    unit
        Raw cost 1 in units of the caller's costs.
    """

    n: int
    points: Any
    own: Any
    unit: float = 1.0
    factor: float = 1.0

    @abstractmethod
    def queries(self, X_new: PointsLike) -> Any:
        """New rows, checked and in the form that `raw` takes."""

    @abstractmethod
    def raw(self, queries: Any, first: int = 0) -> FloatArray:
        """Raw costs from some queries to the points ``first:``, a new array."""

    def rows(self, queries: Any) -> FloatArray:
        """Costs from some queries to all points."""
        return self._scaled(self.raw(queries))

    def listed(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """Costs of listed pairs of the n points; `rows` must not fall."""
        costs = np.empty(len(rows))
        for a, b in self.blocks():
            span = slice(*np.searchsorted(rows, [a, b]))
            costs[span] = self.rows(self.own[a:b])[rows[span] - a, columns[span]]
        return costs

    def normalize(self, normalize: bool, workers: Workers) -> float:
        """Divide by the mean over all n² pairs, if asked to; returns that divisor."""
        if normalize:
            mean = self.mean(workers)
            if mean == 0.0:
                warnings.warn(
                    f"All {self.n} points are identical: all costs are zero.", stacklevel=3
                )
            mean = positive_scale(mean)
            self.factor = 1.0 / mean
            return mean * self.unit
        self._set_scale(1.0)
        return 1.0

    def restore(self, normalize: bool, scale: float, workers: Workers) -> None:
        """Divide by what a graph recorded, or by what it would have, had it not overflowed."""
        sound = all(SMALLEST_SCALE < number < LARGEST_SCALE for number in (scale, self.unit))
        if normalize and not sound:
            self.normalize(True, workers)
        else:
            self._set_scale(scale)

    def _set_scale(self, scale: float) -> None:
        self.factor = self.unit / scale
        if not 0.0 < self.factor < np.inf:
            msg = "`X` has costs beyond the range of float64; pass `normalize=True` or rescale it."
            raise argument_error(ValueError, "X", msg)

    def mean(self, workers: Workers) -> float:
        """Mean raw cost over all ordered pairs, a point with itself included."""
        n = self.n

        def total(rows: tuple[int, int]) -> float:
            a, b = rows
            block = self.raw(self.own[a:b], a)
            return float(np.triu(block, 1).sum()) * 2.0 + float(np.trace(block))

        with single_threaded_blas():
            return float(sum(workers.map(total, self.blocks(), "mean cost"))) / n**2

    def matrix(self, workers: Workers) -> FloatArray:
        """All costs, exactly symmetric; n × n, so that callers guard the memory first."""
        out = np.empty((self.n, self.n))

        def fill(rows: tuple[int, int]) -> None:
            a, b = rows
            block = self._scaled(self.raw(self.own[a:b], a))
            square = block[:, : b - a]
            square[...] = np.triu(square) + np.triu(square, 1).T
            out[a:b, a:] = block
            out[b:, a:b] = block[:, b - a :].T

        with single_threaded_blas():
            for _ in workers.map(fill, self.blocks(), "costs"):
                pass
        if not np.isfinite(out.sum()):
            msg = "`X` has costs beyond the range of float64; pass `normalize=True` or rescale it."
            raise argument_error(ValueError, "X", msg)
        return out

    def blocks(self) -> list[tuple[int, int]]:
        """Ranges of rows, the same whatever the number of threads."""
        return row_blocks(self.n, max(MIN_BLOCK_ROWS, BLOCK_ENTRIES // self.n))

    def _scaled(self, raw: FloatArray) -> FloatArray:
        if self.factor != 1.0:
            raw *= self.factor
        return raw


def check_new_points(X_new: PointsLike, points: Any) -> Any:
    """Rows with as many features as the points, sparse only where these are."""
    checked = check_points(X_new, name="X_new", min_samples=1)
    if checked.shape[1] != points.shape[1]:
        msg = (
            f"`X_new` must have the {points.shape[1]} features of the points of the graph, got "
            f"{checked.shape[1]}. Select or order the columns as they were."
        )
        raise argument_error(ValueError, "X_new", msg)
    if sp.issparse(points):
        return sp.csr_matrix(checked)
    return checked.toarray() if sp.issparse(checked) else checked


def check_new_costs(X_new: PointsLike, n: int) -> FloatArray:
    """Costs from new rows to the n points of a graph on precomputed costs."""
    checked = check_points(X_new, name="X_new", min_samples=1)
    dense: FloatArray = checked.toarray() if sp.issparse(checked) else checked
    if dense.shape[1] != n:
        msg = (
            f"`X_new` must hold the costs to all {n} points of the graph, shape (new points, {n}), "
            f"because it was built with metric='precomputed'; got shape {dense.shape}."
        )
        raise argument_error(ValueError, "X_new", msg)
    if dense.min() < 0.0:
        msg = f"`X_new` must hold costs >= 0 with metric='precomputed', got {dense.min():.6g}."
        raise argument_error(ValueError, "X_new", msg)
    return dense
