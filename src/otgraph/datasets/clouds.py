"""Gaussian groups, and a noisy manifold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._validation import check_count
from otgraph.datasets.sample import Sample, embed, noise_radius, orthonormal_basis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

    from otgraph.datasets.sample import RandomState

# Change of the phase of a wave along each side of the cube, in radians (standard deviation). It
# bends the cube strongly without folding it onto itself.
WAVENUMBER = 1.5
# Waves per intrinsic dimension. A generic map into more than twice the dimension is one to one.
WAVES_PER_DIMENSION = 4


def gaussian_mixture(
    n_per_group: int = 250,
    *,
    dim: int = 250,
    sigmas: Sequence[float] = (0.3, 0.6, 1.0),
    radius: float = 1.5,
    random_state: RandomState = 0,
) -> Sample:
    r"""Isotropic Gaussian groups of different width in high dimension.

    Group :math:`g` is :math:`m_g + \sigma_g Z` with :math:`Z` standard Gaussian in all
    dimensions. The centers :math:`m_g` lie on a circle in the first two, at equal angles.

    Parameters
    ----------
    n_per_group
        Number of points in each group.
    dim
        Dimension of the points, at least 2.
    sigmas
        Standard deviation per coordinate, one for each group.
    radius
        Distance of the centers from the origin.
    random_state
        Seed or generator.

    Returns
    -------
    Sample
        With ``labels``; ``clean`` holds the center of each point's group.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.gaussian_mixture().X.shape
    (750, 250)
    """
    check_count(n_per_group, "n_per_group")
    check_count(dim, "dim", minimum=2)
    rng = np.random.default_rng(random_state)
    labels = np.repeat(np.arange(len(sigmas), dtype=np.int32), n_per_group)
    angle = 2 * np.pi * labels / len(sigmas)
    clean = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    noise_level = np.asarray(sigmas, dtype=np.float64)[labels]
    X = noise_level[:, None] * rng.standard_normal((len(labels), dim))
    X[:, :2] += clean
    return Sample(X, clean, np.eye(dim, 2), noise_level, labels=labels)


def noisy_manifold(
    n: int = 1000,
    *,
    dim: int = 50,
    intrinsic_dim: int = 5,
    noise: float = 0.3,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = 0,
) -> Sample:
    r"""A bent cube in high dimension whose noise varies from place to place.

    Points :math:`t` are uniform in :math:`[0, 1]^k`. Each of :math:`m = 4k` coordinates of the
    manifold is one wave, :math:`f_j(t) = \sqrt{2/m} \cos(\omega_j \cdot t + \varphi_j)`, with
    Gaussian :math:`\omega_j` and random phase. :math:`\lVert f \rVert` is about 1. The
    points are :math:`R f(t) + \rho(t) Z / \lVert Z \rVert` with orthonormal R and
    :math:`\rho(t) = \alpha\,(0.05 + 0.95\,(1 + \cos 2 \pi t_1) / 2)`.

    Parameters
    ----------
    n
        Number of points; a million takes seconds.
    dim
        Dimension of the points, at least ``4 * intrinsic_dim``.
    intrinsic_dim
        Dimension k of the manifold.
    noise
        Norm :math:`\alpha` of the noise where it is largest.
    dtype, random_state
        As in :func:`noisy_spiral`.

    Returns
    -------
    Sample
        With ``t`` of shape ``(n, intrinsic_dim)`` and ``clean`` of shape
        ``(n, 4 * intrinsic_dim)``.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.noisy_manifold(n=300).X.shape
    (300, 50)
    """
    check_count(n, "n")
    check_count(intrinsic_dim, "intrinsic_dim")
    n_waves = WAVES_PER_DIMENSION * intrinsic_dim
    check_count(dim, "dim", minimum=n_waves)
    rng = np.random.default_rng(random_state)
    frequencies = WAVENUMBER * rng.standard_normal((intrinsic_dim, n_waves))
    phases = rng.uniform(0, 2 * np.pi, n_waves)
    basis = orthonormal_basis(dim, n_waves, rng)
    t = rng.random((n, intrinsic_dim))
    clean = t @ frequencies
    clean += phases
    np.cos(clean, out=clean)  # in place, because this array is large
    clean *= np.sqrt(2 / n_waves)
    radius = noise_radius(noise, 2 * np.pi * t[:, 0])
    return Sample(embed(clean, basis, radius, rng, dtype), clean, basis, radius, t)
