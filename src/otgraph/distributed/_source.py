"""Where the points are, and how the workers get them.

A file is read by a worker. A Dask array stays on the cluster. An array in memory is sent in
pieces. In each case the points are the result of tasks, which Dask can run again when a worker
dies.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._optional import require
from otgraph._parallel import Workers, row_blocks
from otgraph._validation import check_finite, check_kind, check_points
from otgraph.costs import as_cost, check_input
from otgraph.costs.build import has_cells
from otgraph.costs.metrics import is_euclidean
from otgraph.distributed._files import full_name, open_points
from otgraph.exceptions import ClusterError, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dask.array import Array as DaskArray
    from distributed import Future

    from otgraph.costs import Cost
    from otgraph.distributed._cluster import Cluster
    from otgraph.typing import (
        Array,
        Keywords,
        LongArray,
        Metric,
        Points,
        PointsLike,
        Values,
    )

    ClusterPoints: TypeAlias = DaskArray | PointsLike | str | os.PathLike[str]

BLOCK_ROWS = 1 << 16  # rows of a block of points that every worker will hold
FORMATS = (
    "a Dask array or data frame, a path or address of a .npy file, a zarr array or a parquet "
    "table, or an array"
)


@dataclass(frozen=True)
class Source:
    """Points in a file, or in pieces of consecutive rows: arrays, or Dask's delayed objects."""

    shape: tuple[int, int]
    itemsize: int = 8  # bytes of a number as workers hold it: float32 stays float32
    path: str | None = None
    pieces: Sequence[Values] = ()
    array: DaskArray | None = None
    sparse: bool = False

    @property
    def n_bytes(self) -> int:
        """Size of the points as workers hold them."""
        return self.itemsize * self.shape[0] * self.shape[1]

    def blocks(self, cluster: Cluster, ranges: list[tuple[int, int]]) -> list[Future]:
        """Blocks of rows on the workers, checked; a file is read where it is needed."""
        if self.path is not None:
            return [
                cluster.submit("points", read_block, self.path, a, b, self.shape[1])
                for a, b in ranges
            ]
        if self.array is not None:
            rows = (tuple(b - a for a, b in ranges), (self.shape[1],))
            delayed = self.array.rechunk(rows).to_delayed().ravel().tolist()
            return [
                cluster.submit("points", check_block, piece, a, b, self.shape[1])
                for piece, (a, b) in zip(cluster.compute(delayed), ranges, strict=True)
            ]
        sent = [cluster.send("points", piece) for piece in self.pieces]
        ends = np.cumsum([piece.shape[0] for piece in self.pieces])
        blocks = []
        for a, b in ranges:
            first, last = int(np.searchsorted(ends, a, "right")), int(np.searchsorted(ends, b))
            start = int(ends[first] - self.pieces[first].shape[0])
            own = sent[first : last + 1]
            blocks.append(cluster.submit("points", join_block, own, start, a, b, self.shape[1]))
        return blocks


