"""Noisy and unevenly sampled curves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.interpolate import CubicHermiteSpline

from otgraph._validation import check_choice, check_count
from otgraph.datasets.sample import (
    Sample,
    check_at_least,
    embed,
    noise_radius,
    orthonormal_basis,
    without_noise,
)
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, DTypeLike

    from otgraph.datasets.sample import RandomState
    from otgraph.typing import BoolArray, FloatArray

Spacing = Literal["even", "random", "uniform"]

# Rounding error of a share of a group.
ROUNDING = 1e-12
# With this many panels the fourth-order interpolation of the inverse is exact to rounding.
N_PANELS = 2**14
# Gauss-Legendre nodes per panel: order 8, exact to rounding at this width.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(4)


def noisy_spiral(
    n: int = 1000,
    *,
    dim: int = 100,
    noise: float = 1.0,
    dtype: DTypeLike = np.float64,
    random_state: RandomState = 0,
) -> Sample:
    r"""Closed spiral in high dimension whose noise rises and falls six times.

    The curve is

    .. math:: x(t) = \bigl(\cos t\,(0.5 \cos 6t + 1),\ \sin t\,(0.4 \cos 6t + 1),\
              0.4 \sin 6t\bigr), \quad t \in [0, 2\pi),

    with points evenly spaced by arc length. They are embedded as
    :math:`R x_i + \rho(t_i) Z_i / \lVert Z_i \rVert` with :math:`R^\top R = I`,
    :math:`Z_i` standard Gaussian and :math:`\rho(t) = 0.05 + 0.95\,(1 + \cos 6t) / 2`.
    Matsumoto et al. (2022), section 3.1.

    Parameters
    ----------
    n
        Number of points. The curve is closed: the last point is one step before the first.
    dim
        Dimension of the points, at least 3. With 3 the curve is not turned.
    noise
        Factor on :math:`\rho`; 0 gives the clean curve.
    dtype
        Type of ``X``. ``float32`` halves the memory; the points are the same, rounded.
    random_state
        Seed or generator.

    Returns
    -------
    Sample
        With ``clean`` in three dimensions and ``t``.

    Examples
    --------
    >>> from otgraph import datasets
    >>> spiral = datasets.noisy_spiral(n=200)
    >>> spiral.X.shape, spiral.clean.shape
    ((200, 100), (200, 3))
    """
    check_count(n, "n")
    check_count(dim, "dim", minimum=3)
    rng = np.random.default_rng(random_state)
    t = parameters_at(_spiral_speed, (0.0, 2 * np.pi), np.arange(n) / n)
    clean = _spiral(t)
    basis = orthonormal_basis(dim, 3, rng)
    radius = noise_radius(noise, 6 * t)
    return Sample(embed(clean, basis, radius, rng, dtype), clean, basis, radius, t)


def spiral_arms(
    n_per_arm: int = 150,
    *,
    n_arms: int = 10,
    t_range: tuple[float, float] = (1.0, 5.0),
    spacing: Spacing = "even",
    dim: int = 100,
    noise: float = 1.0,
    random_state: RandomState = 0,
) -> Sample:
    r"""Arms of a spiral galaxy, one label each, for semi-supervised learning.

    Arm :math:`a = 1, \dots, A` is :math:`(t \cos t, t \sin t)` turned by
    :math:`2 \pi a / A`, embedded in higher dimension with noise
    :math:`\alpha\,(1 - \sin(3t)^4)\, Z / \lVert Z \rVert`. Matsumoto et al. (2022), section 3.2,
    where :math:`\alpha = 1`; the authors' scripts use 0.5 and random spacing.

    Parameters
    ----------
    n_per_arm
        Number of points on each arm.
    n_arms
        Number of arms.
    t_range
        First and last parameter of every arm, ``0 <= t_range[0] < t_range[1]``.
    spacing
        ``"even"``: equal steps of arc length from end to end. ``"random"``: uniformly random
        by arc length. ``"uniform"``: uniformly random in t, denser towards the center.
    dim
        Dimension of the points, at least 2. With 2 the plane is not turned; the paper's
        density experiment is ``dim=2, noise=0, t_range=(0.5, 5), spacing="uniform"``.
    noise
        Factor :math:`\alpha` on the noise.
    random_state
        Seed or generator.

    Returns
    -------
    Sample
        With ``clean`` in the plane, ``t`` and ``labels``, arm after arm.

    Examples
    --------
    >>> from otgraph import datasets
    >>> arms = datasets.spiral_arms(50, n_arms=3)
    >>> arms.X.shape, arms.labels.max()
    ((150, 100), np.int32(2))
    """
    check_count(n_per_arm, "n_per_arm")
    check_count(n_arms, "n_arms")
    check_count(dim, "dim", minimum=2)
    check_choice(spacing, "spacing", ("even", "random", "uniform"))
    if not 0 <= t_range[0] < t_range[1]:
        raise invalid("t_range", f"must be two rising numbers >= 0, got {t_range!r}.")
    rng = np.random.default_rng(random_state)
    t = np.concatenate([_arm_parameters(n_per_arm, t_range, spacing, rng) for _ in range(n_arms)])
    labels = np.repeat(np.arange(n_arms, dtype=np.int32), n_per_arm)
    angle = t + 2 * np.pi * (labels + 1) / n_arms
    clean = np.column_stack([t * np.cos(angle), t * np.sin(angle)])
    basis = orthonormal_basis(dim, 2, rng)
    radius = noise * (1 - np.sin(3 * t) ** 4)
    return Sample(embed(clean, basis, radius, rng), clean, basis, radius, t, labels)


def closed_curve(n: int = 200, *, contrast: float = 10.0, random_state: RandomState = 0) -> Sample:
    r"""Closed curve in the plane, dense at one end and sparse at the other.

    The curve is :math:`r(t)\,(\cos t, \sin t)` with :math:`r(t) = 1 + 0.4 \cos 2t`, a peanut. The
    density of the points along it is largest at :math:`t = 0` and smaller by the factor `contrast`
    at :math:`t = \pi`. Its logarithm is linear in :math:`\cos t`. Similar to Matsumoto et al.
    (2022), figure 1.

    Parameters
    ----------
    n
        Number of points, drawn independently and ordered along the curve.
    contrast
        Largest density over smallest, at least 1; 1 is uniform by arc length.
    random_state
        Seed or generator.

    Returns
    -------
    Sample
        With ``t``, without noise: ``X`` and ``clean`` are equal.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.closed_curve(n=50).X.shape
    (50, 2)
    """
    check_count(n, "n")
    check_at_least(1, contrast, "contrast")
    rng = np.random.default_rng(random_state)

    def crowding(t: FloatArray) -> FloatArray:
        return np.asarray(_peanut_speed(t) * contrast ** (np.cos(t) / 2))

    t = parameters_at(crowding, (0.0, 2 * np.pi), np.sort(rng.random(n)))
    return without_noise(_peanut(t), t)


def elephant_curve(
    n: int = 200,
    *,
    concentration: float = 1.1,
    noise: float = 2.5,
    random_state: RandomState = 0,
) -> Sample:
    r"""Noisy outline of an elephant in the plane, with uneven density.

    The closed curve with four complex parameters of Mayer, Khairy and Howard (2010),

    .. math::

        x(t) &= -60 \cos t - 30 \sin t + 8 \sin 2t - 10 \sin 3t, \\
        y(t) &= -50 \sin t - 18 \sin 2t - 12 \cos 3t + 14 \cos 5t,

    at angles from a von Mises distribution around :math:`t = 0`, with Gaussian noise. The data of
    Matsumoto et al. (2022), figure 1; the text gives no numbers, the authors' script does.

    Parameters
    ----------
    n, random_state
        As in :func:`closed_curve`.
    concentration
        Concentration of the angles: 0 is uniform in t; large values give dense points on the left.
    noise
        Standard deviation of each coordinate. The elephant is about 150 wide.

    Returns
    -------
    Sample
        With ``t``; ``clean`` lies on the curve.

    Examples
    --------
    >>> from otgraph import datasets
    >>> datasets.elephant_curve(n=50).X.shape
    (50, 2)
    """
    check_count(n, "n")
    check_at_least(0, concentration, "concentration")
    check_at_least(0, noise, "noise")
    rng = np.random.default_rng(random_state)
    t = np.sort(rng.vonmises(0.0, concentration, n) % (2 * np.pi))
    clean = _elephant(t)
    X = clean + noise * rng.standard_normal(clean.shape)
    return Sample(X, clean, np.eye(2), np.full(n, float(noise)), t)


def label_mask(labels: ArrayLike, fraction: float, *, random_state: RandomState = 0) -> BoolArray:
    """Mask of the points that keep their label: the same fraction of every group.

    Parameters
    ----------
    labels
        Group of each point.
    fraction
        Share to keep of each group, in (0, 1], rounded up to whole points as in the published
        comparisons: 1 % of 250 points are three.
    random_state
        Seed or generator.

    Examples
    --------
    >>> import numpy as np
    >>> from otgraph import datasets
    >>> arms = datasets.spiral_arms()
    >>> known = datasets.label_mask(arms.labels, 0.025)
    >>> partial = np.where(known, arms.labels, -1)  # -1 means unknown
    >>> known.sum()
    np.int64(40)
    """
    if not 0 < fraction <= 1:
        raise invalid("fraction", f"must be a number in (0, 1], got {fraction!r}.")
    rng = np.random.default_rng(random_state)
    labels = np.asarray(labels)
    mask = np.zeros(len(labels), dtype=np.bool_)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        # Round up, except for rounding errors: 0.07 * 100 is 7.000000000000001.
        n_kept = math.ceil(fraction * len(members) * (1 - ROUNDING))
        mask[rng.choice(members, n_kept, replace=False)] = True
    return mask


def parameters_at(
    speed: Callable[[FloatArray], FloatArray], t_range: tuple[float, float], fractions: FloatArray
) -> FloatArray:
    """Parameters t up to which a curve has the given fractions of its measure.

    The speed is the measure per unit of t, positive: the norm of the derivative for arc length, or
    that times a density.
    """
    t = np.linspace(*t_range, N_PANELS + 1)
    half = (t[1] - t[0]) / 2
    middles = (t[:-1] + t[1:]) / 2
    panels = half * speed(middles[:, None] + half * NODES) @ NODE_WEIGHTS
    length = np.concatenate([[0.0], np.cumsum(panels)])
    inverse = CubicHermiteSpline(length, t, 1 / speed(t))
    return np.asarray(np.clip(inverse(fractions * length[-1]), *t_range))


def _spiral(t: FloatArray) -> FloatArray:
    return np.column_stack(
        [
            np.cos(t) * (0.5 * np.cos(6 * t) + 1),
            np.sin(t) * (0.4 * np.cos(6 * t) + 1),
            0.4 * np.sin(6 * t),
        ]
    )


def _spiral_speed(t: FloatArray) -> FloatArray:
    dx = -np.sin(t) * (0.5 * np.cos(6 * t) + 1) - 3 * np.cos(t) * np.sin(6 * t)
    dy = np.cos(t) * (0.4 * np.cos(6 * t) + 1) - 2.4 * np.sin(t) * np.sin(6 * t)
    dz = 2.4 * np.cos(6 * t)
    return np.asarray(np.sqrt(dx**2 + dy**2 + dz**2))


def _arm_parameters(
    n: int, t_range: tuple[float, float], spacing: Spacing, rng: np.random.Generator
) -> FloatArray:
    if spacing == "uniform":
        return np.sort(rng.uniform(*t_range, n))
    fractions = np.linspace(0, 1, n) if spacing == "even" else np.sort(rng.random(n))
    return parameters_at(lambda t: np.sqrt(1 + t**2), t_range, fractions)


def _peanut(t: FloatArray) -> FloatArray:
    r = 1 + 0.4 * np.cos(2 * t)
    return np.column_stack([r * np.cos(t), r * np.sin(t)])


def _peanut_speed(t: FloatArray) -> FloatArray:
    return np.hypot(1 + 0.4 * np.cos(2 * t), 0.8 * np.sin(2 * t))


def _elephant(t: FloatArray) -> FloatArray:
    x = -60 * np.cos(t) - 30 * np.sin(t) + 8 * np.sin(2 * t) - 10 * np.sin(3 * t)
    y = -50 * np.sin(t) - 18 * np.sin(2 * t) - 12 * np.cos(3 * t) + 14 * np.cos(5 * t)
    return np.column_stack([x, y])
