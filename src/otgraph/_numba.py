"""The one way this package compiles a kernel.

Kernels are serial and release the GIL; callers run them from their own threads on fixed
blocks of rows. That gives results that do not depend on the number of threads, needs no
numba threading layer (two of which abort when entered from two Python threads, or after a
fork), and keeps compilation short.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, event
from numba.extending import intrinsic, overload

from otgraph._text import COMPILING

logger = logging.getLogger("otgraph")

F = TypeVar("F", bound=Callable[..., Any])


# No entry for C code, which nobody calls, and no checks for divisions by zero: less to compile.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# A kernel that only fills the arrays it is given borrows them, without counting references: a tenth
# less to compile, and a call with eleven arguments takes 0.26 instead of 0.56 µs.
COUNTING, BORROWING = {**OPTIONS, "_nrt": True}, {**OPTIONS, "_nrt": False}


def njit(function: F) -> F:
    """Compile ``function`` lazily, without the GIL, cached on disk where that is possible."""
    return _cached(function, COUNTING)


def borrowing(function: F) -> F:
    """The same for a kernel that fills arrays entry by entry, makes none and returns none."""
    return _cached(function, BORROWING)


def _cached(function: F, options: dict[str, Any]) -> F:
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError as error:  # numba found no directory it may write its cache to
        logger.debug("kernel cache is off: %s", error)
        return numba.njit(**options)(function)


def inner(function: F) -> F:
    """Compile a part of kernels, which Python cannot call: without an entry and a file for it.

    It makes no arrays, and borrows those it gets. So the loops of a kernel that makes some are in
    such parts: there every view of a row would count a reference, and threads that share an array
    wait for each other's counts.
    """
    return numba.njit(no_cpython_wrapper=True, **BORROWING)(function)


def allocating_inner(function: F) -> F:
    """The same for a part that makes arrays."""
    return numba.njit(no_cpython_wrapper=True, **COUNTING)(function)


def inlined(function: F) -> F:
    """Compile a part of kernels into each of them: a call with two matrices takes 10 ns."""
    return numba.njit(no_cpython_wrapper=True, forceinline=True, **BORROWING)(function)


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


def count_ones(mask: int) -> int:
    """Number of ones in a mask; in kernels one instruction."""
    return int(mask).bit_count()


@intrinsic  # type: ignore[untyped-decorator]
def _count_ones(_: object, __: object) -> tuple[object, Callable[..., object]]:
    def code(_: object, builder: Any, __: object, arguments: list[Any]) -> object:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), code


@overload(count_ones, strict=False)  # type: ignore[untyped-decorator]  # annotations differ
def _compiled_count_ones(mask: object) -> Callable[..., object]:
    return lambda mask: _count_ones(mask)


# Entries that are added up side by side: a vector of most processors has four to eight.
LANES = 8


def squares_in_lanes(q: Any, x: Any, n: int) -> float:
    """Sum of (q_k - x_k)² over the first n entries, n a multiple of `LANES`, in float64.

    Every lane has a sum of its own, and these are added in a fixed order, so that the bits are the
    same for (x, q), in any kernel, on any processor and in plain Python. numba makes no vectors of
    separate sums, and would add in any order it likes if it were allowed to: 49 → 17 ns for 50
    numbers in float32.
    """
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range(0, n, LANES):
        s0 += _square(q, x, k)
        s1 += _square(q, x, k + 1)
        s2 += _square(q, x, k + 2)
        s3 += _square(q, x, k + 3)
        s4 += _square(q, x, k + 4)
        s5 += _square(q, x, k + 5)
        s6 += _square(q, x, k + 6)
        s7 += _square(q, x, k + 7)
    return ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))


@inlined
def _square(q: Any, x: Any, k: int) -> Any:
    difference = np.float64(q[k]) - np.float64(x[k])
    return difference * difference


@intrinsic  # type: ignore[untyped-decorator]
def _squares_in_vectors(_: object, q: Any, x: Any, n: Any) -> tuple[object, Callable[..., object]]:
    def code(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> object:
        vector = ir.VectorType(ir.DoubleType(), LANES)
        total = cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * LANES))
        rows = []
        for kind, row in zip(signature.args[:2], arguments[:2], strict=True):
            data = context.make_array(kind)(context, builder, row).data
            rows.append((data, context.get_data_type(kind.dtype), kind.dtype.bitwidth // 8))
        n_blocks = builder.sdiv(arguments[2], ir.Constant(arguments[2].type, LANES))
        with cgutils.for_range(builder, n_blocks) as loop:
            first = builder.mul(loop.index, ir.Constant(loop.index.type, LANES))
            parts = []
            for data, number, size in rows:
                kind = ir.VectorType(number, LANES)
                place = builder.bitcast(builder.gep(data, [first]), kind.as_pointer())
                part = builder.load(place, align=size)
                parts.append(part if kind == vector else builder.fpext(part, vector))
            difference = builder.fsub(*parts)
            square = builder.fmul(difference, difference)
            builder.store(builder.fadd(builder.load(total), square), total)
        sums, width = builder.load(total), LANES
        while width > 1:  # the first half plus the second half
            width //= 2
            halves = [
                builder.shuffle_vector(
                    sums,
                    ir.Constant(sums.type, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(a, a + width))),
                )
                for a in (0, width)
            ]
            sums = builder.fadd(*halves)
        return builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))

    return types.float64(q, x, n), code


@overload(squares_in_lanes, strict=False)  # type: ignore[untyped-decorator]
def _compiled_squares(q: Any, x: Any, n: Any) -> Callable[..., object]:
    if q.layout == x.layout == "C":
        return lambda q, x, n: _squares_in_vectors(q, x, n)
    return squares_in_lanes  # the same sums, one by one


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


class _NoCollection(event.Listener):  # type: ignore[misc]
    """Turns the collector of garbage off while a kernel of this package is compiled.

    The compiler makes hundreds of thousands of objects, and every search for cycles among them and
    all that was imported finds next to nothing: a seventh of the time. numba has a lock around
    compilation and these calls.
    """

    def __init__(self) -> None:
        self._depth = 0  # one kernel may compile another
        self._paused = False

    def on_start(self, event: event.Event) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith("otgraph.")
        if self._depth == 0 and ours and gc.isenabled():
            self._paused = True
            gc.disable()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        if self._depth == 0 and self._paused:
            self._paused = False
            gc.enable()


event.register("numba:compile", _NoCollection())


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
