"""Squared Euclidean distances in float64, accurate for near points, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._kernels.shells import FLOAT32_UNIT, MORE_ROUNDINGS, TINY

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, Points, PointsLike

# |x|² + |y|² - 2x·y loses digits if the distance is much smaller than the norms. Below this ratio
# of squares, x - y is computed instead. All results then have 12 digits, and zeros are exact.
NEAR = 1e-4
# Above this share of near pairs, subtracting for the whole block is faster.
NEAR_SHARE = 0.05
DIFFERENCE_ENTRIES = 1 << 18  # numbers subtracted at once: 2 MB


def square_distances(
    x: Any, x_squares: FloatArray, y: Any, y_squares: FloatArray, *, near: bool = True
) -> FloatArray:
    """|x_r - y_c|² for all r and c, given the squared norms.

    With ``near=False`` near pairs are not computed again; negative results become zero.
    """
    sums = x_squares[:, None] + y_squares
    product = x @ y.T
    squares: FloatArray = product.toarray() if sp.issparse(product) else product
    squares *= -2.0
    squares += sums
    if not near:
        return np.maximum(squares, 0.0, out=squares)
    sums *= NEAR
    close = squares <= sums
    share = np.count_nonzero(close) / max(close.size, 1)
    if share > NEAR_SHARE and not sp.issparse(x):
        from scipy.spatial.distance import cdist

        return cdist(x, y, "sqeuclidean")
    if share:
        rows, columns = np.nonzero(close)
        squares[rows, columns] = subtracted_squares(x, y, rows, columns)
    return squares


def subtracted_squares(x: Any, y: Any, rows: Any, columns: Any) -> FloatArray:
    """|x_r - y_c|² for a list of pairs, in blocks of bounded size."""
    out = np.empty(len(rows))
    step = max(1, DIFFERENCE_ENTRIES // max(1, x.shape[1]))
    for a in range(0, len(rows), step):
        out[a : a + step] = row_squares(x[rows[a : a + step]] - y[columns[a : a + step]])
    return out


def row_squares(X: Any) -> FloatArray:
    """Squared norms of the rows."""
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares, dtype=np.float64).ravel()


def unit_rows(X: PointsLike, name: str = "X", start: int = 0) -> Any:
    """Rows divided by their norms; those of zeros are refused, numbered from ``start`` on."""
    X = divided(X, power_of_two(largest_entry(X)))
    norms = np.sqrt(row_squares(X))
    if not norms.all():
        row = start + int(np.flatnonzero(norms == 0)[0])
        msg = (
            f"`{name}` has a row of zeros (row {row}), which has no direction; drop it for "
            "'cosine'."
        )
        raise ValueError(msg)
    return (sp.diags(1.0 / norms) @ X).tocsr() if sp.issparse(X) else X / norms[:, None]


def product_error(size: FloatArray, d: int) -> FloatArray:
    """Bound of the error of d + 1 products and sums of rounded operands, in float32."""
    return (d + MORE_ROUNDINGS) * FLOAT32_UNIT * size + TINY


def largest_entry(X: Any) -> float:
    """Largest absolute value."""
    values = X.data if sp.issparse(X) else X
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def power_of_two(largest: float) -> float:
    """Power of two near ``largest``; dividing by it is exact."""
    return float(2.0 ** np.floor(np.log2(largest))) if largest > 0.0 else 1.0


def divided(X: Points, unit: float) -> Any:
    """X / unit as a new array, for a power of two; by multiplication unless 1/unit overflows."""
    with np.errstate(under="ignore"):  # what vanishes beside the largest
        return X * (1.0 / unit) if 1.0 / unit < np.inf else X / unit
