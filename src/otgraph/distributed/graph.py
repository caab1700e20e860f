"""A graph whose rows stay on the workers of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from otgraph.distributed import _weights
from otgraph.graphs.graph import Graph

if TYPE_CHECKING:
    from otgraph.distributed._cluster import Cluster
    from otgraph.distributed._layout import Layout
    from otgraph.graphs._canonical import Param
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
    def n_components(self) -> int:
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

    def to_graph(self) -> Graph:
        """An ordinary graph in this process, for everything that one can do."""
        return Graph(
            weights=self.to_scipy(),
            params=dict(self.params),
            certificate=self.certificate,
            potentials=self.potentials,
            mass=self.mass,
            points=self.points,
        )

    def __repr__(self) -> str:
        """Size and origin on one line."""
        return (
            f"DistributedGraph(n={self.n}, edges={int(self.degrees.sum(dtype=np.int64)) // 2}, "
            f"mean_degree={self.mean_degree:.4g}, blocks={len(self.blocks)}, "
            f"eps={self.certificate.eps:.6g}, status={self.certificate.status.value!r})"
        )
