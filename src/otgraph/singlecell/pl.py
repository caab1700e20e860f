"""Pictures of the graph of cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph import plots
from otgraph._optional import require
from otgraph._text import printable
from otgraph.exceptions import argument_error
from otgraph.plots._axes import finish, new_axes
from otgraph.plots._text import make_plain
from otgraph.plots.colors import INK, UNKNOWN, PointColors, palette
from otgraph.singlecell._adata import check_adata, keys_of
from otgraph.singlecell._slots import read_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anndata import AnnData
    from matplotlib.axes import Axes

    from otgraph.typing import FloatArray, IntArray

__all__ = ["degrees", "graph"]

BOX_HEIGHT = 0.32  # inches per group, so that names do not overlap
BOX_WIDTH = 5.5


def graph(
    adata: AnnData,
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
        Column of ``adata.obs``, a gene, ``"degree"``, or what
        :func:`otgraph.plots.draw_graph` takes. Categories get the colors that scanpy
        has chosen for them, if any. The color bar or legend has the name of the column or gene.
    neighbors_key
        The ``key_added`` of ``pp.neighbors``.
    layer
        Layer to take the gene from.
    ax
        Where to draw; a new figure by default.
    **keywords
        Of :func:`otgraph.plots.draw_graph`, such as ``edge_strength``, ``zoom``, ``title``.
    """
    check_adata(adata)
    found = read_graph(adata, neighbors_key, points=False)
    if isinstance(color, str) and (color in adata.obs or color in adata.var_names):
        keywords = {"color_label": color, **keywords}
        if color not in adata.obs:
            color = _expression(adata, color, layer)
        elif adata.obs[color].dtype.kind in "iuf":
            color = adata.obs[color].to_numpy()
        else:
            color = _group_colors(adata, color)
    return plots.draw_graph(found, _coordinates(adata, basis), color=color, ax=ax, **keywords)


def degrees(
    adata: AnnData,
    groupby: str | None = None,
    *,
    neighbors_key: str | Sequence[str] | None = None,
    ax: Axes | None = None,
    **keywords: Any,
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
    ax
        Where to draw; a new figure by default.
    **keywords
        Of :func:`otgraph.plots.plot_degrees`, such as ``cumulative``; without `groupby` only.
    """
    check_adata(adata)
    several = neighbors_key is not None and not isinstance(neighbors_key, str)
    if groupby is None:
        if several:
            graphs: Any = {key: read_graph(adata, key) for key in neighbors_key or ()}
        else:
            graphs = read_graph(adata, neighbors_key, points=False)  # type: ignore[arg-type]
        return plots.plot_degrees(graphs, ax=ax, **keywords)
    if several or keywords:
        name = next(iter(keywords), "neighbors_key")
        msg = f"`{name}` cannot go together with `groupby`; draw one graph, or drop `groupby`."
        raise argument_error(TypeError, name, msg)
    counts = read_graph(adata, neighbors_key, points=False).degrees  # type: ignore[arg-type]
    return _boxes(adata, groupby, counts, ax)


def _boxes(adata: AnnData, groupby: str, counts: IntArray, ax: Axes | None) -> Axes:
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
    finish(ax, xlabel="degree", ylabel=printable(groupby), xlim=(0, None))
    make_plain([ax.yaxis.label])
    return ax


def _coordinates(adata: AnnData, basis: str) -> FloatArray:
    for name in (basis, f"X_{basis}"):
        if name in adata.obsm:
            values = np.asarray(adata.obsm[name], dtype=np.float64)
            if values.shape[1] < 2:
                msg = f"`basis` must have two columns, `adata.obsm[{name!r}]` has one."
                raise argument_error(ValueError, "basis", msg)
            return values[:, :2]
    msg = f"`basis` must be a key of `adata.obsm`, got {basis!r}; there are: {keys_of(adata.obsm)}."
    raise argument_error(KeyError, "basis", msg)


def _expression(adata: AnnData, gene: str, layer: str | None) -> Any:
    values = adata[:, gene].X if layer is None else adata[:, gene].layers[layer]
    values = values.toarray() if sp.issparse(values) else np.asarray(values)
    return values.ravel()


def _group_colors(adata: AnnData, key: str) -> PointColors:
    codes, hues = _groups(adata, key)
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    rgba = to_rgba_array([*hues.values(), UNKNOWN])[codes]  # -1 is the last
    return PointColors(rgba, groups=hues)


def _groups(adata: AnnData, key: str) -> tuple[IntArray, dict[str, Any]]:
    """Group of every cell, -1 where missing, and the color of every group by name."""
    if key not in adata.obs:
        msg = f"`groupby` must be a column of `adata.obs`, got {key!r}; there are: "
        msg += f"{keys_of(adata.obs)}."
        raise argument_error(KeyError, "groupby", msg)
    column = adata.obs[key].astype("category")
    names = [printable(name) for name in column.cat.categories]
    chosen = adata.uns.get(f"{key}_colors")
    if chosen is None or len(chosen) < len(names):
        chosen = palette(len(names))
    return np.asarray(column.cat.codes), dict(zip(names, chosen, strict=False))
