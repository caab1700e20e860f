"""What all plots share: axes, labels, legends of lines, enlarged parts and names of graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from otgraph._optional import require
from otgraph._text import printable
from otgraph.exceptions import invalid
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.path import EpsPath
from otgraph.plots._legends import make_plain
from otgraph.plots.palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from otgraph.graphs.graph import Graph
    from otgraph.solvers.certificate import Certificate
    from otgraph.typing import SparseMatrix

    Item = Graph | SparseMatrix | Certificate
    # One or several graphs, as `by_name` takes them.
    Shown = Item | Sequence[Item] | Mapping[str, Item] | EpsPath

Window: TypeAlias = tuple[float, float, float, float]
CURVES = (5.5, 3.8)  # inches of a plot of curves: the width of a text column and a half
EPS_AXIS = "regularization ε"
MOST_INSIDE = 4  # names that fit beside the lines of one plot
FRAME = 0.8  # width of lines around an enlarged part, in points


def new_axes(ax: Axes | None, figsize: tuple[float, float] | None = CURVES) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot", "plots")
    axes: Axes = pyplot.figure(figsize=figsize, layout="compressed").add_subplot()
    return axes


def finish(
    ax: Axes, *, title: str | None = None, entries: int = 0, where: str = "best", **settings: object
) -> Axes:
    """Set labels and other properties, add a legend, and hide the frame; returns the axes.

    `entries` is the number of entries of the legend: none, some inside the axes (at `where`), or
    many outside.
    """
    ax.set(title=title or "", **settings)
    if entries:
        outside = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
        place = outside if entries > MOST_INSIDE else {"loc": where}
        make_plain(ax.legend(frameon=False, **place).get_texts())
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def enlarged(ax: Axes, window: Window, bounds: Window) -> Axes:
    """Empty axes for a part of the picture, ``xmin, xmax, ymin, ymax``, and lines to that part.

    The bounds are left, bottom, width and height as fractions of the whole axes.
    """
    xmin, xmax, ymin, ymax = window
    inset = ax.inset_axes(bounds, xlim=(xmin, xmax), ylim=(ymin, ymax), zorder=3)
    inset.set(xticks=[], yticks=[], aspect="equal")
    for spine in inset.spines.values():
        spine.set(visible=True, linewidth=FRAME, color=INK)
    # Above the points but below the enlarged part, so connectors do not cross it.
    ax.indicate_inset_zoom(inset, edgecolor=INK, linewidth=FRAME, alpha=1.0, zorder=2.5)
    return inset


def by_name(shown: Shown, names: Sequence[str] | None) -> list[tuple[str, Item]]:
    """Items with names: the given names, keys of a mapping, or descriptions."""
    if isinstance(shown, Mapping):
        keys, items = [printable(key) for key in shown], list(shown.values())
    else:
        several = isinstance(shown, Sequence | EpsPath) and not isinstance(shown, str)
        items = list(shown) if several else [shown]  # type: ignore[arg-type]
        keys = _default_names(items)
    if not items:
        msg = "Got an empty list: there is nothing to plot."
        raise ValueError(msg)
    if names is not None:
        if isinstance(names, str) or len(names) != len(items):
            msg = f"must be a list of {len(items)} names, one per graph, got {names!r}."
            raise invalid("names", msg)
        keys = [printable(name) for name in names]
    return list(zip(keys, items, strict=True))


def _default_names(items: Sequence[Item]) -> list[str]:
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
