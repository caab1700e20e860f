"""Write a graph block by block; no process ever holds all of it.

Only the workers write, so the driver needs no access to the path. The result is renamed to its
final name when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph.distributed._blocks import Vector
from otgraph.distributed._files import file_system, full_name, is_address
from otgraph.distributed._weights import row_bounds
from otgraph.exceptions import invalid
from otgraph.graphs._folders import FLOORS, POINTS, RECORD, SUFFIXES, record_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from distributed import Future

    from otgraph.distributed._blocks import Blocks
    from otgraph.distributed._weights import WeightBlock
    from otgraph.distributed.graph import DistributedGraph
    from otgraph.typing import Array, FloatArray, LongArray, SparseMatrix

CHUNK_ENTRIES = 1 << 20


def write_graph(graph: DistributedGraph, rows: Blocks, path: str | os.PathLike[str]) -> None:
    """Write weights, potentials and masses; see `DistributedGraph.write`."""
    target = full_name(path)
    suffix = os.path.splitext(target)[1]
    if suffix not in SUFFIXES:
        raise invalid("path", f"must end in {' or '.join(SUFFIXES)}, got {os.fspath(path)!r}.")
    cluster = rows.cluster
    cluster.result(cluster.submit("write", _begin, target))
    if suffix == ".zarr":
        written = [_write_zarr(graph, rows, target)]
    else:
        numbers = list(range(len(rows.futures)))
        record = record_of(graph, len(numbers))
        vectors = [Vector.send(cluster, v).pieces for v in (graph.potentials, graph.mass)]
        written = rows.each("write", _write_edges, numbers, target, record)
        written.append(cluster.submit("write", _write_vectors, target, graph.floors, *vectors))
    cluster.result(cluster.submit("write", _finish, target, written))


def _write_zarr(graph: DistributedGraph, rows: Blocks, target: str) -> Future:
    """One CSR matrix in the layout of anndata, block after block, because they share chunks."""
    cluster = rows.cluster
    indptr = row_bounds(rows)
    facts = {**graph.params, **{f"certificate_{k}": v for k, v in _certificate(graph).items()}}
    vectors = [Vector.send(cluster, v).pieces for v in (indptr, graph.potentials, graph.mass)]
    own = (facts, record_of(graph, len(rows.futures)), graph.floors)
    last = cluster.submit("write", _create_zarr, target, *own, *vectors)
    for (first, _), block in zip(rows.ranges, rows.futures, strict=True):
        last = cluster.submit("write", _fill_zarr, block, target, int(indptr[first]), last)
    return last


def _partial(target: str) -> str:
    """The folder to write into; its name is short, because that of the target may be long."""
    directory, name = os.path.split(target)
    return os.path.join(directory, f".otgraph-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}")


# Tasks ---------------------------------------------------------------------------------


def _begin(target: str) -> None:
    """Make the folder that `_finish` renames."""
    _refuse_existing(target)
    if is_address(target):
        system, folder = file_system(_partial(target))
        if system.exists(folder):
            system.rm(folder, recursive=True)
        system.makedirs(folder, exist_ok=True)
        return
    shutil.rmtree(_partial(target), ignore_errors=True)
    try:
        os.mkdir(_partial(target))
    except OSError as error:
        msg = f"cannot write into the directory of {target!r}: {error.strerror}"
        raise type(error)(error.errno, msg) from error


def _finish(target: str, written: Sequence[None]) -> None:
    del written  # an argument, so that this task waits for it
    _refuse_existing(target)  # created since `_begin`; os.rename would replace an empty folder
    if is_address(target):
        system, folder = file_system(_partial(target))
        system.mv(folder, file_system(target)[1], recursive=True)
    else:
        os.rename(_partial(target), target)


def _refuse_existing(target: str) -> None:
    if is_address(target):
        system, folder = file_system(target)
        there = system.exists(folder)
    else:
        there = os.path.lexists(target)
    if there:
        msg = f"{target!r} exists already; remove it or choose another name."
        raise FileExistsError(msg)


def _create_zarr(
    target: str,
    facts: dict[str, object],
    record: str,
    floors: SparseMatrix | None,
    indptr: Sequence[LongArray],
    potentials: Sequence[FloatArray],
    mass: Sequence[FloatArray],
) -> None:
    zarr = require("zarr", "distributed")
    bounds = np.concatenate(indptr)
    n, n_entries = len(bounds) - 1, int(bounds[-1])
    group = zarr.open_group(_partial(target), mode="w")
    group.attrs["otgraph"] = facts
    group.attrs[RECORD] = record
    weights = _matrix(group, "weights", n)
    if floors is not None:
        stored = _matrix(group, "floors", n)
        for name in ("indices", "data", "indptr"):
            _store(stored, name, getattr(floors, name))
    for name, kind in (("indices", np.int32), ("data", np.float64)):
        weights.create_array(
            name, shape=(n_entries,), chunks=(max(1, min(CHUNK_ENTRIES, n_entries)),), dtype=kind
        )
    _store(weights, "indptr", bounds)
    _store(group, "potentials", np.concatenate(potentials))
    _store(group, "mass", np.concatenate(mass))


def _matrix(group: Any, name: str, n: int) -> Any:
    """A group for a CSR matrix in the layout of anndata."""
    made = group.create_group(name)
    made.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n, n]})
    return made


def _store(group: Any, name: str, values: Array) -> None:
    chunks = (max(1, min(CHUNK_ENTRIES, len(values))),)
    array = group.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)
    array[...] = values


def _fill_zarr(block: WeightBlock, target: str, start: int, before: None) -> None:
    del before  # the previous block is complete: two tasks must not write the same chunk
    weights = require("zarr", "distributed").open_group(_partial(target), mode="r+")["weights"]
    _, indices, data = block.arrays()
    weights["indices"][start : start + len(indices)] = indices
    weights["data"][start : start + len(data)] = data


def _write_edges(block: WeightBlock, number: int, target: str, record: str) -> None:
    """One file per block: each pair once, self-loops included."""
    rows, columns, weights = block.entries()
    upper = rows <= columns
    edges = {"source": rows[upper], "target": columns[upper], "weight": weights[upper]}
    _write_table(target, f"part-{number:05d}.parquet", edges, record)


def _write_vectors(
    target: str,
    floors: SparseMatrix | None,
    potentials: Sequence[FloatArray],
    mass: Sequence[FloatArray],
) -> None:
    """What belongs to points, and minimum flows; readers of edges leave these files out."""
    vectors = {"potentials": np.concatenate(potentials), "mass": np.concatenate(mass)}
    _write_table(target, POINTS, vectors)
    if floors is not None:
        half = sp.triu(floors).tocoo()
        flows = {"source": half.row, "target": half.col, "weight": half.data}
        _write_table(target, FLOORS, flows)


def _write_table(
    target: str, name: str, columns: Mapping[str, object], record: str | None = None
) -> None:
    pyarrow, parquet = (require(m, "distributed") for m in ("pyarrow", "pyarrow.parquet"))
    table = pyarrow.table(columns)
    if record is not None:
        table = table.replace_schema_metadata({RECORD: record})
    system, path = file_system(os.path.join(_partial(target), name))
    with system.open(path, "wb") as file:
        parquet.write_table(table, file)


def _certificate(graph: DistributedGraph) -> dict[str, int | float | str]:
    facts = asdict(graph.certificate)
    return {
        key: value if np.isfinite(value) else str(value)  # JSON has no infinity
        for key, value in facts.items()
        if isinstance(value, int | float)
    } | {"status": str(graph.certificate.status)}