def find_source(X: ClusterPoints, metric: Metric, *, cluster: Cluster) -> Source:
    """The source of the points, and their shape; nothing is read or computed yet."""
    if isinstance(metric, str) and metric == "precomputed":
        msg = (
            "`metric` must compute costs from points on a cluster, got 'precomputed'. Costs that "
            "fit into memory need no cluster: use otgraph.quadratic_ot_graph."
        )
        raise ValueError(msg)
    if isinstance(X, str | os.PathLike):
        path = full_name(X)
        shape, itemsize = _seen_by_workers(path, cluster)
        return Source(_two_dimensional(shape), itemsize, path=path)
    if _is_dask(X):
        return _of_dask_array(_as_array(X, cluster))
    check_kind(X, "X")
    points: Values = X if sp.issparse(X) else np.asarray(X)
    shape = _two_dimensional(points.shape)
    rows = max(1, cluster.piece_entries // shape[1])
    pieces = [points[a:b] for a, b in row_blocks(shape[0], rows)]
    return Source(shape, _itemsize(points.dtype), pieces=pieces, sparse=sp.issparse(points))


def read_rows(X: ClusterPoints, rows: LongArray, *, metric: Metric, cluster: Cluster) -> Points:
    """Some of the points, checked, in this process."""
    if isinstance(X, str | os.PathLike):
        path = full_name(X)
        return check_input(cluster.result(cluster.submit("rows", rows_of_file, path, rows)), metric)
    if _is_dask(X):
        X = _as_array(X, cluster)
    points: Values | DaskArray = X if _is_dask(X) or sp.issparse(X) else np.asarray(X)
    source = find_source(points[rows], metric, cluster=cluster)
    n = source.shape[0]
    blocks = source.blocks(cluster, [(0, n)])
    return check_input(cluster.result(blocks[0]), metric)


def submit_cost(cluster: Cluster, source: Source, **options: Any) -> Future:
    """The future of the cost that every worker will hold a copy of."""
    blocks = source.blocks(cluster, row_blocks(source.shape[0], BLOCK_ROWS))
    return cluster.submit("cost", build_cost, blocks, options)


def are_shared(source: Source, metric: Metric) -> bool:
    """Whether workers share the points; they do where points have cells.

    Few points, and those in few dimensions, are no larger than some vectors with one number per
    point. Costs of other metrics and of sparse points need all pairs.
    """
    return is_euclidean(metric) and has_cells(source.shape) and not source.sparse


# Tasks ---------------------------------------------------------------------------------


def read_block(path: str, first: int, last: int, d: int) -> Array:
    """Some rows of a file."""
    return check_block(open_points(path).rows(first, last), first, last, d)


def join_block(pieces: Sequence[Values], start: int, first: int, last: int, d: int) -> Values:
    """Some rows of consecutive pieces, the first of which begins with row ``start``."""
    whole = pieces[0] if len(pieces) == 1 else _joined(pieces)
    return check_block(whole[first - start : last - start], first, last, d)


def check_block(points: Values, first: int, last: int, d: int) -> Any:
    """Rows ``first:last`` of the points, checked; float32 stays float32."""
    if points.shape != (last - first, d):
        msg = (
            f"must have the shape that it declares, but its rows {first} to {last} have the "
            f"shape {points.shape} instead of {(last - first, d)}. If chunks of a Dask array may "
            "be shorter, call `X.compute_chunk_sizes()` first."
        )
        raise invalid("X", msg)
    if isinstance(points, np.ndarray) and points.dtype in (np.float32, np.float64):
        points = np.ascontiguousarray(points)
        check_finite(points, "X", first)
        return points
    return check_points(points, min_samples=1)


def build_cost(blocks: Sequence[Values], options: Keywords) -> Cost:
    """The cost of all points."""
    X = blocks[0] if len(blocks) == 1 else _joined(blocks)
    X = check_input(X, options["metric"], single=True)
    return as_cost(X, workers=_threads(), **options)


def rows_of_file(path: str, rows: LongArray) -> Array:
    """Some of the points in a file."""
    return open_points(path).take(rows)


def _threads() -> Workers:
    """All threads of this worker, for the one task that prepares the points."""
    worker = require("distributed", "distributed").get_worker()
    return Workers(worker.state.nthreads)


def facts_of_file(path: str) -> tuple[tuple[int, ...], int, int] | str:
    """Shape of the array in a file, bytes of its numbers, and missing chunks.

    Or the reason why it cannot be read.
    """
    try:
        points = open_points(path)
        shape = tuple(int(length) for length in points.shape)
        return shape, _itemsize(points.dtype), points.missing
    except Exception as error:  # readers raise many kinds of errors; the driver adds the address
        return f"{type(error).__name__}: {error}"


def _seen_by_workers(path: str, cluster: Cluster) -> tuple[tuple[int, ...], int]:
    """The shape and the size of a number that every worker sees."""
    with cluster.errors():
        seen = cluster.client.run(facts_of_file, path)
    if not seen:
        cluster.refuse_without_workers()
    failed = {address: answer for address, answer in seen.items() if isinstance(answer, str)}
    if failed:
        address, reason = next(iter(failed.items()))
        msg = (
            f"`X` is the path {path!r}, which {len(failed)} of {len(seen)} workers cannot read "
            f"({address}: {reason}). Put it where all workers see it under the same name, as a "
            ".npy file, a zarr array or a parquet table."
        )
        raise ClusterError(msg)
    if len(set(seen.values())) > 1:
        msg = (
            f"`X` is the path {path!r}, where workers see arrays of different shape, or different "
            f"numbers of missing chunks: {seen}."
        )
        raise ClusterError(msg)
    shape, itemsize, missing = next(iter(seen.values()))
    if missing:
        msg = (
            f"`X` is the zarr array {path!r}, of which {missing} chunk(s) are not stored; they are "
            "read as its fill value. If they are lost, write the array again."
        )
        warnings.warn(msg, UserWarning, stacklevel=2)
    return shape, itemsize


def _itemsize(dtype: Any) -> int:
    """Bytes of a number in memory; what is not float32 becomes float64."""
    return 4 if dtype == np.float32 else 8


def _as_array(X: Any, cluster: Cluster) -> DaskArray:
    """A Dask data frame as a Dask array, whose partitions are counted by the workers."""
    if not hasattr(X, "to_dask_array"):
        return X
    check_kind(X._meta, "X")
    wrong = [str(name) for name, kind in X.dtypes.items() if kind.kind not in "fiub"]
    if wrong:
        msg = f"must hold numbers, but not so its columns {', '.join(wrong[:5])}. Drop them first."
        raise invalid("X", msg)
    partitions = cluster.compute([part.map_partitions(len) for part in X.partitions])
    lengths = [int(np.sum(length)) for length in cluster.gather(partitions)]
    found: DaskArray = X.to_dask_array(lengths=tuple(lengths))
    return found


def _of_dask_array(X: DaskArray) -> Source:
    if not hasattr(X, "to_delayed") or not hasattr(X, "rechunk"):
        msg = f"must be {FORMATS}, got {type(X).__name__}."
        raise invalid("X", msg, TypeError)
    if any(np.isnan(length) for length in X.shape):
        msg = "is a Dask array of unknown length; call `X.compute_chunk_sizes()` first."
        raise invalid("X", msg)
    shape = _two_dimensional(X.shape)
    sparse = sp.issparse(getattr(X, "_meta", None))
    return Source(shape, _itemsize(X.dtype), array=X, sparse=sparse)


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
