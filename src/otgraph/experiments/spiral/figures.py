"""The figures of section 3.1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph import plots
from otgraph.experiments._framework import Picture, Task, best_of, best_per_seed
from otgraph.experiments._framework.figures import new_figure, principal_plane
from otgraph.experiments._framework.style import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
    plot_spread,
)
from otgraph.experiments.spiral.compute import (
    ANGLE,
    embed,
    graphs,
    reference_graph,
    sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph import Graph, datasets
    from otgraph.experiments._framework import Best
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.spiral.compute import Parameters

SEED = 0  # of the sample that is drawn
SHOWN = (QUADRATIC, KNN_GAUSSIAN, MAGIC, ENTROPIC, GAUSSIAN)
# One lobe of the star in the plane of the principal components, where noise is largest.
ZOOM = (0.7, 1.7, -0.5, 0.5)
ZOOM_BOUNDS = (1.02, 0.2, 0.6, 0.6)
# Opacity of the heaviest edges. Dense graphs have a hundred times the edges of the others.
EDGE_STRENGTH = {QUADRATIC: 0.15, KNN_GAUSSIAN: 0.1, MAGIC: 0.1, ENTROPIC: 0.01, GAUSSIAN: 0.01}
# Runs once around the colors, as the curve does, and returns to where it began.
CYCLIC = "twilight_shifted"


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Data, graphs, errors and embeddings of one variant."""
    variant = scores["variant"].iloc[0]
    spiral = sample(parameters, SEED)
    best = {method: best_of(scores, ANGLE, method, largest=False, seed=SEED) for method in SHOWN}
    found = {
        method: best_graph(each, Task(variant, SEED, method, each.params), parameters)
        for method, each in best.items()
    }
    yield Picture("dataset", _dataset(spiral), "The closed spiral before noise is added.")
    yield Picture(
        "graphs",
        _graphs(found, best, spiral),
        "Graphs at the parameters with the best eigenvectors, over the first two principal "
        "components of the noisy points (seed 0; light points are noisy). The zoom shows where "
        "noise is largest.",
    )
    yield Picture(
        "errors",
        _errors(scores),
        "Mean principal angle between the ten leading eigenvectors and those of the clean data "
        "(mean over the seeds, range shaded). kNN: best k for every ε; MAGIC has no ε, its best "
        "k is shown.",
    )
    yield Picture(
        "embeddings",
        _embeddings(
            {"clean data": reference_graph(spiral, variant, parameters), **found},
            best,
            spiral,
            parameters,
        ),
        "Best embeddings in the first two non-trivial eigenvectors, colored along the curve, "
        "beside that of the clean data (seed 0; mean angle in brackets).",
    )


def best_graph(best: Best, task: Task, parameters: Parameters) -> Graph:
    """Computed again, because only scores are kept."""
    eps = (best.params.get("eps", 0.0),)
    only = replace(parameters, quadratic_eps=eps, kernel_eps=eps)
    return next(iter(graphs(task, sample(parameters, SEED).X, only)))


def _dataset(spiral: datasets.Sample) -> Any:
    figure = new_figure(4.5, 3.6)
    ax = figure.add_subplot(projection="3d")
    ax.scatter(*spiral.clean.T, c=spiral.noise_level, cmap="viridis", s=6)
    ax.set(xlabel="x", ylabel="y", zlabel="z", box_aspect=np.ptp(spiral.clean, axis=0))
    ax.locator_params(nbins=4)
    return figure


def _graphs(found: dict[str, Graph], best: dict[str, Best], spiral: datasets.Sample) -> Any:
    figure = new_figure(17, 6)
    axes = figure.subplots(2, 3).ravel()
    points = axes[0]
    plane = principal_plane(spiral.X)
    shown = points.scatter(*plane.T, c=spiral.noise_level, s=8, cmap="viridis")
    points.set(xticks=[], yticks=[], aspect="equal", title="noisy points")
    points.spines[:].set_visible(False)
    figure.colorbar(shown, ax=points, label="size of the noise", shrink=0.7, location="left")
    for ax, (method, graph) in zip(axes[1:], found.items(), strict=True):
        plots.draw_graph(
            graph, plane, color=spiral.noise_level, ax=ax, zoom=ZOOM,
            zoom_bounds=ZOOM_BOUNDS, legend=False, edge_strength=EDGE_STRENGTH[method],
            title=f"{method}, {best[method]}",
        )  # fmt: skip
    return figure


def _errors(scores: Scores) -> Any:
    figure = new_figure(6.4, 4.2)
    ax = figure.subplots()
    for method in (QUADRATIC, HOLLOW, KNN_GAUSSIAN, ENTROPIC, GAUSSIAN):
        mine = scores[scores["method"] == method]
        best = best_per_seed(mine, ANGLE, largest=False, by=("seed", "eps"))
        plot_spread(ax, best, "eps", method)
    magic = scores[scores["method"] == MAGIC]
    plot_spread(ax, best_per_seed(magic, ANGLE, largest=False, by=("seed",)), None, MAGIC)
    ax.set(
        xscale="log",
        xlabel="ε",
        ylabel="mean principal angle (radians)",
        ylim=(0, 1.05 * np.pi / 2),
    )
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _embeddings(
    found: dict[str, Graph],
    best: dict[str, Best],
    spiral: datasets.Sample,
    parameters: Parameters,
) -> Any:
    figure = new_figure(10, 6.6)
    for ax, (name, graph) in zip(figure.subplots(2, 3).ravel(), found.items(), strict=True):
        coordinates = embed(graph, parameters)[:, :2]
        ax.scatter(*coordinates.T, c=spiral.t, cmap=CYCLIC, s=9, linewidths=0.2, edgecolors="0.5")
        angle = f" ({best[name].value:.3f})" if name in best else ""
        reach = 1.08 * np.abs(coordinates).max()
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        ax.set(aspect="equal", title=name + angle)
    return figure
