"""Array types used in annotations throughout the package."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import scipy.sparse as sp

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int32]
LongArray: TypeAlias = NDArray[np.int64]
# Row numbers, of whichever width they come.
IndexArray: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
ObjectArray: TypeAlias = NDArray[np.object_]  # names, axes
# Elements of any type, such as names and labels.
Array: TypeAlias = NDArray[Any]
# Keywords to be passed on: ``function(**keywords)``.
Keywords: TypeAlias = dict[str, Any]

# Without scipy-stubs, type checkers know nothing about it.
SparseMatrix: TypeAlias = "sp.csr_matrix"
# Name of a metric, or a function of two points.
Metric: TypeAlias = str | Callable[..., float]
# A seed, a generator that gives one, or None for a different result every time.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# Points after the checks: dense, or sparse in canonical form.
Points: TypeAlias = "FloatArray | sp.csr_matrix"
# Numbers of a file before the checks: of any type, and with missing values.
Values: TypeAlias = "Array | sp.csr_matrix"
# What users may hand over as points: dense array, data frame, scipy sparse matrix.
PointsLike: TypeAlias = "ArrayLike | sp.spmatrix | sp.sparray"


class HasComponents(Protocol):
    """A graph that knows its connected components."""

    @property
    def n_connected(self) -> int:
        """Number of components."""

    @property
    def component_labels(self) -> IntArray:
        """Component of every point."""


class ProductGraph(HasComponents, Protocol):
    """A weighted graph whose weights may be elsewhere, such as on a cluster.

    It computes products with its weights. That is enough to denoise, to spread labels and to embed.
    """

    @property
    def n(self) -> int:
        """Number of points."""

    @property
    def row_sums(self) -> FloatArray:
        """Sum of the weights of every point."""

    @property
    def loops(self) -> FloatArray:
        """Weight of every point with itself."""

    def product(self, V: FloatArray, scale: FloatArray | None = None) -> FloatArray:
        """Weights w_ij times a dense matrix with one row per point.

        With a scale, one number per point, the weights are w_ij (scale_i + scale_j).
        """

    def among(self, points: LongArray) -> SparseMatrix:
        """Weights of a few points with each other, in this process."""

    @property
    def dropped(self) -> BoolArray:
        """Points that have no edges because they are outliers."""
