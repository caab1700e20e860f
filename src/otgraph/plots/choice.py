"""Plot the curve behind a choice of eps."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph.exceptions import argument_error
from otgraph.graphs.choice import CLEAR, EpsChoice
from otgraph.plots._axes import EPS_AXIS, finish, new_axes
from otgraph.plots.colors import GROUPS, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAND_OPACITY = 0.18
SHORT_RANGE = 100  # ranges up to this factor have labels between powers of ten
DOUBT_WIDTH = 46  # characters of a line that fits into the axes
# What the scores mean, by kind.
MEANINGS = {
    "features": "error of unseen features\n(1 = error of the mean)",
    "counts": "error of unseen molecules\n(1 = error of the mean)",
    "labels": "share of hidden labels found wrongly",
}


def plot_choice(choice: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Axes with the error of the predictions against ``eps``, and the value that was chosen.

    The band is two standard errors of the difference from the best value on either side: values
    whose band reaches below the horizontal line may be as good as the best. If the choice is not
    to be trusted, the reason is written into the picture.

    Parameters
    ----------
    choice
        From :func:`otgraph.choose_eps`, or a graph built with ``eps="auto"``.
    ax
        Where to draw; a new figure by default.
    title
        Title of the axes.

    Examples
    --------
    >>> import otgraph
    >>> choice = otgraph.choose_eps(otgraph.datasets.noisy_spiral(n=300).X)
    >>> otgraph.plots.plot_choice(choice).get_xlabel()
    'regularization ε'
    """
    choice = _as_choice(choice)
    ax = new_axes(ax)
    grid, scores, spread = choice.grid, choice.scores, CLEAR * choice.standard_errors
    color = GROUPS[0]
    ax.fill_between(
        grid, scores - spread, scores + spread, color=color, alpha=BAND_OPACITY, linewidth=0
    )
    ax.axhline(scores.min(), color=INK, linewidth=0.6, alpha=0.5)
    ax.plot(grid, scores, color=color, marker="o", markersize=4, label=choice.kind)
    ax.axvline(choice.eps, color=GROUPS[2], linestyle="--", linewidth=1.2, label="chosen")
    ax.annotate(
        f"ε = {choice.eps:.3g}", (choice.eps, 1.0), (5, -4), color=GROUPS[2],
        xycoords=("data", "axes fraction"), textcoords="offset points", va="top",
    )  # fmt: skip
    if choice.doubt:
        ax.text(
            0.5, 0.5, textwrap.fill(f"not to be trusted: {choice.doubt.value}", DOUBT_WIDTH),
            transform=ax.transAxes, ha="center", color=INK, fontsize="small",
            bbox={"facecolor": "white", "edgecolor": GROUPS[2], "boxstyle": "round,pad=0.5"},
        )  # fmt: skip
    finish(ax, xlabel=EPS_AXIS, ylabel=MEANINGS[choice.kind], xscale="log", title=title)
    ticker = require("matplotlib.ticker", "plots")
    labeled = (1, 2, 5) if grid.max() < SHORT_RANGE * grid.min() else (1,)
    ax.xaxis.set_major_locator(ticker.LogLocator(subs=labeled))
    ax.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    return ax


def _as_choice(choice: Any) -> EpsChoice:
    if isinstance(choice, EpsChoice):
        return choice
    params = getattr(choice, "params", None)
    if params is None:
        msg = (
            "`choice` must come from `otgraph.choose_eps`, or be a graph built with eps='auto', "
            f"got {type(choice).__name__}."
        )
        raise argument_error(TypeError, "choice", msg)
    return EpsChoice.from_params(params)
