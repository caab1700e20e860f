"""The result of every data set, and the noisy embedding that most of them use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from otgraph.typing import FloatArray, IntArray

# A seed or a generator.
RandomState: TypeAlias = int | np.random.Generator

# Noise is drawn in blocks of this many numbers (16 MB), to save memory. The size of the blocks does
# not change the noise.
BLOCK_SIZE = 2**21
# Smallest noise, relative to the largest.
QUIETEST = 0.05


@dataclass(frozen=True, eq=False)
class Sample:
    """Points, and how they were generated.

    Attributes
    ----------
    X
        The points, ``(n, dim)``: ``clean @ basis.T`` plus noise.
    clean
        The same points without noise in their own ``k`` coordinates, ``(n, k)``.
    basis
        Orthonormal columns that map these coordinates into the space of `X`, ``(dim, k)``.
    noise_level
        How noisy each point is, ``(n,)``: the norm of its noise, or the standard deviation
        per coordinate for Gaussian clouds.
    t
        Parameter of each point on its curve ``(n,)`` or manifold ``(n, intrinsic_dim)``;
        ``None`` for clouds without one.
    labels
        Group of each point, counted from 0, or ``None``.

    Examples
    --------
    >>> from otgraph import datasets
    >>> sample = datasets.spiral_arms(20, n_arms=3)
    >>> sample.X.shape[0], len(sample), sorted(set(sample.labels.tolist()))
    (60, 60, [0, 1, 2])
    """

    X: FloatArray
    clean: FloatArray
    basis: FloatArray
    noise_level: FloatArray
    t: FloatArray | None = None
    labels: IntArray | None = None

    def __len__(self) -> int:
        return len(self.X)


def without_noise(X: FloatArray, t: FloatArray) -> Sample:
    """Points in their own coordinates."""
    return Sample(X, X, np.eye(X.shape[1]), np.zeros(len(X)), t)


def check_at_least(least: float, value: float, name: str) -> None:
    """Raise unless a value is a finite number of at least this size."""
    if not least <= value < np.inf:
        raise invalid(name, f"must be a finite number >= {least:g}, got {value!r}.")


def noise_radius(noise: float, phase: FloatArray) -> FloatArray:
    """Norm of the noise: `noise` where the phase is 0, a twentieth of it half a turn later."""
    return np.asarray(noise * (QUIETEST + (1 - QUIETEST) * (1 + np.cos(phase)) / 2))


def embed(
    clean: FloatArray,
    basis: FloatArray,
    radius: FloatArray,
    rng: np.random.Generator,
    dtype: DTypeLike = np.float64,
) -> FloatArray:
    """Points ``R x_i + radius_i Z_i / |Z_i|`` with ``Z_i`` standard Gaussian."""
    n, dim = len(clean), len(basis)
    X = np.empty((n, dim), dtype=dtype)
    noisy = bool(np.any(radius))
    rows = max(1, BLOCK_SIZE // dim)
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        points = clean[block] @ basis.T
        if noisy:
            Z = rng.standard_normal(points.shape)
            points += Z * (radius[block] / np.linalg.norm(Z, axis=1))[:, None]
        X[block] = points
    return X


def orthonormal_basis(dim: int, k: int, rng: np.random.Generator) -> FloatArray:
    """A uniformly random ``(dim, k)`` matrix with orthonormal columns; the identity if square.

    Points of full dimension are not rotated.
    """
    if dim == k:
        return np.eye(dim)
    Q, R = np.linalg.qr(rng.standard_normal((dim, k)))
    # QR is unique only up to these signs, which differ between LAPACK builds.
    return np.asarray(Q * np.where(np.diagonal(R) < 0, -1.0, 1.0))
