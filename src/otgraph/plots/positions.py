"""Positions of the points in a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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


def positions_of(
    graph: Any, coordinates: ArrayLike | None, X: PointsLike | None = None
) -> FloatArray:
    """Given coordinates, or the first two principal components of the points."""
    n = checked_weights(graph).shape[0]
    if coordinates is not None:
        positions = np.asarray(getattr(coordinates, "coordinates", coordinates), dtype=np.float64)
        if positions.shape != (n, 2):
            msg = f"`coordinates` must have shape ({n}, 2), got {positions.shape}."
            raise argument_error(ValueError, "coordinates", msg)
        if not np.isfinite(positions).all():
            row = int(np.argmin(np.isfinite(positions).all(axis=1)))
            msg = f"`coordinates` must be finite, got {positions[row]} in row {row}."
            raise argument_error(ValueError, "coordinates", msg)
        return positions
    points: Any = getattr(graph, "points", None) if X is None else X
    if points is None:
        msg = "`graph` holds no points to draw. Pass `coordinates`, or the points as `X`."
        raise argument_error(ValueError, "graph", msg)
    if not sp.issparse(points):
        points = np.asarray(points)
    if points.shape[0] != n:
        msg = f"`X` must hold the {n} points of the graph, got {points.shape[0]}."
        raise argument_error(ValueError, "X", msg)
    return principal_plane(points)


def principal_plane(points: Any) -> FloatArray:
    """First two principal components; two-dimensional points are not changed."""
    if points.shape[1] == 2 and not sp.issparse(points):
        return np.asarray(points, dtype=np.float64)
    from sklearn.decomposition import PCA

    n_components = min(2, *points.shape)
    plane = PCA(n_components, random_state=0).fit_transform(points)
    return np.pad(plane, ((0, 0), (0, 2 - n_components)))
