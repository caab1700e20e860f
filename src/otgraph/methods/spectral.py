"""Eigenmaps: coordinates from the slowest modes of the random walk on a graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._blas import single_threaded_blas
from otgraph._validation import check_count, check_positive
from otgraph.exceptions import ConvergenceWarning, DisconnectedWarning, invalid
from otgraph.graphs import Graph
from otgraph.graphs._canonical import row_sums
from otgraph.graphs.geometry import KEPT, corrected, wants_correction
from otgraph.methods._eigensolvers import DENSE_LIMIT, Eigenpairs, lanczos, leading_eigenpairs
from otgraph.methods._graphs import (
    Part,
    as_graph,
    as_product_graph,
    check_rows,
    products_of,
    transition_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.graphs.geometry import Correction
    from otgraph.typing import (
        FloatArray,
        IntArray,
        LongArray,
        PointsLike,
        ProductGraph,
        SparseMatrix,
    )

# Modes with a smaller eigenvalue cannot be extended to new points.
SMALLEST_EIGENVALUE = 1e-10
# Without the density, coordinates of a new point are at most so many times the mean of those around
# it, the inverse of this number. Only points in regions without others, or fast modes, get there.
SMALLEST_SHARE = 0.1
# If fewer points than this share count, the others are a dot beside them.
FEWEST_COUNTED = 0.1


@dataclass(frozen=True, eq=False)
class Embedding:
    """Coordinates of the points of a graph, and what is needed to place new ones.

    Attributes
    ----------
    coordinates
        One row per point. Each column has mean square one under the stationary distribution
        of the random walk, within every connected component. The size of coordinates therefore
        does not depend on the number of points.
    eigenvalues
        Of the random walk, in falling order, on the largest component: one per column.
    component_eigenvalues
        The same for every component, one row each; zero where a component has too few points
        to fill the columns.
    component_labels
        Component of every point.
    correction
        How the density was divided out, for new points; None if it was kept.

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> graph = otgraph.quadratic_ot_graph(X[:150], eps=3.0)
    >>> embedding = otgraph.eigenmaps(graph, 2)
    >>> embedding.coordinates.shape, embedding.extend(graph.extend(X[150:])).shape
    ((150, 2), (50, 2))
    """

    coordinates: FloatArray
    eigenvalues: FloatArray
    component_eigenvalues: FloatArray
    component_labels: IntArray
    correction: Correction | None = None

    @property
    def laplacian_eigenvalues(self) -> FloatArray | None:
        """Estimates of the eigenvalues of Laplace-Beltrami, in units of the points.

        None if the density was not divided out.
        """
        return None if self.correction is None else self.correction.rate * (1.0 - self.eigenvalues)

    def extend(self, rows: PointsLike) -> FloatArray:
        """Coordinates of new points from their rows, such as ``graph.extend(X_new)``.

        An eigenvector satisfies λ v = P v. Applied to a new row, the equation gives its
        coordinates (Nyström). Rows of the graph give the coordinates of the graph. Columns with
        eigenvalue zero are zero. If the density was divided out, it is divided out of the rows.

        Parameters
        ----------
        rows
            Weights of the new points, one column for each point of the graph. Rows are scaled
            to sum to one; a row without any weight is placed at the origin, with a warning.
        """
        n = len(self.coordinates)
        if self.correction is not None:
            rows = check_rows(rows, n) @ sp.diags(self.correction.factors)
        P, empty = transition_rows(rows, n)
        if empty.any():
            msg = (
                f"{int(empty.sum())} new point(s) have no neighbor in the graph and are placed "
                "at the origin. They lie too far away for the kernel of this graph."
            )
            warnings.warn(msg, UserWarning, stacklevel=2)
        values = self.component_eigenvalues
        if self.correction is not None:
            # (1 - mean step × (1 - λ)) v = P v; steps are one if the density is kept.
            slow = (1.0 - values)[self.component_labels] * self.correction.steps[:, None]
            return np.asarray(P @ self.coordinates / np.maximum(1.0 - P @ slow, SMALLEST_SHARE))
        small = np.abs(values) < SMALLEST_EIGENVALUE
        inverse = np.where(small, 0.0, 1.0 / np.where(small, 1.0, values))
        return np.asarray(P @ (self.coordinates * inverse[self.component_labels]))


def eigenmaps(
    graph: Graph | SparseMatrix | ProductGraph,
    n_components: int = 2,
    *,
    density: str = KEPT,
    dim: float | None = None,
    tol: float = 1e-10,
    max_restarts: int = 500,
) -> Embedding:
    r"""Coordinates from the leading non-trivial eigenvectors of the random walk on the graph.

    .. math:: \bar W v = \lambda v, \qquad \bar W_{ij} = W_{ij} / \textstyle\sum_l W_{il},
              \qquad x_i \mapsto (v_2(i), \dots, v_{k+1}(i)),

    where the first, constant eigenvector is left out (Belkin and Niyogi 2003; Matsumoto et
    al. 2022, section 3.1). They are computed from the symmetric form D^(-1/2) W D^(-1/2) by
    Lanczos iterations, with memory for about sixty vectors.

    A graph with several components has one constant eigenvector for each. Every component is
    then embedded separately: column j holds the j-th eigenvector of each component. Coordinates
    of different components cannot be compared, and a warning is given. Components lie on top of
    each other, all around the origin: to find groups use :func:`otgraph.cluster`, which tells
    them apart. Outliers that a graph with `outlier_cost` has dropped are placed at the origin, and
    do not count as components.

    Parameters
    ----------
    graph
        A Graph or any symmetric scipy sparse matrix of weights; or, if the density is kept, a graph
        on a cluster, whose workers compute the products.
    n_components
        Number of coordinates: two or three for pictures, ten or more for further computations.
    density
        ``"kept"``: of the graph as it is. Its modes follow the density of the points as well as
        their shape: dense regions are spread out. ``"corrected"``: the density is divided out, and
        the modes tend to those of Laplace-Beltrami, which depend on the shape only
        (:meth:`otgraph.Graph.without_density`). Choose it for trajectories and shapes that are
        sampled unevenly, and keep the density where it tells groups apart. Needs a graph by
        quadratic OT, entropic OT or a Gaussian kernel.
    dim
        Intrinsic dimension of the data for the correction. None takes that of the plan;
        :func:`otgraph.intrinsic_dimension` is more accurate, and a value off by one costs little.
    tol
        Accuracy: norm of the residual of an eigenvector of norm one. The error of an eigenvector
        is about this divided by the distance to the next eigenvalue.
    max_restarts
        Limit of Lanczos restarts, each about fifty products with the graph. Eigenvectors that
        have not converged by then are left zero, with a warning.

    Returns
    -------
    Embedding
        Deterministic: the start vector is fixed, and the largest entry of each column is positive.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> angle = np.arange(60) * 2 * np.pi / 60
    >>> ring = otgraph.knn_gaussian_graph(np.c_[np.cos(angle), np.sin(angle)], n_neighbors=2)
    >>> embedding = otgraph.eigenmaps(ring)
    >>> np.linalg.norm(embedding.coordinates, axis=1).round(6)[:3]
    array([1.414214, 1.414214, 1.414214])
    """
    k = check_count(n_components, "n_components")
    correction = None
    if wants_correction(density, dim):
        weights, correction = corrected(as_graph(graph), dim)
        graph = Graph(weights)
    graph = as_product_graph(graph)
    tol = check_positive(tol, "tol")
    max_restarts = check_count(max_restarts, "max_restarts")
    if k > graph.n - 1:
        raise invalid("n_components", f"must be at most n - 1 = {graph.n - 1}, got {k}.")
    coordinates = np.zeros((graph.n, k))
    values = np.zeros((graph.n_connected, k))
    missing = 0
    with single_threaded_blas(), products_of(graph):  # the same for any number of threads
        for label, members, W in components_of(graph):
            wanted = min(k, len(members) - 1)
            if not wanted:
                continue
            modes = walk_modes(W, wanted, tol, max_restarts)
            found = len(modes.values)
            values[label, :found] = modes.values
            coordinates[members, :found] = modes.vectors
            missing += wanted - found
    _warn(graph, k, missing, max_restarts)
    if isinstance(graph, Graph) and correction is not None:
        _warn_of_few_points(graph)
    largest = int(np.bincount(graph.component_labels).argmax())
    return Embedding(
        coordinates, values[largest].copy(), values, graph.component_labels, correction
    )


def components_of(
    graph: Graph | ProductGraph,
) -> Iterator[tuple[int, LongArray, SparseMatrix | Part]]:
    """Label, points and weights of each component."""
    labels = graph.component_labels
    if not isinstance(graph, Graph):
        order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
        small = np.flatnonzero(sizes[labels] <= DENSE_LIMIT)
        few = graph.among(small) if len(small) else sp.csr_matrix((0, 0))
        for label, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            if len(members) > DENSE_LIMIT:
                yield label, members, Part(graph, members)
            else:
                here = np.searchsorted(small, members)
                yield label, members, few[here][:, here].tocsr()
        return
    if graph.n_connected == 1:
        yield 0, np.arange(graph.n), graph.weights
        return
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    sorted_weights = graph.weights[order][:, order].tocsr()
    for label, (a, b) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
        yield label, order[a:b], sorted_weights[a:b, a:b]


def walk_modes(W: SparseMatrix | Part, k: int, tol: float, max_restarts: int) -> Eigenpairs:
    """The k leading non-trivial eigenpairs of the random walk on a connected graph."""
    mass = row_sums(W)
    root = np.sqrt(mass)
    inverse = 1.0 / root
    constant = root / np.linalg.norm(root)
    if isinstance(W, Part):
        part = W

        def product(x: FloatArray) -> FloatArray:
            return inverse * (part @ (inverse * x))

        values, Q = lanczos(product, constant, k, tol=tol, max_restarts=max_restarts)
    else:
        scaled = W.data * np.repeat(inverse, np.diff(W.indptr))
        scaled *= inverse[W.indices]
        S = sp.csr_matrix((scaled, W.indices, W.indptr), shape=W.shape)
        values, Q = leading_eigenpairs(S, constant, k, tol=tol, max_restarts=max_restarts)
    order = np.argsort(-values, kind="stable")[:k]
    vectors = Q[:, order] / root[:, None] * np.sqrt(mass.sum())
    return Eigenpairs(np.clip(values[order], -1.0, 1.0), _with_fixed_signs(vectors))


def _with_fixed_signs(vectors: FloatArray) -> FloatArray:
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.sign(vectors[largest, np.arange(vectors.shape[1])])
    return np.asarray(vectors * np.where(signs == 0.0, 1.0, signs))


def _warn(graph: Graph | ProductGraph, k: int, missing: int, max_restarts: int) -> None:
    kept = graph.component_labels[~graph.dropped]
    sizes = np.unique(kept, return_counts=True)[1]
    if len(sizes) > 1:
        small = int(np.count_nonzero(sizes <= k))
        few = f", and {small} of them have too few points for {k} coordinates" if small else ""
        msg = (
            f"The graph has {len(sizes)} connected components; the largest has "
            f"{sizes.max()} of {len(kept)} points. Each is embedded separately, one on top of the "
            f"other{few}. Build the graph with `connect=True`, a larger `eps` or more neighbors to "
            "connect them."
        )
        warnings.warn(msg, DisconnectedWarning, stacklevel=3)
    if missing:
        msg = (
            f"{missing} eigenvector(s) did not converge in {max_restarts} restarts; their "
            "columns are zero. Raise `max_restarts`, or `tol` if the distances between the "
            "eigenvalues allow it."
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=3)


def _warn_of_few_points(graph: Graph) -> None:
    """Warn if a few points stand for nearly all of the volume."""
    volume = row_sums(graph.weights)
    counted = float(volume.sum() ** 2 / np.square(volume).sum())  # n if all are equal
    if counted < FEWEST_COUNTED * graph.n:
        msg = (
            f"Without the density, coordinates are about {max(1, round(counted)):,} of the "
            f"{graph.n:,} points, which lie far from the others and stand for nearly all of the "
            "volume. Drop outliers, pass a smaller `dim`, or keep the density."
        )
        warnings.warn(msg, UserWarning, stacklevel=3)
