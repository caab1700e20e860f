"""One BLAS thread while the package computes, and as many as before when it does not.

The last bits of a matrix product depend on the number of BLAS threads, so results would depend on
the machine and on the caller. Most libraries have one number for the whole process, which other
code sets too. Three rules make the limit right in every thread, in every order of leaving, and for
an interrupt between any two instructions:

* Libraries are asked and set directly. The limits of threadpoolctl remember the thread that set
  them first, and are silently ignored in all others.
* Only numbers that this package set are restored, unless other code has changed them since.
* Nobody counts who is inside. Those inside keep an object alive (`_Guard`). When the last of them
  leaves, in whatever way, it dies, and its death restores the numbers. No Python code runs then,
  so that Ctrl-C cannot come between.
"""

from __future__ import annotations

import os
import threading
import weakref
from ctypes import PYFUNCTYPE, c_int
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from threadpoolctl import LibController

# Functions that read and set the number of threads: of OpenBLAS, as it is built for numpy, for
# scipy and by distributions, and of MKL.
FUNCTIONS = [
    (f"{prefix}openblas_get_num_threads{suffix}", f"{prefix}openblas_set_num_threads{suffix}")
    for prefix in ("scipy_", "")
    for suffix in ("64_", "_64", "")
] + [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")]


def single_threaded_blas() -> AbstractContextManager[object]:
    """Context in which BLAS uses one thread and leaves the cores to our own threads.

    The limit is set even if other code has raised it since the last one entered. The context is a
    view of a guard: views are entered and left in C, and keep what they show alive until then.
    """
    mine = shared = None
    try:
        mine = _of_thread.alive()
        if mine is None:
            mine = _Guard()
            _of_thread.alive = weakref.ref(mine)
        with _lock:
            shared = _of_process.alive()
            if shared is None:
                shared = _Guard()
                _of_process.alive = weakref.ref(shared)
            mine.beneath = shared
            _of_process.set_one_thread(_libraries_with(per_thread=False))
        _of_thread.set_one_thread(_libraries_with(per_thread=True))
        return memoryview(mine)
    finally:
        del mine, shared  # or the traceback of an interrupt would keep the limit


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

    def restore(self, number: int) -> Callable[[object], object]:
        """A function in C that sets the number, unless somebody else has set one since."""
        present = iter(self.threads, None)  # asks anew each time
        wanted = map({1: number}.get, present, present)  # anything but 1 stays as it is
        return partial(next, map(self.set_threads, wanted))


class _Guard(bytearray):
    """Alive while somebody is inside. A thread has one, which keeps that of the process."""

    beneath: _Guard | None = None


class _Limit:
    """The guard of those inside, and the numbers of threads that return when it dies."""

    def __init__(self) -> None:
        self.alive = weakref.ref(_Guard())  # dead
        self.restoring: dict[_Library, weakref.ref[_Guard]] = {}

    def set_one_thread(self, libraries: list[_Library]) -> None:
        """Limit the libraries after saying what the death of the guard does about it."""
        for library in libraries:
            number = library.threads()
            if number != 1:
                guard = self.alive  # not called here: a traceback keeps what has a name
                restore = library.restore(number)
                self.restoring[library] = weakref.ref(guard(), restore)  # type: ignore[arg-type]
                library.set_threads(1)


class _LimitOfThread(_Limit, threading.local):
    """The same for libraries with a number per thread."""


def _after_fork_in_child() -> None:
    """Only the thread that forked is left; what the others keep alive will never die."""
    _lock.release()
    restoring = _of_process.restoring
    mine, shared = _of_thread.alive(), _Guard()
    for library, before in restoring.items():
        if before() is not None and before.__callback__ is not None:
            restoring[library] = weakref.ref(shared, before.__callback__)
    _of_process.alive = weakref.ref(shared)
    if mine is not None:
        mine.beneath = shared


@cache
def _libraries_with(*, per_thread: bool) -> list[_Library]:
    # Not written out where they are limited: an interrupt in a comprehension, which is inlined
    # since Python 3.12, was seen to skip the `finally` around it.
    return [library for library in _libraries() if library.per_thread == per_thread]


@cache
def _libraries() -> list[_Library]:
    """The libraries behind numpy and scipy; to find them takes a while."""
    import scipy.linalg  # noqa: F401  (a library that is not loaded yet would be missed)

    found = [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
    return [_library(controller) for controller in found]


def _library(controller: LibController) -> _Library:
    per_thread = getattr(controller, "threading_layer", None) == "openmp"
    for get, set_ in FUNCTIONS:
        if hasattr(controller.dynlib, get) and not per_thread:
            # These hold the lock of the interpreter: no thread enters between two calls in C.
            threads = PYFUNCTYPE(c_int)((get, controller.dynlib))
            return _Library(threads, PYFUNCTYPE(None, c_int)((set_, controller.dynlib)), False)
    return _Library(controller.get_num_threads, controller.set_num_threads, per_thread)


_lock = threading.Lock()  # held by those who enter; to leave, nobody needs it
_of_process, _of_thread = _Limit(), _LimitOfThread()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_after_fork_in_child,
    )
