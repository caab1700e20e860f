"""Small things that figures of several experiments need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph._optional import require

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, PointsLike


def new_figure(width: float, height: float) -> Any:
    """A figure of its own, not registered with pyplot: drawing has no side effect."""
    Figure = require("matplotlib.figure", "plots").Figure
    return Figure(figsize=(width, height), layout="constrained")


def principal_plane(X: PointsLike) -> FloatArray:
    """The first two principal components, in which graphs are drawn side by side."""
    from sklearn.decomposition import PCA

    plane: FloatArray = PCA(2, random_state=0).fit_transform(X)
    return plane
