"""The figure of section 3.3: two genes against each other while the diffusion goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph
from otgraph.experiments._framework import Picture
from otgraph.experiments._framework.figures import new_figure
from otgraph.experiments._framework.style import ENTROPIC, HOLLOW, MAGIC
from otgraph.experiments.cells.compute import EPS, MATCHED, gene_correlations, graph, transport
from otgraph.experiments.cells.preparation import compared_columns, expression, prepared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.experiments._framework.experiment import Scores
    from otgraph.experiments.cells.preparation import Parameters
    from otgraph.typing import FloatArray

SHOWN = (MAGIC, HOLLOW, ENTROPIC, MATCHED)


def draw(scores: Scores, parameters: Parameters) -> Iterator[Picture]:
    """Progression of three genes, and the correlation of all."""
    X = expression(parameters)
    eps = scores[scores["score"] == EPS].set_index("method")["value"]
    graphs = {
        method: transport(method, X, eps[method]) if method in eps else graph(MAGIC, X, parameters)
        for method in SHOWN
    }
    x, y, color = parameters.genes
    yield Picture(
        "progression",
        _progression(graphs, parameters),
        f"{x} against {y}, colored by {color}, after t steps of diffusion on each graph; on the "
        "left before any. The last row is not in the paper: entropic OT with as many effective "
        "neighbors as quadratic OT.",
    )
    yield Picture(
        "correlations",
        _correlations(graphs, compared_columns(X, parameters), parameters),
        "Correlation of every gene between the matrix denoised by a graph and that of MAGIC.",
    )


def _progression(graphs: dict[str, otgraph.Graph], parameters: Parameters) -> Any:
    values = prepared(parameters.data, parameters.max_cells).expression(parameters.genes)
    steps = (0, *parameters.t)
    figure = new_figure(2.6 * len(steps) + 1.2, 2.4 * len(graphs))
    axes = figure.subplots(len(graphs), len(steps), squeeze=False)
    x, y, color = parameters.genes
    for ax, t in zip(axes[0], steps, strict=True):
        ax.set_title(f"t = {t}" if t else "data")
    for ax in axes[-1]:
        ax.set_xlabel(x)
    for row, (method, of) in zip(axes, graphs.items(), strict=True):
        for ax, t in zip(row, steps, strict=True):
            shown = otgraph.denoise(of, values, t)
            # Cells with much of the third gene on top: they are few.
            order = np.argsort(shown[:, 2], kind="stable")
            points = ax.scatter(*shown[order, :2].T, c=shown[order, 2], s=5, cmap="viridis")
            ax.tick_params(labelsize=7)
        row[0].set_ylabel(f"{method.replace(', ', chr(10))}\n\n{y}")
        bar = figure.colorbar(points, ax=row.tolist(), label=f"{color}, last panel")
        bar.ax.tick_params(labelsize=7)
    return figure


def _correlations(graphs: dict[str, otgraph.Graph], X: FloatArray, parameters: Parameters) -> Any:
    figure = new_figure(3.4 * len(parameters.t), 3.4)
    axes = figure.subplots(1, len(parameters.t), sharey=True, squeeze=False)[0]
    looks = {HOLLOW: ("#b5123b", "-"), ENTROPIC: ("#f2a900", "--"), MATCHED: ("#5b7db1", ":")}
    for ax, t in zip(axes, parameters.t, strict=True):
        reference = otgraph.denoise(graphs[MAGIC], X, t)
        for method, (line, dashes) in looks.items():
            found = np.sort(gene_correlations(otgraph.denoise(graphs[method], X, t), reference))
            share = np.arange(1, len(found) + 1) / len(found)
            ax.plot(found, share, color=line, linestyle=dashes, linewidth=2, label=method)
        ax.set(title=f"t = {t}", xlabel="correlation with MAGIC", ylim=(0, 1))
        ax.grid(color="0.92", linewidth=0.6)
    axes[0].set_ylabel("share of genes below")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure
