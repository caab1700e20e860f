"""Check potentials on a sample of rows, each with all its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import TransportPlan
    from otgraph.solvers.state import Goal
    from otgraph.typing import FloatArray

EXCESS_ROWS = 32
MISSING_ROWS = 256
NORMAL_95 = 1.645  # one-sided 95 % quantile of the normal distribution
RULE_OF_THREE = 3.0  # 95 % bound of a Poisson mean when nothing was observed


@dataclass(frozen=True)
class Missing:
    """Number of pairs that the solution would use and the candidates do not contain."""

    estimate: float = 0.0
    bound: float = 0.0
    pairs_checked: int = 0


def excess_ratio(cost: Cost, u: FloatArray, target: FloatArray) -> float:
    """Sum of (u_i + u_j - c_ij)_+ over all pairs of evenly spread rows, over their targets.

    It is about 1 for the right potentials. It is much larger if the candidates miss most of the
    pairs that matter, as nearest neighbors do in many dimensions.
    """
    rows = np.linspace(0, cost.n - 1, min(EXCESS_ROWS, cost.n)).astype(np.int64)
    return float(np.sum(cost.excess(rows, u))) / float(np.sum(target[rows]))


def missing_pairs(
    cost: Cost, goal: Goal, u: FloatArray, plan: TransportPlan, n_rows: int = MISSING_ROWS
) -> Missing:
    """Estimate, one-sided 95 % bound, and the number of pairs looked at.

    For random rows, every pair with u_i + u_j > c_ij is counted, and the pairs of the plan are
    subtracted. The bound adds the 95 % deviation of the mean and the rule of three. A few rows may
    lack most of the pairs. The deviation is therefore corrected for skewness (Johnson 1978);
    without the correction fewer than 95 % of the bounds held on data with outliers.
    """
    n = cost.n
    rng = np.random.default_rng(goal.seed)
    rows = np.sort(rng.choice(n, min(n_rows, n), replace=False))
    wanted = cost.count_below(rows, u)
    if goal.floors is not None:
        wanted = wanted - goal.floors.hidden(rows, u, goal.eps)
    lacking = np.maximum(wanted - plan.degrees[rows], 0.0)
    pairs_per_row = 0.5 * n / len(rows)
    spread = float(np.sqrt(len(rows) * np.var(lacking)))
    total = float(lacking.sum())
    correction = _skewness(lacking) * (2.0 * NORMAL_95**2 + 1.0) / (6.0 * np.sqrt(len(rows)))
    bound = total + (NORMAL_95 + correction) * spread + RULE_OF_THREE
    return Missing(pairs_per_row * total, pairs_per_row * bound, cost.pairs_of(rows))


def _skewness(values: FloatArray) -> float:
    """Third standardized moment, zero for equal values."""
    centered = values - values.mean()
    variance = float(np.mean(centered**2))
    return float(np.mean(centered**3)) / variance**1.5 if variance > 0.0 else 0.0
