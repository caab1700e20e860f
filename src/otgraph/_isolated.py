"""Call a reader of another package in a process of its own.

Readers in C may crash on a damaged file, loop for ever or take all memory. Here that happens to
another process, which has limits of time and memory, and becomes an error about the file.

The result comes back through a temporary file without a name, which is mapped into memory: large
arrays are not copied, and nothing stays behind if this process is killed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import mmap
import os
import pickle
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
from inspect import signature
from multiprocessing import spawn
from typing import IO, TYPE_CHECKING, Any

from otgraph._memory import available_bytes, format_bytes, limit_memory
from otgraph._optional import require

if TYPE_CHECKING:
    from collections.abc import Callable

    from anndata import AnnData

    from otgraph.typing import Array, Keywords, SparseMatrix

    # Kind of the answer, the value or the message, and warnings.
    Answer = tuple[str, Any, list[Warning]]

# Time to start the process and import the reader, on a busy machine and from a slow disk, ...
START_SECONDS = 60.0
# ... and to read: ten times slower than a compressed file from a network disk.
BYTES_PER_SECOND = 1e6
ALIGNMENT = 64  # of arrays, as numpy allocates them
FOOTER = struct.Struct("<QQ")  # where the pickle begins, and its length; comes last
BOOTSTRAP = (
    "import json, sys; request = json.loads(sys.argv[1]); sys.path[:] = request['sys_path']; "
    "from otgraph._isolated import serve; serve(request)"
)


def read_isolated(reader: str, path: str, *, meanwhile: Callable[[], object] | None = None) -> Any:
    """The result of ``reader(path)``, computed by another process.

    The reader is a module and a function, such as ``"scipy.io:mmread"``. ``meanwhile`` is what this
    process does while the other one starts: import what the result needs.

    Raises
    ------
    FormatError
        If the reader crashes, does not end, or raises an exception: the words are those of the
        exception. Messages begin with "it" or "its"; callers put the file name first.
    MemoryLimitError
        If it needs more memory than is free.
    """
    seconds = START_SECONDS + os.path.getsize(path) / BYTES_PER_SECOND
    request = {
        "reader": reader,
        "path": os.path.abspath(path),
        "seconds": seconds,
        "sys_path": [os.path.abspath(entry) for entry in sys.path],
    }
    command = [os.fsdecode(spawn.get_executable()), "-c", BOOTSTRAP, json.dumps(request)]
    with tempfile.TemporaryFile() as result:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=subprocess.DEVNULL,
            # The reader has no use for threads of BLAS, which take time and address space.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        try:
            if meanwhile is not None:
                meanwhile()
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            process.kill()
            process.wait()
        kind, value, heard = _received(result) if code == 0 else ("error", _death(code), [])
    for warning in heard:
        warnings.warn(warning, stacklevel=2)
    if kind != "value":
        # Imported here: it loads scikit-learn, for which neither process should wait.
        from otgraph.exceptions import FormatError, MemoryLimitError

        raise (MemoryLimitError if kind == "memory" else FormatError)(value)
    return value


def read_h5ad(path: str) -> AnnData:
    """Annotated data from a file; HDF5 crashes on some damaged files and hangs on others."""
    return read_isolated(
        "anndata:read_h5ad", path, meanwhile=lambda: require("anndata", "singlecell")
    )


def read_mtx(path: str) -> Array | SparseMatrix:
    """A Matrix Market file; scipy's reader crashes on some damaged ones."""
    return read_isolated(
        "otgraph._isolated:mmread", path, meanwhile=lambda: importlib.import_module("scipy.sparse")
    )


def mmread(path: str) -> Array | SparseMatrix:
    """scipy's reader, whose sparse matrices are of the same class in every version."""
    from scipy import io

    # scipy changes its default; older versions know no choice.
    choice = {"spmatrix": True} if "spmatrix" in signature(io.mmread).parameters else {}
    try:
        return io.mmread(path, **choice)
    except UnicodeDecodeError as error:
        msg = "it is not text in UTF-8"
        raise ValueError(msg) from error


def _death(code: int | None) -> str:
    """What happened to a process; None if it took too long."""
    if code is None or -code == getattr(signal, "SIGXCPU", None):
        return "its reader does not come to an end; it must be damaged"
    if code > 0:
        return f"its reader ended with exit code {code}; it may be damaged"
    names = {number.value: number.name for number in signal.Signals}
    lack = ", perhaps for lack of memory" if -code == getattr(signal, "SIGKILL", None) else ""
    return f"its reader crashed ({names.get(-code, -code)}{lack}); it must be damaged"


def _received(file: IO[bytes]) -> Answer:
    # Private and writable: the arrays of the result are these pages.
    content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    start, length = FOOTER.unpack(content[-FOOTER.size :])
    places, body = pickle.loads(content[start : start + length])
    return pickle.loads(body, buffers=[content[a:b] for a, b in places])


# In the other process -----------------------------------------------------------------------


def serve(request: Keywords) -> None:
    """Read, and write the result to standard output."""
    # What the reader prints must not get between.
    with os.fdopen(os.dup(1), "wb") as result:
        os.dup2(2, 1)
        _send(_answer(request), result)


def _answer(request: Keywords) -> Answer:
    module, _, name = request["reader"].partition(":")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            read = getattr(importlib.import_module(module), name)
        except ImportError as error:
            return "error", str(error), []
        free = available_bytes()
        limit_memory(free)
        _limit_processor(request["seconds"])
        heard.clear()  # imports in the caller's process give the same warnings
        try:
            value = read(request["path"])
            shown = [each.message for each in heard if issubclass(each.category, UserWarning)]
            return "value", value, [UserWarning(str(message)) for message in shown]
        except MemoryError:
            return "memory", f"it needs more than the {format_bytes(free)} that are free", []
        except Exception as error:  # libraries raise different errors for damaged files
            return "error", " ".join(str(error).split()) or type(error).__name__, []


def _limit_processor(seconds: float) -> None:
    """End this process after the given time, even if its parent was killed."""
    try:
        import resource
    except ImportError:  # Windows
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = int(seconds * (os.cpu_count() or 1)) + 1
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _send(answer: Answer, file: IO[bytes]) -> None:
    buffers: list[pickle.PickleBuffer] = []
    body = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    places, end = [], 0
    for buffer in buffers:
        raw = buffer.raw()
        file.write(bytes(-end % ALIGNMENT))
        start = end + -end % ALIGNMENT
        end = start + raw.nbytes
        places.append((start, end))
        file.write(raw)
    packed = pickle.dumps((places, body), protocol=5)
    file.write(packed)
    file.write(FOOTER.pack(end, len(packed)))
    file.flush()
