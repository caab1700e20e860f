"""Colors, dashes and markers of methods in all figures, distinct in gray and when color-blind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from otgraph.experiments._framework.experiment import Scores

QUADRATIC = "quadratic OT"
HOLLOW = "quadratic OT, hollow"
CORRECTED = "quadratic OT, density divided out"
ENTROPIC = "entropic OT"
HOLLOW_ENTROPIC = "entropic OT, hollow"
GAUSSIAN = "Gaussian"
KNN = "kNN"
KNN_GAUSSIAN = "kNN + Gaussian"
MAGIC = "MAGIC"

# From dark to light, each with its own dashes and marker, to be distinct in print.
METHOD_STYLES: dict[str, dict[str, Any]] = {
    KNN: {"color": "#5b7db1", "linestyle": (0, (6, 1.5)), "marker": "X"},
    KNN_GAUSSIAN: {"color": "#14213d", "linestyle": "-", "marker": "s"},
    QUADRATIC: {"color": "#b5123b", "linestyle": "-", "marker": "o"},
    CORRECTED: {"color": "#6a2f99", "linestyle": "-.", "marker": "*"},
    GAUSSIAN: {"color": "#4c8c2b", "linestyle": ":", "marker": "v"},
    MAGIC: {"color": "#00a6a6", "linestyle": "-.", "marker": "^"},
    HOLLOW: {"color": "#ee8fa3", "linestyle": "--", "marker": "o"},
    ENTROPIC: {"color": "#f2a900", "linestyle": "--", "marker": "D"},
    HOLLOW_ENTROPIC: {"color": "#a87400", "linestyle": (0, (2, 1)), "marker": "d"},
}
# Cyclic colors for the parameter of a closed curve. Matplotlib's cyclic maps contain near-white or
# bright yellow; these colors are all dark enough for small points.
AROUND = ("#c8374b", "#d98b1f", "#4f9a4a", "#1f8fa8", "#4659b8", "#99429b", "#c8374b")
LINE: dict[str, Any] = {"linewidth": 1.6, "markersize": 3.5}
BAND_ALPHA = 0.18


def plot_spread(ax: Axes, scores: Scores, x: str | None, method: str, label: str = "") -> None:
    """Mean over the seeds against a parameter, and the range from lowest to highest.

    Parameters
    ----------
    ax
        Where to draw.
    scores
        Rows of one score of one method, one for each seed and value of `x`.
    x
        Column of the parameter. None draws a horizontal line.
    method
        Whose colors to take.
    label
        Entry of the legend, by default the name of the method.
    """
    style = METHOD_STYLES[method]
    color, label = style["color"], label or method
    if x is None:
        values = scores["value"]
        ax.axhline(
            values.mean(), color=color, linestyle=style["linestyle"], linewidth=1.6, label=label
        )
        ax.axhspan(values.min(), values.max(), color=color, alpha=BAND_ALPHA, linewidth=0)
        return
    groups = scores.groupby(x)["value"]
    grid = groups.mean().index.to_numpy(dtype=float)
    ax.plot(grid, groups.mean(), label=label, **style, **LINE)
    ax.fill_between(grid, groups.min(), groups.max(), color=color, alpha=BAND_ALPHA, linewidth=0)


def mark_open(ax: Axes, best: Scores, open_rows: Scores, x: str, method: str) -> None:
    """White markers on a line of :func:`plot_spread`, at values where some seed qualifies.

    Parameters
    ----------
    ax
        Where the line is.
    best
        Rows of the line, one for each seed and value of `x`.
    open_rows
        Rows of the graphs to be marked, with the same parameters as those of the line.
    x
        Column of the parameter.
    method
        Whose colors to take.
    """
    at = [name for name in ("seed", "dim", "eps", "k") if name in best and name in open_rows]
    marked = best[x].isin(best.merge(open_rows[at], on=at)[x])
    means = best[marked].groupby(x)["value"].mean()
    style = METHOD_STYLES[method]
    ax.plot(
        means.index.to_numpy(dtype=float), means.to_numpy(), linestyle="", marker=style["marker"],
        markersize=LINE["markersize"], markerfacecolor="white", markeredgecolor=style["color"],
    )  # fmt: skip
