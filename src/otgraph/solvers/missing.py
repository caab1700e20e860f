"""How many pairs a solution on incomplete candidates lacks, from a sample of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.solvers.solve import Solution

SAMPLE_ROWS = 256
NORMAL_95 = 1.645  # one-sided
RULE_OF_THREE = 3.0  # 95 % bound of a Poisson mean after no event at all


def missing_pairs(cost: Cost, solution: Solution, seed: int) -> tuple[float, float, int]:
    """Estimate, one-sided 95 % bound, and the number of pairs looked at.

    For random rows every pair with u_i + u_j > c_ij is found and those in the plan are
    taken off. The bound adds the normal deviation of the mean and three events.
    """
    n, u = cost.n, solution.u
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, min(SAMPLE_ROWS, n), replace=False))
    wanted = cost.count_below(rows, u)
    lacking = np.maximum(wanted - solution.plan.degrees[rows], 0.0)
    pairs_per_row = 0.5 * n / len(rows)
    spread = float(np.sqrt(len(rows) * np.var(lacking)))
    total = float(lacking.sum())
    bound = total + NORMAL_95 * spread + RULE_OF_THREE
    looked_at = len(rows) * n - len(rows) * (len(rows) + 1) // 2  # each pair once
    return pairs_per_row * total, pairs_per_row * bound, looked_at
