"""Array types used in annotations throughout the package."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Float32Array: TypeAlias = NDArray[np.float32]
IntArray: TypeAlias = NDArray[np.int32]
LongArray: TypeAlias = NDArray[np.int64]
# Row numbers, of whichever width they come.
IndexArray: TypeAlias = NDArray[np.int32] | NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

# scipy's sparse classes carry no useful shape or index types yet.
SparseMatrix: TypeAlias = Any
# A seed, a generator that gives one, or None for a different result every time.
RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# What users may hand over as points: dense array, data frame, scipy sparse matrix.
PointsLike: TypeAlias = Any


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

    It computes products with its weights. That is enough to denoise and to spread labels.
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
