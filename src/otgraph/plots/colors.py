"""Colors that stay apart for color-blind readers and in print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.typing import SparseMatrix

INK = "#22223b"  # lines and frames: near black, softer beside colored points
POINT = "#d1495b"  # points without labels: warm, against the cool lines
UNKNOWN = "#c8c8c8"  # points whose label is -1

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


def point_colors(weights: SparseMatrix, *, labels: ArrayLike | None, color: Any, cmap: str) -> Any:
    """One RGBA row per point."""
    n = weights.shape[0]
    if labels is not None:
        if color is not None:
            msg = "`labels` and `color` both set the colors of the points: pass one of them."
            raise ValueError(msg)
        return group_colors(_one_per_point(labels, "labels", n))
    if color is None:
        color = POINT
    elif isinstance(color, str) and color == "degree":
        color = np.diff(weights.tocsr().indptr) - (weights.diagonal() != 0)
    if isinstance(color, str | tuple):  # a name or an RGB triple
        return np.tile(require("matplotlib.colors", "plots").to_rgba(color), (n, 1))
    if np.shape(color) in ((n, 3), (n, 4)):  # a color for each point, chosen elsewhere
        return require("matplotlib.colors", "plots").to_rgba_array(color)
    return mapped_colors(_one_per_point(color, "color", n), cmap)


def mapped_colors(values: Any, cmap: str) -> Any:
    """Numbers through a color map that spans their range."""
    matplotlib = require("matplotlib", "plots")
    norm = require("matplotlib.colors", "plots").Normalize()
    return matplotlib.colormaps[cmap](norm(values.astype(np.float64)))


def group_colors(labels: Any) -> Any:
    """A color for each group, in the order of their names; more than ten share a color map."""
    matplotlib = require("matplotlib", "plots")
    to_rgba_array = require("matplotlib.colors", "plots").to_rgba_array
    names, group = np.unique(labels, return_inverse=True)
    known = names != -1 if names.dtype.kind in "if" else np.ones(len(names), dtype=bool)
    palette = np.empty((len(names), 4))
    palette[~known] = to_rgba_array([UNKNOWN])
    n_known = int(known.sum())
    if n_known <= len(GROUPS):
        palette[known] = to_rgba_array(GROUPS[:n_known]).reshape(-1, 4)
    else:
        palette[known] = matplotlib.colormaps["viridis"](np.linspace(0, 1, n_known))
    return palette[group]


def _one_per_point(values: ArrayLike, name: str, n: int) -> Any:
    array = np.asarray(values)
    if array.shape != (n,):
        msg = f"`{name}` must hold one value per point, shape ({n},), got shape {array.shape}."
        raise ValueError(msg)
    return array
