"""Where the points are, and how the workers get them.

A file is read by a worker. A Dask array stays on the cluster. An array in memory is sent in
pieces. In each case the points are the result of tasks, so that a worker which dies takes
nothing with it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph._parallel import Workers, row_blocks
from otgraph.costs import as_cost, check_input
from otgraph.distributed._cluster import PIECE_ENTRIES
from otgraph.exceptions import ClusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.costs import Cost
    from otgraph.distributed._cluster import Cluster

FORMATS = "a Dask array, a path of a .npy file or zarr array, or an array"


@dataclass(frozen=True)
class Source:
    """Points that are somewhere; ``pieces`` are futures or arrays of consecutive rows."""

    shape: tuple[int, int]
    path: str | None = None
    pieces: Sequence[Any] = ()

    @property
    def n_bytes(self) -> int:
        """Size as float64, which is how costs are computed."""
        return 8 * self.shape[0] * self.shape[1]


def find_source(X: Any, cluster: Cluster) -> Source:
    """The points, wherever they are, with their shape."""
    if isinstance(X, str | os.PathLike):
        path = os.path.abspath(os.fspath(X))
        return Source(_two_dimensional(_shape_on_workers(path, cluster)), path=path)
    if type(X).__module__.split(".")[0] == "dask":
        return _of_dask_array(X, cluster)
    if not sp.issparse(X) and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    shape = _two_dimensional(X.shape)
    rows = max(1, PIECE_ENTRIES // max(1, shape[1]))
    return Source(shape, pieces=[X[a:b] for a, b in row_blocks(shape[0], rows)])


def submit_cost(cluster: Cluster, source: Source, **options: Any) -> Any:
    """The future of the cost that every worker will hold a copy of."""
    pieces = [
        piece if hasattr(piece, "key") else cluster.send("points", piece) for piece in source.pieces
    ]
    return cluster.submit("cost", build_cost, source.path, pieces, options)


def build_cost(path: str | None, pieces: Sequence[Any], options: dict[str, Any]) -> Cost:
    """The cost of points from a file or from pieces; runs on a worker, in one thread."""
    X = _joined(pieces) if path is None else open_points(path)[...]
    X = check_input(X, options["metric"])
    return as_cost(X, workers=Workers(1), **options)


def open_points(path: str) -> Any:
    """The array of a zarr folder, or of a .npy file, which is mapped; nothing is read yet."""
    if Path(path).is_dir() or path.endswith(".zarr"):
        return require("zarr", "distributed").open_array(path, mode="r")
    return np.load(path, mmap_mode="r", allow_pickle=False)


def shape_of_file(path: str) -> tuple[int, ...] | str:
    """Shape of the array in a file, or a sentence that says why there is none."""
    try:
        return tuple(int(length) for length in open_points(path).shape)
    except Exception as error:  # whatever the formats raise: the driver names the worker
        return f"{type(error).__name__}: {error}"


def _shape_on_workers(path: str, cluster: Cluster) -> tuple[int, ...]:
    """The shape that every worker sees; each is asked."""
    with cluster.errors():
        seen = cluster.client.run(shape_of_file, path)
    if not seen:
        cluster.refuse_without_workers()
    failed = {address: answer for address, answer in seen.items() if isinstance(answer, str)}
    if failed:
        address, reason = next(iter(failed.items()))
        msg = (
            f"`X` is the path {path!r}, which {len(failed)} of {len(seen)} workers cannot read "
            f"({address}: {reason}). Put it where all workers see it under the same name, as a "
            ".npy file or a zarr array."
        )
        raise ClusterError(msg)
    if len(set(seen.values())) > 1:
        msg = f"`X` is the path {path!r}, where workers see arrays of different shape: {seen}."
        raise ClusterError(msg)
    return next(iter(seen.values()))


def _of_dask_array(X: Any, cluster: Cluster) -> Source:
    if not hasattr(X, "to_delayed") or not hasattr(X, "rechunk"):
        msg = f"`X` must be {FORMATS}, got {type(X).__name__}; `.to_dask_array()` may help."
        raise TypeError(msg)
    if any(np.isnan(length) for length in X.shape):
        msg = "`X` is a Dask array of unknown length; call `X.compute_chunk_sizes()` first."
        raise ValueError(msg)
    shape = _two_dimensional(X.shape)
    pieces = cluster.compute(X.rechunk({1: -1}).to_delayed().ravel().tolist())
    return Source(shape, pieces=pieces)


def _two_dimensional(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        msg = (
            f"`X` must hold at least two points, one per row with one or more features, got shape "
            f"{tuple(shape)}."
        )
        raise ValueError(msg)
    return int(shape[0]), int(shape[1])


def _joined(pieces: Sequence[Any]) -> Any:
    if sp.issparse(pieces[0]):
        return sp.vstack(pieces, format="csr")
    return np.concatenate(pieces)
