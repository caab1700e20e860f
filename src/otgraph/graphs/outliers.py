"""The outlier cost that suits a data set, chosen from its potentials.

A point that is far from all others has a high potential: it must pay for distant partners. On the
logarithmic scale, where units do not matter, potentials above the upper quartile by more than the
distance of the quartiles belong to outliers. At half the outlier cost a point holds all its mass
back. So outliers are let go, and all others keep most of their mass.

`benchmarks.soft_marginals` has what this rule does, and docs/outliers.md what others did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.typing import FloatArray

# Largest quotient of the quartiles that is believed. With many copies the lower one is nearly zero.
LARGEST_QUOTIENT = 10.0
# Significant digits of the choice: it must not depend on rounding errors.
DIGITS = 3


def chosen_outlier_cost(u: FloatArray) -> float:
    """Twice q3·(q3/q1) for the quartiles of the potentials; infinite if they are not positive."""
    low, high = np.quantile(u, (0.25, 0.75))
    if not high > 0.0:
        return np.inf
    quotient = high / low if low > high / LARGEST_QUOTIENT else LARGEST_QUOTIENT
    return float(f"{2.0 * high * quotient:.{DIGITS}g}")
