"""Parameters of points along a curve, spaced by its length or by any other measure of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicHermiteSpline

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray

# With so many panels the interpolated inverse, of fourth order, is exact to rounding.
N_PANELS = 2**14
# Gauss-Legendre nodes per panel: order 8, beyond rounding at this width.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(4)


def parameters_at(
    speed: Callable[[FloatArray], FloatArray], t_range: tuple[float, float], fractions: FloatArray
) -> FloatArray:
    """Parameters t at which the given fractions of the curve lie behind.

    Parameters
    ----------
    speed
        Measure per unit of t, positive: the norm of the derivative for arc length, times a
        density where points are to crowd.
    t_range
        First and last parameter.
    fractions
        Numbers from 0 to 1.
    """
    t = np.linspace(*t_range, N_PANELS + 1)
    half = (t[1] - t[0]) / 2
    middles = (t[:-1] + t[1:]) / 2
    panels = half * speed(middles[:, None] + half * NODES) @ NODE_WEIGHTS
    length = np.concatenate([[0.0], np.cumsum(panels)])
    inverse = CubicHermiteSpline(length, t, 1 / speed(t))
    return np.asarray(np.clip(inverse(fractions * length[-1]), *t_range))
