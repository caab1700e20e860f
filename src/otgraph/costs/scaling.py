"""Scale points to values near 1, so that costs neither overflow nor lose digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._parallel import Workers, cache_blocks, row_blocks
from otgraph.costs.direct import BEYOND_FLOAT64, mean_and_largest
from otgraph.costs.single import USUAL_LENGTHS, SinglePoints, squares_of
from otgraph.costs.squares import (
    NEAR,
    divided,
    largest_entry,
    power_of_two,
    square_distances,
    subtracted_squares,
    unit_rows,
)
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from otgraph.typing import Float32Array, FloatArray, LongArray, PointsLike

# Up to this many points the mean of |x - y|^p is computed exactly, above it is estimated.
EXACT_MEAN_POINTS = 5000
MEAN_SAMPLE_PAIRS = 1 << 22  # relative standard error: about 0.0005 times the spread of the costs
SAMPLE_CHUNK = 1 << 16  # pairs per step
# Rows of the points that are summed at once. On a cluster these are the blocks in which points are
# read (12 MB in 50 dimensions, at most 128 MB as float64), a multiple of those in which cells are
# found (`partition.ASSIGN_ROWS`).
MOST_SUM_ROWS = 1 << 16
FEWEST_SUM_ROWS = 1 << 11
SUM_ENTRIES = 1 << 24
# A recorded scale outside these bounds was affected by under- or overflow; it is computed again.
SMALLEST_SCALE, LARGEST_SCALE = 1e-290, 1e290


@dataclass(frozen=True)
class Placement:
    """Centering and scaling of the points, to apply to new points with the same rounding.

    Dense points are centered in two steps. Subtracting the first point is exact for near points
    and gives zero for identical ones. Sparse points are not centered: they would become dense.
    """

    cosine: bool
    unit: float = 1.0
    first: Any = None
    center: Any = None
    spread: float = 1.0

    def place(self, X: PointsLike, name: str) -> Any:
        """Scaled and centered points, a new array."""
        X = divided(unit_rows(X, name) if self.cosine else X, self.unit)
        if self.first is not None:
            X -= self.first
            X -= self.center
            X /= self.spread
        return X

    def single(self, X: Float32Array) -> SinglePoints:
        """Points that stay float32; they are not copied."""
        scale = 1.0 / (self.unit * self.spread)
        return SinglePoints(X, scale, (self.first + self.center) / self.spread)

    @property
    def allows_single(self) -> bool:
        """Whether float32 values can be scaled."""
        return USUAL_LENGTHS[0] < self.unit * self.spread < USUAL_LENGTHS[1]


@dataclass(frozen=True)
class ScaledPoints:
    """Scaled points, and the numbers that turn distances into costs.

    Parameters
    ----------
    points
        Scaled by powers of two to values near 1; centered if dense.
    power, factor
        c = factor · (distance of the scaled points)^power.
    scale
        Divisor of the costs, in the units of the input.
    placement
        How the points were scaled.
    identical
        Whether all points coincide.
    """

    points: Any
    power: float
    factor: float
    scale: float
    placement: Placement
    identical: bool


def scaled_points(
    X: PointsLike,
    *,
    metric: str,
    power: float,
    normalize: bool,
    scale: float | None = None,
    seed: int = 0,
    sample_mean: bool = True,
    workers: Workers | None = None,
) -> ScaledPoints:
    """Points for one of the Euclidean metrics; see `as_cost`.

    Points in float32 stay float32, if they can be scaled.
    """
    placement, points = _placed(X, cosine=metric == "cosine")
    identical = _are_identical(points)

    def mean(power: float) -> float:
        return 0.0 if identical else _mean_power(points, power, seed, sample_mean, workers)

    numbers = normalization(
        placement, mean, metric=metric, power=power, normalize=normalize, scale=scale
    )
    return ScaledPoints(points, *numbers, placement, identical)


def normalization(
    placement: Placement,
    mean_power: Callable[[float], float],
    *,
    metric: str,
    power: float,
    normalize: bool,
    scale: float | None = None,
) -> tuple[float, float, float]:
    """Power, factor and scale; ``mean_power`` gives the mean cost of the scaled points."""
    if metric in ("cosine", "sqeuclidean"):  # 1 - cos is half the squared distance of unit vectors
        power *= 2.0
    length = np.float64(placement.unit) * placement.spread
    with np.errstate(over="ignore", under="ignore"):  # happens only if the costs themselves do
        unit = float(length**power)
    unit *= 0.5 ** (0.5 * power) if metric == "cosine" else 1.0
    if normalize and (scale is None or not is_sound(scale, unit)):
        mean = mean_power(power)
        factor = 1.0 / positive_scale(mean)
        scale = mean * unit if mean > 0.0 else 1.0  # may be 0 or infinite; the factor is not
    else:
        scale = scale or 1.0
        factor = checked_factor(unit, scale)
    return power, factor, scale


def is_sound(*numbers: float) -> bool:
    """Whether these numbers are far from underflow and overflow."""
    return all(SMALLEST_SCALE < number < LARGEST_SCALE for number in numbers)


def checked_factor(unit: float, scale: float) -> float:
    """Factor on raw costs that are not normalized."""
    factor = unit / scale
    if not 0.0 < factor < np.inf:
        raise argument_error(ValueError, "X", BEYOND_FLOAT64)
    return factor


def positive_scale(mean: float) -> float:
    """The mean as a divisor; 1 if all costs are zero."""
    return mean if mean > 0.0 else 1.0


def _placed(X: Any, *, cosine: bool) -> tuple[Placement, Any]:
    if cosine:
        X = unit_rows(X)
    unit = power_of_two(largest_entry(X))
    if X.dtype == np.float32:
        placement = _placed_single(X, unit)
        if placement.allows_single:
            return placement, placement.single(X)
        X = X.astype(np.float64)
    points = divided(X, unit)
    if sp.issparse(points):
        return Placement(cosine, unit), points
    first = points[0].copy()
    points -= first
    sums = [points[a:b].sum(axis=0) for a, b in row_blocks(len(points), sum_rows(points.shape[1]))]
    center = center_of(sums, len(points))
    points -= center
    spread = power_of_two(largest_entry(points))
    points /= spread
    return Placement(cosine, unit, first, center, spread), points


def _placed_single(X: Float32Array, unit: float) -> Placement:
    """The placement of points that stay float32."""
    first = X[0].astype(np.float64) / unit
    from_first = Placement(False, unit, first, np.zeros(len(first))).single(X)
    center = center_of([block.sum(axis=0) for block in from_first.blocks()], len(X))
    centered = Placement(False, unit, first, center).single(X)
    spread = power_of_two(max(largest_entry(block) for block in centered.blocks()))
    return Placement(False, unit, first, center, spread)


def sum_rows(d: int) -> int:
    """Rows that are summed at once; so the center is the same where points are in such blocks."""
    return max(
        FEWEST_SUM_ROWS, min(MOST_SUM_ROWS, SUM_ENTRIES // d) // FEWEST_SUM_ROWS * FEWEST_SUM_ROWS
    )


def center_of(sums: Sequence[FloatArray], n: int) -> FloatArray:
    """The mean of n points, from the sums of blocks of them, in order."""
    return np.asarray(np.sum(sums, axis=0) / n)


def _are_identical(points: Any) -> bool:
    if isinstance(points, SinglePoints):
        return all(not block.any() for block in points.blocks())
    if sp.issparse(points):
        return (points.max(axis=0) != points.min(axis=0)).nnz == 0
    return not points.any()


def _mean_power(
    points: Any, power: float, seed: int, sample: bool, workers: Workers | None
) -> float:
    """Mean of |x - y|^p over all ordered pairs."""
    n, half_power = points.shape[0], 0.5 * power
    squares = squares_of(points)
    if power == 2.0:
        # 2(mean |x|² - |mean x|²), unless digits cancel, as for sparse points with an offset.
        center = np.asarray(points.mean(axis=0)).ravel() if sp.issparse(points) else np.zeros(1)
        spread = float(squares.mean()) - float(center @ center)
        if spread > NEAR * float(squares.mean()):
            return 2.0 * spread
    if sample and n > EXACT_MEAN_POINTS and not sp.issparse(points):
        return _sampled_mean(points, half_power, seed)

    def block(start: int, stop: int, first: int) -> FloatArray:
        rows, columns = slice(start, stop), slice(first, None)
        found = square_distances(points[rows], squares[rows], points[columns], squares[columns])
        return np.asarray(found**half_power)

    blocks = cache_blocks(n, n)
    mean, _ = mean_and_largest(block, n, blocks, workers or Workers(1))
    return mean


def _sampled_mean(points: Any, half_power: float, seed: int) -> float:
    squares = (
        subtracted_squares(points, points, i, j) for i, j in sampled_pairs(len(points), seed)
    )
    return mean_of_sample(squares, half_power)


def sampled_pairs(n: int, seed: int) -> Iterator[tuple[LongArray, LongArray]]:
    """Random pairs of n points, some at a time."""
    rng = np.random.default_rng(seed)
    for _ in range(MEAN_SAMPLE_PAIRS // SAMPLE_CHUNK):
        i, j = rng.integers(n, size=(2, SAMPLE_CHUNK))
        yield i, j


def mean_of_sample(squares: Iterable[FloatArray], half_power: float) -> float:
    """Mean of |x - y|^p over sampled pairs, from their squared distances."""
    total = 0.0
    for some in squares:
        total += float((some**half_power).sum())
    return total / MEAN_SAMPLE_PAIRS
