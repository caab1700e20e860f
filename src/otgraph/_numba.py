"""The one way this package compiles a kernel.

Kernels are serial and release the GIL; callers run them from their own threads on fixed
blocks of rows. That gives results that do not depend on the number of threads, needs no
numba threading layer (two of which abort when entered from two Python threads, or after a
fork), and keeps compilation short.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

import numba

logger = logging.getLogger("otgraph")

F = TypeVar("F", bound=Callable[..., Any])


def njit(function: F) -> F:
    """Compile ``function`` lazily, without the GIL, cached on disk where that is possible."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError as error:  # numba found no directory it may write its cache to
        logger.debug("kernel cache is off: %s", error)
        return numba.njit(nogil=True)(function)
