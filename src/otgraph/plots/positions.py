"""What a picture is drawn of: weights, points, and the plane of their principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, PointsLike, SparseMatrix


def checked_weights(graph: Any, name: str = "graph") -> SparseMatrix:
    """Weights of a `Graph`, or the symmetric sparse matrix itself."""
    weights: Any = getattr(graph, "weights", graph)
    shape = getattr(weights, "shape", ())
    if not sp.issparse(weights) or shape != shape[::-1]:
        msg = (
            f"`{name}` must be a Graph or a square scipy sparse matrix, got "
            f"{type(weights).__name__} of shape {shape}."
        )
        raise argument_error(TypeError, name, msg)
    return weights


def points_of(graph: Any, X: PointsLike | None) -> Any:
    """The points of a graph, or those given."""
    n = checked_weights(graph).shape[0]
    points: Any = getattr(graph, "points", None) if X is None else X
    if points is None:
        msg = (
            "`graph` holds no points to draw. Pass `coordinates`, or the points as `X`, or a "
            "`layout` that needs none, such as 'spectral'."
        )
        raise argument_error(ValueError, "graph", msg)
    if not sp.issparse(points):
        points = np.asarray(points)
    if points.shape[0] != n:
        msg = f"`X` must hold the {n} points of the graph, got {points.shape[0]}."
        raise argument_error(ValueError, "X", msg)
    return points


def principal_plane(points: Any) -> FloatArray:
    """First two principal components; two-dimensional points are not changed."""
    if points.shape[1] == 2 and not sp.issparse(points):
        return np.asarray(points, dtype=np.float64)
    from sklearn.decomposition import PCA

    n_components = min(2, *points.shape)
    plane = PCA(n_components, random_state=0).fit_transform(points)
    return np.pad(plane, ((0, 0), (0, 2 - n_components)))
