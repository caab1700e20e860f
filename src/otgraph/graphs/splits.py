"""Two views of the same points whose noise is independent, to judge a graph without the truth.

A graph of one view predicts the other. Features are split into halves, counts into molecules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._validation import check_points
from otgraph.costs.metrics import is_euclidean, is_precomputed
from otgraph.costs.squares import unit_rows
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from otgraph.graphs.options import QuadraticOptions
    from otgraph.typing import FloatArray, Points, PointsLike, SparseMatrix

# From counts to points, such as normalization, square root and principal components.
Prepare: TypeAlias = "Callable[[SparseMatrix], ArrayLike]"

# Columns of what is predicted. A random projection onto this many keeps squared errors to a few
# percent in each point, and far better in the mean over the points.
MOST_COLUMNS = 256
# Sparse points of up to this many entries (256 MB) become dense, which makes their graphs faster.
DENSE_ENTRIES = 1 << 25


@dataclass(frozen=True, eq=False)
class View:
    """Points to build a graph on, and their features as another graph has to predict them."""

    points: Points
    features: FloatArray


def obstacle(n_features: int, options: QuadraticOptions) -> str | None:
    """Why these points have no two halves of features; None if they have."""
    if is_precomputed(options.metric):
        return "costs have no features to split"
    if callable(options.metric) or options.metric == "haversine":
        return "this metric needs all features at once"
    if n_features < 2:
        return "one feature has no two halves"
    return None


def feature_halves(
    X: Points,
    options: QuadraticOptions,
    rng: np.random.Generator,
    *,
    dense_entries: int = DENSE_ENTRIES,
) -> tuple[tuple[View, View], QuadraticOptions]:
    """Views of checked points by two halves of their features, and the options for their graphs.

    Features are mixed by a random rotation first, which leaves Euclidean distances as they are.
    Both halves then hold the same share of signal and noise on average. Other metrics, and sparse
    points that would be too large if dense, are split by columns as they are.
    """
    if options.metric == "cosine":  # 1 - cos is half the squared distance of unit vectors
        X, options = unit_rows(X), replace(options, metric="sqeuclidean")
    X = _dense_if_small(X, dense_entries)
    if is_euclidean(options.metric) and not sp.issparse(X):
        X = _rotated(X, rng)
    columns = rng.permutation(X.shape[1])
    half = len(columns) // 2
    first, second = (X[:, np.sort(part)] for part in (columns[:half], columns[half:]))
    return (_view(first, rng), _view(second, rng)), options


def count_halves(
    counts: PointsLike, prepare: Prepare | None, rng: np.random.Generator
) -> tuple[View, View]:
    """Views by two halves of the molecules: each count goes to one of them with equal chance.

    If counts are Poisson, the halves are independent (molecular cross-validation, Batson, Royer
    and Webber 2019). Each half is prepared by itself.
    """
    counts = sp.csr_matrix(check_points(counts))
    if counts.nnz and not (counts.data.min() >= 0 and np.all(counts.data % 1 == 0)):
        raise invalid("X", "must hold counts, whole numbers >= 0, with split='counts'.")
    first, second = counts.copy(), counts.copy()
    first.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(np.float64)
    second.data = counts.data - first.data
    for half in (first, second):
        half.eliminate_zeros()
    points = [_dense_if_small(prepared(half, prepare)) for half in (first, second)]
    return _view(points[0], rng), _view(points[1], rng)


def prepared(counts: PointsLike, prepare: Prepare | None) -> Points:
    """Points from counts."""
    return check_points(counts if prepare is None else prepare(counts))


def _dense_if_small(X: Points, dense_entries: int = DENSE_ENTRIES) -> Points:
    if isinstance(X, np.ndarray) or X.shape[0] * X.shape[1] > dense_entries:
        return X
    return X.toarray()


def _rotated(X: Points, rng: np.random.Generator) -> FloatArray:
    """Random signs and a cosine transform: a rotation that takes d log d steps per point."""
    signs = rng.choice([-1.0, 1.0], X.shape[1])
    from scipy.fft import dct

    return np.asarray(dct((X - X.mean(axis=0)) * signs, norm="ortho", axis=1))


def _view(points: Points, rng: np.random.Generator) -> View:
    features = points
    if points.shape[1] > MOST_COLUMNS:
        projection = rng.standard_normal((points.shape[1], MOST_COLUMNS)) / np.sqrt(MOST_COLUMNS)
        with single_threaded_blas():  # the same result for any number of threads
            features = points @ projection
    elif not isinstance(points, np.ndarray):
        features = points.toarray()
    return View(points, np.asarray(features - features.mean(axis=0)))
