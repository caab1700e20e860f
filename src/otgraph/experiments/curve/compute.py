"""Data, graphs and scores of the closed curve.

An edge is spurious if it is a short cut: the way along the curve between its ends is longer than
the edge by more than a tenth. Such edges appear where points are sparse, because there the
nearest neighbors are far away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph import datasets
from otgraph.experiments._framework import Task, circle_variations, log_grid
from otgraph.experiments._framework.style import HOLLOW, KNN, QUADRATIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otgraph.experiments._framework.experiment import Row
    from otgraph.typing import BoolArray, FloatArray, IntArray

LARGEST_DETOUR = 1.1  # way along the curve over length of the edge
SPURIOUS = "spurious edges"
MEAN_DEGREE = "mean degree"
RADIUS_VARIATION = "radius variation"
GAP_VARIATION = "gap variation"


@dataclass(frozen=True)
class Parameters:
    """Sizes and grids; the paper gives none for its figure 1."""

    n: int = 200
    contrast: float = 10.0
    eps: tuple[float, ...] = log_grid(-1.5, 1.5, 25)
    k: tuple[int, ...] = tuple(range(1, 41))


QUICK = Parameters(n=100, eps=log_grid(-1, 1, 5), k=tuple(range(2, 41, 4)))


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A task for each method."""
    for method in (QUADRATIC, HOLLOW, KNN):
        yield method, {}


def sample(parameters: Parameters, seed: int) -> datasets.Sample:
    """The closed curve of a seed."""
    return datasets.closed_curve(parameters.n, contrast=parameters.contrast, random_state=seed)


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Edges and short cuts of every graph, and how round its embedding is."""
    curve = sample(parameters, task.seed)
    for graph in graphs(task.method, curve.X, parameters):
        name = "k" if task.method == KNN else "eps"
        at = {name: graph.params[name]}
        i, j = edges(graph)
        spurious = is_short_cut(i, j, curve.X)
        sparse = in_sparse_half(curve)
        radius, gaps = circle_variations(otgraph.eigenmaps(graph, 2).coordinates)
        values: dict[str, Any] = {
            MEAN_DEGREE: graph.mean_degree,
            "components": graph.n_components,
            SPURIOUS: np.count_nonzero(spurious & (sparse[i] | sparse[j])),
            "spurious edges elsewhere": np.count_nonzero(spurious & ~(sparse[i] | sparse[j])),
            RADIUS_VARIATION: radius,
            GAP_VARIATION: gaps,
        }
        for score, value in values.items():
            yield {**at, "score": score, "value": float(value)}


def graphs(method: str, X: FloatArray, parameters: Parameters) -> Iterator[otgraph.Graph]:
    """All graphs of a method, in the order of the grid."""
    if method == KNN:
        for k in parameters.k:
            yield otgraph.knn_gaussian_graph(X, k, None, n_jobs=1)
    else:
        yield from otgraph.eps_path(X, parameters.eps, self_loops=method == QUADRATIC, n_jobs=1)


def edges(graph: otgraph.Graph) -> tuple[IntArray, IntArray]:
    """Ends of every edge, once."""
    upper = sp.triu(graph.weights, k=1, format="coo")
    return upper.row, upper.col


def is_short_cut(i: IntArray, j: IntArray, X: FloatArray) -> BoolArray:
    """Whether the way along the curve is much longer than the edge.

    Points are ordered along the curve, so that the way is the sum of the steps between them;
    two neighbors on the curve are never joined by a short cut.
    """
    steps = np.linalg.norm(np.roll(X, -1, axis=0) - X, axis=1)
    position = np.cumsum(steps) - steps
    way = np.abs(position[i] - position[j])
    way = np.minimum(way, steps.sum() - way)
    return np.asarray(way > LARGEST_DETOUR * np.linalg.norm(X[i] - X[j], axis=1))


def in_sparse_half(curve: datasets.Sample) -> BoolArray:
    """Points on the side of the curve where density is below its mean on a logarithmic scale."""
    assert curve.t is not None  # curves have parameters
    return np.asarray(np.cos(curve.t) < 0)
