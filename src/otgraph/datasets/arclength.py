"""Parameters of points along a curve, spaced by arc length or another measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.interpolate import CubicHermiteSpline

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray

# With this many panels the fourth-order interpolation of the inverse is exact to rounding.
N_PANELS = 2**14
# Gauss-Legendre nodes per panel: order 8, exact to rounding at this width.
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(4)


def parameters_at(
    speed: Callable[[FloatArray], FloatArray], t_range: tuple[float, float], fractions: FloatArray
) -> FloatArray:
    """Parameters t up to which the curve has the given fractions of its measure.

    Parameters
    ----------
    speed
        Measure per unit of t, positive: the norm of the derivative for arc length, or that times
        a density.
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
