"""Free memory, including limits of containers and of the process."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Assumed if the system does not report it.
UNKNOWN_BYTES = 4 << 30
# Share of the free memory that may be used.
USABLE_SHARE = 0.9
# Names of limit, usage and reclaimable cache in the two versions of control groups.
CGROUP_FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


READ_BYTES = 1 << 16  # at once, of the system's files; most are shorter

# Arrays smaller than this are not worth asking the C library to return what was freed.
LARGE_BYTES = 1 << 26


def return_free_memory(soon: int) -> None:
    """Return what was freed to the system, before ``soon`` bytes are allocated.

    The C library of Linux keeps up to 64 MB of freed memory for every thread, for the next small
    arrays. Large ones are not put there. It takes milliseconds.
    """
    if soon >= LARGE_BYTES and (trim := _libc("malloc_trim")) is not None:
        trim(0)


def give_back_pages(X: object) -> None:
    """Give back the pages of points that are read from a mapped file, until they are read again.

    They count as memory of the process. Only pages that cannot have been written to are given
    back: others might be lost.
    """
    if isinstance(X, np.memmap) and X.mode == "r":
        base = X.base
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


@cache
def _libc(name: str) -> Callable[..., int] | None:
    """A function of the GNU C library; others have none."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return getattr(ctypes.CDLL(None), name, None)


# Parameters of glibc's malloc (`mallopt`), and sizes for them. Blocks of a search are some MB.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 26
MAPPED_BYTES = 1 << 24
TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"


@cache
def keep_freed_memory() -> None:
    """Let this process keep some tens of MB that are freed, where its environment forbids it.

    Dask starts workers so that they give every freed block above 64 kB back to the system. The
    system fills the next one with zeros, page by page: searches then take twice as long. Arrays of
    16 MB and more are still given back at once.
    """
    mallopt = _libc("mallopt")
    if mallopt is not None and TRIM_VARIABLE in os.environ:
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)


def available_bytes(root: str | os.PathLike[str] = "/") -> int:
    """Memory that can be allocated without swapping or exceeding a limit.

    The least of what the machine has free and what the limits of containers (control groups,
    version 1 or 2) and of the process (``ulimit -v``) leave. ``root`` is where the system's
    files are.
    """
    base = os.path.join(root, "")
    free = _field(f"{base}proc/meminfo", "MemAvailable:", 1024)
    known = [*_cgroup_room(base), *_address_room(base)]
    return max(0, min([_physical() if free is None else free, *known]))


def _cgroup_room(base: str) -> Iterator[int]:
    """Room below the limit of every control group that this process is in."""
    for line in _lines(f"{base}proc/self/cgroup"):
        number, controllers, path = line.split(":", 2)
        if number == "0":
            top, names = f"{base}sys/fs/cgroup", CGROUP_FILES[2]
        elif "memory" in controllers.split(","):
            top, names = f"{base}sys/fs/cgroup/memory", CGROUP_FILES[1]
        else:
            continue
        # A container may see its own group at the top, or the path as the host has it.
        folders, parts = [top], [part for part in path.split("/") if part]
        for part in parts:
            folders.append(f"{folders[-1]}/{part}")
        for folder in folders:
            limit = _number(f"{folder}/{names[0]}")  # the other files only where there is one
            usage = None if limit is None else _number(f"{folder}/{names[1]}")
            if limit is not None and usage is not None:
                cache = _field(f"{folder}/memory.stat", names[2], 1) or 0
                yield limit - max(0, usage - cache)


def _address_room(base: str) -> Iterator[int]:
    """Room below the limit of the address space of this process."""
    if resource is None:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    used = _field(f"{base}proc/self/status", "VmSize:", 1024)
    if used is not None:
        yield limit - used


def limit_memory(n_bytes: int) -> None:
    """Limit how much more memory this process may take, where the system allows it."""
    used = _field("/proc/self/status", "VmSize:", 1024)
    if used is not None and resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        with contextlib.suppress(ValueError, OSError):  # a lower limit is there already
            resource.setrlimit(resource.RLIMIT_AS, (used + n_bytes, most))


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_BYTES


def _lines(path: str) -> list[str]:
    """The lines of a small file, none if it cannot be read.

    Read as a whole without Python's buffers: a graph of some thousand points asks several times.
    """
    try:
        file = os.open(path, os.O_RDONLY)
        try:
            text = b"".join(iter(lambda: os.read(file, READ_BYTES), b""))
        finally:
            os.close(file)
    except OSError:
        return []
    return text.decode(errors="replace").splitlines()


def _field(path: str, name: str, unit: int) -> int | None:
    """The number behind a name at the beginning of a line."""
    for line in _lines(path):
        if line.startswith(name) and line.split()[0] == name:
            return int(line.split()[1]) * unit
    return None


def _number(path: str) -> int | None:
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].isdigit() else None  # "max" is no limit


def require_bytes(need: float, what: str, way_out: str) -> None:
    """Raise before anything is allocated if ``need`` bytes are more than may be used."""
    usable = USABLE_SHARE * available_bytes()
    if need > usable:
        msg = (
            f"{what} would need {format_bytes(need)}, but {format_bytes(usable)} may be used. "
            f"{way_out}"
        )
        # Imported here: it loads scikit-learn, for which the command line should not wait.
        from otgraph.exceptions import MemoryLimitError

        raise MemoryLimitError(msg)


def format_bytes(n_bytes: float) -> str:
    """A size as text, in GB or MB."""
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def peak_bytes() -> int | None:
    """Most memory that this process has held so far; None where the system does not tell."""
    # Not `resource` on Linux: its figure includes what the parent held before this began.
    peak = _field("/proc/self/status", "VmHWM:", 1024)
    if peak is not None:
        return peak
    if resource is None:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)  # only macOS counts in bytes
