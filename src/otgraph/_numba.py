"""The one way this package compiles a kernel.

Kernels are serial and release the GIL; callers run them from their own threads on fixed
blocks of rows. That gives results that do not depend on the number of threads, needs no
numba threading layer (two of which abort when entered from two Python threads, or after a
fork), and keeps compilation short.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba import types
from numba.core import cgutils, event
from numba.extending import intrinsic, overload

from otgraph._text import COMPILING

logger = logging.getLogger("otgraph")

F = TypeVar("F", bound=Callable[..., Any])


# No entry for C code, which nobody calls, and no checks for divisions by zero: less to compile.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}


def njit(function: F) -> F:
    """Compile ``function`` lazily, without the GIL, cached on disk where that is possible."""
    try:
        return numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError as error:  # numba found no directory it may write its cache to
        logger.debug("kernel cache is off: %s", error)
        return numba.njit(**OPTIONS)(function)


def inner(function: F) -> F:
    """Compile a part of kernels, which Python cannot call: without an entry and a file for it."""
    return numba.njit(no_cpython_wrapper=True, **OPTIONS)(function)


def trailing_zeros(mask: int) -> int:
    """Number of zeros at the end of a mask that is not zero; in kernels one instruction."""
    return (int(mask) & -int(mask)).bit_length() - 1


@intrinsic  # type: ignore[untyped-decorator]
def _count_trailing_zeros(_: object, __: object) -> tuple[object, Callable[..., object]]:
    def code(_: object, builder: Any, __: object, arguments: list[Any]) -> object:
        return builder.cttz(arguments[0], cgutils.true_bit)

    return types.uint64(types.uint64), code


@overload(trailing_zeros, strict=False)  # type: ignore[untyped-decorator]  # annotations differ
def _compiled_trailing_zeros(mask: object) -> Callable[..., object]:
    return lambda mask: _count_trailing_zeros(mask)


# One kernel takes a tenth of a second, all of a first graph several. Who waits longer than this is
# told why.
SHORT_WAIT = 0.5


class _Compilation(event.Listener):  # type: ignore[misc]
    """Announces that kernels of this package are compiled, once."""

    def __init__(
        self, announce: Callable[[], object], *, after: float = 0.0, modules: str = ""
    ) -> None:
        self.announce: Callable[[], object] | None = announce
        self._after, self._spent = after, 0.0  # seconds
        self._modules = modules  # how the names of the modules of the kernels begin
        self._began: list[float] = []  # one kernel may compile another

    def on_start(self, event: event.Event) -> None:
        self._began.append(time.perf_counter())
        module = event.data["dispatcher"].py_func.__module__
        if self._spent < self._after or not module.startswith(self._modules):
            return
        if self.announce is not None:
            announce, self.announce = self.announce, None
            announce()

    def on_end(self, event: event.Event) -> None:
        seconds = time.perf_counter() - self._began.pop()
        if not self._began:
            self._spent += seconds


_to_everyone = _Compilation(lambda: logger.warning(COMPILING), after=SHORT_WAIT, modules="otgraph.")
event.register("numba:compile", _to_everyone)


@contextlib.contextmanager
def announced_compilation(announce: Callable[[], object]) -> Iterator[None]:
    """Call ``announce`` before the first kernel is compiled in this context, and log nothing.

    numba does not compile kernels that it finds in its cache on disk, so that only the first run
    on a machine is announced.
    """
    before, _to_everyone.announce = _to_everyone.announce, None
    try:
        with event.install_listener("numba:compile", _Compilation(announce)):
            yield
    finally:
        _to_everyone.announce = before
