"""Choosing the cost for what the caller handed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import _VALID_METRICS

from otgraph._validation import check_cost_matrix, check_points
from otgraph.costs.blocks import (
    MatrixCost,
    MetricCost,
    SparsePointsCost,
    positive_scale,
    power_of_two,
)
from otgraph.costs.candidates import CandidateCost
from otgraph.costs.points import EuclideanCost
from otgraph.costs.tree import TreeCost
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.base import Cost
    from otgraph.typing import FloatArray, LongArray

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean", "cosine")
# Where a k-d tree is faster than cells, and than looking at all pairs (benchmarks/README.md).
MOST_TREE_DIMENSIONS = 4
FEWEST_TREE_POINTS = 4096
# Up to here the mean of |x - y|^p over all pairs is computed, beyond it is estimated.
EXACT_MEAN_POINTS = 5000
MEAN_SAMPLE_PAIRS = 1 << 22  # relative standard error about 0.0005 times the spread


def check_input(X: Any, metric: Any) -> Any:
    """Points, or a precomputed cost: checked, float64, dense or CSR."""
    if isinstance(metric, str) and metric == "precomputed":
        return check_cost_matrix(X)
    check_metric(metric)
    return check_points(X)


def check_metric(metric: Any) -> None:
    """Accept names of scikit-learn's metrics and functions of two points."""
    if not callable(metric) and (not isinstance(metric, str) or metric not in _VALID_METRICS):
        msg = (
            "`metric` must be 'euclidean', 'cosine', another metric of scikit-learn, 'precomputed' "
            f"or a function of two points, got {metric!r}."
        )
        raise argument_error(ValueError, "metric", msg)


def as_cost(
    X: Any,
    *,
    metric: Any = "euclidean",
    power: float = 2.0,
    normalize: bool = True,
    exact: bool | None = True,
    seed: int = 0,
    workers: Workers,
) -> Cost:
    """The cost object for what `check_input` let pass."""
    if isinstance(metric, str) and metric == "precomputed":
        kind = CandidateCost if sp.issparse(X) else MatrixCost
        return kind(X, normalize=normalize, workers=workers)
    if not isinstance(metric, str) or metric not in EUCLIDEAN:
        return MetricCost(X, metric, power=power, normalize=normalize, workers=workers)
    if sp.issparse(X):
        X, power, factor = _directions(X, metric, power)
        return SparsePointsCost(X, power=power, factor=factor, normalize=normalize, workers=workers)
    scaled = scaled_points(X, metric=metric, power=power, normalize=normalize, seed=seed)
    return euclidean_cost(scaled, exact=exact, seed=seed, workers=workers)


@dataclass(frozen=True)
class ScaledPoints:
    """Centered points and what makes a cost of their distances; see `DistancePowers`."""

    points: FloatArray
    power: float
    factor: float
    scale: float


def scaled_points(
    X: FloatArray, *, metric: str, power: float, normalize: bool, seed: int
) -> ScaledPoints:
    """Dense points for one of the `EUCLIDEAN` metrics."""
    X, power, unit_factor = _directions(X, metric, power)
    points, unit = _centered(X)
    with np.errstate(over="ignore"):  # overflows only where the costs themselves do
        unit_factor = float(unit_factor * np.float64(unit) ** power)
    mean = _mean_power(points, power, seed)
    if normalize:
        factor, scale = 1.0 / positive_scale(mean), positive_scale(mean * unit_factor)
    else:
        factor, scale = unit_factor, 1.0
    if not normalize and not 0.0 < factor < np.inf:
        msg = "`X` has costs beyond the range of float64; pass `normalize=True` or rescale it."
        raise argument_error(ValueError, "X", msg)
    return ScaledPoints(points, power, factor, scale)


def euclidean_cost(
    scaled: ScaledPoints,
    *,
    exact: bool | None,
    seed: int,
    workers: Workers,
    labels: LongArray | None = None,
) -> TreeCost | EuclideanCost:
    """The cost of dense points: with a tree in few dimensions, with cells in many."""
    points, power, factor, scale = scaled.points, scaled.power, scaled.factor, scaled.scale
    if has_tree(points.shape):
        return TreeCost(points, power=power, factor=factor, scale=scale, workers=workers)
    return EuclideanCost(
        points, power=power, factor=factor, scale=scale, exact=exact, seed=seed, workers=workers,
        labels=labels,
    )  # fmt: skip


def has_tree(shape: tuple[int, ...]) -> bool:
    """Whether a tree is worth its while."""
    return shape[1] <= MOST_TREE_DIMENSIONS and shape[0] >= FEWEST_TREE_POINTS


def _directions(X: Any, metric: str, power: float) -> tuple[Any, float, float]:
    """Points, power and factor by which a metric is one of Euclidean distances."""
    if metric == "cosine":
        # 1 - cos(x, y) is half the squared distance of the unit vectors.
        return _unit_rows(X), 2.0 * power, 0.5**power
    return X, (2.0 * power if metric == "sqeuclidean" else power), 1.0


def _centered(X: FloatArray) -> tuple[FloatArray, float]:
    """Points minus their mean, divided by a power of two: no overflow, no lost digits."""
    unit = power_of_two(_largest(X))
    points = X * (1.0 / unit) if 1.0 / unit < np.inf else X / unit
    points -= points[0].copy()  # exact for near points, and zero for identical ones
    points -= points.mean(axis=0)
    spread = power_of_two(_largest(points))
    points *= 1.0 / spread
    return points, unit * spread


def _largest(X: FloatArray) -> float:
    return max(float(X.max()), -float(X.min()))


def _unit_rows(X: Any) -> Any:
    X = X / power_of_two(_largest(X.data if sp.issparse(X) and X.nnz else X))
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X).sum(axis=1)
    norms = np.sqrt(np.asarray(squares).ravel())
    if not norms.all():
        row = int(np.flatnonzero(norms == 0)[0])
        msg = f"`X` has a row of zeros (row {row}), which has no direction; drop it for 'cosine'."
        raise argument_error(ValueError, "X", msg)
    return sp.diags(1.0 / norms) @ X if sp.issparse(X) else X / norms[:, None]


def _mean_power(points: FloatArray, power: float, seed: int) -> float:
    """Mean of |x - y|^p over all ordered pairs of centered points."""
    n = len(points)
    if power == 2.0:
        return 2.0 * float(np.einsum("ij,ij->i", points, points).mean())
    if n <= EXACT_MEAN_POINTS:
        total = 0.0
        for i in range(n - 1):
            squares = np.square(points[i + 1 :] - points[i]).sum(axis=1)
            total += float((squares ** (0.5 * power)).sum())
        return 2.0 * total / n**2
    rng = np.random.default_rng(seed)
    total, chunk = 0.0, 1 << 16
    for _ in range(MEAN_SAMPLE_PAIRS // chunk):
        i, j = rng.integers(n, size=(2, chunk))
        squares = np.square(points[i] - points[j]).sum(axis=1)
        total += float((squares ** (0.5 * power)).sum())
    return total / MEAN_SAMPLE_PAIRS
