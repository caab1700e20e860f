"""The one way this package compiles a kernel.

Kernels are serial and release the GIL; callers run them from their own threads on fixed
blocks of rows. That gives results that do not depend on the number of threads, needs no
numba threading layer (two of which abort when entered from two Python threads, or after a
fork), and keeps compilation short.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
from numba.core import event

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


@contextlib.contextmanager
def announced_compilation(announce: Callable[[], object]) -> Iterator[None]:
    """Call ``announce`` before the first kernel is compiled in this context.

    numba does not compile kernels that it finds in its cache on disk, so that only the first run
    on a machine is announced.
    """
    with event.install_listener("numba:compile", _FirstCompilation(announce)):
        yield


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    def __init__(self, announce: Callable[[], object]) -> None:
        self.announce: Callable[[], object] | None = announce

    def on_start(self, event: object) -> None:
        announce, self.announce = self.announce, None
        if announce is not None:
            announce()

    def on_end(self, event: object) -> None:
        """Nothing to say."""
