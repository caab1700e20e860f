r"""Kernels between all pairs without the weights that do not matter.

A row of :math:`e^{-c_{ij}/\varepsilon}` may lack weights that sum to at most ``max_error`` times
its own sum. A weight below ``max_error / 2n`` of the sum of any part of the row is left out before
it is computed: all of them together are at most half of what may be lacking. The other half are the
smallest weights that were computed. A weight that either of its points keeps is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph.costs.powers import can_list
from otgraph.graphs._canonical import with_small_indices

if TYPE_CHECKING:
    from otgraph.costs import DirectCost
    from otgraph.costs.pairs import Pairs
    from otgraph.typing import FloatArray, SparseMatrix

# Up to this many points all weights are kept by default: 1.2 GB.
MOST_DENSE_POINTS = 10_000
# Default of `max_error` above it.
DEFAULT_ERROR = 1e-6
# If lists have more than this share of all pairs, all weights are kept by default: a list costs
# several times as much per weight.
MOST_LISTED_SHARE = 0.25


def resolved_error(cost: DirectCost, eps: float, max_error: float | None) -> float | None:
    """The share of a row that may be left out; None if all weights are kept."""
    if max_error is not None:
        return max_error
    if cost.n <= MOST_DENSE_POINTS or not can_list(cost):
        return None
    listed = cost.expected_share(eps, DEFAULT_ERROR)
    return DEFAULT_ERROR if listed <= MOST_LISTED_SHARE else None


def cut(matrix: FloatArray, max_error: float) -> None:
    """Set the smallest weights of a symmetric matrix to zero, at most ``max_error`` of a row."""
    least = max_error / len(matrix) * matrix.sum(axis=1)
    for row, own in zip(matrix, least, strict=True):
        row[row < np.minimum(own, least)] = 0.0


def weights_of_pairs(pairs: Pairs, weights: FloatArray, loops: float | FloatArray) -> SparseMatrix:
    """Weights of pairs and loops as a CSR matrix; what underflows is not stored."""
    n = pairs.n
    matrix = sp.csr_matrix((weights, pairs.indices, pairs.indptr), shape=(n, n))
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    if np.any(loops):
        matrix = matrix + sp.diags(np.broadcast_to(loops, n), format="csr")
    return with_small_indices(matrix)
