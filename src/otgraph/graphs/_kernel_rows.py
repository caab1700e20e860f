"""Weights of kernels and the rows they fill, for the points of a graph and for new ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._optional import importing
from otgraph._validation import check_count
from otgraph.costs.metrics import is_precomputed
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import with_small_indices

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

    from otgraph.typing import FloatArray, LongArray, Metric, Points, SparseMatrix


def check_neighbor_count(k: object, name: str, available: int) -> int:
    """A number of neighbors, limited to those available, with a warning."""
    k = check_count(k, name)
    if k > available:
        warnings.warn(
            f"`{name}`={k} is more than the {available} possible neighbor(s); using {available}.",
            UserWarning,
            stacklevel=3,
        )
    return min(k, available)


def gaussian_weights(costs: FloatArray, eps: float | None) -> FloatArray:
    """exp(−c/eps), or ones; may underflow to zero."""
    if eps is None:
        return np.ones_like(costs)
    weights = costs.copy()
    gaussian_in_place(weights, eps)
    return weights


def kernel_rows(indices: LongArray, weights: FloatArray, n: int) -> SparseMatrix:
    """CSR matrix with ``weights[i, r]`` in row i and column ``indices[i, r]``, no zeros."""
    n_rows, k = indices.shape
    indptr = np.arange(0, n_rows * k + 1, k) if k else np.zeros(n_rows + 1, dtype=np.int64)
    kernel = sp.csr_matrix((weights.ravel(), indices.ravel(), indptr), shape=(n_rows, n))
    return with_small_indices(kernel)


def gaussian_in_place(costs: FloatArray, eps: float) -> None:
    with np.errstate(under="ignore", over="ignore"):
        costs /= -eps
        np.exp(costs, out=costs)


def decayed(distances: FloatArray, k: int, decay: float, thresh: float) -> FloatArray:
    """exp(−(d/σ)^decay) per row, σ the k-th smallest of its distances; small values become 0.

    Among more than k duplicates σ is zero. Then duplicates have weight one and all other points
    weight zero, which is the limit of small σ.
    """
    bandwidth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        ratio = np.where(distances == 0.0, 0.0, distances / bandwidth)
        weights = np.exp(-(ratio**decay))
    weights[weights < thresh] = 0.0
    return weights


def principal_components(
    points: Points, n_pca: object, random_state: int, metric: Metric
) -> FloatArray:
    """Principal component scores of the points; deterministic for a given seed."""
    return _fitted_pca(points, n_pca, random_state, metric)[1]


def project(
    points: Points, new: Points, n_pca: object, random_state: int
) -> tuple[FloatArray, FloatArray]:
    """Scores of the points and of new points on the components of the points."""
    pca, scores = _fitted_pca(points, n_pca, random_state, "")
    with single_threaded_blas():
        return scores, pca.transform(new)


def _fitted_pca(
    points: Points, n_pca: object, random_state: int, metric: Metric
) -> tuple[PCA, FloatArray]:
    n_pca = check_count(n_pca, "n_pca")
    if is_precomputed(metric):
        msg = "must be None with metric='precomputed': distances have no components."
        raise invalid("n_pca", msg)
    if n_pca >= min(points.shape):
        msg = (
            f"must be less than both numbers of points and features, {points.shape}, got {n_pca}. "
            "Pass None to compute distances between the points themselves."
        )
        raise invalid("n_pca", msg)
    with importing():
        from sklearn.decomposition import PCA

    solver = "arpack" if sp.issparse(points) else "randomized"
    pca = PCA(n_pca, svd_solver=solver, random_state=random_state)
    # Not fit_transform, whose last digits differ: a point passed again must be at distance zero.
    with single_threaded_blas():
        return pca, np.ascontiguousarray(pca.fit(points).transform(points))
