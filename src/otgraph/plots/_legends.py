"""Names from data in pictures: legends that fit, and text that is never read as mathematics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from otgraph._optional import require
from otgraph.plots._density import POINTS_PER_INCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.text import Text
    from matplotlib.typing import ColorType

    from otgraph.typing import FloatArray

FEW = 12  # entries of usual size
SMALL = "small"  # size of the letters of more entries
MOST_COLUMNS = 5
MOST_ENTRIES = 100  # others are counted
LONGEST = 32  # characters of a name; the rest is left out
HALO = 2.5  # width of the white line around names on the data, in points


def make_plain(texts: Iterable[Text]) -> None:
    """From now on, a ``$`` in these texts is a dollar sign."""
    for text in texts:
        text.set_parse_math(False)


def set_plain(text: Text, content: str) -> None:
    """Set the text; a ``$`` in it is a dollar sign."""
    make_plain([text])
    text.set_text(content)


def names_beside(
    ax: Axes, colors: Mapping[str, ColorType], title: str = "", *, widen: bool = False
) -> None:
    """Legend of groups to the right of the axes, not higher than they are.

    With `widen` the figure becomes wider by the legend, so that the axes keep their size.
    """
    line = require("matplotlib.lines", "plots").Line2D
    shown = list(colors.items())[:MOST_ENTRIES]
    handles = [
        line([], [], marker="o", linestyle="", color=color, label=_shortened(name))
        for name, color in shown
    ]
    if len(colors) > len(shown):
        handles.append(line([], [], linestyle="", label=f"and {len(colors) - len(shown)} more"))
    small = len(handles) > FEW
    font = require("matplotlib.font_manager", "plots").FontProperties(size=SMALL if small else None)
    spacing = 0.3 if small else 0.5  # between rows, in heights of a letter
    height = ax.get_window_extent().height / ax.figure.dpi * POINTS_PER_INCH
    # A line of text is 1.2 letters high; two rows are left for the title and the margins.
    per_column = max(1, int(height / ((1.2 + spacing) * font.get_size_in_points())) - 2)
    legend = ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        ncols=min(MOST_COLUMNS, -(-len(handles) // per_column)),
        prop=font,
        labelspacing=spacing,
        columnspacing=1.0,
        handletextpad=0.2,
        frameon=False,
        title=title or None,
        alignment="left",
    )
    make_plain([*legend.get_texts(), legend.get_title()])
    if widen:
        _make_room(ax, legend)


def names_on_data(ax: Axes, places: Mapping[str, FloatArray]) -> None:
    """Names of groups at their places, with a white rim."""
    effects = require("matplotlib.patheffects", "plots")
    for name, (x, y) in places.items():
        ax.text(
            x, y, _shortened(name), ha="center", va="center", fontsize=SMALL, fontweight="bold",
            parse_math=False, zorder=4, clip_on=True,
            path_effects=[effects.withStroke(linewidth=HALO, foreground="white")],
        )  # fmt: skip


def _make_room(ax: Axes, legend: Legend) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None  # the axes have just been drawn on it
    width, height = figure.get_size_inches()
    figure.set_size_inches(width + legend.get_window_extent().width / figure.dpi, height)


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
