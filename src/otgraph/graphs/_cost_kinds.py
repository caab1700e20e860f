"""The three kinds of costs: Euclidean distances, any other metric, a cost matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import _VALID_METRICS

from otgraph._validation import check_cost_matrix, check_points
from otgraph.costs.blocks import power_of_two
from otgraph.costs.build import check_metric
from otgraph.exceptions import argument_error
from otgraph.graphs._dense import BLOCK_ENTRIES
from otgraph.graphs._pair_costs import PairCosts, check_new_costs, check_new_points

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.typing import FloatArray, IndexArray, LongArray, PointsLike

# |x|² + |y|² − 2x·y loses as many digits as the distance is shorter than the norms; closer
# pairs than this are subtracted first, which keeps 12 digits everywhere and zeros exact.
NEAR = 1e-4
# Share of such pairs from which subtracting for the whole block is the shorter way.
NEAR_SHARE = 0.05
EUCLIDEAN_POWER = {"euclidean": 1.0, "l2": 1.0, "sqeuclidean": 2.0, "cosine": 2.0}


def pair_costs(X: PointsLike, metric: Any, power: float) -> PairCosts:
    """The costs of points, or of a dense cost matrix, before normalization."""
    if isinstance(metric, str) and metric == "precomputed":
        if sp.issparse(X):
            msg = "`X` must be a dense cost matrix here, got a sparse one; pass `X.toarray()`."
            raise argument_error(TypeError, "X", msg)
        return MatrixCosts(check_cost_matrix(X))
    check_metric(metric)
    points = check_points(X)
    if isinstance(metric, str) and metric in EUCLIDEAN_POWER:
        return EuclideanCosts(points, metric, power)
    return MetricCosts(points, metric, power)


def metric_name(metric: Any) -> str:
    """What ``params`` says of the metric; a function leaves its name only."""
    return metric if isinstance(metric, str) else f"callable {getattr(metric, '__name__', '')}"


def is_metric_name(name: str) -> bool:
    """Whether a recorded metric can be used as it is; the name of a function cannot."""
    return name == "precomputed" or name in _VALID_METRICS


class MatrixCosts(PairCosts):
    """A dense cost matrix; queries are rows of costs."""

    def __init__(self, matrix: FloatArray) -> None:
        self.n = len(matrix)
        self.points = None
        self.own = matrix

    def queries(self, X_new: PointsLike) -> FloatArray:
        """Costs from new points to all points of the graph."""
        return check_new_costs(X_new, self.n)

    def raw(self, queries: FloatArray, first: int = 0) -> FloatArray:
        """The queries themselves."""
        return queries[:, first:].copy()


class MetricCosts(PairCosts):
    """Power of any metric of scikit-learn, or of a function of two points."""

    def __init__(self, points: Any, metric: Any, power: float) -> None:
        self.n = points.shape[0]
        self.points = self.own = points
        self.metric = metric
        self.power = power
        self.keywords = _fitted_keywords(points, metric)

    def queries(self, X_new: PointsLike) -> Any:
        """New points as they are."""
        return check_new_points(X_new, self.points)

    def raw(self, queries: Any, first: int = 0) -> FloatArray:
        """Distances to the power."""
        distances = pairwise_distances(
            queries, self.points[first:], metric=self.metric, n_jobs=1, **self.keywords
        )
        return np.asarray(distances, dtype=np.float64) ** self.power


class EuclideanCosts(PairCosts):
    """Power of the Euclidean distance, accurate at any offset and any scale.

    Points are centered (sparse ones are not, they would fill up) and divided by a power of
    two, which changes no digit; the raw cost is the power of the distance in these units.
    """

    def __init__(self, points: Any, metric: str, power: float) -> None:
        self.n = points.shape[0]
        self.points = points
        self.metric = metric
        self.half_power = 0.5 * power * EUCLIDEAN_POWER[metric]
        start = _unit_rows(points, "X") if metric == "cosine" else points
        self._coarse = power_of_two(_largest(start))
        self._fine = 1.0
        self._center: Any = None
        self.own = self._placed(start)
        if not sp.issparse(points):
            self._center = self.own.mean(axis=0)
            self.own -= self._center
        self._fine = power_of_two(_largest(self.own))
        self.own /= self._fine
        self._squares = _row_squares(self.own)
        with np.errstate(over="ignore", under="ignore"):  # restored or refused by who needs it
            length = float(np.float64(self._coarse) * self._fine)
            self.unit = float(np.float64(length) ** (2.0 * self.half_power))
        if metric == "cosine":  # 1 − cos is half the squared distance of the unit vectors
            self.unit *= 0.5**power

    def queries(self, X_new: PointsLike) -> Any:
        """New points in the units of the old ones."""
        X_new = check_new_points(X_new, self.points)
        queries = self._placed(_unit_rows(X_new, "X_new") if self.metric == "cosine" else X_new)
        if self._center is not None:
            queries -= self._center
        queries /= self._fine
        with np.errstate(over="ignore"):
            squares = _row_squares(queries)
        if not np.isfinite(squares.sum()):
            row = int(np.flatnonzero(~np.isfinite(squares))[0])
            msg = (
                f"`X_new` has points so far away that their costs overflow (row {row}); drop them."
            )
            raise argument_error(ValueError, "X_new", msg)
        return queries

    def raw(self, queries: Any, first: int = 0) -> FloatArray:
        """Powers of distances, in units of ``unit``."""
        squares = self._square_distances(queries, self.own[first:], self._squares[first:])
        return self._powered(squares)

    def paired(self, queries: Any, indices: LongArray) -> FloatArray:
        """Raw costs from query r to the points ``indices[r]``, by subtraction."""
        rows = np.repeat(np.arange(len(indices)), indices.shape[1])
        squares = _subtracted(queries, self.own, rows, indices.ravel())
        return self._powered(squares.reshape(indices.shape))

    def listed(self, rows: IndexArray, columns: IndexArray) -> FloatArray:
        """By subtraction: no other pair is looked at."""
        return self._scaled(self._powered(_subtracted(self.own, self.own, rows, columns)))

    def mean(self, workers: Workers) -> float:
        """For the squared distance 2(mean |x|² − |mean x|²), unless that cancels."""
        if self.half_power == 1.0:
            center = np.asarray(self.own.mean(axis=0)).ravel()
            mean_square = float(self._squares.mean())
            spread = mean_square - float(center @ center)
            if spread > NEAR * mean_square:
                return 2.0 * spread
        return super().mean(workers)

    def _placed(self, points: Any) -> Any:
        return points / self._coarse

    def _powered(self, squares: FloatArray) -> FloatArray:
        return squares if self.half_power == 1.0 else squares**self.half_power

    def _square_distances(self, x: Any, y: Any, y_squares: FloatArray) -> FloatArray:
        sums = _row_squares(x)[:, None] + y_squares[None, :]
        product = x @ y.T
        squares: FloatArray = product.toarray() if sp.issparse(product) else product
        squares *= -2.0
        squares += sums
        sums *= NEAR
        near = squares <= sums
        share = np.count_nonzero(near) / max(near.size, 1)
        if share > NEAR_SHARE and not sp.issparse(x):
            return cdist(x, y, "sqeuclidean")
        if share:
            rows, columns = np.nonzero(near)
            squares[rows, columns] = _subtracted(x, y, rows, columns)
        return squares


def _fitted_keywords(points: Any, metric: Any) -> dict[str, FloatArray]:
    """Parameters that a metric takes from all points, which a block does not see."""
    if sp.issparse(points):  # none of these metrics takes sparse points; scikit-learn says so
        return {}
    if metric == "seuclidean":
        return {"V": np.var(points, axis=0, ddof=1)}
    if metric == "mahalanobis":
        return {"VI": np.linalg.inv(np.cov(points.T)).T}
    return {}


def _unit_rows(X: Any, name: str) -> Any:
    norms = np.sqrt(_row_squares(X))
    if not norms.all():
        row = int(np.flatnonzero(norms == 0)[0])
        msg = f"`{name}` has a row of zeros (row {row}): it has no direction; drop it for 'cosine'."
        raise argument_error(ValueError, name, msg)
    return (sp.diags(1.0 / norms) @ X).tocsr() if sp.issparse(X) else X / norms[:, None]


def _row_squares(X: Any) -> FloatArray:
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    return np.asarray(squares, dtype=np.float64).ravel()


def _largest(X: Any) -> float:
    values = X.data if sp.issparse(X) else X
    return float(np.abs(values).max()) if values.size else 0.0


def _subtracted(x: Any, y: Any, rows: Any, columns: Any) -> FloatArray:
    """|x_r − y_c|² for a list of pairs, a bounded number at a time."""
    out = np.empty(len(rows))
    step = max(1, BLOCK_ENTRIES // max(1, x.shape[1]))
    for a in range(0, len(rows), step):
        difference = x[rows[a : a + step]] - y[columns[a : a + step]]
        out[a : a + step] = _row_squares(difference)
    return out
