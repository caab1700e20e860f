"""Read points, labels and graphs from files."""

from __future__ import annotations

import difflib
import os
import sys
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._isolated import read_h5ad, read_isolated
from otgraph._optional import require
from otgraph._tables import first_word, has_row_names, read_table
from otgraph._text import is_unknown, listed
from otgraph._unpacked import check_fits, check_gzip, check_mtx, check_npz
from otgraph.cli.options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from numpy.typing import NDArray

    from otgraph.graphs import Graph

STDIN = "-"
GRAPH_SUFFIX = ".otg"
TABLES = (".csv", ".tsv", ".parquet")
POINTS = (".npy", ".npz", *TABLES, ".mtx", ".h5ad")
COMPRESSIBLE = (".csv", ".tsv", ".mtx")  # text formats, which may be compressed: .csv.gz
NUMERIC = "iufb"  # kinds of numpy types that count as numbers
UNKNOWN_WORDS = {
    "",
    "-1",
    "-1.0",
    "nan",
    "none",
    "na",
    "<na>",
}  # unknown labels


@dataclass(frozen=True)
class Points:
    """Contents of a file of points: numbers, names, and columns that are not features."""

    values: Any  # dense array or CSR
    source: str
    row_names: NDArray[Any] | None = None
    column_names: NDArray[Any] | None = None
    # Columns that are not features, by name.
    aside: dict[str, NDArray[Any]] = field(default_factory=dict)
    adata: Any = None  # the whole object, for formats that hold more than points
    use_rep: str | None = None

    def __str__(self) -> str:
        """Size and origin, with what was detected."""
        n, d = self.values.shape
        notes = [
            *([self.use_rep] if self.use_rep else ()),
            *(["column names"] if self.column_names is not None else ()),
            *(["row names"] if self.row_names is not None else ()),
        ]
        found = f" ({', '.join(notes)})" if notes else ""
        return f"{n:,} in {d:,} dimensions, {self.source}{found}"


def read_points(
    path: str, options: ReadOptions | None = None, *, aside: Sequence[str] = ()
) -> Points:
    """Points from a file of any format, with names if it has them.

    Parameters
    ----------
    path
        The file, or ``-`` for CSV on standard input.
    options
        How to read it.
    aside
        Columns that are not features, such as labels, to return separately.
    """
    options = options or ReadOptions()
    if is_graph_file(path):
        msg = f"{path}: is a graph, and points are needed here."
        raise ValueError(msg)
    suffix = ".csv" if path == STDIN else suffix_of(path, POINTS, what="file of points")
    if suffix in TABLES:
        points = _read_table(path, options, aside)
    elif suffix == ".h5ad":
        points = _read_h5ad(path, options, aside)
    else:
        points = _read_array(path, suffix, options, aside)
    if points.values.ndim != 2 or 0 in points.values.shape:
        msg = (
            f"{path}: must hold a table with one row per point, got an array of shape "
            f"{points.values.shape}."
        )
        raise ValueError(msg)
    return points


def read_vector(path: str, *, what: str) -> Any:
    """One number per point, from a file with one column or row."""
    # An .npy file may hold a vector, which `read_points` does not accept.
    values = _read(path, _npy) if path.lower().endswith(".npy") else read_points(path).values
    values = np.squeeze(values.toarray() if hasattr(values, "toarray") else values)
    if values.ndim != 1:
        msg = f"{path}: {what} must be one number per point, got an array of shape {values.shape}."
        raise ValueError(msg)
    return values


def is_graph_file(path: str) -> bool:
    """Whether the name has the suffix of a graph file."""
    return path.lower().endswith(GRAPH_SUFFIX)


def read_graph(path: str) -> Graph:
    """A graph from a graph file, or from a symmetric matrix of weights."""
    import otgraph

    if is_graph_file(path):
        graph: Graph = _read(path, otgraph.load_graph)
        return graph
    weights = read_points(path).values
    if weights.shape[0] != weights.shape[1]:
        msg = f"{path}: weights of a graph must be a square matrix, got shape {weights.shape}."
        raise ValueError(msg)
    return otgraph.Graph.from_weights(weights)


def read_frame(path: str, options: ReadOptions | None = None) -> tuple[Any, bool]:
    """A data frame, and whether its header implies that the first column names rows."""
    header = None if options is None else options.header
    if path == STDIN:
        try:
            return read_table(sys.stdin.buffer.read(), header=header)
        except ValueError as error:
            msg = f"standard input: cannot be read: {' '.join(str(error).split())}"
            raise ValueError(msg) from error
    suffix = suffix_of(path, TABLES, what="table")
    if suffix == ".parquet":
        return _read(path, _parquet), False
    return _read(path, lambda file: read_table(file, tabs=suffix == ".tsv", header=header))


