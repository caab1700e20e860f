"""Conjugate gradients for many right-hand sides at once: one sparse product per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from otgraph.methods._graphs import SquareOperator
    from otgraph.typing import FloatArray

# A restart that reduces the residual by less than this factor has reached rounding errors.
WORTHWHILE = 0.5


class Columns(NamedTuple):
    """Solutions and residuals, one column per right-hand side."""

    X: FloatArray
    residual: float
    n_products: int


@dataclass(frozen=True)
class Stop:
    """Stopping rule: relative accuracy of every row of X that is not negligible.

    The residual of an equation is summed over the columns. The largest must be at most ``rtol``
    times the sum of any row of X, where rows below ``span`` times the largest do not count.
    """

    rtol: float
    span: float

    def reached(self, X: FloatArray, residual: float) -> bool:
        """Whether the accuracy is reached."""
        sums = X.sum(axis=1)
        return residual <= self.rtol * max(float(sums.min()), self.span * float(sums.max()))


def solve_columns(A: SquareOperator, B: FloatArray, stop: Stop, *, max_products: int) -> Columns:
    """Solve ``A X = B`` for symmetric positive definite A, preconditioned by its diagonal.

    The returned residual is computed from X. If the recursive residual has drifted from it, the
    iteration restarts.
    """
    X = np.zeros_like(B)
    R = B.copy()
    residual, used = _largest_row(R), 0
    while used < max_products:
        used += _descend(A, X, R, stop, max(1, max_products - used - 1))
        R = B - A @ X
        used += 1
        before, residual = residual, _largest_row(R)
        if stop.reached(X, residual) or residual > WORTHWHILE * before:
            break
    return Columns(X, residual, used)


def _descend(A: SquareOperator, X: FloatArray, R: FloatArray, stop: Stop, max_products: int) -> int:
    """Improve X and R in place; returns the number of products."""
    inverse = (1.0 / A.diagonal())[:, None]
    Z = inverse * R
    P = Z.copy()
    old = _dots(R, Z)
    for used in range(1, max_products + 1):
        AP = A @ P
        step = _ratios(old, _dots(P, AP))
        X += step * P
        AP *= step
        R -= AP
        if stop.reached(X, _largest_row(R)):
            return used
        np.multiply(inverse, R, out=Z)
        new = _dots(R, Z)
        P *= _ratios(new, old)
        P += Z
        old = new
    return max_products


def _dots(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", A, B))


def _ratios(a: FloatArray, b: FloatArray) -> FloatArray:
    """a/b, and zero for columns that are solved exactly."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0.0)


def _largest_row(A: FloatArray) -> float:
    return float(np.abs(A).sum(axis=1).max(initial=0.0))
