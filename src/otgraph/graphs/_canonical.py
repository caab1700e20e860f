"""The canonical form of weights and parameters, and weights between all pairs."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._memory import USABLE_SHARE, available_bytes, require_bytes
from otgraph._validation import SYMMETRY_RTOL, check_csr
from otgraph.exceptions import argument_error, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otgraph.typing import FloatArray, LongArray, PointsLike, SparseMatrix

Param: TypeAlias = str | int | float | bool | None

# Bytes per pair: a float64 weight, plus a 32-bit index or a float32 copy for Newton steps.
BYTES_PER_PAIR = 12


def canonical_weights(weights: PointsLike) -> SparseMatrix:
    """Weights as an exactly symmetric, non-negative float64 CSR matrix in canonical form.

    The argument is not changed.
    """
    if sp.issparse(weights):
        csr = check_csr(weights, name="weights")
    else:
        csr = sp.csr_matrix(np.asarray(weights, dtype=np.float64))
    if csr.shape[0] != csr.shape[1] or csr.shape[0] == 0:
        msg = f"must be a square matrix with at least one row, got shape {csr.shape}."
        raise invalid("weights", msg)
    csr = csr.astype(np.float64, copy=True)
    if csr.nnz and not (np.isfinite(csr.data).all() and csr.data.min() >= 0.0):
        bad = csr.data[~(np.isfinite(csr.data) & (csr.data >= 0.0))]
        msg = f"must be finite and >= 0, got {len(bad)} other value(s) such as {bad[0]}."
        raise invalid("weights", msg)
    return with_small_indices(_exactly_symmetric(csr))


def index_type(largest: int) -> type[np.int32] | type[np.int64]:
    """The type of the indices of a matrix whose sizes are at most this."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def with_small_indices(csr: SparseMatrix) -> SparseMatrix:
    """The same matrix without stored zeros, sorted, with 32-bit indices if possible."""
    csr.sum_duplicates()
    csr.eliminate_zeros()
    kind = index_type(max(csr.nnz, *csr.shape))
    indices, indptr = (a.astype(kind, copy=False) for a in (csr.indices, csr.indptr))
    small = sp.csr_matrix((csr.data, indices, indptr), shape=csr.shape, copy=False)
    small.has_sorted_indices = small.has_canonical_format = True
    return small


def entry_rows(csr: SparseMatrix) -> LongArray:
    """The row of every stored entry, in the order of the data."""
    return np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))


def without_loops(csr: SparseMatrix) -> SparseMatrix:
    """A copy without the diagonal.

    ``setdiag(0)`` of scipy loses other entries where a few of the loops are missing (seen in 1.13
    and 1.14).
    """
    kept = csr.copy()
    kept.data[entry_rows(csr) == csr.indices] = 0.0
    kept.eliminate_zeros()
    return kept


def row_sums(csr: SparseMatrix) -> FloatArray:
    """Sum of every row."""
    return np.asarray(csr.sum(axis=1), dtype=np.float64).ravel()


def _exactly_symmetric(csr: SparseMatrix) -> SparseMatrix:
    transposed = csr.T.tocsr()
    difference = csr - transposed
    if difference.nnz == 0:
        return csr
    asymmetry = float(np.abs(difference.data).max())
    largest = float(csr.data.max())
    if not asymmetry <= SYMMETRY_RTOL * largest or math.isinf(largest):
        msg = (
            f"must be symmetric, but |W - W.T| reaches {asymmetry:.6g}. Pass (W + W.T) / 2, or "
            "W.maximum(W.T)."
        )
        raise invalid("weights", msg)
    return (csr + transposed) * 0.5


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


def plain_params(params: Mapping[str, object]) -> dict[str, Param]:
    """A copy with Python numbers instead of numpy's, as files need them."""
    return {str(key): _plain(key, value) for key, value in params.items()}


def _plain(key: str, value: object) -> Param:
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    msg = f"`params[{key!r}]` must be a string, a number, a boolean or None, got {value!r}."
    raise argument_error(TypeError, "params", msg)
