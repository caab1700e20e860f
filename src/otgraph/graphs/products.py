"""Products with a large sparse matrix on all cores.

scipy computes them on one. Rows are summed in the same order, so the result has the same bits, for
any number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._kernels import products as kernels
from otgraph._parallel import Workers, row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray, SparseMatrix

# With fewer entries, starting threads takes longer than it saves.
FEWEST_ENTRIES = 1 << 20
BLOCK_ROWS = 4096  # rows that a thread takes at once


def threaded(matrix: SparseMatrix) -> SparseMatrix | Threaded:
    """The matrix, with products on all cores if it is large."""
    return Threaded(matrix) if matrix.nnz >= FEWEST_ENTRIES else matrix


class Threaded:
    """A CSR matrix with products on all cores."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self._matrix = matrix
        self._workers = Workers(-1)
        self._blocks = row_blocks(matrix.shape[0], BLOCK_ROWS)

    def __matmul__(self, V: FloatArray) -> FloatArray:
        V = np.ascontiguousarray(V, dtype=np.float64)
        out = np.empty((self._matrix.shape[0], *V.shape[1:]))
        multiply: Callable[..., None] = (
            kernels.multiply_vector if V.ndim == 1 else kernels.multiply_columns
        )
        source = (self._matrix.indptr, self._matrix.indices, self._matrix.data, V)
        self._workers.run(lambda block: multiply(*source, *block, out), self._blocks)
        return out

    def __getitem__(self, key: object) -> SparseMatrix | Threaded:
        return threaded(self._matrix[key].tocsr())

    def diagonal(self) -> FloatArray:
        """Diagonal of the matrix."""
        return np.asarray(self._matrix.diagonal())
