"""Judging potentials by a few rows with all their pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._parallel import row_blocks

if TYPE_CHECKING:
    from otgraph.costs import Cost
    from otgraph.typing import FloatArray

SAMPLE_ROWS = 32
SAMPLE_ENTRIES = 1 << 22  # numbers held at once


def excess_ratio(cost: Cost, u: FloatArray, target: FloatArray) -> float:
    """Sum of (u_i + u_j - c_ij)_+ over all pairs of evenly spread rows, over their targets.

    About 1 for potentials that are right. Much more where the candidates that they were
    computed on miss most of the pairs that matter, as nearest neighbors do in many dimensions.
    """
    rows = np.unique(np.linspace(0, cost.n - 1, min(SAMPLE_ROWS, cost.n)).astype(np.int64))
    total = 0.0
    for a, b in row_blocks(len(rows), max(1, SAMPLE_ENTRIES // cost.n)):
        some = rows[a:b]
        excess = u[some, None] + u - cost.sample(some)
        excess[np.arange(len(some)), some] = 0.0
        total += float(np.sum(np.maximum(excess, 0.0)))
    return total / float(np.sum(target[rows]))
