"""The heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph.experiments._framework import Picture
from otgraph.experiments._framework.figures import heat_map, new_figure
from otgraph.experiments._framework.style import KNN, QUADRATIC
from otgraph.experiments.density.claims import PARAMETER, one_for_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.density.compute import Parameters


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Accuracy over points per arm and parameter, for both methods."""
    yield Picture(
        "heatmap",
        _heat_maps(scores),
        "Accuracy over the number of points per arm and the parameter, mean over the seeds. Rings "
        "mark the best parameter of each density; the dashed line is the one that is best for all "
        "of them together. The step is the second label: 1 % of 125 points are one.",
    )


def _heat_maps(scores: Scores) -> Any:
    figure = new_figure(11, 4.2)
    limits = {"vmin": scores["value"].min(), "vmax": 1.0}
    for ax, method in zip(figure.subplots(1, 2), (QUADRATIC, KNN), strict=True):
        name = PARAMETER[method]
        mine = scores[scores["method"] == method]
        heat_map(ax, mine, x=name, y="n_per_arm", label="accuracy", **limits)
        found = one_for_all(scores, method)
        ax.plot(
            list(found.best_at.values()), list(found.best_at), "o", markersize=7,
            markerfacecolor="none", markeredgecolor="white", markeredgewidth=1.5,
        )  # fmt: skip
        ax.axvline(found.single, color="white", linestyle="--", linewidth=1)
        ax.set(title=method, yticks=list(found.best_at))
    return figure
