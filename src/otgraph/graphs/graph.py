"""The result of every construction: a weighted graph with the parameters that built it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._kernels.components import component_labels
from otgraph._optional import require
from otgraph.graphs import distances, extension, geometry
from otgraph.graphs._canonical import canonical_weights, plain_params, row_sums
from otgraph.graphs.base import BaseGraph, BaseTransportGraph
from otgraph.graphs.copies import CollapsedEvidence
from otgraph.graphs.geometry import wants_correction
from otgraph.solvers.verification import Evidence

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    import igraph
    import networkx
    import torch_geometric

    from otgraph.graphs._canonical import Param
    from otgraph.graphs.distances import Neighbors
    from otgraph.solvers.certificate import Certificate
    from otgraph.solvers.verification import Verifiable
    from otgraph.typing import FloatArray, IntArray, LongArray, Points, PointsLike, SparseMatrix


class Edges(NamedTuple):
    """Edges of a graph, each listed once with ``i < j``; self-loops are left out."""

    i: IntArray
    j: IntArray
    weight: FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Graph(BaseGraph):
    """Symmetric weighted graph on n points; weights are similarities, not distances.

    Every construction of this package returns one. The constructor trusts its arguments;
    :meth:`from_weights` takes any symmetric matrix and checks it.

    Parameters
    ----------
    weights
        CSR matrix, exactly symmetric, float64, sorted 32-bit indices (64-bit only for huge
        graphs), no stored zeros. Rows of optimal transport graphs sum to ``mass``, or to
        ``mass_kept``.
    params
        What built the graph, a flat dictionary of plain values; ``params["method"]`` names
        the construction.
    points
        The points as they were given, needed by :meth:`extend`; None for precomputed costs.
    edge_costs
        Cost of every stored entry of ``weights``, in the order of ``weights.data`` and in units
        of ``params["scale"]``. Only quadratic graphs have them.

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.knn_gaussian_graph([[0.0], [1.0], [3.0], [4.0]], n_neighbors=1)
    >>> graph
    Graph(n=4, edges=2, mean_degree=1, method='knn')
    >>> graph.component_labels
    array([0, 0, 1, 1], dtype=int32)
    """

    weights: SparseMatrix
    params: dict[str, Param] = field(default_factory=dict)
    points: Points | None = None
    edge_costs: FloatArray | None = None

    @classmethod
    def from_weights(
        cls,
        weights: PointsLike,
        *,
        params: Mapping[str, object] | None = None,
        points: Points | None = None,
    ) -> Graph:
        """Graph of any symmetric, non-negative matrix, brought into canonical form.

        Parameters
        ----------
        weights
            Square scipy sparse matrix or dense array. Asymmetry in the last digits is removed
            by averaging. A larger asymmetry is an error: decide yourself whether to take the
            mean, the maximum or the minimum of both directions.
        params
            Plain values that describe the graph; ``{"method": "weights"}`` by default.
        points
            Stored as given; see :class:`Graph`.

        Examples
        --------
        >>> from otgraph import Graph
        >>> Graph.from_weights([[0, 2], [2, 0]]).transition().toarray()
        array([[0., 1.],
               [1., 0.]])
        """
        return Graph(
            weights=canonical_weights(weights),
            params=plain_params(params or {"method": "weights"}),
            points=points,
        )

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbors of every point; the point itself does not count."""
        loops = self.weights.diagonal() != 0
        return (np.diff(self.weights.indptr) - loops).astype(np.int32)

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        labels = component_labels(self.weights.indptr, self.weights.indices)
        return int(labels.max()) + 1, labels.astype(np.int32)

    def transition(self) -> SparseMatrix:
        """Random-walk matrix D⁻¹W: rows sum to one.

        A point without any edge stays where it is: it has probability one on the diagonal, so
        every row is a distribution.
        """
        sums = self._row_sums()
        isolated = sums == 0.0
        # The inverse of a sum near the smallest number would overflow; the quotient does not.
        sums[isolated] = 1.0
        transition = self.weights.copy()
        transition.data /= np.repeat(sums, np.diff(transition.indptr))
        if isolated.any():
            transition = transition + sp.diags(isolated.astype(np.float64), format="csr")
        return sp.csr_matrix(transition)

    def laplacian(
        self, *, normalized: bool = False, density: str = "kept", dim: float | None = None
    ) -> SparseMatrix:
        """Graph Laplacian, positive semidefinite.

        Parameters
        ----------
        normalized
            False: D − W. True: I − D^(-1/2) W D^(-1/2), with a zero row for a point without
            edges. In both cases the multiplicity of the eigenvalue 0 is the number of
            connected components.
        density
            ``"corrected"``: the Laplacian of :meth:`without_density`.
        dim
            Dimension for the correction; see there.
        """
        if wants_correction(density, dim):
            return self.without_density(dim).laplacian(normalized=normalized)
        sums = self._row_sums()
        if not normalized:
            return sp.csr_matrix(sp.diags(sums, format="csr") - self.weights)
        isolated = sums == 0.0
        root = 1.0 / np.sqrt(np.where(isolated, 1.0, sums))
        affinity = self.weights.copy()
        affinity.data *= np.repeat(root, np.diff(affinity.indptr))
        affinity.data *= root[affinity.indices]
        return sp.csr_matrix(sp.diags((~isolated).astype(np.float64), format="csr") - affinity)

    def log_density(self, dim: float | None = None) -> FloatArray:
        r"""Logarithm of the density of the points, at every point, from the weights of a plan.

        The fewer points there are around a point, the farther it must send its mass, and the
        higher is its potential. This is solved for the density. It is a probability density: the
        number of points per volume of dimension `dim`, over the number of all points, in units of
        the features (on the unit sphere for cosine). A row that reaches beyond a border finds fewer
        points there, and the density comes out lower.

        Parameters
        ----------
        dim
            Intrinsic dimension of the data. None takes that of the plan, which the mean cost of
            its rows tells; :func:`otgraph.intrinsic_dimension` is more accurate.

        Returns
        -------
        One value per point; -inf without neighbors. With other masses than one it is still the
        density of the points; add ``np.log(graph.mass)`` for that of the mass.

        Examples
        --------
        >>> import numpy as np, otgraph
        >>> circle = otgraph.datasets.circle(500)
        >>> graph = otgraph.quadratic_ot_graph(circle.X, mean_degree=40)
        >>> error = graph.log_density(dim=1) - np.log(1 / (2 * np.pi))
        >>> bool(abs(error.mean()) < 0.1)
        True
        """
        return geometry.log_density(self, dim)

    def without_density(self, dim: float | None = None) -> Graph:
        r"""The graph of the geometry alone: uneven sampling is divided out.

        Where points are dense, a graph has more edges, and its random walk stays longer. The
        eigenvectors of a quadratic OT graph tend to those of :math:`p^{-1} \nabla \cdot
        (p^{d/(d+2)} \nabla f)` for the density p. Those of this graph tend to the eigenfunctions
        of Laplace-Beltrami, which depend on the shape of the data only. The weights have the
        pattern of the graph and loops: row sums are proportional to 1 / p, the volume of a point.

        Graphs by quadratic OT, entropic OT and a Gaussian kernel tell the density. For the last it
        is the normalization of diffusion maps with :math:`\alpha = 1`. Others raise an error.

        Parameters
        ----------
        dim
            Intrinsic dimension of the data; see :meth:`log_density`. A value off by one costs
            little.

        Returns
        -------
        Graph
            ``params["dim"]`` is the dimension. If λ is an eigenvalue of the random walk,
            ``params["rate"]`` times 1 - λ is that of Laplace-Beltrami in units of the features.

        Examples
        --------
        >>> import otgraph
        >>> circle = otgraph.datasets.circle(500, concentration=1.0)
        >>> graph = otgraph.quadratic_ot_graph(circle.X, mean_degree=40).without_density(dim=1)
        >>> values = 1 - otgraph.eigenmaps(graph).eigenvalues
        >>> (graph.params["rate"] * values).round(1)  # 1 and 1 on the unit circle
        array([1., 1.])
        """
        weights, found = geometry.corrected(self, dim)
        method = f"{self.params.get('method')}, density divided out"
        params = {**self.params, "method": method, "dim": found.dim, "rate": found.rate}
        return Graph(weights=weights, params=params, points=self.points)

    def edges(self) -> Edges:
        """Each edge once, as arrays ``i < j`` and ``weight``; self-loops are left out."""
        upper = sp.triu(self.weights, k=1, format="coo")
        return Edges(upper.row, upper.col, upper.data)

    def extend(
        self,
        X_new: PointsLike,
        *,
        mass: float | FloatArray | None = None,
        metric: Callable[..., float] | None = None,
    ) -> SparseMatrix:
        """Rows of new points against the points of this graph; the graph does not change.

        For optimal transport the potentials stay fixed, and a new point gets the potential that
        gives its row the wanted mass. Kernels return their weights before symmetrization. A
        point of the graph that is passed again has cost zero to itself. With
        ``self_loops=True`` its row is that of the graph; without self-loops it is connected to
        itself as to a duplicate.

        Parameters
        ----------
        X_new
            New points with the features of the old ones. For a graph on precomputed costs:
            the costs, of shape (new points, n).
        mass
            Row sums of an optimal transport graph: a number, or one per new point. One by
            default; kernels have no mass.
        metric
            The metric function, if the graph was built with one; files cannot store it.

        Returns
        -------
        CSR matrix of shape (new points, n).

        Examples
        --------
        >>> import otgraph
        >>> graph = otgraph.gaussian_graph([[0.0], [1.0]], eps=1.0, normalize=False)
        >>> graph.extend([[0.0]]).toarray().round(3)
        array([[1.   , 0.368]])
        """
        return extension.extend(self, X_new, mass=mass, metric=metric)

    def distances(self, *, metric: Callable[..., float] | None = None) -> SparseMatrix:
        """Distances along the edges, for programs that want distances instead of weights.

        In the metric of the graph: the power of the cost is undone. Every row holds the point
        itself, at distance zero, and its neighbors sorted by distance. Zeros are stored. This is
        what scikit-learn's ``metric="precomputed"`` wants. On precomputed costs, the costs.

        Parameters
        ----------
        metric
            The metric function, if the graph was built with one.

        Examples
        --------
        >>> import otgraph
        >>> graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.0]], eps=0.5)
        >>> graph.distances().toarray()
        array([[0., 1., 0., 0.],
               [1., 0., 0., 0.],
               [0., 0., 0., 1.],
               [0., 0., 1., 0.]])
        """
        return distances.distances(self, metric)

    def to_knn(
        self,
        n_neighbors: int,
        *,
        include_self: bool = False,
        metric: Callable[..., float] | None = None,
    ) -> Neighbors:
        """The same number of neighbors for every point, for programs that need it.

        A point with more neighbors in the graph keeps the nearest of them. One with fewer keeps
        all, and gets the nearest other points. Neighbors are sorted by distance.

        Parameters
        ----------
        n_neighbors
            Number of neighbors.
        include_self
            The point itself comes first and counts as a neighbor, as in UMAP and scanpy.
        metric
            The metric function, if the graph was built with one.

        Returns
        -------
        Neighbors
            ``indices, distances``, both of shape (n, n_neighbors); ``.matrix()`` is the same as
            a sparse matrix.

        Examples
        --------
        >>> import otgraph
        >>> graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.0]], eps=0.5)
        >>> indices, distances = graph.to_knn(2)
        >>> indices
        array([[1, 2],
               [0, 2],
               [3, 1],
               [2, 1]], dtype=int32)
        """
        return distances.to_knn(self, n_neighbors, include_self=include_self, metric=metric)

    def to_networkx(self) -> networkx.Graph:
        """A ``networkx.Graph`` on the nodes 0 to n - 1, with the edge attribute ``weight``."""
        return require("networkx").from_scipy_sparse_array(self.weights)

    def to_igraph(self) -> igraph.Graph:
        """An undirected ``igraph.Graph`` with the edge attribute ``weight``."""
        upper = sp.triu(self.weights, format="coo")
        pairs = np.column_stack((upper.row, upper.col))
        edges = {"weight": upper.data.tolist()}
        return require("igraph").Graph(n=self.n, edges=pairs, edge_attrs=edges)

    def to_pyg(self) -> torch_geometric.data.Data:
        """A ``torch_geometric.data.Data`` with ``edge_index`` and ``edge_weight``.

        Every edge is listed in both directions. ``x`` holds the points, if the graph has them.
        """
        torch, data = require("torch"), require("torch_geometric.data")
        both_ways = self.weights.tocoo()
        index = np.vstack((both_ways.row, both_ways.col)).astype(np.int64)
        points = self.points
        if points is not None and not isinstance(points, np.ndarray):
            points = points.toarray()
        return data.Data(
            x=None if points is None else torch.as_tensor(points, dtype=torch.float32),
            edge_index=torch.as_tensor(index),
            edge_weight=torch.as_tensor(both_ways.data, dtype=torch.float32),
            num_nodes=self.n,
        )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        include_points: bool = True,
        overwrite: bool = True,
    ) -> None:
        """Write the graph to one file, which :func:`otgraph.load_graph` reads.

        Parameters
        ----------
        path
            The file; ``.otg`` is customary. An existing file is replaced in one step at the
            end, keeps its permissions, and stays intact if anything goes wrong. What is not a
            regular file, such as a device, is never replaced.
        include_points
            False makes the file smaller; the loaded graph then cannot :meth:`extend`.
        overwrite
            False raises ``FileExistsError`` if there is a file, even one that comes while this
            one is written.
        """
        from otgraph.graphs.io import save_graph  # circular import: io imports Graph

        save_graph(self, path, include_points=include_points, overwrite=overwrite)

    def _row_sums(self) -> FloatArray:
        return row_sums(self.weights)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TransportGraph(Graph, BaseTransportGraph):
    """A transport plan: rows sum to ``mass``, and a certificate says what was proved.

    With `outlier_cost` points may hold mass back, and rows sum to :attr:`mass_kept`.

    Parameters
    ----------
    weights
        The plan, in the form of :class:`otgraph.Graph`.
    params, points, edge_costs
        As in :class:`otgraph.Graph`.
    certificate
        What was proved about the plan.
    potentials
        The vector u behind the plan.
    mass
        Wanted row sums.
    floors
        Minimum flows: every weight is at least the entry of this symmetric CSR matrix. None if
        there are none.
    copies
        Number of the distinct point that every row is a copy of, if the graph was built with
        ``collapse=True`` and there are copies; None otherwise.

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.quadratic_ot_graph([[0.0], [1.0], [3.0], [4.0]], eps=0.5)
    >>> graph
    TransportGraph(n=4, edges=2, mean_degree=1, method='quadratic', eps=0.5, status='exact')
    """

    certificate: Certificate
    potentials: FloatArray
    mass: FloatArray
    floors: SparseMatrix | None = None
    copies: LongArray | None = None

    def __post_init__(self) -> None:
        """Give the certificate the plan that it describes."""
        evidence: Verifiable = self._evidence() if self.copies is None else CollapsedEvidence(self)
        object.__setattr__(self, "certificate", replace(self.certificate, evidence=evidence))

    def _evidence(self) -> Evidence:
        params = self.params
        return Evidence(
            method=str(params.get("method")),
            weights=self.weights,
            potentials=self.potentials,
            mass=self.mass,
            floors=self.floors,
            metric=str(params.get("metric", "euclidean")),
            power=float(params.get("power") or 2.0),
            scale=float(params.get("scale") or 1.0),
            normalize=bool(params.get("normalize")),
            self_loops=bool(params.get("self_loops")),
        )

    @property
    def eps(self) -> float:
        """Regularization of the plan."""
        return self.certificate.eps

    def _times(self, v: FloatArray) -> FloatArray:
        return np.asarray(self.weights @ v)
