"""Pictures of the graph of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph import plots
from otgraph._optional import require
from otgraph._text import printable
from otgraph.exceptions import invalid
from otgraph.plots._axes import finish, new_axes
from otgraph.plots._legends import make_plain
from otgraph.plots.colors import INK, UNKNOWN, PointColors, palette
from otgraph.plots.graph import passes_on
from otgraph.singlecell._adata import check_adata, entry
from otgraph.singlecell._slots import read_graph

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from anndata import AnnData
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph.plots.colors import Legend
    from otgraph.plots.graph import DrawKeywords
    from otgraph.typing import FloatArray, IntArray

__all__ = ["degrees", "graph"]


def __dir__() -> list[str]:
    return __all__


BOX_HEIGHT = 0.32  # inches per group, so that names do not overlap
BOX_WIDTH = 5.5


@passes_on
def graph(
    adata: AnnData,
    basis: str = "umap",
    *,
    labels: ArrayLike | None = None,
    color: ArrayLike | PointColors | None = None,
    color_label: str | None = None,
    neighbors_key: str | None = None,
    layer: str | None = None,
    cmap: str = "viridis",
    ax: Axes | None = None,
    legend: Legend = True,
    title: str | None = None,
    **keywords: Unpack[DrawKeywords],
) -> Axes:
    """Cells on an embedding, and every edge of their graph as a line.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph and an embedding.
    basis
        Embedding: ``"umap"`` or ``"X_umap"``, and so on; its first two columns.
    color
        Column of ``adata.obs``, a gene, ``"degree"``, or what
        :func:`otgraph.plots.draw_graph` takes. Categories get the colors that scanpy
        has chosen for them, if any.
    color_label
        What the colors show; by default the name of the column or gene.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    layer
        Layer to take the gene from.
    labels, cmap, ax, legend, title, point_size, edge_width, edge_color, edge_strength, zoom, \
zoom_bounds
        As in :func:`otgraph.plots.draw_graph`.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=False)
    >>> adata.obsm["X_plane"] = arms.X[:, :2]
    >>> ax = ogs.pl.graph(adata, "plane", color="degree")
    """
    check_adata(adata)
    found = read_graph(adata, neighbors_key, points=False)
    if isinstance(color, str) and (color in adata.obs or color in adata.var_names):
        color_label = color if color_label is None else color_label
        if color not in adata.obs:
            color = _expression(adata, color, layer)
        elif adata.obs[color].dtype.kind in "iuf":
            color = adata.obs[color].to_numpy()
        else:
            color = _group_colors(adata, color)
    return plots.draw_graph(
        found, _coordinates(adata, basis), labels=labels, color=color, color_label=color_label,
        cmap=cmap, ax=ax, legend=legend, title=title, **keywords,
    )  # fmt: skip


def degrees(
    adata: AnnData,
    groupby: str | None = None,
    *,
    neighbors_key: str | Sequence[str] | None = None,
    names: Sequence[str] | None = None,
    cumulative: bool = False,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """How many neighbors cells have: all together, or one box for each group.

    Parameters
    ----------
    adata
        Annotated data with a neighborhood graph.
    groupby
        Column of ``adata.obs`` with groups, such as cell types.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``. Several names compare graphs, as
        long as `groupby` is not given.
    names, cumulative
        As in :func:`otgraph.plots.plot_degrees`; without `groupby` only.
    ax, title
        As in :func:`otgraph.plots.plot_degrees`.

    Examples
    --------
    >>> import anndata, otgraph
    >>> import otgraph.singlecell as ogs
    >>> arms = otgraph.datasets.spiral_arms(50, n_arms=3, noise=0.2)
    >>> adata = anndata.AnnData(arms.X)
    >>> ogs.pp.neighbors(adata, use_rep="X", connect=False)
    >>> adata.obs["arm"] = arms.labels.astype(str)
    >>> ax = ogs.pl.degrees(adata, "arm")
    """
    check_adata(adata)
    one = isinstance(neighbors_key, str | None)
    keys = [neighbors_key] if isinstance(neighbors_key, str | None) else [*neighbors_key]
    given = {"neighbors_key": not one, "names": names, "cumulative": cumulative}
    if groupby is not None and any(given.values()):
        name = next(name for name, value in given.items() if value)
        msg = "cannot go together with `groupby`; draw one graph, or drop `groupby`."
        raise invalid(name, msg, TypeError)
    graphs = [read_graph(adata, key, points=False) for key in keys]
    if groupby is not None:
        return _boxes(adata, groupby, graphs[0].degrees, ax, title)
    names = names if one or names else [str(key) for key in keys]
    return plots.plot_degrees(graphs, names=names, cumulative=cumulative, ax=ax, title=title)


def _boxes(
    adata: AnnData, groupby: str, counts: IntArray, ax: Axes | None, title: str | None
) -> Axes:
    codes, hues = _groups(adata, groupby)
    ax = new_axes(ax, (BOX_WIDTH, 1.0 + BOX_HEIGHT * len(hues)))
    samples = [counts[codes == i] for i in range(len(hues))]
    boxes = ax.boxplot(samples, orientation="horizontal", patch_artist=True, showfliers=False)
    for box, hue in zip(boxes["boxes"], hues.values(), strict=True):
        box.set(facecolor=hue, edgecolor=INK, linewidth=0.8)
    for line in boxes["medians"]:
        line.set(color=INK, linewidth=1.2)
    mean = float(counts.mean())
    ax.axvline(mean, color=INK, linestyle=":", linewidth=1)
    ax.annotate(
        f"mean of all cells: {mean:.3g}", (mean, 1.0), (0, 2), ha="center", fontsize="small",
        xycoords=("data", "axes fraction"), textcoords="offset points",
    )  # fmt: skip
    ax.set_yticks(range(1, len(hues) + 1), list(hues))
    make_plain(ax.get_yticklabels())
    ax.invert_yaxis()
    finish(ax, xlabel="degree", ylabel=printable(groupby), title=title, xlim=(0, None))
    make_plain([ax.yaxis.label])
    return ax


def _coordinates(adata: AnnData, basis: str) -> FloatArray:
    name = basis if basis in adata.obsm or f"X_{basis}" not in adata.obsm else f"X_{basis}"
    values = np.asarray(entry(adata.obsm, name, "basis", "a key of `adata.obsm`"), dtype=np.float64)
    if values.shape[1] < 2:
        raise invalid("basis", f"must have two columns, `adata.obsm[{name!r}]` has one.")
    return values[:, :2]


def _expression(adata: AnnData, gene: str, layer: str | None) -> FloatArray:
    values = adata[:, gene].X if layer is None else adata[:, gene].layers[layer]
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    return values.ravel()


def _group_colors(adata: AnnData, key: str) -> PointColors:
    codes, hues = _groups(adata, key)
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    rgba = to_rgba_array([*hues.values(), UNKNOWN])[codes]  # -1 is the last
    return PointColors(rgba, groups=hues)


def _groups(adata: AnnData, key: str) -> tuple[IntArray, dict[str, str]]:
    """Group of every cell, -1 where missing, and the color of every group by name."""
    column = entry(adata.obs, key, "groupby", "a column of `adata.obs`").astype("category")
    names = [printable(name) for name in column.cat.categories]
    chosen = adata.uns.get(f"{key}_colors")
    if chosen is None or len(chosen) < len(names):
        chosen = palette(len(names))
    return np.asarray(column.cat.codes), dict(zip(names, chosen, strict=False))
