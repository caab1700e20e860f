"""One BLAS thread while the package computes, and as many as before when it does not.

The last bits of a matrix product depend on the number of BLAS threads, so results would depend on
the machine and on the caller. Most libraries have one number for the whole process, which other
code sets too. Two rules make the limit right in every thread and in every order of leaving:

* Libraries are asked and set directly. The limits of threadpoolctl remember the thread that set
  them first, and are silently ignored in all others.
* Only numbers that this package set are restored, unless other code has changed them since.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from threadpoolctl import LibController

# Affixes of the functions of OpenBLAS, as it is built for numpy, for scipy and by distributions.
OPENBLAS_AFFIXES = [(prefix, suffix) for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")]


def single_threaded_blas() -> AbstractContextManager[None]:
    """Context in which BLAS uses one thread and leaves the cores to our own threads."""
    return _limit


def limit_this_thread() -> None:
    """Use one BLAS thread in this thread for good, where each thread has a number of its own."""
    for library in _libraries():
        if library.per_thread:
            library.set_threads(1)


@dataclass(frozen=True, eq=False)
class _Library:
    """A loaded BLAS: functions that read and set its number of threads."""

    threads: Callable[[], int]
    set_threads: Callable[[int], object]
    per_thread: bool  # whether every thread has a number of its own


class _Limit:
    """Counts who is inside; the first sets the limit, the last removes it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: dict[_Library, int] = {}  # what the last to leave restores
        self._mine = threading.local()  # the same for libraries with a number per thread

    def __enter__(self) -> None:
        """Set the limit, even if other code has raised it since the last one entered."""
        shared = [library for library in _libraries() if not library.per_thread]
        with self._lock:
            _limit_to_one(shared, self._before)
            self._inside += 1
        if self._depth == 0:
            self._mine.before = {}
            _limit_to_one([lib for lib in _libraries() if lib.per_thread], self._mine.before)
        self._mine.depth = self._depth + 1

    def __exit__(self, *_: object) -> None:
        """Remove the limit if nobody is left inside."""
        self._mine.depth -= 1
        if self._depth == 0:
            _restore(self._mine.before)
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _restore(self._before)

    @property
    def _depth(self) -> int:
        """How often this thread is inside."""
        return getattr(self._mine, "depth", 0)

    def before_fork(self) -> None:
        """Wait until no thread is between setting the limit and counting itself."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let the others go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Only the thread that forked is left; the others will never leave."""
        self._lock = threading.Lock()
        self._inside = self._depth
        if self._inside == 0:
            _restore(self._before)


def _limit_to_one(libraries: list[_Library], before: dict[_Library, int]) -> None:
    for library in libraries:
        number = library.threads()
        if number != 1:
            before[library] = number
            library.set_threads(1)


def _restore(before: dict[_Library, int]) -> None:
    for library, number in before.items():
        if library.threads() == 1:  # otherwise somebody else has set it since
            library.set_threads(number)
    before.clear()


@cache
def _libraries() -> list[_Library]:
    """The libraries behind numpy and scipy; to find them takes a while."""
    import scipy.linalg  # noqa: F401  (a library that is not loaded yet would be missed)

    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    return [_library(controller) for controller in found]


def _library(controller: LibController) -> _Library:
    per_thread = getattr(controller, "threading_layer", None) == "openmp"
    if controller.internal_api == "openblas" and not per_thread:
        for prefix, suffix in OPENBLAS_AFFIXES:
            name = f"{prefix}openblas_{{}}_num_threads{suffix}"
            if hasattr(controller.dynlib, name.format("set")):
                get = getattr(controller.dynlib, name.format("get"))
                return _Library(get, getattr(controller.dynlib, name.format("set")), False)
    return _Library(controller.get_num_threads, controller.set_num_threads, per_thread)


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_limit.before_fork,
        after_in_parent=_limit.after_fork_in_parent,
        after_in_child=_limit.after_fork_in_child,
    )
