"""The outlier cost that suits a data set, chosen from its potentials.

A point that is far from all others has a high potential: it must pay for distant partners. On the
logarithmic scale, where units do not matter, potentials above the upper quartile by more than the
distance of the quartiles belong to outliers. Many outliers raise the quartiles, so the rule is
applied once more to the rest. At half the outlier cost a point holds all its mass back: outliers
are let go, and all others keep most of their mass.

`python -m benchmarks.soft_marginals rule` compares this rule with others; see docs/outliers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.typing import FloatArray

# Largest quotient of the quartiles that is believed. With many copies the lower one is nearly zero.
LARGEST_QUOTIENT = 10.0
# Least quotient; real sets have 1.2 and more. Potentials that are all alike have no outliers.
LEAST_QUOTIENT = 1.2
PASSES = 2
# Significant digits of the choice: it must not depend on rounding errors.
DIGITS = 3


def chosen_outlier_cost(u: FloatArray) -> float:
    """Twice the potential above which points are outliers; infinite if none are positive."""
    highest = np.inf
    for _ in range(PASSES):
        low, high = np.quantile(u[u < highest], (0.25, 0.75))
        if not high > 0.0:
            break
        quotient = high / low if low > high / LARGEST_QUOTIENT else LARGEST_QUOTIENT
        highest = high * max(quotient, LEAST_QUOTIENT)
    return float(f"{2.0 * highest:.{DIGITS}g}")
