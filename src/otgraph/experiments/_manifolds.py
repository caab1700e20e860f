r"""What theory says about neighborhood graphs on a manifold of dimension d and volume V.

A graph on n random points of density :math:`\rho` (relative to uniform), symmetric and with row
sums one, moves mass over distances whose mean square is :math:`m(x)`. As n grows and m shrinks,

.. math:: (1 - W) f \approx -\frac{1}{\rho} \nabla \cdot \Bigl(\rho\, \frac{m}{2d} \nabla f\Bigr).

*Quadratic OT.* Weights :math:`(2u - s^2)_+ / \varepsilon` at distance s vanish beyond
:math:`r = \sqrt{2u}`. Mass one fixes :math:`\varepsilon = \frac{n \rho}{V} \frac{2 b_d}{d + 2}
r^{d+2}` with the volume :math:`b_d` of the unit ball, and :math:`m = r^2 d / (d + 4)`. So
:math:`m \propto \rho^{-2/(d+2)}`.

*Nearest neighbors.* Equal weights up to r, where :math:`k = n \rho b_d r^d / V`, and
:math:`m = r^2 d / (d + 2) \propto \rho^{-2/d}`.

*Entropic OT and Gaussian kernels.* :math:`m = \varepsilon d / 2` at any density.

With :math:`m \propto \rho^{-q}` the limit is :math:`\rho^{-1} \nabla \cdot (\rho^{1-q} \nabla f)`:
Laplace-Beltrami if the points are even, and a different operator for each construction if not.

A manifold with a border is half of one without. Functions on it are those on the whole that do not
change when the halves are exchanged: their slope across the border is zero, as in the limit of
graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from math import gamma, pi
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import eigh

from otgraph import datasets

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray

GRID_SIZE = 600  # of the first angle: eigenvalues below 20 are right to 1e-3
LARGEST_ORDER = 5  # waves around the second angle; more of them have larger eigenvalues


@dataclass(frozen=True)
class Manifold:
    """A manifold, and the part of its spectrum that is compared."""

    sample: Callable[..., datasets.Sample]  # generator of points
    dim: int
    volume: float
    n_first: int  # multiplicity of the first eigenvalue
    n_modes: int  # number of eigenvalues, up to and including a complete group
    whole: str = ""  # of which it is a half; empty without a border

    @property
    def ball(self) -> float:
        """Volume of the unit ball of the same dimension."""
        return pi ** (self.dim / 2) / gamma(self.dim / 2 + 1)

    def radius_of_degree(self, degree: float, n: int) -> float:
        """Radius within which an even sample of n points has so many neighbors."""
        return float((degree * self.volume / (n * self.ball)) ** (1 / self.dim))

    def quadratic_eps(self, radius: float, n: int) -> float:
        """The eps, for costs that are not normalized, whose support has the radius."""
        d = self.dim
        return n / self.volume * self.ball * 2 / (d + 2) * radius ** (d + 2)

    def step(self, radius: float) -> float:
        """Ratio of 1 - λ to the eigenvalue of the Laplacian, m / 2d, for quadratic OT."""
        return radius**2 / (2 * (self.dim + 4))

    def entropic_eps(self, radius: float) -> float:
        """The eps with the same m as quadratic OT of that radius."""
        return 4 * self.step(radius)

    def neighbors(self, radius: float, n: int) -> int:
        """The k with the same m as quadratic OT of that radius."""
        d = self.dim
        own = radius * ((d + 2) / (d + 4)) ** 0.5
        return max(1, round(n / self.volume * self.ball * own**d))


def _half(sample: Callable[..., datasets.Sample]) -> Callable[..., datasets.Sample]:
    """Points on half of a manifold: the last sine and its angle without their signs.

    The density depends on the first angle, and is the same in both halves.
    """

    def folded(n: int, *, concentration: float = 0.0, random_state: int = 0) -> datasets.Sample:
        whole = sample(n, concentration=concentration, random_state=random_state)
        assert whole.t is not None  # manifolds have coordinates
        X, angles = whole.X.copy(), whole.t.reshape(len(whole.t), -1).copy()
        sine = 1 if sample is not datasets.flat_torus else 3
        X[:, sine] = np.abs(X[:, sine])
        angles[:, -1] = np.abs(np.angle(np.exp(1j * angles[:, -1])))  # between 0 and π
        return replace(whole, X=X, clean=X, t=angles.reshape(whole.t.shape))

    return folded


MANIFOLDS = {
    "circle": Manifold(datasets.circle, 1, 2 * pi, n_first=2, n_modes=8),
    "sphere": Manifold(datasets.sphere, 2, 4 * pi, n_first=3, n_modes=15),
    "torus": Manifold(datasets.flat_torus, 2, 4 * pi**2, n_first=4, n_modes=12),
    "half circle": Manifold(_half(datasets.circle), 1, pi, 1, 4, "circle"),
    "half sphere": Manifold(_half(datasets.sphere), 2, 2 * pi, 2, 9, "sphere"),
    "half torus": Manifold(_half(datasets.flat_torus), 2, 2 * pi**2, 3, 8, "torus"),
}
CLOSED = tuple(name for name, manifold in MANIFOLDS.items() if not manifold.whole)
WITH_BORDER = tuple(name for name, manifold in MANIFOLDS.items() if manifold.whole)


class Mode(NamedTuple):
    """An eigenfunction g(t_1) cos(order t_2), or with the sine."""

    eigenvalue: float
    order: int
    sine: bool
    profile: tuple[float, ...]


@cache
def modes(name: str, concentration: float, q: float) -> tuple[Mode, ...]:
    """Leading non-constant eigenfunctions of -ρ^-1 div(ρ^(1-q) grad f), ρ = e^(κ cos t_1).

    The density depends on the first angle only. The second angle separates, which leaves an
    ordinary differential equation for each order. Finite differences solve it.
    """
    manifold = MANIFOLDS[name]
    h = _span(name) / GRID_SIZE
    borders = h * np.arange(GRID_SIZE, dtype=np.float64)
    centers = borders + h / 2
    # Of the circle t_1 = const.
    width = np.sin if name in ("sphere", "half sphere") else np.ones_like

    def density(t: FloatArray) -> FloatArray:
        return np.asarray(np.exp(concentration * np.cos(t)))

    flux = width(borders) * density(borders) ** (1 - q) / h**2  # none through the poles
    if not _is_periodic(name):
        flux[0] = 0.0  # that of the last border as well
    here = np.arange(GRID_SIZE)
    stiffness = np.diag(flux + np.roll(flux, -1))
    stiffness[here, here - 1] -= flux
    stiffness[here - 1, here] -= flux
    scale = 1 / np.sqrt(width(centers) * density(centers))
    n_modes = manifold.n_modes
    found = []
    for order in range(1 if manifold.dim == 1 else LARGEST_ORDER + 1):
        around = np.diag(order**2 * density(centers) ** (1 - q) / width(centers))
        values, vectors = eigh(
            (stiffness + around) * np.outer(scale, scale), subset_by_index=(0, n_modes)
        )
        for value, vector in zip(values, vectors.T, strict=True):
            profile = tuple((vector * scale).tolist())
            found += [
                Mode(float(value), order, sine, profile)
                # On a half, sines have a slope across the border.
                for sine in ((False, True) if order and not manifold.whole else (False,))
            ]
    return tuple(sorted(found)[1 : n_modes + 1])  # the first is constant


def _is_periodic(name: str) -> bool:
    """Whether the first angle goes around; otherwise it ends at poles or at a border."""
    return name in ("circle", "torus", "half torus")


def _span(name: str) -> float:
    """Range of the first angle."""
    return 2 * pi if _is_periodic(name) else pi


def mode_values(name: str, leading: tuple[Mode, ...], t: FloatArray) -> FloatArray:
    """The modes at points with the given angles, one column each."""
    angles = t.reshape(len(t), -1)
    span = _span(name)
    centers = (np.arange(GRID_SIZE) + 0.5) * span / GRID_SIZE
    columns = []
    for mode in leading:
        period = span if _is_periodic(name) else None
        column = np.interp(angles[:, 0], centers, mode.profile, period=period)
        if mode.order:
            wave = np.sin if mode.sine else np.cos
            column = column * wave(mode.order * angles[:, 1])
        columns.append(column)
    return np.column_stack(columns)
