"""Small things that figures of several experiments need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require

if TYPE_CHECKING:
    from otgraph.experiments._framework.experiment import Scores
    from otgraph.typing import FloatArray, PointsLike

AXIS_LABELS = {"eps": "ε", "n_per_arm": "points per arm"}


def new_figure(width: float, height: float) -> Any:
    """A figure of its own, not registered with pyplot: drawing has no side effect."""
    Figure = require("matplotlib.figure", "plots").Figure
    return Figure(figsize=(width, height), layout="constrained")


def principal_plane(X: PointsLike) -> FloatArray:
    """The first two principal components, in which graphs are drawn side by side."""
    from sklearn.decomposition import PCA

    plane: FloatArray = PCA(2, random_state=0).fit_transform(X)
    return plane


def heat_map(ax: Any, scores: Scores, *, x: str, y: str, label: str, **options: Any) -> Any:
    """Mean over the seeds for every pair of two parameters; eps runs along a logarithmic axis."""
    table = scores.pivot_table(index=y, columns=x, values="value", aggfunc="mean")
    mesh = ax.pcolormesh(
        _cell_edges(table.columns.to_numpy(dtype=float), logarithmic=x == "eps"),
        _cell_edges(table.index.to_numpy(dtype=float), logarithmic=y == "eps"),
        table.to_numpy(dtype=float),
        cmap="viridis",
        rasterized=True,  # otherwise viewers show a white grid between the cells
        **options,
    )
    ax.set(xscale="log" if x == "eps" else "linear", xlabel=AXIS_LABELS.get(x, x))
    ax.set(yscale="log" if y == "eps" else "linear", ylabel=AXIS_LABELS.get(y, y))
    ax.figure.colorbar(mesh, ax=ax, label=label)
    return mesh


def _cell_edges(centers: FloatArray, *, logarithmic: bool) -> FloatArray:
    """Borders halfway between the values of a grid, and as far beyond its ends."""
    if len(centers) == 1:
        return np.array([0.5, 1.5]) * centers
    values = np.log(centers) if logarithmic else centers
    middles = (values[1:] + values[:-1]) / 2
    edges = np.concatenate([[2 * values[0] - middles[0]], middles, [2 * values[-1] - middles[-1]]])
    return np.exp(edges) if logarithmic else edges
