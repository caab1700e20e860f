"""Judging potentials by a few rows with all their pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.typing import FloatArray

SAMPLE_ROWS = 32


def excess_ratio(cost: Cost, u: FloatArray, target: FloatArray) -> float:
    """Sum of (u_i + u_j - c_ij)_+ over all pairs of evenly spread rows, over their targets.

    About 1 for potentials that are right. Much more where the candidates that they were
    computed on miss most of the pairs that matter, as nearest neighbors do in many dimensions.
    """
    rows = np.unique(np.linspace(0, cost.n - 1, min(SAMPLE_ROWS, cost.n)).astype(np.int64))
    return float(np.sum(cost.excess(rows, u))) / float(np.sum(target[rows]))
