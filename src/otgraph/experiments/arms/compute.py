"""Data, graphs and scores of the spiral arms.

The authors' code halves the noise and draws points at random instead of at equal distances
(:data:`DATA_OPTIONS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph import datasets
from otgraph.experiments._framework import Task, knn_gaussian_path, log_grid
from otgraph.experiments._framework.labels import LabeledArms, accuracy, with_known
from otgraph.experiments._framework.style import HOLLOW, KNN_GAUSSIAN, QUADRATIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from otgraph.experiments._framework.experiment import Row
    from otgraph.typing import FloatArray

DATA_OPTIONS: dict[str, dict[str, Any]] = {
    "text": {"noise": 1.0, "spacing": "even"},
    "code": {"noise": 0.5, "spacing": "random"},
}
ACCURACY = "accuracy"
BETWEEN_ARMS = "edges between arms"


@dataclass(frozen=True)
class Parameters:
    """Sizes and grids of section 3.2."""

    n_arms: int = 10
    n_per_arm: int = 150
    dim: int = 100
    labeled: float = 0.025
    quadratic_eps: tuple[float, ...] = log_grid(-2, 1, 25)
    kernel_eps: tuple[float, ...] = log_grid(-3, 0, 25)
    k: tuple[int, ...] = tuple(range(1, 51))


QUICK = Parameters(
    n_per_arm=50, quadratic_eps=log_grid(-2, 0.5, 5), kernel_eps=log_grid(-2, 0, 3), k=(2, 10, 30)
)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Quadratic OT with and without self-loops, and a task for each k."""
    yield QUADRATIC, {}
    yield HOLLOW, {}
    for k in parameters.k:
        yield KNN_GAUSSIAN, {"k": k}


def labeled_arms(parameters: Parameters, variant: str, seed: int) -> LabeledArms:
    """The arms of a seed, with the labels that are known."""
    arms = datasets.spiral_arms(
        parameters.n_per_arm, n_arms=parameters.n_arms, dim=parameters.dim, random_state=seed,
        **DATA_OPTIONS[variant],
    )  # fmt: skip
    return with_known(arms, parameters.labeled, seed)


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Accuracy, and how many edges join different arms."""
    arms = labeled_arms(parameters, task.variant, task.seed)
    for graph in graphs(task, arms.sample.X, parameters):
        eps = graph.params["eps"]
        yield {"eps": eps, "score": ACCURACY, "value": accuracy(graph, arms)}
        yield {"eps": eps, "score": BETWEEN_ARMS, "value": share_between_arms(graph, arms)}


def graphs(task: Task, X: FloatArray, parameters: Parameters) -> Iterable[otgraph.Graph]:
    """All graphs of a task, in the order of the grid."""
    if task.method == KNN_GAUSSIAN:
        return knn_gaussian_path(X, task.params["k"], parameters.kernel_eps, n_jobs=1)
    return otgraph.eps_path(
        X, parameters.quadratic_eps, self_loops=task.method == QUADRATIC, n_jobs=1
    )


def share_between_arms(graph: otgraph.Graph, arms: LabeledArms) -> float:
    """Share of the edges that join points of different arms; zero without edges."""
    edges = sp.triu(graph.weights, k=1, format="coo")
    crossing = arms.truth[edges.row] != arms.truth[edges.col]
    return float(np.mean(crossing)) if len(crossing) else 0.0
