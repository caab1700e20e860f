"""Positions of points in a picture: from the points, or from the graph alone."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._optional import importing
from otgraph._validation import check_choice, check_seed
from otgraph.exceptions import DisconnectedWarning, invalid
from otgraph.graphs._canonical import row_sums
from otgraph.graphs.graph import Graph
from otgraph.methods import eigenmaps
from otgraph.plots._forces import balanced

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.methods import Embedding
    from otgraph.typing import FloatArray, Points, PointsLike, SparseMatrix

    GraphLike = Graph | SparseMatrix

LAYOUTS = ("pca", "force", "spectral", "umap")
# How densely umap packs points: scanpy's values, which leave room for edges.
UMAP_SPREAD, UMAP_MIN_DIST = 1.0, 0.5
UMAP_GAMMA, UMAP_NEGATIVE_SAMPLES, UMAP_ALPHA = 1.0, 5, 1.0  # the defaults of umap-learn
SMOOTHING = 30  # steps of the walk that turn random numbers into a start


def layout(
    graph: GraphLike, kind: str = "pca", *, X: PointsLike | None = None, random_state: int = 0
) -> FloatArray:
    """Positions to draw the points of a graph at, shape (n, 2).

    Parameters
    ----------
    graph
        A `Graph`, or any symmetric scipy sparse matrix of weights.
    kind
        ``"pca"``: first two principal components of the points. Distances mean something, but
        groups that other directions separate lie on each other. Points of two dimensions are not
        changed.

        ``"force"``: edges pull their ends together, all points push each other away. It spreads
        groups over the picture and keeps them near their neighbors; a good first choice.

        ``"spectral"``: the first two eigenmaps. Exact and fast; it shows circles and branches, but
        puts groups that are nearly separate far away from all others.

        ``"umap"``: the layout of UMAP for this graph; needs umap-learn. It shows groups best;
        distances between them mean little.
    X
        The points, if the graph has none. Without any, ``"force"`` and ``"umap"`` start from
        random numbers.
    random_state
        Seed of ``"force"`` and ``"umap"``.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> graph = otgraph.quadratic_ot_graph(X, mean_degree=6)
    >>> otgraph.plots.layout(graph, "force").shape
    (60, 2)
    """
    weights = checked_weights(graph)
    check_choice(kind, "layout", LAYOUTS)
    if kind == "pca":
        return principal_plane(points_of(graph, X))
    if kind == "spectral":
        with warnings.catch_warnings():  # a picture of several components is still a picture
            warnings.simplefilter("ignore", DisconnectedWarning)
            return eigenmaps(weights, 2).coordinates
    seed = check_seed(random_state)
    start = _start(graph, weights, X, seed)
    return balanced(weights, start) if kind == "force" else _umap(weights, start, seed)


def positions_of(
    graph: GraphLike,
    coordinates: ArrayLike | Embedding | None,
    X: PointsLike | None = None,
    *,
    kind: str = "pca",
) -> FloatArray:
    """Given coordinates, or a layout of this kind."""
    if coordinates is None:
        return layout(graph, kind, X=X)
    n = checked_weights(graph).shape[0]
    positions = np.asarray(getattr(coordinates, "coordinates", coordinates), dtype=np.float64)
    if positions.shape != (n, 2):
        raise invalid("coordinates", f"must have shape ({n}, 2), got {positions.shape}.")
    finite = np.isfinite(positions).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise invalid("coordinates", f"must be finite, got {positions[row]} in row {row}.")
    return positions


def _umap(weights: SparseMatrix, start: FloatArray, seed: int) -> FloatArray:
    try:
        with warnings.catch_warnings():  # about optional packages of umap that are missing
            warnings.simplefilter("ignore")
            from umap import umap_
    except ModuleNotFoundError as error:
        msg = "`layout='umap'` needs umap-learn; install it with `pip install umap-learn`."
        raise ImportError(msg, name="umap") from error
    a, b = umap_.find_ab_params(UMAP_SPREAD, UMAP_MIN_DIST)
    with warnings.catch_warnings():  # about its own internals
        warnings.simplefilter("ignore")
        positions, _ = umap_.simplicial_set_embedding(
            start, _relative_to_heaviest(weights), 2, UMAP_ALPHA, a, b,
            UMAP_GAMMA, UMAP_NEGATIVE_SAMPLES, None, start, np.random.RandomState(seed),
            "euclidean", {}, densmap=False, densmap_kwds={}, output_dens=False,
        )  # fmt: skip
    return np.asarray(positions, dtype=np.float64)


def _start(graph: GraphLike, weights: SparseMatrix, X: PointsLike | None, seed: int) -> FloatArray:
    """Principal components, or random numbers averaged over neighbors, of standard deviation one.

    A little noise separates points that coincide.
    """
    rng = np.random.default_rng(seed)
    n = weights.shape[0]
    if X is None and getattr(graph, "points", None) is None:
        start = rng.normal(size=(n, 2))
        sums = np.maximum(row_sums(weights), np.finfo(float).tiny)
        for _ in range(SMOOTHING):
            start = 0.5 * (start + (weights @ start) / sums[:, None])
    else:
        start = principal_plane(points_of(graph, X))
    start = start - start.mean(axis=0)
    start /= np.maximum(start.std(axis=0), np.finfo(float).tiny)
    return np.asarray(start + rng.normal(scale=1e-3, size=(n, 2)))


def _relative_to_heaviest(weights: SparseMatrix) -> SparseMatrix:
    """Weights relative to the heaviest of both ends; one heavy pair does not hide the others."""
    edges = weights.tocoo().astype(np.float64)
    edges.data = np.abs(edges.data)
    heaviest = np.maximum(abs(weights).max(axis=1).toarray().ravel(), np.finfo(float).tiny)
    edges.data /= np.sqrt(heaviest[edges.row] * heaviest[edges.col])
    return edges.tocsr()


def checked_weights(graph: object, name: str = "graph") -> SparseMatrix:
    """Weights of a `Graph`, or the symmetric sparse matrix itself."""
    weights: SparseMatrix = getattr(graph, "weights", graph)
    shape = getattr(weights, "shape", ())
    if not sp.issparse(weights) or shape != shape[::-1]:
        msg = (
            f"must be a Graph or a square scipy sparse matrix, got {type(weights).__name__} of "
            f"shape {shape}."
        )
        raise invalid(name, msg, TypeError)
    return weights


def as_graph(graph: object, name: str = "graph") -> Graph:
    """The graph itself, or that of a symmetric sparse matrix."""
    return graph if isinstance(graph, Graph) else Graph(checked_weights(graph, name).tocsr())


def points_of(graph: GraphLike, X: PointsLike | None) -> Points:
    """The points of a graph, or those given."""
    n = checked_weights(graph).shape[0]
    points: Points | None = getattr(graph, "points", None)
    if X is not None:
        points = X if sp.issparse(X) else np.asarray(X)
    if points is None:
        msg = (
            "holds no points to draw. Pass `coordinates`, or the points as `X`, or a `layout` "
            "that needs none, such as 'spectral'."
        )
        raise invalid("graph", msg)
    if points.shape[0] != n:
        raise invalid("X", f"must hold the {n} points of the graph, got {points.shape[0]}.")
    return points


def principal_plane(points: Points) -> FloatArray:
    """First two principal components; two-dimensional points are not changed."""
    if points.shape[1] == 2 and not sp.issparse(points):
        return np.asarray(points, dtype=np.float64)
    with importing():
        from sklearn.decomposition import PCA

    n_components = min(2, *points.shape)
    plane = PCA(n_components, random_state=0).fit_transform(points)
    return np.pad(plane, ((0, 0), (0, 2 - n_components)))
