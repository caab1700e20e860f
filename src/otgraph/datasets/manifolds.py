"""Closed manifolds with known Laplacians, sampled evenly or unevenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._validation import check_count
from otgraph.datasets.sample import Sample, check_at_least, without_noise

if TYPE_CHECKING:
    from otgraph.datasets.sample import RandomState


def circle(n: int = 1000, *, concentration: float = 0.0, random_state: RandomState = 0) -> Sample:
    r"""Random points on the unit circle.

    The Laplacian has the eigenvalues :math:`k^2`, each twice except the first.

    Parameters
    ----------
    n
        Number of points.
    concentration
        The density is :math:`\propto e^{\kappa \cos t}` with this :math:`\kappa \ge 0` (von
        Mises); 0 is uniform.
    random_state
        Seed or generator.

    Returns
    -------
    Sample
        With the angle ``t``, without noise.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.circle(50).X.shape
    (50, 2)
    """
    rng = _checked(n, concentration, random_state)
    t = rng.vonmises(0.0, concentration, n)
    return without_noise(np.column_stack([np.cos(t), np.sin(t)]), t)


def sphere(n: int = 1000, *, concentration: float = 0.0, random_state: RandomState = 0) -> Sample:
    r"""Random points on the unit sphere in three dimensions.

    The Laplacian has the eigenvalues :math:`l (l + 1)`, each :math:`2l + 1` times.

    Parameters
    ----------
    n, concentration, random_state
        As in :func:`circle`; the density depends on the angle from the pole (von Mises and Fisher).

    Returns
    -------
    Sample
        With the angle from the pole and the longitude as ``t``, without noise.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.sphere(50).t.shape
    (50, 2)
    """
    rng = _checked(n, concentration, random_state)
    share, longitude = rng.random(n), rng.uniform(0.0, 2 * np.pi, n)
    if concentration == 0.0:
        z = 2 * share - 1
    else:  # distribution function of z, solved for z; the density along the axis is e^(κz)
        z = 1 + np.log(share + (1 - share) * np.exp(-2 * concentration)) / concentration
    z = np.clip(z, -1.0, 1.0)
    width = np.sqrt(1 - z**2)
    X = np.column_stack([width * np.cos(longitude), width * np.sin(longitude), z])
    return without_noise(X, np.column_stack([np.arccos(z), longitude]))


def flat_torus(
    n: int = 1000, *, concentration: float = 0.0, random_state: RandomState = 0
) -> Sample:
    r"""Random points :math:`(\cos t_1, \sin t_1, \cos t_2, \sin t_2)`, a torus without curvature.

    The Laplacian has the eigenvalues :math:`j^2 + k^2` for all integers j and k.

    Parameters
    ----------
    n, concentration, random_state
        As in :func:`circle`; the density depends on the first angle.

    Returns
    -------
    Sample
        With both angles as ``t``, without noise.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.flat_torus(50).X.shape
    (50, 4)
    """
    rng = _checked(n, concentration, random_state)
    t = np.column_stack([rng.vonmises(0.0, concentration, n), rng.uniform(-np.pi, np.pi, n)])
    X = np.column_stack([np.cos(t[:, 0]), np.sin(t[:, 0]), np.cos(t[:, 1]), np.sin(t[:, 1])])
    return without_noise(X, t)


def _checked(n: int, concentration: float, random_state: RandomState) -> np.random.Generator:
    check_count(n, "n")
    check_at_least(0, concentration, "concentration")
    return np.random.default_rng(random_state)
