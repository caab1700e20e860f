"""Read blocks of columns of a matrix in memory, HDF5 or zarr.

Neither h5py nor zarr is imported. An object with a shape that supports ``X[:, a:b]`` works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_csr, check_finite
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray, LongArray, PointsLike, SparseMatrix

    Columns: TypeAlias = ArrayLike | slice | None  # numbers, names or a mask

# Entries per block: 64 MB, of which about three copies exist at a time.
BLOCK_ENTRIES = 1 << 23


class ColumnReader:
    """The chosen columns of X as dense blocks of float64."""

    def __init__(
        self,
        X: PointsLike,
        n: int,
        columns: Columns = None,
        *,
        block_entries: int = BLOCK_ENTRIES,
    ) -> None:
        self._X = _sliceable(X)
        if len(self._X.shape) != 2 or self._X.shape[0] != n:
            msg = (
                f"must be a matrix with one row for each of the {n} points of the graph, got shape "
                f"{tuple(self._X.shape)}."
            )
            raise invalid("X", msg)
        self.n = n
        self._block_entries = block_entries
        self.indices = _column_indices(columns, X, int(self._X.shape[1]))

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Blocks of columns, with their positions among the chosen columns."""
        width = self._width()
        for start in range(0, len(self.indices), width):
            place = slice(start, min(start + width, len(self.indices)))
            yield place, self.read(self.indices[place])

    def read(self, indices: LongArray) -> FloatArray:
        """Columns by number, checked to be finite."""
        block = np.empty((self.n, len(indices)))
        for a, b in _runs(indices):
            part = self._X[:, int(indices[a]) : int(indices[b - 1]) + 1]
            block[:, a:b] = part.toarray() if sp.issparse(part) else np.asarray(part)
        check_finite(block, "X")
        return block

    def _width(self) -> int:
        """Columns per block: a multiple of the chunk size, so no chunk is read twice."""
        width = max(1, self._block_entries // self.n)
        chunks = getattr(self._X, "chunks", None)
        if isinstance(chunks, tuple) and len(chunks) == 2 and isinstance(chunks[1], int):
            chunk = chunks[1]
            if 0 < chunk <= width:
                width -= width % chunk
        return width


def _sliceable(X: Any) -> SparseMatrix:
    """An object with a shape whose columns can be sliced; data on disk are not loaded."""
    if sp.issparse(X):
        return check_csr(X, name="X").tocsc()
    if hasattr(X, "iloc"):  # a data frame
        X = X.to_numpy()
    elif not (hasattr(X, "shape") and hasattr(X, "__getitem__")):
        X = np.asarray(X)
    kind = np.dtype(getattr(X, "dtype", np.float64)).kind
    if kind not in "biufO":
        raise invalid("X", f"must hold real numbers, got dtype {X.dtype}.", TypeError)
    return X.astype(np.float64) if kind == "O" else X


def _column_indices(columns: Columns, X: PointsLike, m: int) -> LongArray:
    """Numbers of the chosen columns, from a slice, a mask, numbers, or names of a data frame."""
    if columns is None:
        return np.arange(m)
    if isinstance(columns, slice):
        return np.arange(m)[columns]
    wanted = np.atleast_1d(np.asarray(columns))
    if wanted.dtype.kind in "OUS" and hasattr(X, "columns"):
        return _named(wanted.tolist(), list(X.columns))
    if wanted.dtype.kind == "b" and wanted.shape == (m,):
        return np.flatnonzero(wanted)
    if wanted.dtype.kind not in "iu" or wanted.ndim != 1 or not wanted.size:
        msg = (
            f"must be column numbers, a mask of length {m}, a slice, or names if `X` is a data "
            f"frame; got {columns!r}."
        )
        raise invalid("columns", msg, TypeError)
    if wanted.min() < -m or wanted.max() >= m:
        raise invalid("columns", f"must lie in 0..{m - 1}, got {wanted.min()} to {wanted.max()}.")
    return np.asarray(wanted % m, dtype=np.int64)


def _named(wanted: list[object], names: list[object]) -> LongArray:
    position = {name: i for i, name in enumerate(names)}
    unknown = [name for name in wanted if name not in position]
    if unknown:
        raise invalid("columns", f"must be names of columns of `X`; it has no {unknown[0]!r}.")
    return np.array([position[name] for name in wanted], dtype=np.int64)


def _runs(indices: LongArray) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive numbers, which stored arrays read far faster than lists."""
    breaks = np.flatnonzero(np.diff(indices) != 1) + 1
    ends = np.r_[breaks, len(indices)]
    yield from zip(np.r_[0, breaks].tolist(), ends.tolist(), strict=True)
