"""Where the points are, and how the workers get them.

A file is read by a worker. A Dask array stays on the cluster. An array in memory is sent in
pieces. In each case the points are the result of tasks, which Dask can run again when a worker
dies.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph._parallel import Workers, row_blocks
from otgraph._validation import check_kind
from otgraph.costs import as_cost, check_input
from otgraph.costs.build import euclidean_cost, has_cells
from otgraph.costs.metrics import is_euclidean
from otgraph.costs.partition import ASSIGN_ROWS, cell_centers, nearest_center
from otgraph.costs.points import cell_count
from otgraph.costs.scaling import scaled_points
from otgraph.exceptions import ClusterError, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dask.array import Array as DaskArray
    from dask.delayed import Delayed
    from distributed import Future

    from otgraph.costs import Cost
    from otgraph.costs.scaling import ScaledPoints
    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import (
        Array,
        Float32Array,
        Keywords,
        LongArray,
        Metric,
        Points,
        PointsLike,
        Values,
    )

    ClusterPoints: TypeAlias = DaskArray | PointsLike | str | os.PathLike[str]

LABEL_ROWS = 16 * ASSIGN_ROWS  # points whose cells one task finds
FORMATS = "a Dask array, a path of a .npy file or zarr array, or an array"


@dataclass(frozen=True)
class Source:
    """Points in a file, or in pieces of consecutive rows: arrays, or Dask's delayed objects."""

    shape: tuple[int, int]
    path: str | None = None
    pieces: Sequence[Values | Delayed] = ()
    delayed: bool = False
    sparse: bool = False

    @property
    def n_bytes(self) -> int:
        """Size as float64, which is how costs are computed."""
        return 8 * self.shape[0] * self.shape[1]


