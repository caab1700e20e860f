"""How many pairs a solution on incomplete candidates lacks, from a sample of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.solvers.solve import Solution

SAMPLE_ROWS = 256
ROWS_AT_ONCE = 16  # costs to all points are held for so many rows
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
    degrees = np.diff(solution.plan.indptr)[rows]
    wanted = np.empty(len(rows))
    for first in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[first : first + ROWS_AT_ONCE]
        costs = cost.sample(some)
        costs[np.arange(len(some)), some] = np.inf
        wanted[first : first + len(some)] = np.count_nonzero(costs < u[some, None] + u, axis=1)
    lacking = np.maximum(wanted - degrees, 0.0)
    pairs_per_row = 0.5 * n / len(rows)
    spread = float(np.sqrt(len(rows) * np.var(lacking)))
    total = float(lacking.sum())
    bound = total + NORMAL_95 * spread + RULE_OF_THREE
    looked_at = len(rows) * n - len(rows) * (len(rows) + 1) // 2  # each pair once
    return pairs_per_row * total, pairs_per_row * bound, looked_at
