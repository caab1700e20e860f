"""Colors that color-blind readers can tell apart, and that work in print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph._text import UNKNOWN_LABEL, is_unknown
from otgraph.exceptions import argument_error
from otgraph.graphs.graph import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray, IntArray

INK = "#22223b"  # lines and frames: near black, softer beside colored points
POINT = "#d1495b"  # points without labels: warm, against the cool lines
UNKNOWN = "#c8c8c8"  # points whose label is -1 or missing

# Ten colors that Petroff (2021, arXiv:2107.02270) found by optimization under a bound on their
# distance for readers with any of the common color-vision deficiencies.
GROUPS = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadd",
)
DASHES = ("-", "--", "-.", ":")  # used with the colors, so that lines differ in gray, too
MARKERS = ("o", "s", "^", "D", "v", "P")
BRIGHTEST = 0.9  # upper end of the color map for lines; yellow is too faint on white
MOST_LEGEND_ENTRIES = 24  # more names than a column beside the picture holds
BAR_BOUNDS = (1.02, 0.25, 0.025, 0.5)  # of the color bar, in fractions of the axes


@dataclass(frozen=True)
class PointColors:
    """A color for every point, and the meaning of the colors.

    Parameters
    ----------
    rgba
        One row per point.
    groups
        Names and colors of groups, if colors show groups.
    limits
        Smallest and largest value, if colors show numbers.
    cmap
        Color map of the numbers.
    meaning
        Label of the color bar.
    """

    rgba: FloatArray
    groups: dict[str, Any] | None = None
    limits: tuple[float, float] | None = None
    cmap: str = "viridis"
    meaning: str = ""

    def explain(self, ax: Axes) -> None:
        """Put a legend, or a color bar, to the right of the axes."""
        if self.groups and len(self.groups) <= MOST_LEGEND_ENTRIES:
            line = require("matplotlib.lines", "plots").Line2D
            handles = [
                line([], [], marker="o", linestyle="", color=color, label=name)
                for name, color in self.groups.items()
            ]
            ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        elif self.limits is not None:
            norm = require("matplotlib.colors", "plots").Normalize(*self.limits)
            mappable = require("matplotlib.cm", "plots").ScalarMappable(norm, self.cmap)
            bar = ax.inset_axes(BAR_BOUNDS)
            ax.figure.colorbar(mappable, cax=bar, label=self.meaning)
            bar.set_label("colors")
            bar.spines[:].set_visible(False)


def point_colors(
    graph: Any, n: int, *, labels: ArrayLike | None, color: Any, cmap: str
) -> PointColors:
    """Colors of the ``n`` points by group, by a quantity of the graph, by numbers, or one."""
    if labels is not None:
        if color is not None:
            msg = "`labels` and `color` both set the colors of the points: pass one of them."
            raise argument_error(ValueError, "labels", msg)
        return group_colors(one_per_point(labels, "labels", n))
    if isinstance(color, PointColors):
        return color  # chosen elsewhere, such as scanpy's colors of cell types
    if color is None:
        color = POINT
    if isinstance(color, str) and color == "component":
        return component_colors(_as_graph(graph, color).component_labels)
    meaning = ""
    if isinstance(color, str) and color in ("degree", "potential"):
        color, meaning = _quantity(graph, color), color
    if isinstance(color, str | tuple):  # a name or an RGB triple
        rgba = np.tile(require("matplotlib.colors", "plots").to_rgba(color), (n, 1))
        return PointColors(np.asarray(rgba))
    return mapped_colors(one_per_point(color, "color", n), cmap, meaning)


def _quantity(graph: Any, name: str) -> Any:
    if name == "degree":
        return _as_graph(graph, name).degrees
    potentials = getattr(graph, "potentials", None)
    if potentials is None:
        msg = (
            "`color='potential'` needs a graph with potentials, such as that of "
            "`quadratic_ot_graph`; kernels have none. Use `color='degree'`, or pass numbers."
        )
        raise argument_error(ValueError, "color", msg)
    return potentials


def _as_graph(graph: Any, color: str) -> Graph:
    if graph is None:
        msg = f"`color={color!r}` needs a graph. Pass one number per point instead."
        raise argument_error(ValueError, "color", msg)
    return graph if hasattr(graph, "component_labels") else Graph(graph.tocsr())


def mapped_colors(values: Any, cmap: str, meaning: str = "") -> PointColors:
    """Colors of numbers; the color map spans their range, and values not finite are gray."""
    matplotlib = require("matplotlib", "plots")
    colors = require("matplotlib.colors", "plots")
    values = values.astype(np.float64)
    finite = np.isfinite(values)
    known = values[finite] if finite.any() else np.zeros(1)
    limits = float(known.min()), float(known.max())
    rgba = matplotlib.colormaps[cmap](colors.Normalize(*limits)(values))
    rgba[~finite] = colors.to_rgba(UNKNOWN)
    return PointColors(rgba, limits=limits, cmap=cmap, meaning=meaning)


def group_colors(labels: Any) -> PointColors:
    """A color for each group, in the order of names; more than ten use a color map."""
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    names, hues, codes = groups_of(labels)
    return PointColors(to_rgba_array(hues)[codes], groups=dict(zip(names, hues, strict=True)))


def groups_of(labels: Any) -> tuple[list[str], list[str], IntArray]:
    """Names and colors of the groups, and the group of each point; missing labels are last."""
    array = np.asarray(labels)
    if array.dtype.kind == "O":
        known = np.array([not is_unknown(label) for label in array], dtype=bool)
        array = np.array([str(label) for label in array])
    elif array.dtype.kind in "iuf":
        known = np.isfinite(array) & (array != UNKNOWN_LABEL)
    else:
        known = np.ones(len(array), dtype=bool)
    names, known_codes = np.unique(array[known], return_inverse=True)
    codes = np.full(len(array), len(names), dtype=np.int32)
    codes[known] = known_codes
    unknown = not known.all()
    return (
        [str(name) for name in names] + ["unknown"] * unknown,
        group_palette(names) + [UNKNOWN] * unknown,
        codes,
    )


def group_palette(names: Any) -> list[str]:
    """As many colors as names, as hexadecimal strings."""
    n = len(names)
    if n <= len(GROUPS):
        return list(GROUPS[:n])
    colormap = require("matplotlib", "plots").colormaps["viridis"]
    to_hex = require("matplotlib.colors", "plots").to_hex
    return [to_hex(colormap(k / (n - 1))) for k in range(n)]


def component_colors(components: Any) -> PointColors:
    """One color for each of the ten largest components; smaller ones are gray."""
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    sizes = np.bincount(components)
    largest = np.argsort(-sizes, kind="stable")[: len(GROUPS)]
    palette = np.tile(to_rgba_array(UNKNOWN), (len(sizes), 1))
    palette[largest] = to_rgba_array(GROUPS[: len(largest)])
    groups = {
        f"component {rank + 1}: {sizes[component]}": hue
        for rank, (component, hue) in enumerate(zip(largest, GROUPS, strict=False))
    }
    if len(sizes) > len(largest):
        groups[f"{len(sizes) - len(largest)} smaller: {sizes.sum() - sizes[largest].sum()}"] = (
            UNKNOWN
        )
    return PointColors(palette[components], groups=groups)


def line_styles(n: int, *, ordered: bool = False) -> list[tuple[Any, str]]:
    """Colors and dashes of n lines that differ in color and in gray."""
    dashes = [DASHES[k % len(DASHES)] for k in range(n)]
    if n <= len(GROUPS) and not ordered:
        return list(zip(GROUPS, dashes, strict=False))
    colormap = require("matplotlib", "plots").colormaps["viridis"]
    return [(colormap(BRIGHTEST * k / max(n - 1, 1)), dash) for k, dash in enumerate(dashes)]


def one_per_point(values: ArrayLike, name: str, n: int) -> Any:
    """Check an array of one value per point."""
    array = np.asarray(values)
    if array.shape != (n,):
        msg = f"`{name}` must hold one value per point, shape ({n},), got shape {array.shape}."
        raise argument_error(ValueError, name, msg)
    return array
