"""Judging potentials by a few rows with all their pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.costs.interface import TransportPlan
    from otgraph.typing import FloatArray

EXCESS_ROWS = 32
MISSING_ROWS = 256
# One-sided 95 % points: of the normal distribution, and of a Poisson mean after no event.
NORMAL_95 = 1.645
RULE_OF_THREE = 3.0


@dataclass(frozen=True)
class Missing:
    """Pairs that a solution would use and its candidates lack."""

    estimate: float = 0.0
    bound: float = 0.0
    pairs_checked: int = 0


def excess_ratio(cost: Cost, u: FloatArray, target: FloatArray) -> float:
    """Sum of (u_i + u_j - c_ij)_+ over all pairs of evenly spread rows, over their targets.

    About 1 for potentials that are right. Much more where the candidates that they were
    computed on miss most of the pairs that matter, as nearest neighbors do in many dimensions.
    """
    rows = np.unique(np.linspace(0, cost.n - 1, min(EXCESS_ROWS, cost.n)).astype(np.int64))
    return float(np.sum(cost.excess(rows, u))) / float(np.sum(target[rows]))


def missing_pairs(cost: Cost, u: FloatArray, plan: TransportPlan, seed: int) -> Missing:
    """Estimate, one-sided 95 % bound, and the number of pairs looked at.

    For random rows every pair with u_i + u_j > c_ij is found and those in the plan are
    taken off. The bound adds the deviation of the mean and three events. A few rows may lack most
    of the pairs; the deviation is therefore corrected for skewness (Johnson 1978), without which
    the bound held in fewer than 95 % of the samples with outliers or heavy tails.
    """
    n = cost.n
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, min(MISSING_ROWS, n), replace=False))
    wanted = cost.count_below(rows, u)
    lacking = np.maximum(wanted - plan.degrees[rows], 0.0)
    pairs_per_row = 0.5 * n / len(rows)
    spread = float(np.sqrt(len(rows) * np.var(lacking)))
    total = float(lacking.sum())
    correction = _skewness(lacking) * (2.0 * NORMAL_95**2 + 1.0) / (6.0 * np.sqrt(len(rows)))
    bound = total + (NORMAL_95 + correction) * spread + RULE_OF_THREE
    looked_at = len(rows) * n - len(rows) * (len(rows) + 1) // 2  # each pair once
    return Missing(pairs_per_row * total, pairs_per_row * bound, looked_at)


def _skewness(values: FloatArray) -> float:
    """Third standardized moment, zero for equal values."""
    centered = values - values.mean()
    variance = float(np.mean(centered**2))
    return float(np.mean(centered**3)) / variance**1.5 if variance > 0.0 else 0.0
