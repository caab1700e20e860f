"""Choose the cost class for the input."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_cost_matrix, check_points
from otgraph.costs.blocks import MatrixCost, MetricCost, SparsePointsCost
from otgraph.costs.candidates import CandidateCost
from otgraph.costs.metrics import check_metric, is_euclidean, is_precomputed
from otgraph.costs.points import EuclideanCost
from otgraph.costs.scaling import positive_scale, scaled_points
from otgraph.costs.sizes import DEFAULT_SIZES, SearchSizes
from otgraph.costs.tree import TreeCost

if TYPE_CHECKING:
    from otgraph._parallel import Workers
    from otgraph.costs.base import Cost
    from otgraph.costs.direct import DirectCost
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.typing import LongArray, Metric, Points, PointsLike


def check_input(
    X: PointsLike, metric: Metric, *, candidates: bool = True, single: bool = False
) -> Any:
    """Points, or a precomputed cost: checked, float64, dense or CSR.

    A sparse cost lists candidates; with ``candidates=False`` it is refused. With ``single`` points
    in float32 may stay float32, for `as_cost`.
    """
    if is_precomputed(metric):
        if sp.issparse(X) and not candidates:
            msg = "`X` must be a dense cost matrix here, got a sparse one; pass `X.toarray()`."
            raise TypeError(msg)
        return check_cost_matrix(X)
    check_metric(metric)
    return check_points(X, single=single and is_euclidean(metric) and metric != "cosine")


def as_cost(
    X: Points,
    *,
    metric: Metric = "euclidean",
    power: float = 2.0,
    normalize: bool = True,
    exact: bool | None = True,
    seed: int = 0,
    workers: Workers,
    sizes: SearchSizes = DEFAULT_SIZES,
) -> Cost:
    """A cost that can search pairs, from the result of `check_input`."""
    if is_precomputed(metric) and sp.issparse(X):
        return CandidateCost(X, normalize=normalize, workers=workers)
    if is_euclidean(metric) and not sp.issparse(X):
        if not has_cells(np.shape(X), sizes):
            X = np.asarray(X, dtype=np.float64)
        scaled = scaled_points(
            X, metric=metric, power=power, normalize=normalize, seed=seed, workers=workers
        )
        return euclidean_cost(scaled, exact=exact, seed=seed, workers=workers, sizes=sizes)
    return _block_cost(X, metric, power, normalize, None, workers, sizes)


def direct_cost(
    X: Points,
    *,
    metric: Metric = "euclidean",
    power: float = 1.0,
    normalize: bool = False,
    scale: float | None = None,
    workers: Workers,
) -> DirectCost:
    """A cost for any pairs, from the result of `check_input` (candidates are not allowed).

    Points stay in their order, and the mean cost is computed exactly. If ``scale`` is given,
    the mean is not computed.
    """
    precomputed, known = is_precomputed(metric), scale is not None
    if not known and not normalize:
        scale = 1.0
    elif not known and precomputed:  # with the diagonal, whose entries are the costs of self-loops
        scale = positive_scale(float(X.mean()))
    cost: DirectCost
    if is_euclidean(metric) and not sp.issparse(X):
        scaled = scaled_points(
            X, metric=metric, power=power, normalize=normalize, scale=scale, sample_mean=False,
            workers=workers,
        )  # fmt: skip
        cost = EuclideanCost(scaled, workers=workers, keep_order=True)
    else:
        cost = _block_cost(X, metric, power, normalize, scale, workers)
    if normalize and not known and (cost.identical or (precomputed and not X.any())):
        msg = f"All {cost.n} points are identical: all costs are zero."
        warnings.warn(msg, UserWarning, stacklevel=3)
    return cost


def euclidean_cost(
    scaled: ScaledPoints,
    *,
    exact: bool | None,
    seed: int,
    workers: Workers,
    labels: LongArray | None = None,
    sizes: SearchSizes = DEFAULT_SIZES,
) -> TreeCost | EuclideanCost:
    """The cost of dense points: with a tree in few dimensions, with cells in many."""
    if has_tree(scaled.points.shape, sizes):
        return TreeCost(scaled, workers)
    return EuclideanCost(
        scaled, exact=exact, seed=seed, workers=workers, labels=labels, sizes=sizes
    )


def has_tree(shape: tuple[int, ...], sizes: SearchSizes = DEFAULT_SIZES) -> bool:
    """Whether a tree is faster than cells."""
    return shape[1] <= sizes.most_tree_dimensions and shape[0] >= sizes.fewest_tree_points


def has_cells(shape: tuple[int, ...], sizes: SearchSizes = DEFAULT_SIZES) -> bool:
    """Whether dense points are searched in cells."""
    return shape[0] >= sizes.fewest_cell_points and not has_tree(shape, sizes)


def kept_points(given: object, checked: Any, metric: Metric) -> Any:
    """The points as a graph keeps them, None for precomputed costs.

    The points are copied, so changing X later does not change the graph. Points in float32 stay
    float32, at half the size. ``checked`` is the result of `check_input` for ``given``.
    """
    if is_precomputed(metric):
        return None
    if isinstance(given, np.ndarray) and given.dtype == np.float32:
        return np.array(given)  # in memory, if it comes from a file
    if not isinstance(checked, np.ndarray) and not sp.issparse(checked):
        return None  # not in this process
    fresh = isinstance(given, list | tuple) or (
        isinstance(given, np.ndarray)
        and not sp.issparse(checked)
        and not np.may_share_memory(given, checked)
    )
    return checked if fresh else checked.copy()


def _block_cost(
    X: Points,
    metric: Metric,
    power: float,
    normalize: bool,
    scale: float | None,
    workers: Workers,
    sizes: SearchSizes = DEFAULT_SIZES,
) -> MatrixCost | MetricCost | SparsePointsCost:
    """A cost that always computes all pairs."""
    if is_precomputed(metric):
        return MatrixCost(X, normalize=normalize, scale=scale, workers=workers, sizes=sizes)
    if not is_euclidean(metric):
        return MetricCost(
            X, metric, power=power, normalize=normalize, scale=scale, workers=workers, sizes=sizes
        )
    scaled = scaled_points(
        X, metric=metric, power=power, normalize=normalize, scale=scale, workers=workers
    )
    return SparsePointsCost(scaled, workers, sizes=sizes)
