"""Colors of points: what they show, and the legend or color bar that says so."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from otgraph._optional import require
from otgraph._text import UNKNOWN_LABEL, is_unknown, printable
from otgraph.exceptions import argument_error, invalid
from otgraph.plots._legends import names_beside, names_on_data, set_plain
from otgraph.plots.layouts import as_graph
from otgraph.plots.palette import GROUPS as GROUPS
from otgraph.plots.palette import INK as INK
from otgraph.plots.palette import UNKNOWN as UNKNOWN
from otgraph.plots.palette import palette as palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType
    from numpy.typing import ArrayLike, NDArray

    from otgraph.graphs.graph import Graph
    from otgraph.plots.layouts import GraphLike
    from otgraph.typing import FloatArray, IntArray

EDGE = "#7c87a3"  # lines of a graph: lighter and cooler than any point on them
POINT = "#d1495b"  # points without labels: warm, against the cool lines
DASHES = ("-", "--", "-.", ":")  # used with the colors, so that lines differ in gray, too
MARKERS = ("o", "s", "^", "D", "v", "P")
BRIGHTEST = 0.9  # upper end of the color map for lines; yellow is too faint on white
BAR_BOUNDS = (1.02, 0.25, 0.025, 0.5)  # of the color bar, in fractions of the axes
Legend: TypeAlias = bool | Literal["right", "on data"]


@dataclass(frozen=True)
class PointColors:
    """A color for every point, and the meaning of the colors."""

    rgba: FloatArray  # one row per point
    groups: dict[str, str] | None = None  # names and colors, if colors show groups
    limits: tuple[float, float] | None = None  # of the values, if colors show numbers
    cmap: str = "viridis"  # of the numbers
    meaning: str = ""  # what the colors show: label of the color bar, title of the legend

    def explain(
        self,
        ax: Axes,
        where: Legend = True,
        *,
        positions: FloatArray | None = None,
        widen: bool = False,
    ) -> None:
        """Say what the colors mean: beside the axes, or with names of groups on the data.

        Names on the data need the positions of the points. With `widen` the figure becomes wider by
        the legend: it was made for these axes alone.
        """
        if where not in (True, False, "right", "on data"):
            raise invalid("legend", f"must be True, False, 'right' or 'on data', got {where!r}.")
        if not where:
            return
        if self.groups and where == "on data" and positions is not None:
            names_on_data(ax, self._middles(positions))
        elif self.groups:
            names_beside(ax, self.groups, self.meaning, widen=widen)
        elif self.limits is not None:
            self._add_bar(ax, self.limits)

    def _add_bar(self, ax: Axes, limits: tuple[float, float]) -> None:
        norm = require("matplotlib.colors", "plots").Normalize(*limits)
        mappable = require("matplotlib.cm", "plots").ScalarMappable(norm, self.cmap)
        bar = ax.inset_axes(BAR_BOUNDS)
        ax.figure.colorbar(mappable, cax=bar)
        set_plain(bar.yaxis.label, self.meaning)
        bar.set_label("colors")
        bar.spines[:].set_visible(False)

    def _middles(self, positions: FloatArray) -> dict[str, FloatArray]:
        """The middle of each group: the point of its own nearest to its median."""
        to_rgba = require("matplotlib.colors", "plots").to_rgba
        middles = {}
        for name, hue in (self.groups or {}).items():
            own = positions[np.isclose(self.rgba, to_rgba(hue)).all(axis=1)]
            if len(own) and hue != UNKNOWN:
                offsets = np.linalg.norm(own - np.median(own, axis=0), axis=1)
                middles[name] = own[offsets.argmin()]
        return middles


def point_colors(
    graph: GraphLike | None,
    n: int,
    *,
    labels: ArrayLike | None,
    color: ArrayLike | PointColors | None,
    cmap: str,
    color_label: str | None = None,
) -> PointColors:
    """Colors of the ``n`` points by group, by a quantity of the graph, by numbers, or one.

    What they show is `color_label`, or else the name that a column of a table brings along.
    """
    found = _point_colors(graph, n, labels, color, cmap)
    if color_label is None and not found.meaning:
        color_label = getattr(color if labels is None else labels, "name", None)
    return found if color_label is None else replace(found, meaning=printable(color_label))


def _point_colors(
    graph: GraphLike | None,
    n: int,
    labels: ArrayLike | None,
    color: ArrayLike | PointColors | None,
    cmap: str,
) -> PointColors:
    if labels is not None:
        if color is not None:
            msg = "and `color` both set the colors of the points: pass one of them."
            raise invalid("labels", msg)
        return group_colors(one_per_point(labels, "labels", n))
    if isinstance(color, PointColors):
        return color  # chosen elsewhere, such as scanpy's colors of cell types
    if color is None:
        color = POINT
    if isinstance(color, str) and color == "component":
        return component_colors(_graph_for(graph, color).component_labels)
    if isinstance(color, str) and color in ("degree", "potential"):
        return mapped_colors(_quantity(graph, color), cmap, color)
    if isinstance(color, str | tuple):  # a name or an RGB triple
        rgba = np.tile(require("matplotlib.colors", "plots").to_rgba(color), (n, 1))
        return PointColors(np.asarray(rgba))
    return mapped_colors(one_per_point(color, "color", n), cmap)


def _quantity(graph: GraphLike | None, name: str) -> FloatArray | IntArray:
    if name == "degree":
        return _graph_for(graph, name).degrees
    potentials: FloatArray | None = getattr(graph, "potentials", None)
    if potentials is None:
        msg = (
            "`color='potential'` needs a graph with potentials, such as that of "
            "`quadratic_ot_graph`; kernels have none. Use `color='degree'`, or pass numbers."
        )
        raise argument_error(ValueError, "color", msg)
    if potentials.ndim > 1:
        msg = (
            "`color='potential'` needs a graph of one eps, and this one is a mean of several. Pass "
            "`graph.potentials[:, k]`, or draw `graph.part(k)`."
        )
        raise argument_error(ValueError, "color", msg)
    return potentials


def _graph_for(graph: GraphLike | None, color: str) -> Graph:
    if graph is None:
        msg = f"`color={color!r}` needs a graph. Pass one number per point instead."
        raise argument_error(ValueError, "color", msg)
    return as_graph(graph)


def mapped_colors(numbers: NDArray[np.generic], cmap: str, meaning: str = "") -> PointColors:
    """Colors of numbers; the color map spans their range, and values not finite are gray."""
    matplotlib = require("matplotlib", "plots")
    colors = require("matplotlib.colors", "plots")
    values = numbers.astype(np.float64)
    finite = np.isfinite(values)
    known = values[finite] if finite.any() else np.zeros(1)
    limits = float(known.min()), float(known.max())
    rgba = matplotlib.colormaps[cmap](colors.Normalize(*limits)(values))
    rgba[~finite] = colors.to_rgba(UNKNOWN)
    return PointColors(rgba, limits=limits, cmap=cmap, meaning=meaning)


def group_colors(labels: ArrayLike) -> PointColors:
    """A color for each group, in the order of names."""
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    names, hues, codes = groups_of(labels)
    return PointColors(to_rgba_array(hues)[codes], groups=dict(zip(names, hues, strict=True)))


def groups_of(labels: ArrayLike) -> tuple[list[str], list[str], IntArray]:
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
        [printable(name) for name in names] + ["unknown"] * unknown,
        palette(len(names)) + [UNKNOWN] * unknown,
        codes,
    )


def component_colors(components: IntArray) -> PointColors:
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


def line_styles(n: int, *, ordered: bool = False) -> list[tuple[ColorType, str]]:
    """Colors and dashes of n lines that differ in color and in gray."""
    dashes = [DASHES[k % len(DASHES)] for k in range(n)]
    if n <= len(GROUPS) and not ordered:
        return list(zip(GROUPS, dashes, strict=False))
    colormap = require("matplotlib", "plots").colormaps["viridis"]
    return [(colormap(BRIGHTEST * k / max(n - 1, 1)), dash) for k, dash in enumerate(dashes)]


def one_per_point(values: ArrayLike, name: str, n: int) -> NDArray[np.generic]:
    """Check an array of one value per point."""
    array = np.asarray(values)
    if array.shape != (n,):
        msg = f"must hold one value per point, shape ({n},), got shape {array.shape}."
        raise invalid(name, msg)
    return array
