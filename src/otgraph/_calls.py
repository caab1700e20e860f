"""Calls in other threads, which an interrupt of the calling thread cannot leave locked.

Ctrl-C may come between any two instructions of the main thread. The conditions, events and futures
of the standard library are Python code: an interrupt inside of them leaves a lock taken for ever,
and a thread that needs it never ends. So the calling thread only uses what is one step in C: locks,
queues, and the start of a thread. Everything else happens in threads that get no interrupts.
"""

from __future__ import annotations

import os
import threading
import weakref
from _thread import start_new_thread
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Call(Generic[T]):
    """A function that another thread calls, once, unless it is called off before."""

    _value: T

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._error: BaseException | None = None
        self._begun, self._going = threading.Lock(), threading.Lock()
        self._going.acquire()

    def __call__(self) -> None:
        """Call the function, in the thread that came here first."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._value = self._function()
        except BaseException as error:
            self._error = error
        finally:
            del self._function  # and all that it refers to
            going = self._going
            del self  # an error knows this frame, which must not know the error
            going.release()

    def call_off(self) -> bool:
        """Whether the call had not begun; it never will."""
        return self._begun.acquire(blocking=False)

    def wait(self) -> None:
        """Wait for the end of a call that has begun, or will."""
        with self._going:
            pass

    def result(self) -> T:
        """What the function returned, or raised."""
        self.wait()
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # as above


class Threads:
    """Up to ``most`` threads, started when they are needed, that take calls in turn."""

    def __init__(self, most: int, begin: Callable[[], None]) -> None:
        self._most, self._begin = most, begin
        self._calls: SimpleQueue[Call[Any] | None] = SimpleQueue()
        self._started: list[None] = []
        self._process = os.getpid()
        # The threads keep this reference: they end when the object is gone.
        self._end = weakref.ref(self, partial(self._calls.put, None))

    @property
    def usable(self) -> bool:
        """Whether this process has the threads; one that was forked has not."""
        return self._process == os.getpid()

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """Have a thread call the function."""
        call = Call(function)
        self._calls.put(call)
        if len(self._started) < self._most:
            start_new_thread(_start, (self._calls, self._begin, self._end))
            self._started.append(None)
        return call

    def close(self) -> None:
        """Let the threads end after the calls that they have."""
        self._calls.put(None)


def _start(*arguments: Any) -> None:
    """Start a thread that Python knows by name."""
    try:
        threading.Thread(target=_serve, args=arguments, name="otgraph", daemon=True).start()
    except RuntimeError:  # there is no room for another one
        _serve(*arguments)


def _serve(
    calls: SimpleQueue[Call[Any] | None], begin: Callable[[], None], _end: weakref.ref[Threads]
) -> None:
    begin()
    while (call := calls.get()) is not None:
        call()
        del call  # results are freed after use
    calls.put(None)  # for the next thread


def in_thread_of_its_own(function: Callable[[], T]) -> T:
    """Result of a function in a thread that has ended by then."""

    def begin_and_end() -> T:
        call = Call(function)
        thread = threading.Thread(target=call, name="otgraph")
        thread.start()
        thread.join()
        return call.result()

    call = Call(begin_and_end)
    try:
        start_new_thread(call, ())
        return call.result()
    finally:
        if not call.call_off():
            call.wait()