def read_labels(path: str, points: Points | None, n: int) -> NDArray[Any]:
    """Labels from a file, matched by row names if both files have them, else in order."""
    names = None if points is None else points.row_names
    frame, _ = read_frame(path)
    # The first label may look like a header; the number and the names of the points decide.
    lost = frame.shape[1] == 1 and len(frame) == n - 1
    if lost or (names is not None and str(frame.columns[0]) in names):
        frame, _ = read_frame(path, ReadOptions(header=False))
    if not _is_counted(frame):
        frame = frame.reset_index()
    if frame.shape[1] > 2:
        msg = (
            f"{path}: must hold one column of labels, or names of the rows and labels, got "
            f"{frame.shape[1]} columns."
        )
        raise ValueError(msg)
    labels = frame.iloc[:, -1].to_numpy()
    if frame.shape[1] == 2 and names is not None:
        return _by_name(frame.iloc[:, 0], labels, names, path)
    if len(labels) != n:
        msg = f"{path}: must hold one label for each of the {n} points, got {len(labels)}."
        raise ValueError(msg)
    return group_names(labels)


def group_names(values: NDArray[Any]) -> NDArray[Any]:
    """Labels as :func:`otgraph.spread_labels` and pictures take them.

    Whole numbers with -1 where unknown, or else words with None where unknown.
    """
    words = [None if is_unknown(value) else str(value).strip() for value in values]
    words = [None if word is None or word.lower() in UNKNOWN_WORDS else word for word in words]
    numbers = [_whole_number(word) for word in words]
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.int64)
    labels = np.empty(len(words), dtype=object)
    labels[:] = words
    return labels


def chosen(
    names: Any, columns: Sequence[str] | None, drop: Sequence[str] | None, source: str
) -> list[int]:
    """Positions of the columns to use."""
    kept = list(range(len(names))) if columns is None else pick(names, columns, source)
    left_out = set(pick(names, drop or (), source))
    kept = [index for index in kept if index not in left_out]
    if not kept:
        msg = f"{source}: no column is left to use."
        raise ValueError(msg)
    return kept


def pick(names: Any, wanted: Sequence[str], source: str) -> list[int]:
    """Positions of columns by name; a number that is not a name counts from zero."""
    position: dict[str, int] = {}
    for index, name in enumerate(names):
        position.setdefault(str(name), index)  # the first of columns with the same name
    found = []
    for name in wanted:
        if name in position:
            found.append(position[name])
        elif name.isdecimal() and int(name) < len(names):
            found.append(int(name))
        else:
            near = difflib.get_close_matches(name, position, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {listed(position)}."
            msg = f"{source}: no column {name!r}{hint}"
            raise ValueError(msg)
    return found


def split_list(given: Sequence[str] | None) -> list[str] | None:
    """Names from a repeated option, each of which may hold several with commas."""
    if given is None:
        return None
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]


def check_file(path: str) -> None:
    """Raise unless this is a file."""
    if not os.path.exists(path):
        msg = f"{path}: no such file."
        raise ValueError(msg)
    if os.path.isdir(path):
        msg = f"{path}: is a directory; give a file."
        raise ValueError(msg)


def suffix_of(path: str, known: Collection[str], *, what: str) -> str:
    """The suffix of a path without ``.gz``; raises an error that lists the known ones."""
    name = os.path.basename(path).lower()
    packed = {f"{suffix}.gz": suffix for suffix in known if suffix in COMPRESSIBLE}
    for suffix in (*known, *packed):
        if name.endswith(suffix):
            return packed.get(suffix, suffix)
    msg = f"{path}: unknown kind of {what}; the name must end in {', '.join((*known, *packed))}."
    raise ValueError(msg)


def _read(path: str, read: Callable[[str], Any]) -> Any:
    """Call a reader, and turn any error about a damaged file into one sentence."""
    check_file(path)
    try:
        check_gzip(path)
        return read(path)
    except ImportError:
        raise
    except MemoryError as error:
        from otgraph.exceptions import MemoryLimitError

        reason = str(error) or "it does not fit into memory"
        msg = f"{path}: cannot be read: {reason}"
        raise MemoryLimitError(msg) from error
    except Exception as error:  # libraries raise different errors for damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        msg = f"{path}: cannot be read: {reason}"
        raise ValueError(msg) from error


