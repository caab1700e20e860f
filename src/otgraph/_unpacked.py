"""How much memory a file will take, found out before it is read.

Compressed files, and headers that announce sizes, can ask for any amount. What is more than the
free memory is refused. Messages begin with "it" or "its"; callers put the file name first.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import sys
import zlib
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np

from otgraph._memory import available_bytes, format_bytes
from otgraph._tables import GZIP_MAGIC

if TYPE_CHECKING:
    import zipfile
    from collections.abc import Iterable

MOST_RATIO = 1032  # of deflate: 258 bytes in two bits
CHUNK_BYTES = 1 << 20
NUMBER_BYTES = 8
NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# Matrix Market: bytes of the shortest line, such as "1 1\n" for the position of a one.
SHORTEST_LINES = {"pattern": 4, "complex": 8}
SHORTEST_LINE, SHORTEST_NUMBER = 6, 2


def check_fits(n_bytes: int, what: str = "it") -> None:
    """Raise an error if this many bytes are not free."""
    free = available_bytes()
    if n_bytes > free:
        _refuse_size(
            f"{what} takes {format_bytes(n_bytes)} of memory, and {format_bytes(free)} are free"
        )


def is_gzip(path: str) -> bool:
    """Whether a file is compressed, whatever its name says."""
    with open(path, "rb") as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


def check_gzip(path: str) -> None:
    """Raise an error if a compressed file unpacks to more than the free memory."""
    if is_gzip(path):
        _check_unpacked(path, os.path.getsize(path))


def read_stream(stream: IO[bytes]) -> bytes:
    """All of a stream; raises an error if it, or what it unpacks to, does not fit into memory."""
    free, content = available_bytes(), io.BytesIO()
    while chunk := stream.read(CHUNK_BYTES):
        content.write(chunk)
        if content.tell() > free:
            _refuse_size(f"it has more than the {format_bytes(free)} of memory that are free")
    whole = content.getvalue()
    if whole.startswith(GZIP_MAGIC):
        _check_unpacked(io.BytesIO(whole), len(whole))
    return whole


def _check_unpacked(source: str | IO[bytes], n_bytes: int) -> None:
    """The statement of a file about its own size cannot be trusted: a large one is unpacked."""
    free = available_bytes()
    if n_bytes * MOST_RATIO <= free:
        return
    unpacked = 0
    try:
        with gzip.open(source) as file:
            while chunk := file.read(CHUNK_BYTES):
                unpacked += len(chunk)
                if unpacked > free:
                    break
    except (OSError, EOFError, zlib.error):
        return  # damaged: for its reader to say
    if unpacked > free:
        _refuse_size(f"it unpacks to more than the {format_bytes(free)} of memory that are free")


def check_npz(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raise an error unless these arrays of an .npz file are as large as they say, and fit."""
    total = 0
    for name in names:
        member = archive.getinfo(f"{name}.npy")
        with archive.open(member) as file:
            announced = _npy_bytes(file)
        if announced > member.file_size:
            _refuse_contents(
                f"its array {name!r} is damaged: {announced:,} bytes are announced, "
                f"{member.file_size:,} are there"
            )
        total += member.file_size
    check_fits(total)


def _npy_bytes(file: IO[bytes]) -> int:
    """Size of an array by its header; 0 for headers that numpy itself must judge."""
    read_header = NPY_HEADERS.get(np.lib.format.read_magic(file))
    if read_header is None:
        return 0
    shape, _, dtype = read_header(file)
    return math.prod(map(int, shape)) * dtype.itemsize


def check_mtx(path: str) -> None:
    """Raise an error if the header of a Matrix Market file announces what cannot be."""
    check_gzip(path)
    header = _mtx_header(path)
    if header is None:
        return  # for its reader to say
    layout, field, symmetry, sizes = header
    if max(sizes) > sys.maxsize:
        _refuse_contents(f"its header announces a size of {len(str(max(sizes))):,} digits")
    halved = symmetry != "general"
    if layout == "array":
        rows, columns = sizes
        stored = rows * columns if not halved else rows * max(0, rows - 1) // 2
        shortest, memory = SHORTEST_NUMBER, rows * columns * NUMBER_BYTES
    else:
        rows, _, stored = sizes
        shortest = SHORTEST_LINES.get(field, SHORTEST_LINE)
        # Row, column and value, and the bounds of the rows.
        memory = (3 * stored * (2 if halved else 1) + rows) * NUMBER_BYTES
    size = os.path.getsize(path)
    most = size * MOST_RATIO if is_gzip(path) else size + 1  # the last line end may be missing
    if stored * shortest > most:
        _refuse_contents(
            f"its header announces {stored:,} numbers, for which {size:,} bytes are too few"
        )
    check_fits(memory)


def _mtx_header(path: str) -> tuple[str, str, str, list[int]] | None:
    opened: Any = gzip.open if is_gzip(path) else open
    try:
        with opened(path, "rb") as file:
            banner = file.readline(CHUNK_BYTES).decode("latin-1").lower().split()
            line = file.readline(CHUNK_BYTES)
            while line and (line.startswith(b"%") or not line.strip()):
                line = file.readline(CHUNK_BYTES)
            sizes = [int(word) for word in line.split()]
    except (OSError, EOFError, zlib.error, ValueError):
        return None
    if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"] or min(sizes, default=-1) < 0:
        return None
    layout, field, symmetry = banner[2:]
    if len(sizes) != {"coordinate": 3, "array": 2}.get(layout):
        return None
    return layout, field, symmetry, sizes


# Imported there: errors load scikit-learn, for which a file that is read should not wait.


def _refuse_size(reason: str) -> NoReturn:
    from otgraph.exceptions import MemoryLimitError

    raise MemoryLimitError(reason)


def _refuse_contents(reason: str) -> NoReturn:
    from otgraph.exceptions import FormatError

    raise FormatError(reason)
