"""Clusters against the parameters, and accuracies side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.experiments._contenders import NMI
from otgraph.experiments._curves import draw_curves, legend_of
from otgraph.experiments._framework import Picture
from otgraph.experiments._framework.figures import new_figure
from otgraph.experiments._framework.style import METHOD_STYLES
from otgraph.experiments.digits.claims import best_mean, chosen
from otgraph.experiments.digits.compute import SPREADING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.digits.compute import Parameters


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Clusters against the parameters, and accuracies side by side."""
    figure = new_figure(9, 4)
    axes = figure.subplots(1, 2, sharey=True)
    draw_curves(axes, scores, NMI)
    axes[0].set_xlabel("ε")
    axes[1].set_xlabel("k")
    legend_of(figure, axes)
    yield Picture(
        "nmi",
        figure,
        "Normalized mutual information of spectral clusters and digits against the parameters "
        "(kNN + Gaussian at its best other parameter).",
    )
    yield Picture(
        "accuracy",
        _accuracies(scores),
        "Accuracy from 1 % of the labels: one point per seed and a bar at their mean, at "
        "parameters chosen on other seeds; the cross is the best mean of the grid in hindsight.",
    )


def _accuracies(scores: Scores) -> Any:
    figure = new_figure(7.5, 4)
    ax = figure.subplots()
    for row, method in enumerate(reversed(SPREADING)):
        values = chosen(scores, method)[0]["value"].to_numpy()
        style = METHOD_STYLES.get(method, {"color": "0.45", "marker": "P"})
        ax.scatter(values, np.full(len(values), row), color=style["color"], s=28,
                   marker=style["marker"], alpha=0.75, linewidths=0)  # fmt: skip
        ax.vlines(values.mean(), row - 0.32, row + 0.32, color="black", linewidth=2)
        ax.scatter(best_mean(scores, method), row, marker="x", color="black", s=36)
    ax.set_yticks(range(len(SPREADING)), SPREADING[::-1])
    ax.set_xlabel("accuracy on the unlabeled digits")
    ax.grid(axis="x", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return figure
