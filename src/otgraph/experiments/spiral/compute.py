"""Data, graphs and scores of the noisy spiral.

Graphs of the noisy points are judged by their ten leading eigenvectors, compared with those of a
graph of the clean points: the mean principal angle between the two spaces. The text and the
authors' code differ in the nearest-neighbor graphs only (:data:`KNN_OPTIONS`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph
from otgraph import datasets
from otgraph.exceptions import ConvergenceWarning
from otgraph.experiments._framework import (
    Task,
    circle_variations,
    knn_gaussian_path,
    log_grid,
)
from otgraph.experiments._framework.style import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from otgraph.experiments._framework.experiment import Row
    from otgraph.typing import FloatArray

# The authors count a point among its own neighbors, and average the two directions.
KNN_OPTIONS: dict[str, dict[str, Any]] = {
    "text": {},
    "code": {"include_self": True, "symmetrize": "average"},
}
# Near the identity (small eps with self-loops) all eigenvalues agree to rounding and Lanczos
# would go on in vain; graphs that have eigenvectors need a tenth of these restarts.
MAX_RESTARTS = 20

ANGLE = "mean angle"
RADIUS_VARIATION = "radius variation"
GAP_VARIATION = "gap variation"


@dataclass(frozen=True)
class Parameters:
    """Sizes and grids of section 3.1."""

    n: int = 1000
    dim: int = 100
    quadratic_eps: tuple[float, ...] = log_grid(-1.5, 1.5, 25)
    kernel_eps: tuple[float, ...] = log_grid(-2, 1, 25)
    k: tuple[int, ...] = (5, 10, 15, 20, 25)
    n_eigenvectors: int = 10
    reference_k: int = 10
    reference_eps: float = 0.025


QUICK = Parameters(
    n=300, quadratic_eps=log_grid(-1, 1, 5), kernel_eps=log_grid(-1.5, 0.5, 5), k=(5, 15)
)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """In the order of the tables; nearest neighbors have a task for each k."""
    for method in (QUADRATIC, HOLLOW):
        yield method, {}
    for method in (KNN_GAUSSIAN, MAGIC):
        for k in parameters.k:
            yield method, {"k": k}
    for method in (ENTROPIC, GAUSSIAN):
        yield method, {}


def sample(parameters: Parameters, seed: int) -> datasets.Sample:
    """The noisy spiral of a seed."""
    return datasets.noisy_spiral(parameters.n, dim=parameters.dim, random_state=seed)


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Angle to the reference for every graph, and how round its first two coordinates are."""
    spiral = sample(parameters, task.seed)
    reference = embed(reference_graph(spiral, task.variant, parameters), parameters)
    for graph in graphs(task, spiral.X, parameters):
        embedding = embed(graph, parameters)
        at = {} if task.method == MAGIC else {"eps": graph.params["eps"]}
        yield {**at, "score": ANGLE, "value": angle_to(reference, embedding)}
        for name, value in zip(
            (RADIUS_VARIATION, GAP_VARIATION), circle_variations(embedding[:, :2]), strict=True
        ):
            yield {**at, "score": name, "value": value}
        yield {**at, "score": "components", "value": float(graph.n_components)}


def graphs(task: Task, X: FloatArray, parameters: Parameters) -> Iterable[otgraph.Graph]:
    """All graphs of a task, in the order of the grid."""
    if task.method in (QUADRATIC, HOLLOW):
        yield from otgraph.eps_path(
            X, parameters.quadratic_eps, self_loops=task.method == QUADRATIC, n_jobs=1
        )
    elif task.method == KNN_GAUSSIAN:
        options = KNN_OPTIONS[task.variant]
        yield from knn_gaussian_path(
            X, task.params["k"], parameters.kernel_eps, n_jobs=1, **options
        )
    elif task.method == MAGIC:
        yield otgraph.magic_graph(X, task.params["k"], n_jobs=1)
    else:
        build = {ENTROPIC: otgraph.entropic_ot_graph, GAUSSIAN: otgraph.gaussian_graph}
        for eps in parameters.kernel_eps:
            yield build[task.method](X, eps, self_loops=True, n_jobs=1)


def reference_graph(spiral: datasets.Sample, variant: str, parameters: Parameters) -> otgraph.Graph:
    """The graph of the clean points."""
    return otgraph.knn_gaussian_graph(
        spiral.clean, parameters.reference_k, parameters.reference_eps, n_jobs=1,
        **KNN_OPTIONS[variant],
    )  # fmt: skip


def embed(graph: otgraph.Graph, parameters: Parameters) -> FloatArray:
    """Leading eigenvectors; columns of those that cannot be told apart are zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return otgraph.eigenmaps(
            graph, parameters.n_eigenvectors, max_restarts=MAX_RESTARTS
        ).coordinates


def angle_to(reference: FloatArray, embedding: FloatArray) -> float:
    """Mean principal angle, in which an eigenvector that was not found counts as orthogonal."""
    found = embedding[:, embedding.any(axis=0)]
    n_found, n_all = found.shape[1], embedding.shape[1]
    angle = otgraph.subspace_angle(found, reference) if n_found else 0.0
    return (n_found * angle + (n_all - n_found) * np.pi / 2) / n_all
