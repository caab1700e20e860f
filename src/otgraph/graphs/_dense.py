"""Dense graphs: check the memory, then fill n × n numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._memory import USABLE_SHARE, available_bytes, require_bytes
from otgraph.graphs._canonical import index_type

if TYPE_CHECKING:
    from otgraph.typing import FloatArray, SparseMatrix

# Bytes per pair: a float64 weight, plus a 32-bit index or a float32 copy for Newton steps.
BYTES_PER_PAIR = 12


def require_dense_memory(n: int) -> None:
    """Raise before anything is allocated if n × n weights do not fit into memory."""
    largest = int((USABLE_SHARE * available_bytes() / BYTES_PER_PAIR) ** 0.5)
    require_bytes(
        BYTES_PER_PAIR * n * n,
        f"A graph with an edge between all pairs of {n:,} points",
        f"Use at most {largest:,} points, or a sparse graph: quadratic_ot_graph or "
        "knn_gaussian_graph.",
    )


def csr_from_dense(matrix: FloatArray) -> SparseMatrix:
    """CSR matrix of a dense matrix, without zeros; the dense matrix is overwritten.

    Values move to the front of the same memory. Only the indices need new memory.
    """
    n_rows, n_columns = matrix.shape
    counts = np.count_nonzero(matrix, axis=1)
    nnz = int(counts.sum())
    dtype = index_type(max(nnz, n_rows, n_columns))
    indptr = np.zeros(n_rows + 1, dtype=dtype)
    np.cumsum(counts, out=indptr[1:])
    indices = np.empty(nnz, dtype=dtype)
    values = matrix.reshape(-1)
    for i in range(n_rows):
        kept = np.flatnonzero(matrix[i])
        indices[indptr[i] : indptr[i + 1]] = kept
        # Never writes past the row that is being read.
        values[indptr[i] : indptr[i + 1]] = matrix[i, kept]
    data = values[:nnz] if nnz > values.size // 2 else values[:nnz].copy()
    csr = sp.csr_matrix((data, indices, indptr), shape=matrix.shape, copy=False)
    csr.has_sorted_indices = csr.has_canonical_format = True
    return csr
