"""Data, graphs and scores of the heat map.

The authors' code does not divide costs by their mean and forbids self-loops; nearest neighbors
have equal weights in both variants, so that k is the only parameter (:data:`OT_OPTIONS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import otgraph
from otgraph import datasets
from otgraph.experiments._framework import Task, log_grid
from otgraph.experiments._framework.labels import LabeledArms, accuracy, with_known
from otgraph.experiments._framework.style import KNN, QUADRATIC

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otgraph.experiments._framework.experiment import Row

OT_OPTIONS: dict[str, dict[str, Any]] = {
    "text": {"normalize": True, "self_loops": True},
    "code": {"normalize": False, "self_loops": False},
}
ACCURACY = "accuracy"


@dataclass(frozen=True)
class Parameters:
    """Sizes and grids of the heat map.

    The mean cost is about 17, so that the eps of the text and of the code are that far apart.
    """

    n_arms: int = 10
    n_per_arm: tuple[int, ...] = tuple(range(50, 251, 25))
    t_range: tuple[float, float] = (0.5, 5.0)
    labeled: float = 0.01
    text_eps: tuple[float, ...] = log_grid(-3, 1, 25)
    code_eps: tuple[float, ...] = log_grid(-2, 2, 25)
    k: tuple[int, ...] = tuple(range(1, 26))


QUICK = Parameters(
    n_per_arm=(50, 100), text_eps=log_grid(-3, 0, 4), code_eps=log_grid(-1, 1, 4), k=(3, 6, 12)
)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The largest samples first, so that the last tasks are short."""
    for n_per_arm in reversed(parameters.n_per_arm):
        for method in (QUADRATIC, KNN):
            yield method, {"n_per_arm": n_per_arm}


def labeled_arms(parameters: Parameters, n_per_arm: int, seed: int) -> LabeledArms:
    """Arms in the plane, without noise."""
    arms = datasets.spiral_arms(
        n_per_arm, n_arms=parameters.n_arms, t_range=parameters.t_range, spacing="uniform", dim=2,
        noise=0.0, random_state=seed,
    )  # fmt: skip
    return with_known(arms, parameters.labeled, seed)


def eps_grid(parameters: Parameters, variant: str) -> tuple[float, ...]:
    """In units of the mean cost for the text, of squared length for the code."""
    return parameters.text_eps if variant == "text" else parameters.code_eps


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Accuracy along the grid of the method."""
    arms = labeled_arms(parameters, task.params["n_per_arm"], task.seed)
    X = arms.sample.X
    if task.method == KNN:
        for k in parameters.k:
            graph = otgraph.knn_gaussian_graph(X, k, None, n_jobs=1)
            yield {"k": k, "score": ACCURACY, "value": accuracy(graph, arms)}
    else:
        grid = eps_grid(parameters, task.variant)
        for graph in otgraph.eps_path(X, grid, n_jobs=1, **OT_OPTIONS[task.variant]):
            eps = graph.params["eps"]
            yield {"eps": eps, "score": ACCURACY, "value": accuracy(graph, arms)}
