"""Metrics: names, records in graphs, and parameters computed from all points."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._optional import importing
from otgraph._validation import SYMMETRY_RTOL
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import Metric

FUNCTION_POINTS = 16  # points whose distances show whether a function is symmetric

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean", "cosine")


def is_precomputed(metric: object) -> TypeGuard[str]:
    """Whether the input is the cost itself."""
    return isinstance(metric, str) and metric == "precomputed"


def is_euclidean(metric: object) -> TypeGuard[str]:
    """Whether costs are powers of Euclidean distances."""
    return isinstance(metric, str) and metric in EUCLIDEAN


def check_metric(metric: object) -> None:
    """Accept names of scikit-learn's metrics and functions of two points."""
    if not callable(metric) and (not isinstance(metric, str) or not _is_known(metric)):
        msg = (
            "`metric` must be 'euclidean', 'cosine', another metric of scikit-learn, 'precomputed' "
            f"or a function of two points, got {metric!r}."
        )
        raise ValueError(msg)


def metric_name(metric: Metric) -> str:
    """The metric as a graph records it; of a function only the name is kept."""
    return metric if isinstance(metric, str) else f"callable {getattr(metric, '__name__', '')}"


def is_metric_name(name: str) -> bool:
    """Whether a recorded metric is a name that can be used again, not that of a function."""
    return is_precomputed(name) or _is_known(name)


def _is_known(name: str) -> bool:
    """Whether scikit-learn has the metric, which is loaded only if it must be asked."""
    if is_euclidean(name):
        return True
    with importing():
        from sklearn.metrics.pairwise import _VALID_METRICS

    return name in _VALID_METRICS


def metric_keywords(points: Any, metric: Metric) -> dict[str, Any]:
    """Parameters of a metric that are computed from all points, not from one block."""
    if callable(metric) or sp.issparse(points):  # these metrics take no sparse points
        return {}
    if metric == "seuclidean":
        return {"V": _variances(points)}
    if metric == "mahalanobis":
        return {"VI": _inverse_covariance(points)}
    return {}


def has_tree_search(metric: Any) -> bool:
    """Whether a tree finds the nearest points: not by a function, nor by a formula that divides."""
    with importing():
        from sklearn.neighbors import BallTree

    return isinstance(metric, str) and metric in BallTree.valid_metrics


def check_function(metric: Callable[..., float], points: Any) -> None:
    """Refuse a function that is not symmetric, from some of the points."""
    if sp.issparse(points):
        return
    rows = np.unique(np.linspace(0, len(points) - 1, FUNCTION_POINTS).astype(np.int64))
    for i, j in itertools.combinations(rows.tolist(), 2):
        there, back = float(metric(points[i], points[j])), float(metric(points[j], points[i]))
        if abs(there - back) > SYMMETRY_RTOL * max(abs(there), abs(back)):
            msg = (
                f"`metric` must be symmetric, but for the points {i} and {j} it gives {there:.6g} "
                f"one way and {back:.6g} the other. Pass a function of both orders, such as "
                "(f(x, y) + f(y, x)) / 2."
            )
            raise argument_error(ValueError, "metric", msg)


def _variances(points: Any) -> Any:
    with np.errstate(all="ignore"):
        variances = np.var(points, axis=0, ddof=1)
    bad = np.flatnonzero(~((variances > 0.0) & np.isfinite(variances)))
    if len(bad):
        msg = (
            f"`X` has {len(bad)} column(s) whose variance 'seuclidean' cannot divide by, the first "
            f"is column {bad[0]} with variance {variances[bad[0]]:.6g}. Drop constant columns, or "
            "choose another `metric`."
        )
        raise argument_error(ValueError, "X", msg)
    return variances


def _inverse_covariance(points: Any) -> Any:
    n, d = points.shape
    with single_threaded_blas(), np.errstate(all="ignore"):
        covariance = np.atleast_2d(np.cov(points.T))
        rank = 0
        if np.isfinite(covariance).all():
            rank = int(np.linalg.matrix_rank(covariance, hermitian=True))
        if rank == d:
            return np.linalg.inv(covariance).T
    msg = (
        f"`X` has a covariance that 'mahalanobis' cannot invert: its rank is {rank}, and there are "
        f"{d} columns and {n} points. Drop columns that follow from others, reduce the dimension "
        "(principal components), or choose another `metric`."
    )
    raise argument_error(ValueError, "X", msg)
