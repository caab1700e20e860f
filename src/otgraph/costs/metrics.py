"""Metrics: names, records in graphs, and parameters computed from all points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import _VALID_METRICS

from otgraph._blas import single_threaded_blas

if TYPE_CHECKING:
    from otgraph.typing import Metric

EUCLIDEAN = ("euclidean", "l2", "sqeuclidean", "cosine")


def is_precomputed(metric: object) -> TypeGuard[str]:
    """Whether the input is the cost itself."""
    return isinstance(metric, str) and metric == "precomputed"


def is_euclidean(metric: object) -> TypeGuard[str]:
    """Whether costs are powers of Euclidean distances."""
    return isinstance(metric, str) and metric in EUCLIDEAN


def check_metric(metric: object) -> None:
    """Accept names of scikit-learn's metrics and functions of two points."""
    if not callable(metric) and (not isinstance(metric, str) or metric not in _VALID_METRICS):
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
    return name == "precomputed" or name in _VALID_METRICS


def metric_keywords(points: Any, metric: Metric) -> dict[str, Any]:
    """Parameters of a metric that are computed from all points, not from one block."""
    if callable(metric) or sp.issparse(points):  # these metrics take no sparse points
        return {}
    if metric == "seuclidean":
        return {"V": np.var(points, axis=0, ddof=1)}
    if metric == "mahalanobis":
        with single_threaded_blas():
            return {"VI": np.linalg.inv(np.cov(points.T)).T}
    return {}
