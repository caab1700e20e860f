"""A graph whose rows stay on the workers of a cluster."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from otgraph._validation import check_count, check_positive
from otgraph.distributed import _weights
from otgraph.distributed._matrix import spreading_matrix, transition_matrix
from otgraph.distributed._source import open_points
from otgraph.distributed._storage import write_graph
from otgraph.graphs.graph import TransportGraph
from otgraph.methods._labels import encode_labels
from otgraph.methods.diffusion import walk
from otgraph.methods.spreading import spread_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._layout import Layout
    from otgraph.graphs._canonical import Param
    from otgraph.methods import LabelSpread
    from otgraph.solvers import Certificate
    from otgraph.typing import FloatArray, IntArray, LongArray, SparseMatrix


@dataclass(frozen=True, eq=False, repr=False)
class DistributedGraph:
    """Symmetric weighted graph on n points, in blocks of rows on a Dask cluster.

    Rows and columns are in the order of the points that were given. It lives as long as the
    client that computed it: ask for :meth:`to_graph`, or :meth:`write` it, before that ends.

    Attributes
    ----------
    params, certificate, potentials, mass
        As in :class:`otgraph.Graph`.
    degrees
        Number of neighbors of every point; the point itself does not count.
    row_sums
        Sum of the weights of every point.
    """

    params: dict[str, Param]
    certificate: Certificate
    potentials: FloatArray
    mass: FloatArray
    degrees: IntArray
    row_sums: FloatArray
    points: Any = field(repr=False)
    cluster: Cluster = field(repr=False)
    layout: Layout = field(repr=False)
    blocks: list[Any] = field(repr=False)
    row_lengths: LongArray = field(repr=False)
    segments: list[LongArray] = field(repr=False)

    @property
    def n(self) -> int:
        """Number of points."""
        return self.layout.n

    @property
    def mean_degree(self) -> float:
        """Mean of :attr:`degrees`."""
        return float(self.degrees.mean())

    @property
    def n_connected(self) -> int:
        """Number of connected components; an isolated point is one of its own."""
        return self._components[0]

    @property
    def component_labels(self) -> IntArray:
        """Component of every point, numbered from 0 in the order of first appearance."""
        return self._components[1]

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        """From forests: each block sends what connects its points, joined on the way."""
        cluster = self.cluster
        forests = [cluster.submit("forest", _weights.forest, block) for block in self.blocks]
        while len(forests) > 1:
            forests = [
                cluster.submit("forest", _weights.join_forests, self.n, forests[a : a + 2])
                for a in range(0, len(forests), 2)
            ]
        rows, columns = cluster.result(forests[0])
        tree = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(self.n, self.n))
        count, labels = connected_components(tree, directed=False)
        return int(count), labels.astype(np.int32, copy=False)

    def to_scipy(self) -> SparseMatrix:
        """The weights as one CSR matrix in this process; they must fit into its memory."""
        indptr = np.concatenate(([0], np.cumsum(self.row_lengths)))
        small = max(int(indptr[-1]), self.n) <= np.iinfo(np.int32).max
        kind = np.int32 if small else np.int64
        indices, data = np.empty(indptr[-1], kind), np.empty(indptr[-1])
        for (first, last), block in zip(self.layout.ranges, self.blocks, strict=True):
            place = slice(indptr[first], indptr[last])
            arrays = self.cluster.submit("arrays", _weights.arrays, block)
            _, indices[place], data[place] = self.cluster.result(arrays)
        weights = sp.csr_matrix((data, indices, indptr.astype(kind)), shape=(self.n, self.n))
        weights.has_sorted_indices = weights.has_canonical_format = True
        return weights

    def to_graph(self) -> TransportGraph:
        """An ordinary graph in this process, for everything that one can do."""
        return TransportGraph(
            weights=self.to_scipy(),
            params=dict(self.params),
            certificate=self.certificate,
            potentials=self.potentials,
            mass=self.mass,
            points=self.points,
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the graph block by block, without assembling it anywhere.

        Parameters
        ----------
        path
            Where all workers can write under the same name. ``*.zarr``: the weights as one CSR
            matrix in the layout of anndata (group ``weights``, which
            ``anndata.io.read_elem`` reads), with ``potentials`` and ``mass`` beside it and the
            parameters as attributes. ``*.parquet``: a folder of edge lists with the columns
            ``source``, ``target`` and ``weight``, each pair once.
        """
        with self._running() as graph:
            write_graph(graph, path)

    def spread_labels(
        self, labels: ArrayLike, mu: float = 1.0, *, tol: float = 1e-4, max_iter: int = 10_000
    ) -> LabelSpread:
        """Labels for all points from a few known ones; see :func:`otgraph.spread_labels`.

        Products are computed by the workers. This process holds some numbers per point and
        class.
        """
        mu, tol = check_positive(mu, "mu"), check_positive(tol, "tol")
        max_iter = check_count(max_iter, "max_iter")
        encoded = encode_labels(labels, self.n)
        with self._running() as graph:
            A = spreading_matrix(graph, mu)
            return spread_over(A, self, encoded, mu, tol, max_iter)

    def denoise(
        self,
        X: Any,
        t: int | str = 3,
        *,
        columns: Any = None,
        rescale: bool = False,
        out: Any = None,
    ) -> Any:
        """Features smoothed by t steps of the random walk; see :func:`otgraph.denoise`.

        Products are computed by the workers, on some columns at a time. X may also be the path
        of a .npy file or a zarr array that this process can read, or a Dask array. With
        ``t="auto"`` up to 500 columns of X are held in this process.
        """
        X = open_points(os.fspath(X)) if isinstance(X, str | os.PathLike) else X
        with self._running() as graph:
            P = transition_matrix(graph)
            return walk(P, self.n, X, t, columns=columns, rescale=rescale, out=out)

    @contextmanager
    def _running(self) -> Iterator[DistributedGraph]:
        """A computation of its own, with this graph: if it fails, the graph stays."""
        cluster = self.cluster.again()
        with cluster.running():
            yield replace(self, cluster=cluster)

    def __repr__(self) -> str:
        """Size and origin on one line."""
        return (
            f"DistributedGraph(n={self.n}, edges={int(self.degrees.sum(dtype=np.int64)) // 2}, "
            f"mean_degree={self.mean_degree:.4g}, blocks={len(self.blocks)}, "
            f"eps={self.certificate.eps:.6g}, status={self.certificate.status.value!r})"
        )
