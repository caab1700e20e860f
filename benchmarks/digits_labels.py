"""Labels of handwritten digits from 1 % of them: ``python -m benchmarks.digits_labels``.

Prints two Markdown tables. The first compares label spreading on quadratic OT graphs with
scikit-learn's LabelSpreading, each with the parameters that were best on other seeds. The
second compares labels predicted for held-out digits with labels of the same digits when they
take part in the fit. Five minutes on one core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelSpreading

import otgraph
from otgraph.estimators import GraphLabelSpreading, QuadraticOTTransformer

LABELED = 0.01  # two of every digit
SEEDS = range(5)
TUNING_SEEDS = range(100, 105)
HELD_OUT = 0.2

EPS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 5.0]
MU = [1.0, 0.1, 0.05, 0.02, 0.01, 0.005, 0.001]
K = [2, 3, 5, 7, 10, 12, 15, 20, 30]
GAMMA = [3e-3, 1e-2, 2e-2, 3e-2, 5e-2, 1e-1]
ALPHA = [0.2, 0.5, 0.9, 0.95, 0.99, 0.999]

Spread = Callable[..., Any]  # labels with -1 and parameters in, labels of all points out


def main() -> None:
    """Print both tables."""
    X, y = load_digits(return_X_y=True)
    best = compare(X, y)
    held_out(X, y, *best)


def compare(X: Any, y: Any) -> tuple[float, float]:
    """Table of methods; the best eps and mu of quadratic OT."""
    print("| method | chosen on other seeds | accuracy of five seeds | mean |")
    print("|---|---|---|---|")
    chosen = {}
    for name, spread, grid in methods(X):
        chosen[name] = max(
            product(*grid), key=lambda values: np.mean(accuracies(spread, y, TUNING_SEEDS, values))
        )
        found = accuracies(spread, y, SEEDS, chosen[name])
        each = ", ".join(f"{100 * a:.1f}" for a in found)
        print(f"| {name} | {chosen[name]} | {each} | {100 * np.mean(found):.1f} |", flush=True)
    eps, mu = chosen["quadratic OT"]
    return eps, mu


def methods(X: Any) -> list[tuple[str, Spread, tuple[list[float], ...]]]:
    """Name, function and grid of every contender."""
    hollow = dict(zip(EPS, otgraph.eps_path(X, EPS), strict=True))
    looped = dict(zip(EPS, otgraph.eps_path(X, EPS, self_loops=True), strict=True))
    neighbors = {k: otgraph.knn_gaussian_graph(X, k=k) for k in K}

    def on(graphs: dict[Any, otgraph.Graph]) -> Spread:
        return lambda y, parameter, mu: otgraph.spread_labels(graphs[parameter], y, mu).labels

    def sklearn_knn(y: Any, k: int, alpha: float) -> Any:
        return sklearn_labels(X, y, kernel="knn", n_neighbors=k, alpha=alpha)

    def sklearn_rbf(y: Any, gamma: float, alpha: float) -> Any:
        return sklearn_labels(X, y, kernel="rbf", gamma=gamma, alpha=alpha)

    return [
        ("quadratic OT", on(hollow), (EPS, MU)),
        ("quadratic OT, self-loops", on(looped), (EPS, MU)),
        ("kNN graph of this package", on(neighbors), (K, MU)),
        ("scikit-learn, knn", sklearn_knn, (K, ALPHA)),
        ("scikit-learn, rbf", sklearn_rbf, (GAMMA, ALPHA)),
    ]


def sklearn_labels(X: Any, y: Any, **parameters: Any) -> Any:
    """Labels that scikit-learn's estimator gives to the points of the fit."""
    return LabelSpreading(max_iter=1000, **parameters).fit(X, y).transduction_


def accuracies(spread: Spread, y: Any, seeds: Any, values: tuple[float, ...]) -> list[float]:
    """Share of right labels among the unlabeled, one per seed."""
    found = []
    for seed in seeds:
        labeled = otgraph.datasets.label_mask(y, LABELED, random_state=seed)
        with warnings.catch_warnings():
            # Graphs that fall apart lose by it; no need to say so every time.
            warnings.simplefilter("ignore", otgraph.exceptions.DisconnectedWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)  # scikit-learn divides 0 by 0
            labels = spread(np.where(labeled, y, -1), *values)
        found.append(float((labels == y)[~labeled].mean()))
    return found


def held_out(X: Any, y: Any, eps: float, mu: float) -> None:
    """Table of accuracies on held-out digits, without and with them in the fit."""
    rows = []
    for seed in SEEDS:
        labeled = otgraph.datasets.label_mask(y, LABELED, random_state=seed)
        out = np.random.default_rng(seed).random(len(y)) < HELD_OUT
        out &= ~labeled
        known = np.where(labeled, y, -1)
        spreading = GraphLabelSpreading(mu, graph=QuadraticOTTransformer(eps))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", otgraph.exceptions.DisconnectedWarning)
            predicted = spreading.fit(X[~out], known[~out]).predict(X[out])
            together = spreading.fit(X, known).transduction_[out]
        rows.append([(predicted == y[out]).mean(), (together == y[out]).mean()])
    print("\n| held-out digits | accuracy of five seeds | mean |\n|---|---|---|")
    for name, found in zip(("predicted", "in the fit"), 100 * np.array(rows).T, strict=True):
        print(f"| {name} | {', '.join(f'{a:.1f}' for a in found)} | {found.mean():.1f} |")


if __name__ == "__main__":
    main()
