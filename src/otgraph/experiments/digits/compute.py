"""Handwritten digits: clusters without labels, and all labels from 1 % of them.

For the labels, parameters are chosen by the mean accuracy on other draws of known labels (seeds
100, 101, ...) and judged on the draws 0, 1, ...: what a user with a validation set would get. For
the clusters there are no other data: the best of the grid is shown as such.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.semi_supervised import LabelSpreading

import otgraph
from otgraph import datasets
from otgraph.estimators import GraphLabelSpreading, QuadraticOTTransformer
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning
from otgraph.experiments._contenders import (
    CONTENDERS,
    NMI,
    Grids,
    clustering_score,
    contenders,
    graphs,
)
from otgraph.experiments._framework import log_grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from otgraph.experiments._framework import Task
    from otgraph.experiments._framework.experiment import Row
    from otgraph.typing import FloatArray, IntArray

SKLEARN_KNN, SKLEARN_RBF = "scikit-learn, knn", "scikit-learn, rbf"
NEW_POINTS = "quadratic OT, hollow, new points"
SPREADING = (*CONTENDERS, SKLEARN_KNN, SKLEARN_RBF)

ACCURACY, TUNING = "accuracy", "accuracy on tuning seeds"
PREDICTED, TOGETHER = "held-out accuracy, predicted", "held-out accuracy, in the fit"

LABELED = 0.01  # two of every digit
FIRST_TUNING_SEED = 100
HELD_OUT = 0.2


@dataclass(frozen=True)
class Parameters:
    """Grids; `held_out` are eps and mu for the comparison with points that come later."""

    n: int | None = None
    grids: Grids = field(
        default_factory=lambda: Grids(
            quadratic_eps=(0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0, 10.0),
            kernel_eps=log_grid(-2, 0.5, 6),
            k=(2, 3, 5, 7, 10, 12, 15, 20, 30),
            gaussian_k=(3, 5, 10, 20),
        )
    )
    mu: tuple[float, ...] = (1.0, 0.1, 0.02, 0.005)
    gamma: tuple[float, ...] = (3e-3, 1e-2, 2e-2, 3e-2, 5e-2, 1e-1)
    alpha: tuple[float, ...] = (0.2, 0.5, 0.9, 0.99, 0.999)
    held_out: tuple[float, float] = (0.3, 0.02)


QUICK = Parameters(
    n=400,
    grids=Grids((0.3, 1.0, 3.0), (0.03, 0.3), (3, 10), (5,)),
    mu=(1.0, 0.02),
    gamma=(1e-2, 3e-2),
    alpha=(0.2, 0.99),
)


def methods(parameters: Parameters, variant: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All contenders, scikit-learn's own label spreading, and points that come later."""
    yield SKLEARN_RBF, {}
    yield from contenders(parameters.grids)
    yield SKLEARN_KNN, {}
    yield NEW_POINTS, {}


def run(task: Task, parameters: Parameters) -> Iterator[Row]:
    """Clusters (in the first task only: the digits are always the same), and accuracies."""
    X, y = _digits(parameters)
    if task.method == NEW_POINTS:
        yield from _held_out(X, y, task.seed, *parameters.held_out)
        return
    if task.method in (SKLEARN_KNN, SKLEARN_RBF):
        yield from _scikit_learn(task, X, y, parameters)
        return
    for at, graph in graphs(task, X, parameters.grids):
        if task.seed == 0:
            yield {**at, "score": NMI, "value": clustering_score(graph, y, n=10, seed=0)}
        for mu in parameters.mu:
            for score, value in _both_draws(
                y, task.seed, lambda known, g=graph, m=mu: _spread(g, known, m)
            ):
                yield {**at, "mu": mu, "score": score, "value": value}


def _digits(parameters: Parameters) -> tuple[FloatArray, IntArray]:
    X, y = load_digits(return_X_y=True)
    return X[: parameters.n], y[: parameters.n]


def _spread(graph: otgraph.Graph, known: IntArray, mu: float) -> IntArray:
    return np.asarray(otgraph.spread_labels(graph, known, mu).labels)


def _both_draws(y: IntArray, seed: int, spread_from: Any) -> Iterator[tuple[str, float]]:
    """Accuracy on the unlabeled digits for the draw of this seed and for one to tune on."""
    for score, draw_seed in ((ACCURACY, seed), (TUNING, FIRST_TUNING_SEED + seed)):
        labeled = datasets.label_mask(y, LABELED, random_state=draw_seed)
        found = spread_from(np.where(labeled, y, -1))
        yield score, float((found == y)[~labeled].mean())


def _scikit_learn(task: Task, X: FloatArray, y: IntArray, parameters: Parameters) -> Iterator[Row]:
    knn = task.method == SKLEARN_KNN
    for value, alpha in product(parameters.grids.k if knn else parameters.gamma, parameters.alpha):
        own = {"kernel": "knn", "n_neighbors": value} if knn else {"kernel": "rbf", "gamma": value}
        spreading = LabelSpreading(alpha=alpha, max_iter=1000, **own)
        for score, accuracy in _both_draws(
            y, task.seed, lambda known, s=spreading: _transduced(s, X, known)
        ):
            at = {"k" if knn else "gamma": value, "alpha": alpha}
            yield {**at, "score": score, "value": accuracy}


def _transduced(spreading: Any, X: FloatArray, known: IntArray) -> IntArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # divides 0 by 0 where no label arrives
        return np.asarray(spreading.fit(X, known).transduction_)


def _held_out(
    X: FloatArray, y: IntArray, seed: int, eps: float, mu: float
) -> Iterator[dict[str, Any]]:
    """A fifth of the digits, labeled by a fit without them and by one with them."""
    labeled = datasets.label_mask(y, LABELED, random_state=seed)
    out = (np.random.default_rng(seed).random(len(y)) < HELD_OUT) & ~labeled
    known = np.where(labeled, y, -1)
    spreading = GraphLabelSpreading(mu, graph=QuadraticOTTransformer(eps, n_jobs=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedWarning)
        predicted = spreading.fit(X[~out], known[~out]).predict(X[out])
        together = spreading.fit(X, known).transduction_[out]
    for score, found in ((PREDICTED, predicted), (TOGETHER, together)):
        yield {"eps": eps, "mu": mu, "score": score, "value": float((found == y[out]).mean())}
