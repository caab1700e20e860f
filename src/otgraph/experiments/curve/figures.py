"""The right half of figure 1, and what it shows in numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph
from otgraph import plots
from otgraph.experiments._framework import Picture
from otgraph.experiments._framework.figures import new_figure
from otgraph.experiments._framework.style import HOLLOW, KNN, METHOD_STYLES, QUADRATIC
from otgraph.experiments.curve.claims import OF_RIVAL, SHOWN_EPS, matched, one_row_per_graph
from otgraph.experiments.curve.compute import (
    MEAN_DEGREE,
    SPURIOUS,
    edges,
    graphs,
    is_short_cut,
    sample,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph import Graph, datasets
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.curve.compute import Parameters

SEED = 0  # of the sample that is drawn
SHORT_CUT = "#b5123b"


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Two graphs with the same number of edges, and spurious edges against the mean degree."""
    curve = sample(parameters, SEED)
    pairs = matched(scores, QUADRATIC)
    shown = pairs[(pairs["seed"] == SEED) & (pairs["eps"] == SHOWN_EPS)].iloc[0]
    k = int(shown["k" + OF_RIVAL])
    found = {
        f"{QUADRATIC}, ε = {SHOWN_EPS:g}": next(
            graphs(QUADRATIC, curve.X, replace(parameters, eps=(SHOWN_EPS,)))
        ),
        f"{KNN}, k = {k}": otgraph.knn_gaussian_graph(curve.X, k, None),
    }
    yield Picture(
        "graphs",
        _graphs(found, curve),
        f"Quadratic OT and nearest neighbors with about as many edges (seed {SEED}). Points are "
        "sparse on the left. Thick red lines are spurious edges: the way along the curve is longer "
        "by more than a tenth.",
    )
    yield Picture(
        "spurious",
        _spurious(scores),
        "Spurious edges in the sparse half of the curve against the mean degree, one line per "
        "seed.",
    )


def _graphs(found: dict[str, Graph], curve: datasets.Sample) -> Any:
    figure = new_figure(12, 4)
    for ax, (title, graph) in zip(figure.subplots(1, 2), found.items(), strict=True):
        i, j = edges(graph)
        wrong = is_short_cut(i, j, curve.X)
        plots.draw_graph(
            graph, curve.X, ax=ax, legend=False,
            title=f"{title}: {len(i)} edges, {np.count_nonzero(wrong)} spurious",
        )  # fmt: skip
        short_cuts = curve.X[np.stack([i[wrong], j[wrong]])]  # ends, edges, coordinates
        ax.plot(
            *short_cuts.transpose(2, 0, 1), color=SHORT_CUT, linewidth=1.0, alpha=0.7, zorder=1.5
        )
    return figure


def _spurious(scores: Scores) -> Any:
    figure = new_figure(5.6, 4)
    ax = figure.subplots()
    for method in (QUADRATIC, HOLLOW, KNN):
        table = one_row_per_graph(scores, method).sort_values(MEAN_DEGREE)
        for number, (_, group) in enumerate(table.groupby("seed")):
            ax.plot(
                group[MEAN_DEGREE], group[SPURIOUS], label=None if number else method,
                markersize=2.5, linewidth=0.8, **METHOD_STYLES[method],
            )  # fmt: skip
    ax.set(xlabel="mean degree", ylabel="spurious edges, sparse half")
    ax.set(xlim=(0, 60), ylim=(-2, 100))
    ax.legend(frameon=False)
    return figure