def find_source(X: ClusterPoints, metric: Metric, *, cluster: Cluster) -> Source:
    """The source of the points, and their shape; nothing is read or computed yet."""
    if isinstance(metric, str) and metric == "precomputed":
        msg = (
            "`metric` must compute costs from points on a cluster, got 'precomputed'. Costs that "
            "fit into memory need no cluster: use otgraph.quadratic_ot_graph."
        )
        raise ValueError(msg)
    if isinstance(X, str | os.PathLike):
        path = os.path.abspath(os.fspath(X))
        return Source(_two_dimensional(_shape_on_workers(path, cluster)), path=path)
    if _is_dask(X):
        return _of_dask_array(X)
    check_kind(X, "X")
    points: Values = X if sp.issparse(X) else np.asarray(X)
    shape = _two_dimensional(points.shape)
    rows = max(1, cluster.piece_entries // shape[1])
    pieces = [points[a:b] for a, b in row_blocks(shape[0], rows)]
    return Source(shape, pieces=pieces, sparse=sp.issparse(points))


def read_rows(X: ClusterPoints, rows: LongArray, *, metric: Metric, cluster: Cluster) -> Points:
    """Some of the points, checked, in this process."""
    if isinstance(X, str | os.PathLike):
        path = os.path.abspath(os.fspath(X))
        return check_input(cluster.result(cluster.submit("rows", rows_of_file, path, rows)), metric)
    points: Values | DaskArray = X if _is_dask(X) or sp.issparse(X) else np.asarray(X)
    source = find_source(points[rows], metric, cluster=cluster)
    pieces = source.pieces
    if source.delayed:
        pieces = cluster.gather(cluster.compute(pieces))
    return check_input(_joined(pieces), metric)


def submit_cost(cluster: Cluster, source: Source, **options: Any) -> Future:
    """The future of the cost that every worker will hold a copy of."""
    if source.delayed:
        pieces = cluster.compute(source.pieces)
    else:
        pieces = [cluster.send("points", piece) for piece in source.pieces]
    if not _has_cells(source, options["metric"]):
        return cluster.submit("cost", build_cost, source.path, pieces, source.shape, options)
    # Finding the cell of every point is most of the work, so all workers share it.
    exact = options.pop("exact")
    points = cluster.submit("points", scale_points, source.path, pieces, source.shape, options)
    centers = cluster.submit("cells", find_centers, points, options["seed"])
    labels = [
        cluster.submit("cells", find_cells, points, centers, rows)
        for rows in row_blocks(source.shape[0], LABEL_ROWS)
    ]
    return cluster.submit("cost", join_cost, points, labels, exact, options["seed"])


# Tasks ---------------------------------------------------------------------------------


def build_cost(
    path: str | None, pieces: Sequence[Values], shape: tuple[int, int], options: Keywords
) -> Cost:
    """The cost of points from a file or from pieces."""
    X = _checked(path, pieces, shape, options["metric"])
    return as_cost(X, workers=_threads(), **options)


def scale_points(
    path: str | None, pieces: Sequence[Values], shape: tuple[int, int], options: Keywords
) -> ScaledPoints:
    """The scaled points, from which costs are computed."""
    return scaled_points(_checked(path, pieces, shape, options["metric"]), **options)


def find_centers(scaled: ScaledPoints, seed: int) -> Float32Array:
    """Centers of the cells."""
    return cell_centers(scaled.points, cell_count(len(scaled.points)), seed, _threads())


def find_cells(scaled: ScaledPoints, centers: Float32Array, rows: tuple[int, int]) -> LongArray:
    """The cells of some points."""
    return nearest_center(scaled.points[slice(*rows)], centers, Workers(1))


def join_cost(
    scaled: ScaledPoints, labels: Sequence[LongArray], exact: bool | None, seed: int
) -> Cost:
    """The cost of points whose cells are known."""
    return euclidean_cost(
        scaled, exact=exact, seed=seed, workers=Workers(1), labels=np.concatenate(labels)
    )


def rows_of_file(path: str, rows: LongArray) -> Array:
    """Some of the points in a file."""
    points = open_points(path)
    return points[rows] if isinstance(points, np.ndarray) else points.oindex[rows]


def _checked(
    path: str | None, pieces: Sequence[Values], shape: tuple[int, int], metric: Metric
) -> Points:
    X = _joined(pieces) if path is None else open_points(path)[...]
    if X.shape != shape:
        msg = (
            f"must have the shape {shape} that it declares, but its chunks together have "
            f"{X.shape}. If they may be shorter, call `X.compute_chunk_sizes()` first."
        )
        raise invalid("X", msg)
    return check_input(X, metric, single=True)


def _threads() -> Workers:
    """All threads of this worker, for the one task that prepares the points."""
    worker = require("distributed", "distributed").get_worker()
    return Workers(worker.state.nthreads)


def _has_cells(source: Source, metric: Metric) -> bool:
    """Whether the cost has cells, which all workers can find together."""
    return is_euclidean(metric) and has_cells(source.shape) and not source.sparse


def open_points(path: str) -> Any:
    """The array of a zarr folder or a .npy file; nothing is read yet."""
    if Path(path).is_dir() or path.endswith(".zarr"):
        return require("zarr", "distributed").open_array(path, mode="r")
    return np.load(path, mmap_mode="r", allow_pickle=False)


def shape_of_file(path: str) -> tuple[tuple[int, ...], int] | str:
    """Shape of the array in a file and missing chunks, or the reason why it cannot be read."""
    try:
        points = open_points(path)
        missing = 0
        if not isinstance(points, np.ndarray):
            missing = points.nchunks - points.nchunks_initialized
        return tuple(int(length) for length in points.shape), int(missing)
    except Exception as error:  # readers raise many kinds of errors; the driver adds the address
        return f"{type(error).__name__}: {error}"


def _shape_on_workers(path: str, cluster: Cluster) -> tuple[int, ...]:
    """The shape that every worker sees."""
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
        msg = (
            f"`X` is the path {path!r}, where workers see arrays of different shape, or different "
            f"numbers of missing chunks: {seen}."
        )
        raise ClusterError(msg)
    shape, missing = next(iter(seen.values()))
    if missing:
        msg = (
            f"`X` is the zarr array {path!r}, of which {missing} chunk(s) are not stored; they are "
            "read as its fill value. If they are lost, write the array again."
        )
        warnings.warn(msg, UserWarning, stacklevel=2)
    return shape


def _of_dask_array(X: DaskArray) -> Source:
    if not hasattr(X, "to_delayed") or not hasattr(X, "rechunk"):
        msg = f"must be {FORMATS}, got {type(X).__name__}; `.to_dask_array()` may help."
        raise invalid("X", msg, TypeError)
    if any(np.isnan(length) for length in X.shape):
        msg = "is a Dask array of unknown length; call `X.compute_chunk_sizes()` first."
        raise invalid("X", msg)
    shape = _two_dimensional(X.shape)
    return Source(shape, pieces=X.rechunk({1: -1}).to_delayed().ravel().tolist(), delayed=True)


def _is_dask(X: object) -> bool:
    return type(X).__module__.split(".")[0] == "dask"


def _two_dimensional(shape: Sequence[int]) -> tuple[int, int]:
    if len(shape) != 2 or shape[0] < 2 or shape[1] < 1:
        msg = (
            "must hold at least two points, one per row with one or more features, got shape "
            f"{tuple(shape)}."
        )
        raise invalid("X", msg)
    return int(shape[0]), int(shape[1])


def _joined(pieces: Sequence[Values]) -> Values:
    if sp.issparse(pieces[0]):
        return sp.vstack(pieces, format="csr")
    return np.concatenate(pieces)
