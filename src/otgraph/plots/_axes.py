"""Helpers for all plots: axes, legends and names of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from otgraph._optional import require
from otgraph.exceptions import argument_error
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.path import EpsPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_INSIDE = 4  # names that fit beside the lines of one plot


def new_axes(ax: Axes | None, figsize: tuple[float, float] | None = None) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plots")
    axes: Axes = pyplot.figure(figsize=figsize, layout="compressed").add_subplot()
    return axes


def tidy(ax: Axes) -> None:
    """Hide the top and right sides of the frame."""
    ax.spines[["top", "right"]].set_visible(False)


def explain_lines(ax: Axes, n: int) -> None:
    """Legend of n lines: inside the axes, or outside if there are many."""
    if n > MOST_INSIDE:
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    else:
        ax.legend(frameon=False)


def by_name(shown: Any, names: Sequence[str] | None) -> list[tuple[str, Any]]:
    """Items with names: the given names, keys of a mapping, or descriptions."""
    if isinstance(shown, Mapping):
        keys, items = [str(key) for key in shown], list(shown.values())
    else:
        several = isinstance(shown, Sequence | EpsPath) and not isinstance(shown, str)
        items = list(shown) if several else [shown]
        keys = _default_names(items)
    if not items:
        msg = "Got an empty list: there is nothing to plot."
        raise ValueError(msg)
    if names is not None:
        if isinstance(names, str) or len(names) != len(items):
            msg = f"`names` must be a list of {len(items)} names, one per graph, got {names!r}."
            raise argument_error(ValueError, "names", msg)
        keys = [str(name) for name in names]
    return list(zip(keys, items, strict=True))


def _default_names(items: list[Any]) -> list[str]:
    """Descriptions by parameters; parameters that are equal for all are left out."""
    params = [getattr(item, "params", None) or {} for item in items]
    several_methods = len({p.get("method") for p in params}) > 1
    names = []
    for position, (item, p) in enumerate(zip(items, params, strict=True)):
        eps = p.get("eps", getattr(item, "eps", None))
        method = str(p.get("method"))
        known = CONSTRUCTIONS.get(method)
        parts = [known.title if known else method] * several_methods
        parts += [f"ε = {eps:.3g}"] if eps is not None else []
        parts += [f"k = {p['n_neighbors']}"] if "n_neighbors" in p else []
        names.append(", ".join(parts) or f"graph {position + 1}")
    return names
