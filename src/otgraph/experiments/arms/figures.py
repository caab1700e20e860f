"""The figures of section 3.2: data, accuracy over the grids, inferred labels with edges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from otgraph import plots
from otgraph._optional import require
from otgraph.experiments._framework import Picture, Task, best_of
from otgraph.experiments._framework.figures import heat_map, new_figure, principal_plane
from otgraph.experiments._framework.labels import inferred_labels
from otgraph.experiments._framework.style import HOLLOW, KNN_GAUSSIAN, QUADRATIC, plot_spread
from otgraph.experiments.arms.compute import ACCURACY, graphs, labeled_arms
from otgraph.plots.colors import GROUPS, UNKNOWN, PointColors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph import Graph
    from otgraph.experiments._framework import Best
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments._framework.labels import LabeledArms
    from otgraph.experiments.arms.compute import Parameters
    from otgraph.typing import IntArray

SEED = 0  # of the sample that is drawn
SHOWN = (QUADRATIC, HOLLOW, KNN_GAUSSIAN)
POINT_SIZE = 9.0
# Edges are drawn as strong as this, and fainter where all points have more neighbors together.
EDGE_STRENGTH = 0.9
FULL_STRENGTH_DEGREES = 20_000


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Data, accuracy and inferred labels of one variant."""
    variant = scores["variant"].iloc[0]
    arms = labeled_arms(parameters, variant, SEED)
    best = {method: best_of(scores, ACCURACY, method, largest=True, seed=SEED) for method in SHOWN}
    found = {
        method: _best_graph(each, Task(variant, SEED, method, each.params), arms, parameters)
        for method, each in best.items()
    }
    yield Picture(
        "data",
        _data(arms),
        f"The arms over their first two principal components (seed {SEED}). Large points are "
        "labeled.",
    )
    yield Picture(
        "accuracy",
        _accuracy(scores),
        "Accuracy against the parameters, mean over the seeds (range shaded).",
    )
    yield Picture(
        "labels",
        _labels(found, best, arms),
        f"Inferred labels and graphs at the best parameters (seed {SEED}). Crosses mark points "
        "with a wrong label.",
    )


def _best_graph(best: Best, task: Task, arms: LabeledArms, parameters: Parameters) -> Graph:
    """Computed again, because only scores are kept."""
    eps = (best.params["eps"],)
    only = replace(parameters, quadratic_eps=eps, kernel_eps=eps)
    return next(iter(graphs(task, arms.sample.X, only)))


def _data(arms: LabeledArms) -> Any:
    figure = new_figure(5, 4.6)
    ax = figure.subplots()
    plane = principal_plane(arms.sample.X)
    ax.scatter(*plane.T, s=POINT_SIZE, c=UNKNOWN, linewidths=0)
    labeled = _label_colors(arms.truth[arms.known])
    ax.scatter(*plane[arms.known].T, s=40, c=labeled, edgecolors="black", linewidths=0.6)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return figure


def _label_colors(labels: IntArray) -> Any:
    """The same color for the same arm in every picture; the last one is for -1, unknown."""
    return require("matplotlib.colors", "plots").to_rgba_array([*GROUPS, UNKNOWN])[labels]


def _accuracy(scores: Scores) -> Any:
    figure = new_figure(10, 4)
    left, right = figure.subplots(1, 2)
    scores = scores[scores["score"] == ACCURACY]
    for method in (QUADRATIC, HOLLOW):
        plot_spread(left, scores[scores["method"] == method], "eps", method)
    left.set(xscale="log", xlabel="ε", ylabel="accuracy", ylim=(0, 1), title="quadratic OT")
    left.legend(frameon=False)
    knn = scores[scores["method"] == KNN_GAUSSIAN]
    heat_map(right, knn, x="eps", y="k", label="accuracy")
    right.set_title(KNN_GAUSSIAN)
    return figure


def _labels(found: dict[str, Graph], best: dict[str, Best], arms: LabeledArms) -> Any:
    figure = new_figure(14, 5.2)
    plane = principal_plane(arms.sample.X)
    for ax, (method, graph) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        labels = inferred_labels(graph, arms)
        colors = PointColors(_label_colors(labels))
        strength = EDGE_STRENGTH * min(1.0, FULL_STRENGTH_DEGREES / graph.degrees.sum())
        plots.draw_graph(
            graph, plane, color=colors, ax=ax, point_size=POINT_SIZE, legend=False,
            edge_strength=strength, edge_width=0.8,
        )  # fmt: skip
        wrong = plane[labels != arms.truth]
        ax.scatter(*wrong.T, s=11, c="black", marker="x", linewidths=0.6, zorder=4)
        ax.set_title(f"{method}, {best[method]}\naccuracy {best[method].value:.3f}")
    return figure
