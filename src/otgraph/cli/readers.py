"""Files of points, of labels and of graphs, each read by the library that owns its format."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.cli.frames import Points, chosen, listed, points_of_frame, split_list
from otgraph.cli.options import ReadOptions
from otgraph.cli.targets import suffix_of, with_compressed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STDIN = "-"
GRAPH_SUFFIX = ".otg"
TABLES = (".csv", ".tsv", ".parquet")
SUFFIXES = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".mtx", ".h5ad")


def read_points(
    path: str, options: ReadOptions | None = None, *, aside: Sequence[str] = ()
) -> Points:
    """Points of any file, with names where it has them.

    Parameters
    ----------
    path
        The file, or ``-`` for CSV on standard input.
    options
        How to read it.
    aside
        Columns that are no features, such as labels, to hand over separately.
    """
    options = options or ReadOptions()
    suffix = ".csv" if path == STDIN else _known_suffix(path)
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
    # Not as points where it can be helped: a vector need not be a table.
    values = reading(path, _npy) if path.lower().endswith(".npy") else read_points(path).values
    values = np.squeeze(values.toarray() if hasattr(values, "toarray") else values)
    if values.ndim != 1:
        msg = f"{path}: {what} must be one number per point, got an array of shape {values.shape}."
        raise ValueError(msg)
    return values


def is_graph_file(path: str) -> bool:
    """Whether the name is that of a graph file."""
    return path.lower().endswith(GRAPH_SUFFIX)


def read_graph(path: str) -> Any:
    """A graph from a graph file, or from a symmetric matrix of weights."""
    import otgraph

    if is_graph_file(path):
        return reading(path, otgraph.load_graph)
    weights = read_points(path).values
    if weights.shape[0] != weights.shape[1]:
        msg = f"{path}: weights of a graph must be a square matrix, got shape {weights.shape}."
        raise ValueError(msg)
    return otgraph.Graph.from_weights(weights)


def reading(path: str, read: Callable[[str], Any]) -> Any:
    """Call a reader; whatever a damaged file makes it raise becomes one sentence."""
    if not os.path.exists(path):
        msg = f"{path}: no such file."
        raise ValueError(msg)
    if os.path.isdir(path):
        msg = f"{path}: is a directory; give a file."
        raise ValueError(msg)
    try:
        return read(path)
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # each library has its own ways to say that a file is damaged
        reason = " ".join(str(error).split()) or type(error).__name__
        msg = f"{path}: cannot be read: {reason}"
        raise ValueError(msg) from error


def _known_suffix(path: str) -> str:
    if is_graph_file(path):
        msg = f"{path}: is a graph, and points are needed here."
        raise ValueError(msg)
    known = with_compressed(SUFFIXES)
    return suffix_of(path, known, what="file of points").removesuffix(".gz")


def read_frame(path: str, options: ReadOptions | None = None) -> tuple[Any, bool]:
    """A table as a data frame with all its columns, and whether the first is an index."""
    options = options or ReadOptions()
    if path == STDIN:
        from otgraph.cli.delimited import read_delimited

        text = sys.stdin.buffer.read()
        try:
            return read_delimited(text, tabs=False, header=options.header)
        except ValueError as error:
            msg = f"standard input: cannot be read: {' '.join(str(error).split())}"
            raise ValueError(msg) from error
    suffix = suffix_of(path, with_compressed(TABLES), what="table").removesuffix(".gz")
    if suffix == ".parquet":
        import pandas as pd

        return reading(path, pd.read_parquet), False
    from otgraph.cli.delimited import read_delimited

    return reading(
        path,
        lambda file: read_delimited(file, tabs=suffix == ".tsv", header=options.header),
    )


def _read_table(path: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    frame, indexed = read_frame(path, options)
    return points_of_frame(
        frame,
        "standard input" if path == STDIN else path,
        columns=split_list(options.columns),
        drop=split_list(options.drop),
        aside=aside,
        row_names=options.row_names,
        indexed=indexed,
        transpose=options.transpose,
    )


def _read_array(path: str, suffix: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    if aside:
        msg = f"{path}: has no column {aside[0]!r}; only tables and .h5ad have named columns."
        raise ValueError(msg)
    readers = {".npy": _npy, ".npz": lambda file: _npz(file, options.key), ".mtx": _mtx}
    values = reading(path, readers[suffix])
    if values.dtype.kind not in "biuf":
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
    # Opened here, because numpy leaves a damaged file open.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        names = archive.files
        if {"format", "shape", "data"} <= set(names) and key is None:
            from scipy.sparse import load_npz

            return load_npz(path).tocsr()
        if key is None and len(names) > 1:
            key = "X" if "X" in names else None
        if key is None and len(names) == 1:
            key = names[0]
        if key not in names:
            wanted = "several arrays" if key is None else f"no array {key!r}"
            msg = f"it holds {wanted}; choose one with --key: {listed(names)}."
            raise ValueError(msg)
        return archive[key]


def _mtx(path: str) -> Any:
    from scipy.io import mmread

    values = mmread(path)
    return values.tocsr() if hasattr(values, "tocsr") else values


def _read_h5ad(path: str, options: ReadOptions, aside: Sequence[str]) -> Points:
    from otgraph._optional import require
    from otgraph.singlecell._representation import representation

    anndata = require("anndata", "singlecell")
    adata = reading(path, anndata.read_h5ad)
    rep = representation(adata, options.use_rep, None)
    values = rep.points
    names = np.asarray(adata.var_names, str) if rep.use_rep == "X" else None
    columns, drop = split_list(options.columns), split_list(options.drop)
    if columns or drop:
        labels = range(values.shape[1]) if names is None else names
        indices = chosen(labels, columns, drop, path)
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
        use_rep=rep.use_rep,
    )
