"""Products with a large sparse matrix on all cores.

scipy computes them on one. Rows are summed in the same order, so the result has the same bits, for
any number of threads.

The points of a graph often come in random order, and nearly every entry of a row then reads
another part of memory. So a matrix with which many products are computed is stored in an order in
which neighbors are near each other. The entries of a row stay in their order, and so do the bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._kernels import products as kernels
from otgraph._parallel import Workers, row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, IntArray, SparseMatrix

# With fewer entries, starting threads takes longer than it saves.
FEWEST_ENTRIES = 1 << 20
BLOCK_ROWS = 4096  # rows that a thread takes at once
# Products after which neighbors are brought together: that takes as long as about five.
MANY_PRODUCTS = 5
# Bytes between a point and its neighbors in a vector up to which the given order is good enough:
# that much stays in the cache of a core.
NEAR_BYTES = 1 << 19
SAMPLED_ROWS = 4096  # of which the distances of neighbors are measured


def threaded(matrix: SparseMatrix, order: IntArray | None = None) -> SparseMatrix | Threaded:
    """The matrix, with products on all cores if it is large.

    ``order`` is a numbering in which neighbors are near each other, if one is known.
    """
    return Threaded(matrix, order) if matrix.nnz >= FEWEST_ENTRIES else matrix


class Threaded:
    """A CSR matrix with products on all cores.

    Its rows and columns are stored in ``order``, or as they came if that is None.
    """

    def __init__(self, matrix: SparseMatrix, order: IntArray | None = None) -> None:
        self._matrix = matrix
        self._workers = Workers(-1)
        self._blocks = row_blocks(matrix.shape[0], BLOCK_ROWS)
        self._left = MANY_PRODUCTS if _is_scattered(matrix) else -1  # products before reordering
        self.order: IntArray | None = None
        self._sorted = matrix  # in the order in which products are computed
        if order is not None and self._left > 0:
            self._bring_together(order)

    def __matmul__(self, V: FloatArray) -> FloatArray:
        if self._left == 0:
            from scipy.sparse.csgraph import reverse_cuthill_mckee

            self._bring_together(reverse_cuthill_mckee(self._matrix, symmetric_mode=True))
        self._left -= 1
        if self.order is None:
            return self.inside(V)
        out = self.inside(V[self.order])
        given = np.empty_like(out)
        given[self.order] = out
        return given

    def inside(self, V: FloatArray) -> FloatArray:
        """The product with rows and columns in ``order``, in which neighbors are near each other.

        For those who compute many: a vector of a million numbers is put in order, and back, in as
        much time as half of the product takes.
        """
        V = np.ascontiguousarray(V, dtype=np.float64)
        out = np.empty((self._matrix.shape[0], *V.shape[1:]))
        multiply: Callable[..., None] = (
            kernels.multiply_vector if V.ndim == 1 else kernels.multiply_columns
        )
        source = (self._sorted.indptr, self._sorted.indices, self._sorted.data, V)
        self._workers.run(lambda block: multiply(*source, *block, out), self._blocks)
        return out

    def __getitem__(self, key: object) -> SparseMatrix | Threaded:
        return threaded(self._matrix[key].tocsr())

    def diagonal(self) -> FloatArray:
        """Diagonal of the matrix."""
        return np.asarray(self._matrix.diagonal())

    def _bring_together(self, order: IntArray) -> None:
        """Renumber rows and columns; the entries of a row stay in their order."""
        given = self._matrix
        place = np.empty(len(order), dtype=given.indices.dtype)
        place[order] = np.arange(len(order), dtype=place.dtype)
        indptr = np.zeros_like(given.indptr)
        np.cumsum(np.diff(given.indptr)[order], out=indptr[1:])
        indices, data = np.empty_like(given.indices), np.empty_like(given.data)
        source = (given.indptr, given.indices, given.data, order, place)
        self._workers.run(
            lambda block: kernels.renumber(*source, indptr, *block, indices, data), self._blocks
        )
        self._sorted = sp.csr_matrix((data, indices, indptr), shape=given.shape)
        self.order, self._left = order, -1


def _is_scattered(matrix: SparseMatrix) -> bool:
    """Whether neighbors are so far from each other that most of them are not in the cache."""
    n = matrix.shape[0]
    if n != matrix.shape[1] or 8 * n <= NEAR_BYTES:
        return False
    rows = np.arange(0, n, max(1, n // SAMPLED_ROWS))
    some = matrix[rows]
    far = np.abs(np.repeat(rows, np.diff(some.indptr)) - some.indices)
    return bool(far.size) and 8.0 * float(np.mean(far)) > NEAR_BYTES
