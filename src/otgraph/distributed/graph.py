"""A graph whose rows stay on the workers of a cluster."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph.distributed import _weights
from otgraph.distributed._blocks import components
from otgraph.distributed._pairs import rows_by_block
from otgraph.distributed._storage import write_graph
from otgraph.graphs._canonical import index_type
from otgraph.graphs.base import BaseTransportGraph
from otgraph.graphs.graph import TransportGraph

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from otgraph.distributed._blocks import Blocks
    from otgraph.graphs._canonical import Param
    from otgraph.solvers import Certificate
    from otgraph.typing import FloatArray, IntArray, LongArray, SparseMatrix

# Columns of a dense factor that are sent together, so that a segment has at most 6 MB.
COLUMNS_AT_ONCE = 15


@dataclass(frozen=True, eq=False, repr=False)
class DistributedGraph(BaseTransportGraph):
    """Symmetric weighted graph on n points, in blocks of rows on a Dask cluster.

    Rows and columns are in the order of the points that were given. :func:`otgraph.denoise`,
    :func:`otgraph.spread_labels` and :func:`otgraph.eigenmaps` accept it; the workers compute the
    products. It lives as long as its client. Call :meth:`to_graph` or :meth:`write` before the
    client is closed.

    Attributes
    ----------
    params
        What built the graph, a flat dictionary of plain values.
    certificate
        What was proved about the plan.
    potentials
        The vector u behind the plan.
    mass
        Wanted row sums.
    points
        The points, if they were passed as an array; None otherwise.
    floors
        Minimum flows, a symmetric CSR matrix; None if there are none.

    Examples
    --------
    >>> from distributed import Client
    >>> import otgraph
    >>> from otgraph.distributed import quadratic_ot_graph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     on_workers = quadratic_ot_graph(X, eps=1.0, client=client)
    ...     smooth = otgraph.denoise(on_workers, X, t=2)
    ...     graph = on_workers.to_graph()
    >>> smooth.shape, graph.n
    ((200, 100), 200)
    """

    params: dict[str, Param]
    certificate: Certificate
    potentials: FloatArray
    mass: FloatArray
    points: FloatArray | None
    floors: SparseMatrix | None
    _rows: Blocks = field(repr=False)
    _open: dict[int, Blocks] = field(default_factory=dict, repr=False)

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows."""
        return len(self._rows.ranges)

    @cached_property
    def degrees(self) -> IntArray:
        """Number of neighbors of every point; the point itself does not count."""
        parts = [
            lengths if loops is None else lengths - (loops != 0.0)
            for lengths, _, loops in self._rows.facts
        ]
        return np.concatenate(parts).astype(np.int32, copy=False)

    @property
    def row_sums(self) -> FloatArray:
        """Sum of the weights of every point."""
        return np.concatenate([facts[1] for facts in self._rows.facts])

    def _row_sums(self) -> FloatArray:
        return self.row_sums

    def _times(self, v: FloatArray) -> FloatArray:
        return self.product(v[:, None]).ravel()

    @cached_property
    def loops(self) -> FloatArray:
        """Weight of every point with itself."""
        parts = [
            np.zeros(len(lengths)) if loops is None else loops
            for lengths, _, loops in self._rows.facts
        ]
        return np.concatenate(parts)

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        return components(self._rows.cluster, self.n, self._rows.each("forest", _weights.edges))

    def product(self, V: FloatArray, scale: FloatArray | None = None) -> FloatArray:
        """Weights w_ij times a dense matrix with one row per point, computed by the workers.

        Parameters
        ----------
        V
            One row per point.
        scale
            One number per point: the weights are then w_ij (scale_i + scale_j).
        """
        out = np.empty(V.shape)
        with self.computing() as rows:
            for a in range(0, V.shape[1], COLUMNS_AT_ONCE):
                some = np.s_[:, a : a + COLUMNS_AT_ONCE]
                if scale is None:
                    out[some] = rows.answers("product", _weights.product, vector=V[some])
                else:
                    both = np.column_stack((scale, V[some]))
                    out[some] = rows.answers("product", _weights.scaled_product, vector=both)
        return out

    def among(self, points: LongArray) -> SparseMatrix:
        """Weights of a few points with each other, in this process.

        Parameters
        ----------
        points
            Their numbers, in rising order.
        """
        own = rows_by_block(points, self._rows.ranges)
        with self.computing() as rows:
            found = rows.cluster.gather(rows.each("rows", _weights.among, own, points))
        return sp.csr_matrix(sp.vstack(found))

    def to_scipy(self) -> SparseMatrix:
        """The weights as one CSR matrix in this process; they must fit into its memory."""
        indptr = _weights.row_bounds(self._rows)
        kind = index_type(max(int(indptr[-1]), self.n))
        indices, data = np.empty(indptr[-1], kind), np.empty(indptr[-1])
        cluster = self._rows.cluster
        for (first, last), block in zip(self._rows.ranges, self._rows.futures, strict=True):
            place = slice(indptr[first], indptr[last])
            arrays = cluster.submit("arrays", _weights.arrays, block)
            _, indices[place], data[place] = cluster.result(arrays)
        weights = sp.csr_matrix((data, indices, indptr.astype(kind)), shape=(self.n, self.n))
        weights.has_sorted_indices = weights.has_canonical_format = True
        return weights

    def to_graph(self) -> TransportGraph:
        """An ordinary graph in this process."""
        return TransportGraph(
            weights=self.to_scipy(),
            params=dict(self.params),
            certificate=self.certificate,
            potentials=self.potentials,
            mass=self.mass,
            points=self.points,
            floors=self.floors,
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the graph block by block; no process ever holds all of it.

        Parameters
        ----------
        path
            Where all workers can write under the same name. ``*.zarr``: the weights as one CSR
            matrix in the layout of anndata (group ``weights``, which
            ``anndata.io.read_elem`` reads), with ``potentials`` and ``mass`` beside it and the
            parameters as attributes. ``*.parquet``: a folder of edge lists with the columns
            ``source``, ``target`` and ``weight``, each pair once. Also an address that fsspec
            knows. :func:`otgraph.load_graph` and the commands read both.
        """
        with self.computing() as rows:
            write_graph(self, rows, path)

    @contextmanager
    def computing(self) -> Iterator[Blocks]:
        """The rows, for a separate computation; if it fails, the graph stays valid.

        Computations of the same thread inside are parts of it.
        """
        thread = threading.get_ident()
        if thread in self._open:
            yield self._open[thread]
            return
        cluster = self._rows.cluster.again()
        with cluster.running():
            self._open[thread] = replace(self._rows, cluster=cluster)
            try:
                yield self._open[thread]
            finally:
                del self._open[thread]

    def __repr__(self) -> str:
        """Size and origin on one line."""
        return f"{super().__repr__()[:-1]}, blocks={self.n_blocks})"
