"""Grids of parameters, and the graphs along them where that is cheaper than one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from otgraph.typing import PointsLike

# Enough digits that a grid printed to a table still names the same graphs.
GRID_DIGITS = 6


def log_grid(low: float, high: float, n: int) -> tuple[float, ...]:
    """``n`` numbers from 10^low to 10^high, evenly on a logarithmic scale."""
    return tuple(float(f"{value:.{GRID_DIGITS}g}") for value in np.logspace(low, high, n))


def knn_gaussian_path(
    X: PointsLike, k: int, eps: Iterable[float], **options: Any
) -> Iterator[otgraph.Graph]:
    """The graphs ``knn_gaussian_graph(X, k, eps, **options)`` for many eps by one search.

    An edge has the weight s·exp(-c/eps), where s does not depend on eps: the power 1/eps of
    exp(-c), which the graph of eps = 1 holds. Weights that underflow are dropped in silence.
    """
    share = otgraph.knn_gaussian_graph(X, k, None, **options).weights
    unit = otgraph.knn_gaussian_graph(X, k, 1.0, **options)
    decay = unit.weights.data / share.data  # the same pattern: nothing underflows at eps = 1
    for value in eps:
        weights = share.copy()
        weights.data *= decay ** (1.0 / value)
        weights.eliminate_zeros()
        yield otgraph.Graph(weights, {**unit.params, "eps": value}, points=unit.points)
