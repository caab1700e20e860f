"""Read points and graphs from files."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from otgraph._isolated import read_h5ad, read_mtx
from otgraph._optional import require
from otgraph._tables import NUMERIC, has_row_names, read_table
from otgraph._text import listed
from otgraph._unpacked import check_fits, check_gzip, check_mtx, check_npz, read_stream
from otgraph.cli.columns import WordColumn, handles, word_columns
from otgraph.cli.options import ReadOptions
from otgraph.cli.preparation import Doubt, Preparation, prepared
from otgraph.cli.terminal import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    import pandas as pd
    from anndata import AnnData

    from otgraph.graphs import Graph
    from otgraph.typing import Array, BoolArray, Keywords, SparseMatrix, Values

T = TypeVar("T")

STDIN, STANDARD_INPUT = "-", "standard input"
GRAPH_SUFFIX = ".otg"
GRAPH_FOLDERS = (".zarr", ".parquet")
TABLES = (".csv", ".tsv", ".parquet")  # that are read and written
READ_TABLES = (*TABLES, ".txt", ".dat", ".xlsx")
POINTS = (".npy", ".npz", *READ_TABLES, ".mtx", ".h5ad")
# Text formats, which may be compressed: .csv.gz
COMPRESSIBLE = (".csv", ".tsv", ".txt", ".dat", ".mtx")


@dataclass(frozen=True)
class Points:
    """Contents of a file of points: numbers, names, and columns that are not features."""

    values: Values  # prepared as the options say
    source: str
    row_names: Array | None = None
    column_names: Array | None = None
    aside: Array | None = None  # a column that is not a feature, such as labels
    adata: AnnData | None = None  # the whole object, for formats that hold more than points
    use_rep: str | None = None
    # The numbers as they were read, to which `column_names` belong; None if these are `values`.
    features: Values | None = None
    handles: Sequence[str] = ()  # what --drop calls the columns
    words: Sequence[WordColumn] = ()  # columns of words, which cannot be features
    transposed: bool = False
    # If rows were left out: those of the file that are points, and the names of all of them.
    kept: BoolArray | None = None
    file_names: Array | None = None
    preparation: Preparation | None = None
    doubts: dict[str, Doubt] = field(default_factory=dict)

    @property
    def original(self) -> Values:
        """Features in their own units."""
        return self.values if self.features is None else self.features

    def aligned(self, keywords: Keywords) -> Keywords:
        """Keywords with vectors that have one number per row of the file cut to the points."""
        if self.kept is None:
            return keywords
        return {
            name: value[self.kept]
            if name in ("mass", "u0") and np.shape(value) == self.kept.shape
            else value
            for name, value in keywords.items()
        }

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
    path: str, options: ReadOptions | None = None, *, aside: str | None = None
) -> Points:
    """Points from a file of any format, with names if it has them; ``-`` is standard input.

    ``aside`` is a column that is not a feature, such as labels, to return separately.
    """
    options = options or ReadOptions()
    return prepared(unprepared_points(path, options, aside=aside), options)


def unprepared_points(path: str, options: ReadOptions, *, aside: str | None = None) -> Points:
    """Points as stored in the file: with missing values; columns of words are kept apart."""
    if is_graph_file(path):
        refuse(f"{path}: is a graph, and points are needed here.")
    suffix = ".csv" if path == STDIN else suffix_of(path, POINTS, what="a file of points")
    if suffix in READ_TABLES:
        points = _read_table(path, options, aside)
    elif suffix == ".h5ad":
        points = _read_h5ad(path, options, aside)
    else:
        points = _read_array(path, suffix, options, aside)
    if points.values.ndim != 2 or (0 in points.values.shape and not points.words):
        refuse(
            f"{path}: must hold a table with one row per point, got an array of shape "
            f"{points.values.shape}."
        )
    return points


def read_vector(path: str, *, what: str) -> Array:
    """One number per point, from a file with one column or row."""
    # An .npy file may hold a vector, which `read_points` does not accept.
    values = _read(path, _npy) if path.lower().endswith(".npy") else read_points(path).values
    values = np.squeeze(values.toarray() if hasattr(values, "toarray") else values)
    if values.ndim != 1:
        refuse(
            f"{path}: {what} must be one number per point, got an array of shape {values.shape}."
        )
    return values


def is_graph_file(path: str) -> bool:
    """Whether the name has the suffix of a graph file, or is a folder that a cluster wrote."""
    folder = path.rstrip("/").lower().endswith(GRAPH_FOLDERS) and os.path.isdir(path)
    return folder or path.lower().endswith(GRAPH_SUFFIX)


def read_graph(path: str) -> Graph:
    """A graph from a graph file, or from a symmetric matrix of weights."""
    import otgraph

    if is_graph_file(path):
        if os.path.isdir(path):
            with _blamed(path):
                return otgraph.load_graph(path)
        return _read(path, otgraph.load_graph)
    weights = read_points(path).values
    if weights.shape[0] != weights.shape[1]:
        refuse(f"{path}: weights of a graph must be a square matrix, got shape {weights.shape}.")
    return otgraph.Graph.from_weights(weights)


def read_frame(
    path: str,
    options: ReadOptions | None = None,
    *,
    blank_rows: bool = False,
    content: bytes | None = None,
) -> tuple[pd.DataFrame, bool]:
    """A data frame, and whether its header implies that the first column names rows.

    With ``blank_rows`` an empty line in a text of one column is a row without a value.
    ``content`` is standard input, if it was read before.
    """
    options = options or ReadOptions()
    text = {"header": options.header, "blank_rows": blank_rows}
    if path == STDIN:
        content = read_standard_input() if content is None else content
        with _blamed(STANDARD_INPUT):
            return read_table(content, **text)
    suffix = suffix_of(path, READ_TABLES, what="a table")
    if suffix == ".parquet":
        return _read(path, _parquet), False
    if suffix == ".xlsx":
        return _read(path, lambda file: read_table(_sheet(file, options.key), **text))
    return _read(path, lambda file: read_table(file, tabs=suffix == ".tsv", **text))


def read_standard_input() -> bytes:
    """All of standard input, if it fits into memory."""
    with _blamed(STANDARD_INPUT):
        return read_stream(sys.stdin.buffer)


def _sheet(path: str, name: str | None) -> bytes:
    """A sheet as CSV, so that headers and names are detected as in text."""
    require("openpyxl", "excel")
    import pandas as pd

    with pd.ExcelFile(path, engine="openpyxl") as book:
        if name is not None and name not in book.sheet_names:
            refuse(f"it has no sheet {name!r}; choose one with --key: {listed(book.sheet_names)}.")
        frame = pd.read_excel(book, name or 0, header=None, dtype=object)
    return frame.to_csv(header=False, index=False).encode()


def chosen(
    names: Collection[object],
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
    source: str,
) -> list[int]:
    """Positions of the columns to use."""
    kept = list(range(len(names))) if columns is None else pick(names, columns, source)
    left_out = set(pick(names, drop or (), source))
    kept = [index for index in kept if index not in left_out]
    if not kept:
        refuse(f"{source}: no column is left to use.")
    return kept


def pick(names: Collection[object], wanted: Sequence[str], source: str) -> list[int]:
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
            refuse(f"{source}: no column {name!r}{hint}")
    return found


def split_list(given: Sequence[str] | None) -> list[str] | None:
    """Names from a repeated option, each of which may hold several with commas."""
    if given is None:
        return None
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]


def check_file(path: str) -> None:
    """Raise unless this is a file."""
    if not os.path.exists(path):
        refuse(f"{path}: no such file.")
    if os.path.isdir(path):
        refuse(f"{path}: is a directory; give a file.")


def suffix_of(path: str, known: Collection[str], *, what: str) -> str:
    """The suffix of a path without ``.gz``; raises an error that lists the known ones."""
    name = os.path.basename(path).lower()
    packed = {f"{suffix}.gz": suffix for suffix in known if suffix in COMPRESSIBLE}
    for suffix in (*known, *packed):
        if name.endswith(suffix):
            return packed.get(suffix, suffix)
    refuse(f"{path}: the name of {what} must end in {', '.join((*known, *packed))}.")


def _read(path: str, read: Callable[[str], T]) -> T:
    """Call a reader for a file that fits into memory when it is unpacked."""
    check_file(path)
    with _blamed(path):
        check_gzip(path)
        return read(path)


@contextlib.contextmanager
def _blamed(source: str) -> Iterator[None]:
    """Turn any error about damaged content into one sentence that names its source."""
    try:
        yield
    except ImportError:
        raise
    except MemoryError as error:
        from otgraph.exceptions import MemoryLimitError

        reason = str(error) or "it does not fit into memory"
        msg = f"{source}: cannot be read: {reason}"
        raise MemoryLimitError(msg) from error
    except Exception as error:  # libraries raise different errors for damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        refuse(f"{source}: cannot be read: {reason}")


def _read_table(path: str, options: ReadOptions, aside: str | None) -> Points:
    frame, indexed = read_frame(path, options)
    source = STANDARD_INPUT if path == STDIN else path
    columns, drop = split_list(options.columns), split_list(options.drop)
    named = len(frame.columns) > 0 and isinstance(frame.columns[0], str)
    if is_counted(frame) and options.row_names is not False:
        mentioned = {*(columns or ()), *(drop or ()), aside}
        if options.row_names or (
            str(frame.columns[0]) not in mentioned and has_row_names(frame, indexed=indexed)
        ):
            first = frame.iloc[:, 0].astype(str).to_numpy()
            frame = frame.iloc[:, 1:].set_axis(first, axis="index")
    kept_aside = None
    if aside is not None:
        kept_aside = frame.iloc[:, pick(frame.columns, [aside], source)[0]].to_numpy()
        drop = [*(drop or ()), aside]
    used = chosen(frame.columns, columns, drop, source)
    names_to_drop = handles(frame.columns)
    droppable = [names_to_drop[i] for i in used]
    frame = frame.iloc[:, used]
    words = word_columns(frame, droppable)
    numeric = [i for i in range(frame.shape[1]) if i not in words]
    frame = frame.iloc[:, numeric]
    values = np.ascontiguousarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    rows = None if is_counted(frame) else np.asarray(frame.index, str)
    names = np.asarray(frame.columns, str) if named else None
    if options.transpose:
        values, rows, names = np.ascontiguousarray(values.T), names, rows
    return Points(
        values,
        source,
        rows,
        names,
        kept_aside,
        handles=[droppable[i] for i in numeric],
        words=list(words.values()),
        transposed=options.transpose,
    )


def is_counted(frame: pd.DataFrame) -> bool:
    """Whether the index of a data frame is just a row number."""
    return type(frame.index).__name__ == "RangeIndex"


def _read_array(path: str, suffix: str, options: ReadOptions, aside: str | None) -> Points:
    if aside is not None:
        refuse(f"{path}: has no column {aside!r}; only tables and .h5ad have named columns.")
    readers = {".npy": _npy, ".npz": lambda file: _npz(file, options.key), ".mtx": _mtx}
    values = _read(path, readers[suffix])
    if values.dtype.kind not in NUMERIC:
        refuse(f"{path}: must hold real numbers, got dtype {values.dtype}.")
    if options.transpose:
        values = values.T.tocsr() if hasattr(values, "tocsr") else values.T
    columns, drop = split_list(options.columns), split_list(options.drop)
    numbers = range(values.shape[1]) if values.ndim == 2 else range(0)
    if (columns or drop) and values.ndim == 2:
        numbers = chosen(numbers, columns, drop, path)  # type: ignore[assignment]
        values = values[:, numbers]
    return Points(values, path, handles=list(map(str, numbers)), transposed=options.transpose)


def _npy(path: str) -> Array:
    # As a plain array, because anndata and Dask do not take the class of mapped ones.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _npz(path: str, key: str | None) -> Values:
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
            refuse(f"it holds {wanted}; choose one with --key: {listed(names)}.")
        check_npz(archive.zip, [key])
        return archive[key]


def _mtx(path: str) -> Values:
    check_mtx(path)
    values = read_mtx(path)
    return _as_csr(values) if hasattr(values, "tocsr") else values


def _as_csr(matrix: SparseMatrix) -> SparseMatrix:
    check_fits((matrix.shape[0] + 1) * matrix.data.itemsize, f"a matrix of shape {matrix.shape}")
    return matrix.tocsr()


def _parquet(path: str) -> pd.DataFrame:
    import pandas as pd

    metadata = require("pyarrow.parquet", "cli").read_metadata(path)
    check_fits(metadata.num_rows * metadata.num_columns * np.dtype(np.float64).itemsize)
    return pd.read_parquet(path)


def _read_h5ad(path: str, options: ReadOptions, aside: str | None) -> Points:
    adata = _read(path, read_h5ad)
    from otgraph.singlecell import representation

    values, use_rep, _ = representation(adata, options.use_rep)
    names = np.asarray(adata.var_names, str) if use_rep == "X" else None
    columns, drop = split_list(options.columns), split_list(options.drop)
    if columns or drop:
        indices = chosen(range(values.shape[1]) if names is None else names, columns, drop, path)
        values, names = values[:, indices], None if names is None else names[indices]
    if aside is not None and aside not in adata.obs:
        refuse(f"{path}: obs has no column {aside!r}; there are {listed(adata.obs.columns)}.")
    return Points(
        values,
        path,
        row_names=np.asarray(adata.obs_names, str),
        column_names=names,
        aside=None if aside is None else adata.obs[aside].to_numpy(),
        adata=adata,
        use_rep=use_rep,
    )
