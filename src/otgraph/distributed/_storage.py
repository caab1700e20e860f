"""Write a graph block by block; no process ever holds all of it.

Only the workers write, so the driver needs no access to the path. The result is renamed to its
final name when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph.distributed._blocks import Vector
from otgraph.distributed._weights import row_bounds
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from distributed import Future

    from otgraph.distributed._blocks import Blocks
    from otgraph.distributed._weights import WeightBlock
    from otgraph.distributed.graph import DistributedGraph
    from otgraph.typing import Array, FloatArray, LongArray

FORMATS = (".zarr", ".parquet")
CHUNK_ENTRIES = 1 << 20


def write_graph(graph: DistributedGraph, rows: Blocks, path: str | os.PathLike[str]) -> None:
    """Write weights, potentials and masses; see `DistributedGraph.write`."""
    target = os.path.abspath(os.fspath(path))
    suffix = Path(target).suffix
    if suffix not in FORMATS:
        raise invalid("path", f"must end in {' or '.join(FORMATS)}, got {os.fspath(path)!r}.")
    cluster = rows.cluster
    cluster.result(cluster.submit("write", _begin, target))
    if suffix == ".zarr":
        written = [_write_zarr(graph, rows, target)]
    else:
        numbers = list(range(len(rows.futures)))
        written = rows.each("write", _write_edges, numbers, target)
    cluster.result(cluster.submit("write", _finish, target, written))


def _write_zarr(graph: DistributedGraph, rows: Blocks, target: str) -> Future:
    """One CSR matrix in the layout of anndata, block after block, because they share chunks."""
    cluster = rows.cluster
    indptr = row_bounds(rows)
    facts = {**graph.params, **{f"certificate_{k}": v for k, v in _certificate(graph).items()}}
    vectors = [Vector.send(cluster, v).pieces for v in (indptr, graph.potentials, graph.mass)]
    last = cluster.submit("write", _create_zarr, target, facts, *vectors)
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
    if os.path.lexists(target):
        msg = f"{target!r} exists already; remove it or choose another name."
        raise FileExistsError(msg)
    shutil.rmtree(_partial(target), ignore_errors=True)
    try:
        os.mkdir(_partial(target))
    except OSError as error:
        msg = f"cannot write into the directory of {target!r}: {error.strerror}"
        raise type(error)(error.errno, msg) from error


def _finish(target: str, written: Sequence[None]) -> None:
    del written  # an argument, so that this task waits for it
    if os.path.lexists(target):  # created since `_begin`; os.rename would replace an empty folder
        msg = f"{target!r} exists already; remove it or choose another name."
        raise FileExistsError(msg)
    os.rename(_partial(target), target)


def _create_zarr(
    target: str,
    facts: dict[str, object],
    indptr: Sequence[LongArray],
    potentials: Sequence[FloatArray],
    mass: Sequence[FloatArray],
) -> None:
    zarr = require("zarr", "distributed")
    bounds = np.concatenate(indptr)
    n, n_entries = len(bounds) - 1, int(bounds[-1])
    group = zarr.open_group(_partial(target), mode="w")
    group.attrs["otgraph"] = facts
    weights = group.create_group("weights")
    weights.attrs.update(
        {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [n, n]}
    )
    for name, kind in (("indices", np.int32), ("data", np.float64)):
        weights.create_array(
            name, shape=(n_entries,), chunks=(max(1, min(CHUNK_ENTRIES, n_entries)),), dtype=kind
        )
    _store(weights, "indptr", bounds)
    _store(group, "potentials", np.concatenate(potentials))
    _store(group, "mass", np.concatenate(mass))


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


def _write_edges(block: WeightBlock, number: int, target: str) -> None:
    """One file per block: each pair once, self-loops included."""
    pyarrow, parquet = (require(m, "distributed") for m in ("pyarrow", "pyarrow.parquet"))
    rows, columns, weights = block.entries()
    upper = rows <= columns
    table = pyarrow.table(
        {"source": rows[upper], "target": columns[upper], "weight": weights[upper]}
    )
    parquet.write_table(table, os.path.join(_partial(target), f"part-{number:05d}.parquet"))


def _certificate(graph: DistributedGraph) -> dict[str, int | float | str]:
    facts = asdict(graph.certificate)
    return {
        key: value if np.isfinite(value) else str(value)  # JSON has no infinity
        for key, value in facts.items()
        if isinstance(value, int | float)
    } | {"status": str(graph.certificate.status)}
