"""Plot a score against the parameters: graphs with eps, and graphs with k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph.experiments._framework import best_per_seed
from otgraph.experiments._framework.style import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
    mark_open,
    plot_spread,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.experiments._framework.experiment import Scores

COMPONENTS = "components"
WITH_EPS = (QUADRATIC, HOLLOW, KNN_GAUSSIAN, ENTROPIC, HOLLOW_ENTROPIC, GAUSSIAN)
WITH_K = (KNN, KNN_GAUSSIAN, MAGIC)


def draw_curves(axes: Sequence[Any], scores: Scores, score: str) -> None:
    """Best value for every eps in the first panel and for every k in the second.

    White markers show graphs with several components, if the scores contain them.
    """
    for ax, x, methods in zip(axes, ("eps", "k"), (WITH_EPS, WITH_K), strict=True):
        for method in methods:
            mine = scores[scores["method"] == method]
            best = best_per_seed(mine, score, largest=True, by=("seed", x))
            plot_spread(ax, best, x, method)
            pieces = mine[mine["score"] == COMPONENTS]
            mark_open(ax, best, pieces[pieces["value"] > 1], x, method)
        ax.set(ylim=(0, 1))
        ax.grid(color="0.92", linewidth=0.6)
        ax.set_axisbelow(True)
    axes[0].set(xscale="log", ylabel=score)


def legend_of(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for both panels, each method once."""
    handles: dict[str, Any] = {}
    for ax in axes:
        handles |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False
    )
