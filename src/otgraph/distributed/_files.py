"""Points in files: .npy, zarr and parquet, on a shared disk or at an address that fsspec knows.

Each kind opens without reading the numbers, and gives some rows at a time.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph._validation import check_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.typing import Array, LongArray

PARQUET = (".parquet", ".pq")
SEPARATOR = "://"  # of the kind of a file system and the rest of an address


def is_address(path: str) -> bool:
    """Whether this is an address such as memory://folder/points.npy, and no path."""
    return SEPARATOR in path


def full_name(path: str | os.PathLike[str]) -> str:
    """The same name for all processes: an address as it is, a path made absolute."""
    name = check_path(path)
    return name if is_address(name) else os.path.abspath(name)


def file_system(name: str) -> tuple[Any, str]:
    """The file system of an address or a path, and the name in it."""
    found: tuple[Any, str] = require("fsspec", "distributed").core.url_to_fs(name)
    return found


class StoredPoints(ABC):
    """Points in a file, one per row."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    missing: int = 0  # chunks that are not stored

    @abstractmethod
    def rows(self, first: int, last: int) -> Array:
        """Rows ``first:last``, a new array."""

    def take(self, rows: LongArray) -> Array:
        """Some rows, in any order."""
        order = np.argsort(rows, kind="stable")
        wanted, parts = rows[order], []
        step = max(1, -(-self.shape[0] // 64))
        for first in range(0, self.shape[0], step):
            a, b = np.searchsorted(wanted, (first, first + step))
            if a < b:
                here = self.rows(first, min(first + step, self.shape[0]))
                parts.append(here[wanted[a:b] - first])
        found = np.concatenate(parts)
        out = np.empty_like(found)
        out[order] = found
        return out


def open_points(name: str) -> StoredPoints:
    """The points in a file or folder."""
    if name.rstrip("/").endswith(".zarr"):
        return ZarrPoints(name)
    if name.rstrip("/").endswith(PARQUET):
        return ParquetPoints(name)
    if not is_address(name) and os.path.isdir(name):
        tables = any(entry.endswith(PARQUET) for entry in os.listdir(name))
        return ParquetPoints(name) if tables else ZarrPoints(name)
    return NpyAddress(name) if is_address(name) else NpyFile(name)


class NpyFile(StoredPoints):
    """A .npy file on a disk."""

    def __init__(self, name: str) -> None:
        self._array = np.load(name, mmap_mode="r", allow_pickle=False)
        self.shape, self.dtype = self._array.shape, self._array.dtype

    def rows(self, first: int, last: int) -> Array:
        """Copied, so that the file is not kept open."""
        return np.array(self._array[first:last])


class NpyAddress(StoredPoints):
    """A .npy file elsewhere; only the bytes of the wanted rows are fetched."""

    def __init__(self, name: str) -> None:
        self._system, self._name = file_system(name)
        with self._system.open(self._name, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, columns_first, self.dtype = read(file)
            self._start = file.tell()
        if columns_first or self.dtype.hasobject:
            msg = "must hold numbers row by row (C order); save it with np.ascontiguousarray"
            raise ValueError(msg)

    def rows(self, first: int, last: int) -> Array:
        """Some rows."""
        length = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        with self._system.open(self._name, "rb") as file:
            file.seek(self._start + first * length)
            content = file.read((last - first) * length)
        return np.frombuffer(bytearray(content), self.dtype).reshape(-1, *self.shape[1:])


class ZarrPoints(StoredPoints):
    """A zarr array."""

    def __init__(self, name: str) -> None:
        self._array = require("zarr", "distributed").open_array(name, mode="r")
        self.shape, self.dtype = self._array.shape, self._array.dtype
        self.missing = int(self._array.nchunks - self._array.nchunks_initialized)

    def rows(self, first: int, last: int) -> Array:
        """Some rows."""
        return np.asarray(self._array[first:last])

    def take(self, rows: LongArray) -> Array:
        """Some rows."""
        return np.asarray(self._array.oindex[rows])


class ParquetPoints(StoredPoints):
    """A table in a parquet file, or in the files of a folder in the order of their names.

    The columns are the features; an index that pandas stored is none.
    """

    def __init__(self, name: str) -> None:
        system, path = file_system(name)
        self._system = system
        names = [path]
        if system.isdir(path):
            names = sorted(entry for entry in system.find(path) if entry.endswith(PARQUET))
            if not names:
                msg = "the folder has no parquet files"
                raise ValueError(msg)
        self._names = names
        self._columns = self._features(names[0])
        lengths = []
        for each in names:
            with self._opened(each) as file:
                lengths.append(file.metadata.num_rows)
        self._ends = np.cumsum(lengths)
        self.shape = (int(self._ends[-1]), len(self._columns))

    @cached_property
    def _parquet(self) -> Any:
        return require("pyarrow.parquet", "distributed")

    def _opened(self, name: str) -> Any:
        return self._parquet.ParquetFile(self._system.open(name, "rb"))

    def _features(self, name: str) -> Sequence[str]:
        """Names of the columns of numbers; sets the type that holds all of them."""
        import json

        with self._opened(name) as file:
            schema = file.schema_arrow
        stored = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        index = [each for each in stored.get("index_columns", ()) if isinstance(each, str)]
        fields = [field for field in schema if field.name not in index]
        kinds = [field.type.to_pandas_dtype() for field in fields]
        wrong = [
            field.name
            for field, kind in zip(fields, kinds, strict=True)
            if np.dtype(kind).kind not in "fiub"
        ]
        if wrong:
            msg = f"columns {', '.join(wrong[:5])} hold no numbers; write a table without them"
            raise ValueError(msg)
        self.dtype = np.result_type(*kinds)
        return [field.name for field in fields]

    def rows(self, first: int, last: int) -> Array:
        """Some rows, from the row groups that hold any of them."""
        parts = []
        for name, end, start in zip(
            self._names, self._ends, np.concatenate(([0], self._ends[:-1])), strict=True
        ):
            if start < last and end > first:
                parts.append(self._of_file(name, max(0, first - int(start)), last - int(start)))
        return np.concatenate(parts)

    def _of_file(self, name: str, first: int, last: int) -> Array:
        with self._opened(name) as file:
            sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            ends = np.cumsum(sizes)
            a, b = np.searchsorted(ends, first, "right"), np.searchsorted(ends, last)
            groups = list(range(int(a), min(int(b) + 1, len(sizes))))
            table = file.read_row_groups(groups, columns=list(self._columns))
        start = int(ends[a]) - sizes[int(a)]
        columns = [
            table.column(name).to_numpy()[first - start : last - start] for name in self._columns
        ]
        return np.column_stack(columns).astype(self.dtype, copy=False)
