"""Graphs in files: one file each, versioned, checksummed, without pickle.

    offset  bytes
    0       8    magic: binary marker, name, both line ends (text transfer damages them)
    8       4    format version, unsigned little-endian, as all numbers
    12      8    length of the header
    20      32   SHA-256 of bytes 0..20 and the header
    52           header: JSON with params, certificate and a table of arrays
    ...          the arrays, in the order of the table, without gaps

The table gives name, type, shape and SHA-256 of each array. Sizes are compared with the size of
the file before anything is allocated. The file must end with the last array, so every byte is
covered by a checksum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import sys
from typing import TYPE_CHECKING, BinaryIO, TypeVar

import numpy as np

from otgraph._atomic import replacing
from otgraph._validation import check_path
from otgraph.exceptions import FormatError, argument_error
from otgraph.graphs._canonical import plain_params
from otgraph.graphs._folders import is_folder, read_folder
from otgraph.graphs._records import certificate_of, decoded, encoded, refuse
from otgraph.graphs._stored import (
    check_numbers,
    check_points_of,
    check_rows,
    csr_arrays,
    csr_of,
    float64,
    point_arrays,
    points_of,
)
from otgraph.graphs.cross_graph import Both, CrossGraph
from otgraph.graphs.graph import Graph, TransportGraph
from otgraph.graphs.mean import MultiscaleGraph, checked_shares, mean_certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from otgraph.graphs._records import Record
    from otgraph.typing import Array, Keywords, Points, SparseMatrix

Read = TypeVar("Read")

MAGIC = b"\x89OTG\r\n\x1a\n"
VERSION = 1
PRELUDE = struct.Struct("<8sIQ")
DIGEST_BYTES = 32
TYPES = ("<f8", "<i4", "<i8")  # all arrays of a graph
MOST_HEADER_BYTES = 1 << 24  # JSON of this size is parsed in a second; a true header has kilobytes
MOST_DIMENSIONS = 2
SHARES_RTOL = 1e-9  # rounding of shares that were divided by their sum, with room
SIDES = ("x", "y")  # endings of the names of arrays between two clouds
# What code that expects a graph raises for anything else.
UNFIT = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)
CHUNK_BYTES = 1 << 24  # bytes hashed or read at once, so that Ctrl-C works


def save_graph(
    graph: Graph | CrossGraph,
    path: str | os.PathLike[str],
    *,
    include_points: bool = True,
    overwrite: bool = True,
) -> None:
    """Write a graph to one file; see :meth:`Graph.save`."""
    target = check_path(path)
    arrays = dict(_arrays_of(graph, include_points))
    header = _encoded_header(graph, arrays)
    try:
        (_cross_of if isinstance(graph, CrossGraph) else _graph_of)(json.loads(header), arrays)
    except (FormatError, ValueError) as error:
        msg = f"This graph cannot be saved, because its file could not be loaded. {error}"
        raise argument_error(ValueError, "graph", msg) from error
    prelude = PRELUDE.pack(MAGIC, VERSION, len(header))
    with replacing(target, overwrite=overwrite) as file:
        file.write(prelude + hashlib.sha256(prelude + header).digest() + header)
        for array in arrays.values():
            for chunk in _chunks(array):
                file.write(chunk)


def load_graph(path: str | os.PathLike[str]) -> Graph:
    """Graph from a file that :meth:`Graph.save` wrote, or from a folder that a cluster wrote.

    Nothing in the file is executed. A file that is damaged, foreign or newer than this
    version raises :class:`otgraph.exceptions.FormatError`, which says what is wrong.

    Parameters
    ----------
    path
        The file; or the .zarr or .parquet folder of
        :meth:`otgraph.distributed.DistributedGraph.write`, also at an address such as
        ``memory://graph.zarr``.

    Examples
    --------
    >>> import os, tempfile, otgraph
    >>> graph = otgraph.knn_gaussian_graph([[0.0], [1.0], [3.0]], n_neighbors=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = os.path.join(directory, "three.otg")
    ...     graph.save(path)
    ...     otgraph.load_graph(path)
    Graph(n=3, edges=2, mean_degree=1.333, method='knn')
    """
    name = check_path(path)
    if is_folder(name):
        header, arrays = read_folder(name)
        return _checked(lambda: _graph_of(header, arrays))
    return _loaded(name, _graph_of)


def load_cross_graph(path: str | os.PathLike[str]) -> CrossGraph:
    """Plan between two clouds from a file; see :meth:`CrossGraph.load`."""
    return _loaded(path, _cross_of)


def _loaded(
    path: str | os.PathLike[str], read: Callable[[Record, Mapping[str, Array]], Read]
) -> Read:
    with open(check_path(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, size)
        return _checked(lambda: read(header, _arrays_in(file, header, size)))


def _arrays_in(file: BinaryIO, header: Record, size: int) -> dict[str, Array]:
    return {
        entry["name"]: _read_array(file, entry)
        for entry in _checked_table(header["arrays"], size - file.tell())
    }


def _checked(read: Callable[[], Read]) -> Read:
    """What was read; the checksums were right, so whatever fails is not damaged, but no graph."""
    try:
        return read()
    except FormatError:
        raise
    except UNFIT as error:
        refuse(f"its contents do not describe a graph ({error})", error)


def _arrays_of(graph: Graph | CrossGraph, include_points: bool) -> Iterator[tuple[str, Array]]:
    yield from csr_arrays("weights", graph.weights)
    if isinstance(graph, CrossGraph):
        for place, side in enumerate(SIDES):
            yield f"potentials.{side}", float64(graph.potentials[place])
            yield f"mass.{side}", float64(graph.mass[place])
            if include_points and graph.points is not None:
                yield from point_arrays(f"points.{side}", graph.points[place])
        return
    if isinstance(graph, TransportGraph | MultiscaleGraph):
        yield "potentials", float64(graph.potentials)
        yield "mass", float64(graph.mass)
        if graph.copies is not None:
            yield "copies", np.ascontiguousarray(graph.copies, dtype="<i8")
        named = {"floors": graph.floors}
        if isinstance(graph, MultiscaleGraph):
            named = {f"floors{k}": floors for k, floors in enumerate(graph.floors)}
        for name, floors in named.items():
            if floors is not None:
                yield from csr_arrays(name, floors)
    if graph.edge_costs is not None:
        yield "edge_costs", float64(graph.edge_costs)
    if not include_points or graph.points is None:
        return
    yield from point_arrays("points", graph.points)


def _encoded_header(graph: Graph | CrossGraph, arrays: Mapping[str, Array]) -> bytes:
    table = [
        {
            "name": name,
            "type": array.dtype.str,
            "shape": list(array.shape),
            "sha256": _digest(array),
        }
        for name, array in arrays.items()
    ]
    certificate = None if not hasattr(graph, "certificate") else graph.certificate.record()
    clouds: Keywords = {"points": graph.points}
    if isinstance(graph, CrossGraph):
        clouds = {
            f"points.{side}": cloud
            for side, cloud in zip(SIDES, graph.points or (None, None), strict=True)
        }
    header = {
        "params": encoded(plain_params(graph.params)),
        "certificate": certificate and encoded(certificate),
        **{
            f"{key}_shape": list(points.shape) if f"{key}.data" in arrays else None
            for key, points in clouds.items()
        },
        "arrays": table,
    }
    # Escapes, because a name may hold half a character, which UTF-8 does not have.
    return json.dumps(header, allow_nan=False).encode()


def _read_header(file: BinaryIO, size: int) -> Record:
    prelude = file.read(PRELUDE.size)
    if prelude[: len(MAGIC)] != MAGIC[: len(prelude)] or not prelude:
        refuse("it does not begin as one")
    if size < PRELUDE.size + DIGEST_BYTES:
        refuse(f"it ends after {size} bytes, within its first fields")
    _, version, length = PRELUDE.unpack(prelude)
    if version > VERSION:
        refuse(
            f"it has format version {version} and this package reads up to {VERSION}, or it is "
            "damaged; a newer otgraph may read it"
        )
    if version == 0:
        refuse("it has format version 0, which does not exist: the file is damaged")
    digest = file.read(DIGEST_BYTES)
    remaining = size - file.tell()
    if length > remaining:
        refuse(
            f"its header should have {length} bytes but {remaining} follow: it is cut or damaged"
        )
    if length > MOST_HEADER_BYTES:
        refuse(f"its header has {length} bytes, more than {MOST_HEADER_BYTES}")
    encoded = file.read(length)
    if hashlib.sha256(prelude + encoded).digest() != digest:
        refuse("its header does not match its checksum: the file is damaged")
    try:
        header = json.loads(encoded)
    except (ValueError, RecursionError) as error:
        refuse("its header is not JSON", error)
    if not isinstance(header, dict):
        refuse("its header is not a table")
    return header


def _checked_table(table: list[Record], available: int) -> list[Record]:
    """The table of arrays, after checking that they fill the rest of the file exactly."""
    total = 0
    for entry in table:
        shape = entry["shape"]
        if entry["type"] not in TYPES or not _is_shape(shape):
            refuse(f"array {entry['name']!r} has an unknown type or shape")
        total += math.prod(shape) * np.dtype(entry["type"]).itemsize
    if len({entry["name"] for entry in table}) != len(table):
        refuse("an array occurs twice")
    if total != available:
        what = "truncated" if total > available else "followed by something else"
        refuse(f"its arrays should take {total} bytes, but {available} are there: it is {what}")
    return table


def _is_shape(shape: object) -> bool:
    """Whether these can be lengths of an array; larger ones may have thousands of digits."""
    if not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        return False
    return all(type(length) is int and 0 <= length <= sys.maxsize for length in shape)


def _read_array(file: BinaryIO, entry: Record) -> Array:
    array = np.empty(entry["shape"], dtype=entry["type"])
    if any(file.readinto(chunk) != len(chunk) for chunk in _chunks(array)):  # type: ignore[attr-defined]
        refuse(f"it ends within array {entry['name']!r}: the file is truncated")
    if _digest(array) != entry["sha256"]:
        refuse(f"array {entry['name']!r} does not match its checksum: the file is damaged")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _graph_of(header: Record, arrays: Mapping[str, Array]) -> Graph:
    if "potentials.x" in arrays:
        refuse("it holds a plan between two clouds; read it with `otgraph.CrossGraph.load`")
    n = len(arrays["weights.indptr"]) - 1
    if n < 1:
        refuse("it has no points")
    parts: Keywords = {
        "weights": csr_of("weights", arrays, n),
        "params": plain_params(decoded(header["params"])),
        "points": _points_of(header, arrays),
        "edge_costs": arrays.get("edge_costs"),  # absent from older files
    }
    _check_weights(parts["weights"])
    costs, points = parts["edge_costs"], parts["points"]
    if costs is not None and (
        costs.shape != parts["weights"].data.shape or not np.all(costs >= 0.0)
    ):
        refuse("its edge costs are not one number >= 0 for every weight")
    check_points_of(points, n)
    if header["certificate"] is None:
        return Graph(**parts)
    plans = header["certificate"].get("parts")
    for name in ("potentials", "mass"):
        shape = (n, len(plans)) if plans and name == "potentials" else (n,)
        check_numbers(name, arrays.get(name), *shape, positive=name == "mass")
        parts[name] = arrays[name]
    parts["copies"] = _copies_of(arrays, n)
    if not plans:
        certificate = certificate_of(header["certificate"])
        return TransportGraph(certificate=certificate, floors=_floors_of("", arrays, n), **parts)
    shares = header["certificate"]["shares"]
    if not np.allclose(checked_shares(shares, len(plans)), shares, rtol=SHARES_RTOL, atol=0.0):
        refuse("the shares of its parts do not sum to one")
    certificates = [certificate_of(each) for each in plans]
    return MultiscaleGraph(
        certificate=mean_certificate(certificates, shares, parts["weights"], parts["mass"]),
        floors=tuple(_floors_of(str(k), arrays, n) for k in range(len(plans))),
        **parts,
    )


def _floors_of(which: str, arrays: Mapping[str, Array], n: int) -> SparseMatrix | None:
    """The minimum flows of a plan."""
    if f"floors{which}.data" not in arrays:
        return None
    floors = csr_of(f"floors{which}", arrays, n)
    if not (np.isfinite(floors.data).all() and (floors.data >= 0.0).all()):
        refuse("its minimum flows are not all finite and >= 0")
    return floors


def _copies_of(arrays: Mapping[str, Array], n: int) -> Array | None:
    """The distinct point behind every row; they are numbered in the order of appearance."""
    copies = arrays.get("copies")
    if copies is None:
        return None
    if copies.shape != (n,) or copies.dtype.kind != "i" or copies[0] != 0 or copies.min() < 0:
        refuse(f"its copies are not {n} numbers of points")
    if np.any(copies[1:] > np.maximum.accumulate(copies)[:-1] + 1):
        refuse("its copies are not numbered in the order of appearance")
    return copies


def _check_weights(weights: SparseMatrix) -> None:
    check_rows(weights)
    if (weights != weights.T).nnz:
        refuse("its weights are not symmetric")


def _points_of(header: Record, arrays: Mapping[str, Array], key: str = "points") -> Points | None:
    shape = header[f"{key}_shape"]
    if shape is not None and (not _is_shape(shape) or len(shape) != 2):
        refuse("the shape of its points is not two numbers")
    return points_of(key, shape, arrays)


def _cross_of(header: Record, arrays: Mapping[str, Array]) -> CrossGraph:
    """A plan between two clouds."""
    if "potentials.x" not in arrays:
        refuse("it holds a graph of one cloud; read it with `otgraph.load_graph`")
    n, m = (len(arrays[f"potentials.{side}"]) for side in SIDES)
    weights = csr_of("weights", arrays, m)
    if not n or not m or weights.shape[0] != n:
        refuse(f"its weights have shape {weights.shape}, and its clouds {n} and {m} points")
    check_rows(weights)
    points = [_points_of(header, arrays, f"points.{side}") for side in SIDES]
    for side, size, some in zip(SIDES, (n, m), points, strict=True):
        check_points_of(some, size)
        check_numbers("potentials", arrays.get(f"potentials.{side}"), size)
        check_numbers("mass", arrays.get(f"mass.{side}"), size, positive=True)
    return CrossGraph(
        weights=weights,
        params=plain_params(decoded(header["params"])),
        certificate=certificate_of(header["certificate"]),
        potentials=Both(*(arrays[f"potentials.{side}"] for side in SIDES)),
        mass=Both(*(arrays[f"mass.{side}"] for side in SIDES)),
        points=None if points[0] is None or points[1] is None else (points[0], points[1]),
    )


def _chunks(array: Array) -> Iterator[memoryview]:
    """The bytes of a contiguous array; writing to them writes to the array."""
    if not array.size:
        return
    data = memoryview(array.reshape(-1).view(np.uint8).data)
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]


def _digest(array: Array) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(array):
        digest.update(chunk)
    return digest.hexdigest()
