"""Two clouds as the input of a cost: checks, scaling, and the choice of the class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._parallel import Workers, cache_blocks
from otgraph._validation import check_points
from otgraph.costs.between import CrossMatrixCost, CrossMetricCost, CrossSparseCost, stacked
from otgraph.costs.between_points import ScaledClouds, cross_points
from otgraph.costs.candidates import CandidateCost
from otgraph.costs.metrics import check_metric, is_euclidean, is_precomputed
from otgraph.costs.scaling import (
    EXACT_MEAN_POINTS,
    MEAN_SAMPLE_PAIRS,
    SAMPLE_CHUNK,
    Placement,
    checked_factor,
    positive_scale,
)
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.squares import (
    divided,
    largest_entry,
    power_of_two,
    row_squares,
    square_distances,
    subtracted_squares,
    unit_rows,
)
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from otgraph.costs.base import Cost
    from otgraph.typing import FloatArray, Metric, PointsLike


@dataclass(frozen=True)
class Clouds:
    """Two clouds after the checks; with precomputed costs ``X`` holds them, and ``Y`` is None."""

    X: Any
    Y: Any

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of points of X and of Y."""
        return self.X.shape[0], (self.X.shape[1] if self.Y is None else self.Y.shape[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points of both, and of features."""
        return sum(self.sizes), self.X.shape[1]


def check_clouds(given: tuple[PointsLike, PointsLike | None], metric: Metric) -> Clouds:
    """Points of both clouds, or precomputed costs between them."""
    X, Y = given
    if is_precomputed(metric):
        if Y is not None:
            msg = "must be None with metric='precomputed': `X` holds the costs from X to Y."
            raise invalid("Y", msg, TypeError)
        costs = check_points(X, min_samples=1)
        values = costs.data if sp.issparse(costs) else costs
        if values.size and values.min() < 0:
            msg = f"must hold costs >= 0 with metric='precomputed', got {values.min():.6g}."
            raise invalid("X", msg)
        return Clouds(costs, None)
    check_metric(metric)
    if Y is None:
        raise invalid("Y", "must hold the points of the second cloud, got None.", TypeError)
    X = check_points(X, min_samples=1)
    Y = check_points(Y, name="Y", min_samples=1)
    if X.shape[1] != Y.shape[1]:
        msg = f"must have the {X.shape[1]} features of `X`, got {Y.shape[1]}."
        raise invalid("Y", msg)
    return Clouds(X, Y)


def cross_cost(
    clouds: Clouds,
    *,
    metric: Metric = "euclidean",
    power: float = 2.0,
    normalize: bool = True,
    exact: bool | None = True,
    seed: int = 0,
    workers: Workers,
    sizes: SearchSizes = DEFAULT_SIZES,
    movable: bool = True,
) -> Cost:
    """A cost between two clouds that can search pairs, from the result of `check_clouds`.

    ``movable`` says whether a term of one point may move from costs to potentials. It may not
    where a potential tells how much mass a point holds back.
    """
    if is_precomputed(metric):
        if not sp.issparse(clouds.X):
            return CrossMatrixCost(clouds.X, normalize=normalize, workers=workers, sizes=sizes)
        both = sp.csr_matrix(sp.bmat([[None, clouds.X], [clouds.X.T, None]]))
        return CandidateCost(both, normalize=normalize, workers=workers)
    X, Y = clouds.X, clouds.Y
    if not is_euclidean(metric):
        return CrossMetricCost(
            stacked(X, Y), len_of(X), metric, power=power, normalize=normalize, workers=workers,
            sizes=sizes,
        )  # fmt: skip
    scaled = scaled_clouds(
        X, Y, metric=metric, power=power, normalize=normalize, seed=seed, movable=movable
    )
    if sp.issparse(scaled.points):
        return CrossSparseCost(scaled, workers, sizes)
    return cross_points(scaled, exact, seed, workers, sizes)


def len_of(X: Any) -> int:
    """Number of points, dense or sparse."""
    return int(X.shape[0])


@np.errstate(under="ignore")  # one cloud may vanish beside the other
def scaled_clouds(
    X: Any, Y: Any, *, metric: str, power: float, normalize: bool, seed: int, movable: bool = True
) -> ScaledClouds:
    """Points of two clouds for one of the Euclidean metrics, scaled like `scaled_points`."""
    cosine = metric == "cosine"
    if cosine:
        X, Y = unit_rows(X), unit_rows(Y, "Y")
    if metric in ("cosine", "sqeuclidean"):  # 1 - cos is half the squared distance of unit vectors
        power *= 2.0
    if sp.issparse(X) != sp.issparse(Y):
        X, Y = (part.toarray() if sp.issparse(part) else part for part in (X, Y))
    unit = power_of_two(max(largest_entry(X), largest_entry(Y)))
    X, Y = divided(X, unit), divided(Y, unit)
    shift: FloatArray | None = None
    spread = 1.0
    if not sp.issparse(X):
        shift = _centered(X, Y, separately=movable and power == 2.0)
        spread = power_of_two(max(largest_entry(X), largest_entry(Y)))
        X /= spread
        Y /= spread
        shift = shift / spread
    points: Any = stacked(X, Y)
    n_left = len_of(X)
    length = np.float64(unit) * spread
    with np.errstate(over="ignore", under="ignore"):  # happens only if the costs themselves do
        unit_cost = float(length**power)
    unit_cost *= 0.5 ** (0.5 * power) if cosine else 1.0
    mean = _mean_cross_power(points, n_left, shift, power, seed)
    if normalize:
        factor = 1.0 / positive_scale(mean)
        scale = mean * unit_cost if mean > 0.0 else 1.0
    else:
        factor, scale = checked_factor(unit_cost, 1.0), 1.0
    identical = mean == 0.0
    offsets = None
    if shift is not None and power == 2.0:
        half = 0.5 * float(shift @ shift)
        sides = np.where(np.arange(points.shape[0]) < n_left, 2.0, -2.0)
        offsets = factor * (half + sides * (points @ shift))
    return ScaledClouds(points, power, factor, scale, Placement(cosine), identical, n_left, offsets)


def _centered(X: FloatArray, Y: FloatArray, *, separately: bool) -> FloatArray:
    """Center both clouds in place, and return how far apart their centers were taken."""
    # Subtracting a point is exact for near points and gives zero for identical ones.
    firsts = X[0].copy(), (Y if separately else X)[0].copy()
    X -= firsts[0]
    Y -= firsts[1]
    centers = X.mean(axis=0), Y.mean(axis=0)
    if not separately:
        both = (len(X) * centers[0] + len(Y) * centers[1]) / (len(X) + len(Y))
        centers = both, both
    X -= centers[0]
    Y -= centers[1]
    return (firsts[0] - firsts[1]) + (centers[0] - centers[1])


def _mean_cross_power(
    points: Any, n_left: int, shift: FloatArray | None, power: float, seed: int
) -> float:
    """Mean of |x - y|^p over all pairs of a point of X and a point of Y."""
    half_power = 0.5 * power
    squares = row_squares(points)
    X, Y = points[:n_left], points[n_left:]
    if power == 2.0 and shift is not None:  # each cloud is centered, or the shift is zero
        mean = float(squares[:n_left].mean()) + float(squares[n_left:].mean())
        return mean + float(shift @ shift) - 2.0 * float(X.mean(axis=0) @ Y.mean(axis=0))
    n_right = len_of(Y)
    if n_left * n_right > EXACT_MEAN_POINTS**2 and not sp.issparse(points):
        return _sampled_cross_mean(X, Y, half_power, seed)
    total = 0.0
    for a, b in cache_blocks(n_left, n_right):
        found = square_distances(X[a:b], squares[a:b], Y, squares[n_left:])
        total += float((found**half_power).sum())
    return total / (n_left * n_right)


def _sampled_cross_mean(X: FloatArray, Y: FloatArray, half_power: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(MEAN_SAMPLE_PAIRS // SAMPLE_CHUNK):
        i, j = rng.integers(len(X), size=SAMPLE_CHUNK), rng.integers(len(Y), size=SAMPLE_CHUNK)
        total += float((subtracted_squares(X, Y, i, j) ** half_power).sum())
    return total / MEAN_SAMPLE_PAIRS
