"""Arrays of a graph in a file: how they are named, and how they are checked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_csr
from otgraph.graphs._canonical import entry_rows
from otgraph.graphs._records import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from otgraph.typing import Array, Points, SparseMatrix


def csr_arrays(name: str, csr: SparseMatrix) -> Iterator[tuple[str, Array]]:
    yield f"{name}.data", float64(csr.data)
    for part in ("indices", "indptr"):
        indices = getattr(csr, part)
        yield f"{name}.{part}", np.ascontiguousarray(indices, dtype=f"<i{indices.itemsize}")


def float64(array: object) -> Array:
    return np.ascontiguousarray(array, dtype="<f8")


def csr_of(name: str, arrays: Mapping[str, Array], n_columns: int) -> SparseMatrix:
    """The CSR matrix. Its arrays are checked first, because scipy would trust them."""
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    if any(array.ndim != 1 for array in (data, indices, indptr)) or not len(indptr):
        refuse(f"the parts of {name} are not vectors")
    if data.dtype.kind != "f" or indices.dtype.kind != "i" or indices.dtype != indptr.dtype:
        refuse(f"the parts of {name} have types that do not belong together")
    # The shape follows from an array that is in memory, never from the header.
    csr = sp.csr_matrix((len(indptr) - 1, n_columns), dtype=np.float64)
    csr.data, csr.indices, csr.indptr = data, indices, indptr
    check_csr(csr, name=name)
    return csr


def point_arrays(name: str, points: Points) -> Iterator[tuple[str, Array]]:
    """Points, dense or sparse."""
    if sp.issparse(points):
        yield from csr_arrays(name, points)
    else:
        yield name, float64(points)


def points_of(name: str, shape: Sequence[int] | None, arrays: Mapping[str, Array]) -> Points | None:
    """Points, dense or sparse; ``shape`` is that of sparse ones."""
    if shape is None:
        return arrays.get(name)
    points = csr_of(name, arrays, shape[1])
    if points.shape[0] != shape[0]:
        refuse(f"its points have shape {points.shape}, and its header says {tuple(shape)}")
    return points


def check_points_of(points: Points | None, n: int) -> None:
    """Refuse points that are not n rows of finite numbers."""
    if points is None:
        return
    if points.ndim != 2 or points.shape[0] != n:
        refuse(f"its points have shape {points.shape}, but there are {n} of them")
    if not np.isfinite(points.data if sp.issparse(points) else points).all():
        refuse("its points are not all finite")


def check_rows(weights: SparseMatrix) -> None:
    """Refuse weights that are not positive, or columns that are not in order."""
    if not np.all((np.diff(weights.indices) > 0) | (np.diff(entry_rows(weights)) > 0)):
        refuse("column indices of its weights are not in order")
    weights.has_sorted_indices = weights.has_canonical_format = True
    if not (np.isfinite(weights.data).all() and (weights.data > 0.0).all()):
        refuse("its weights are not all positive and finite")


def check_numbers(name: str, array: Array | None, *shape: int, positive: bool = False) -> None:
    """Refuse what is not an array of finite numbers."""
    if array is None:
        refuse(f"it has a certificate but no {name}")
    if array.shape != shape or not np.isfinite(array).all():
        refuse(f"its {name} are not {math.prod(shape)} finite numbers")
    if positive and not np.all(array > 0.0):
        refuse("its masses are not all positive")
