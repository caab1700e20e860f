"""The canonical form of weights and parameters."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._validation import SYMMETRY_RTOL, check_csr
from otgraph.exceptions import argument_error, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otgraph.typing import PointsLike, SparseMatrix

Param: TypeAlias = str | int | float | bool | None


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
