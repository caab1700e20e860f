"""Graphs in folders, as a cluster writes them: zarr or parquet.

A zarr folder holds the weights as a CSR matrix in the layout of anndata, and vectors beside it. A
parquet folder holds edge lists; files whose names begin with an underscore, which readers of tables
leave out, hold the rest. Both have the record of the graph: parameters and certificate.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph.graphs._canonical import index_type, plain_params
from otgraph.graphs._records import encoded, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otgraph.graphs._records import Record
    from otgraph.graphs.base import BaseTransportGraph
    from otgraph.typing import Array, SparseMatrix

SUFFIXES = (".zarr", ".parquet")
RECORD = "otgraph_record"  # name of the record among the attributes of a folder
POINTS, FLOORS = "_points.parquet", "_floors.parquet"
MATRIX = ("data", "indices", "indptr")


def is_folder(path: str) -> bool:
    """Whether a path or an address is that of a folder with a graph."""
    named = path.rstrip("/").lower().endswith(SUFFIXES)
    return named and ("://" in path or os.path.isdir(path))


def record_of(graph: BaseTransportGraph, n_parts: int) -> str:
    """Parameters and certificate as text; ``n_parts`` are the files of edges."""
    record = {
        "n": graph.n,
        "n_parts": n_parts,
        "params": encoded(plain_params(graph.params)),
        "certificate": encoded(graph.certificate.record()),
    }
    return json.dumps(record, allow_nan=False)


def read_folder(path: str) -> tuple[Record, Mapping[str, Array]]:
    """The header and the arrays of a graph, as those of a file."""
    read = _read_zarr if path.rstrip("/").lower().endswith(".zarr") else _read_parquet
    record, arrays = read(path)
    return {"points_shape": None, **record}, arrays


def _read_zarr(path: str) -> tuple[dict[str, Any], dict[str, Array]]:
    zarr = require("zarr", "distributed")
    group = zarr.open_group(path, mode="r")
    if RECORD not in group.attrs:
        refuse(f"{path!r} has no record of a graph among its attributes")
    arrays = {name: group[name][...] for name in ("potentials", "mass")}
    for name in ("weights", "floors"):
        if name in group:
            arrays |= {f"{name}.{part}": group[name][part][...] for part in MATRIX}
    for name in ("weights", "floors"):
        if f"{name}.indptr" in arrays:
            kind = index_type(max(len(arrays[f"{name}.data"]), len(arrays["mass"])))
            for part in ("indices", "indptr"):
                arrays[f"{name}.{part}"] = arrays[f"{name}.{part}"].astype(kind, copy=False)
    return json.loads(group.attrs[RECORD]), arrays


def _read_parquet(path: str) -> tuple[dict[str, Any], dict[str, Array]]:
    parquet = require("pyarrow.parquet", "distributed")
    system, folder = require("fsspec", "distributed").core.url_to_fs(path)
    names = sorted(name for name in system.find(folder) if name.endswith(".parquet"))
    parts = [name for name in names if not os.path.basename(name).startswith("_")]
    tables = {}
    for name in names:
        with system.open(name, "rb") as file:
            tables[name] = parquet.read_table(file)
    if not parts or RECORD.encode() not in (tables[parts[0]].schema.metadata or {}):
        refuse(f"{path!r} has no edges with the record of a graph")
    record = json.loads(tables[parts[0]].schema.metadata[RECORD.encode()])
    if len(parts) != record["n_parts"]:
        refuse(f"{path!r} has {len(parts)} of {record['n_parts']} files of edges")
    n = record["n"]
    arrays = _matrix("weights", [tables[name] for name in parts], n)
    for name in names:
        if os.path.basename(name) == POINTS:
            arrays |= {key: tables[name].column(key).to_numpy() for key in ("potentials", "mass")}
        if os.path.basename(name) == FLOORS:
            arrays |= _matrix("floors", [tables[name]], n)
    return record, arrays


def _matrix(name: str, tables: list[Any], n: int) -> dict[str, Array]:
    """A symmetric CSR matrix from lists of its upper half."""
    rows, columns, values = (
        np.concatenate([table.column(key).to_numpy() for table in tables])
        for key in ("source", "target", "weight")
    )
    off = rows != columns
    whole: SparseMatrix = sp.coo_matrix(
        (
            np.concatenate((values, values[off])),
            (np.concatenate((rows, columns[off])), np.concatenate((columns, rows[off]))),
        ),
        shape=(n, n),
    ).tocsr()
    whole.sort_indices()
    return {f"{name}.{part}": getattr(whole, part) for part in MATRIX}
