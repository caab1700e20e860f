"""Pictures of the graph of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph import plots
from otgraph._optional import require
from otgraph.plots.colors import GROUPS, INK, UNKNOWN, group_colors
from otgraph.singlecell._adata import check_adata, listed
from otgraph.singlecell._slots import read_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from otgraph.typing import FloatArray

__all__ = ["degrees", "graph"]

MAX_BINS = 60  # bars of a histogram of degrees: more would be thinner than their gaps
TITLE_SIZE = 11


def graph(
    adata: Any,
    basis: str = "umap",
    *,
    color: Any = None,
    neighbors_key: str | None = None,
    layer: str | None = None,
    ax: Axes | None = None,
    **keywords: Any,
) -> Axes:
    """Cells on an embedding, and every edge of their graph as a line.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph and an embedding.
    basis
        Embedding: ``"umap"`` or ``"X_umap"``, and so on; its first two columns.
    color
        Column of ``adata.obs``, a gene, or ``"degree"``; or what
        :func:`otgraph.plots.draw_graph` takes. Categories get the colors that scanpy
        has chosen for them, if it has, and a legend.
    neighbors_key
        What was passed to ``pp.neighbors`` as ``key_added``.
    layer
        Layer to take the gene from.
    ax
        Where to draw; a new figure by default.
    **keywords
        Of :func:`otgraph.plots.draw_graph`, such as ``edge_strength``, ``zoom``, ``title``.
    """
    check_adata(adata)
    weights = read_graph(adata, neighbors_key).weights
    coordinates = _coordinates(adata, basis)
    legend: dict[str, Any] = {}
    if isinstance(color, str) and color in adata.obs:
        column = adata.obs[color]
        if column.dtype.kind in "iuf":
            color = column.to_numpy()
        else:
            codes, legend = _groups(adata, color)
            unknown = require("matplotlib.colors", "plots").to_rgba(UNKNOWN)
            color = np.vstack([*legend.values(), unknown])[codes]  # -1 is the last
    elif isinstance(color, str) and color in adata.var_names:
        color = _expression(adata, color, layer)
    axes = plots.draw_graph(weights, coordinates, color=color, ax=ax, **keywords)
    if legend:
        _add_legend(axes, legend)
    return axes


def degrees(
    adata: Any,
    groupby: str | None = None,
    *,
    neighbors_key: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Histogram of the number of neighbors, or one box for each group of cells.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    groupby
        Column of ``adata.obs`` with groups, such as cell types.
    neighbors_key
        What was passed to ``pp.neighbors`` as ``key_added``.
    ax
        Where to draw; a new figure by default.
    """
    check_adata(adata)
    counts = read_graph(adata, neighbors_key).degrees
    if ax is None:
        ax = require("matplotlib.pyplot", "plots").figure(layout="constrained").add_subplot()
    if groupby is None:
        bins = np.linspace(-0.5, counts.max() + 0.5, min(int(counts.max()) + 2, MAX_BINS))
        ax.hist(counts, bins=bins.tolist(), color=GROUPS[0], edgecolor="white", linewidth=0.3)
        ax.set(xlabel="neighbors", ylabel="cells")
    else:
        codes, legend = _groups(adata, groupby)
        names = list(legend)
        samples = [counts[codes == i] for i in range(len(names))]
        boxes = ax.boxplot(samples, orientation="horizontal", patch_artist=True, showfliers=False)
        for box, shade in zip(boxes["boxes"], legend.values(), strict=True):
            box.set(facecolor=shade, edgecolor=INK, linewidth=0.8)
        for line in boxes["medians"]:
            line.set(color=INK, linewidth=1.2)
        ax.set_yticks(range(1, len(names) + 1), names)
        ax.invert_yaxis()
        ax.set(xlabel="neighbors", xlim=(0, None))
    ax.axvline(counts.mean(), color=INK, linewidth=0.8, linestyle="--")
    ax.set_title(f"mean {counts.mean():.1f}", fontsize=TITLE_SIZE, loc="right")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _coordinates(adata: Any, basis: str) -> FloatArray:
    for name in (basis, f"X_{basis}"):
        if name in adata.obsm:
            values = np.asarray(adata.obsm[name], dtype=np.float64)
            if values.shape[1] < 2:
                msg = f"`basis` must have two columns, `adata.obsm[{name!r}]` has one."
                raise ValueError(msg)
            return values[:, :2]
    msg = f"`basis` must be a key of `adata.obsm`, got {basis!r}; there are: {listed(adata.obsm)}."
    raise KeyError(msg)


def _expression(adata: Any, gene: str, layer: str | None) -> Any:
    values = adata[:, gene].X if layer is None else adata[:, gene].layers[layer]
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    return values.ravel()


def _groups(adata: Any, key: str) -> tuple[Any, dict[str, Any]]:
    """Group of every cell, -1 where missing, and the color of every group by name."""
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    if key not in adata.obs:
        msg = f"`groupby` must be a column of `adata.obs`, got {key!r}; there are: "
        msg += f"{listed(adata.obs)}."
        raise KeyError(msg)
    column = adata.obs[key].astype("category")
    names = [str(name) for name in column.cat.categories]
    chosen = adata.uns.get(f"{key}_colors")
    if chosen is None or len(chosen) < len(names):
        chosen = group_colors(np.arange(len(names)))
    return np.asarray(column.cat.codes), dict(zip(names, to_rgba_array(list(chosen)), strict=False))


def _add_legend(ax: Axes, legend: dict[str, Any]) -> None:
    lines = require("matplotlib.lines", "plots")
    handles = [
        lines.Line2D([], [], marker="o", linestyle="", markersize=5, color=shade, label=name)
        for name, shade in legend.items()
    ]
    ax.legend(
        handles=handles, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8
    )