def _read_table(path: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    frame, indexed = read_frame(path, options)
    source = "standard input" if path == STDIN else path
    columns, drop = split_list(options.columns), split_list(options.drop)
    named = len(frame.columns) > 0 and isinstance(frame.columns[0], str)
    if _is_counted(frame) and options.row_names is not False:
        mentioned = {*(columns or ()), *(drop or ()), *aside}
        if options.row_names or (
            str(frame.columns[0]) not in mentioned and has_row_names(frame, indexed=indexed)
        ):
            first = frame.iloc[:, 0].astype(str).to_numpy()
            frame = frame.iloc[:, 1:].set_axis(first, axis="index")
    indices = pick(frame.columns, aside, source)
    kept_aside = {name: frame.iloc[:, i].to_numpy() for name, i in zip(aside, indices, strict=True)}
    frame = frame.iloc[:, chosen(frame.columns, columns, [*(drop or ()), *aside], source)]
    values = _numbers(frame, source)
    rows = None if _is_counted(frame) else np.asarray(frame.index, str)
    names = np.asarray(frame.columns, str) if named else None
    if options.transpose:
        values, rows, names = np.ascontiguousarray(values.T), names, rows
    return Points(values, source, rows, names, kept_aside)


def _is_counted(frame: Any) -> bool:
    """Whether the index of a data frame is just a row number."""
    return type(frame.index).__name__ == "RangeIndex"


def _numbers(frame: Any, source: str) -> Any:
    for i, name in enumerate(frame.columns):
        if frame.dtypes.iloc[i].kind not in NUMERIC:
            row, cell = first_word(frame.iloc[:, i])
            msg = (
                f"{source}: column {str(name)!r} is not numeric: {cell!r} in row {row}. Leave it "
                f"out with --drop {name}, or choose others with --columns."
            )
            raise ValueError(msg)
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(values)
    if missing.any():
        row, i = np.argwhere(missing)[0]
        msg = (
            f"{source}: NaN at row {row}, column {str(frame.columns[i])!r} ({int(missing.sum())} "
            "missing value(s) in all; rows count from 0). Fill them in, or drop these rows or "
            "columns."
        )
        raise ValueError(msg)
    return np.ascontiguousarray(values)


def _read_array(path: str, suffix: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    if aside:
        msg = f"{path}: has no column {aside[0]!r}; only tables and .h5ad have named columns."
        raise ValueError(msg)
    readers = {".npy": _npy, ".npz": lambda file: _npz(file, options.key), ".mtx": _mtx}
    values = _read(path, readers[suffix])
    if values.dtype.kind not in NUMERIC:
        msg = f"{path}: must hold real numbers, got dtype {values.dtype}."
        raise ValueError(msg)
    if options.transpose:
        values = values.T.tocsr() if hasattr(values, "tocsr") else values.T
    columns, drop = split_list(options.columns), split_list(options.drop)
    if (columns or drop) and values.ndim == 2:
        values = values[:, chosen(range(values.shape[1]), columns, drop, path)]
    return Points(values, path)


def _npy(path: str) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: str, key: str | None) -> Any:
    # Opened here, because numpy does not close damaged files.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if {"format", "shape", "data"} <= set(names) and key is None:
            from scipy.sparse import load_npz

            check_npz(archive.zip, names)
            return _as_csr(load_npz(path))
        if key is None and len(names) == 1:
            key = names[0]
        elif key is None and "X" in names:
            key = "X"
        if key is None or key not in names:
            wanted = "several arrays" if key is None else f"no array {key!r}"
            msg = f"it holds {wanted}; choose one with --key: {listed(names)}."
            raise ValueError(msg)
        check_npz(archive.zip, [key])
        return archive[key]


def _mtx(path: str) -> Any:
    check_mtx(path)
    # scipy's reader crashes on some damaged files.
    values = read_isolated("scipy.io:mmread", path, meanwhile=lambda: import_module("scipy.sparse"))
    return _as_csr(values) if hasattr(values, "tocsr") else values


def _as_csr(matrix: Any) -> Any:
    check_fits((matrix.shape[0] + 1) * matrix.data.itemsize, f"a matrix of shape {matrix.shape}")
    return matrix.tocsr()


def _parquet(path: str) -> Any:
    import pandas as pd

    metadata = require("pyarrow.parquet", "cli").read_metadata(path)
    check_fits(metadata.num_rows * metadata.num_columns * np.dtype(np.float64).itemsize)
    return pd.read_parquet(path)


def _read_h5ad(path: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    adata = _read(path, read_h5ad)
    from otgraph.singlecell import representation

    values, use_rep, _ = representation(adata, options.use_rep)
    names = np.asarray(adata.var_names, str) if use_rep == "X" else None
    columns, drop = split_list(options.columns), split_list(options.drop)
    if columns or drop:
        indices = chosen(range(values.shape[1]) if names is None else names, columns, drop, path)
        values, names = values[:, indices], None if names is None else names[indices]
    for name in aside:
        if name not in adata.obs:
            msg = f"{path}: obs has no column {name!r}; there are {listed(adata.obs.columns)}."
            raise ValueError(msg)
    return Points(
        values,
        path,
        row_names=np.asarray(adata.obs_names, str),
        column_names=names,
        aside={name: adata.obs[name].to_numpy() for name in aside},
        adata=adata,
        use_rep=use_rep,
    )


def _by_name(given: Any, labels: NDArray[Any], names: NDArray[Any], path: str) -> NDArray[Any]:
    position = {name: row for row, name in enumerate(names)}
    placed = np.full(len(names), None, dtype=object)
    for name, label in zip(given.astype(str), labels, strict=True):
        if name not in position:
            msg = f"{path}: labels a row {name!r}, which the points do not have."
            raise ValueError(msg)
        placed[position[name]] = label
    return group_names(placed)


def _whole_number(word: str | None) -> int | None:
    """A word as a number; -1 for unknown labels, None if it is not a number."""
    if word is None:
        return -1
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
