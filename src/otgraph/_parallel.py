"""Threads that share fixed blocks of rows; the result is the same for any number of threads.

The blocks depend only on the data, and each writes its own part of the output. The order of sums
therefore does not depend on the scheduler. BLAS runs with one thread inside (`_blas`), for the same
reason, and because two levels of threads would compete for the cores.
"""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections import deque
from contextvars import copy_context
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from otgraph._blas import limit_this_thread, single_threaded_blas
from otgraph._calls import Call, Threads, in_thread_of_its_own
from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tqdm import tqdm

T = TypeVar("T")
S = TypeVar("S")

# Entries of a dense block per thread: 2 MB, which stay in the cache between the steps of a pass.
CACHE_ENTRIES = 1 << 18
# Files with the time that a container may use in a period, in the two versions of control groups.
CPU_QUOTAS = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))
MOST_CORES = "LOKY_MAX_CPU_COUNT"  # the variable that limits joblib, and so scikit-learn
MOST_THREADS = 256  # more are never faster, and scikit-learn takes no arbitrary number
# Memory of products of this size is kept between calls: that of a search of all pairs of a few
# thousand points, for a few threads.
KEPT_BYTES = 1 << 22
MOST_KEPT = 8
FEWEST_ROWS = 8  # with fewer rows, matrix products are as slow as products with vectors


def thread_count(n_jobs: int | None) -> int:
    """Number of threads as in scikit-learn: -1 means all cores, None means 1."""
    number = check_n_jobs(n_jobs)
    return max(1, cpu_count() + 1 + number) if number < 0 else min(number, MOST_THREADS)


def cpu_count(root: str = "/") -> int:
    """Cores that this process may use: its affinity, limits of containers and ``MOST_CORES``.

    The number of `joblib.cpu_count`, whose import takes as long as a graph of 5000 points.
    ``root`` is where the system's files are.
    """
    count = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        count = min(count, len(os.sched_getaffinity(0)))
    groups = Path(root, "sys/fs/cgroup")
    for names in CPU_QUOTAS:
        with contextlib.suppress(OSError, ValueError):  # no such limit here, or "max"
            quota, period = map(int, " ".join((groups / f).read_text() for f in names).split())
            if quota > 0 and period > 0:
                count = min(count, math.ceil(quota / period))
            break
    with contextlib.suppress(ValueError):
        count = min(count, int(os.environ.get(MOST_CORES, "")))
    return max(1, count)


def check_n_jobs(n_jobs: int | None) -> int:
    """A positive or negative number of threads; None means 1."""
    if n_jobs is None:
        return 1
    try:
        number = operator.index(n_jobs)
    except TypeError:
        number = None
    if number is None or number == 0 or isinstance(n_jobs, bool):
        msg = f"`n_jobs` must be None, a positive or a negative integer, got {n_jobs!r}."
        raise argument_error(ValueError if number == 0 else TypeError, "n_jobs", msg)
    return number


def row_blocks(n: int, size: int) -> list[tuple[int, int]]:
    """Ranges of at most ``size`` rows that cover ``n`` rows."""
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def equal_blocks(n: int, most: int) -> list[tuple[int, int]]:
    """Ranges of about ``most`` rows or fewer that cover ``n`` rows and take equally long.

    An even number, so that two threads have as much each: of 5000 rows in blocks of 2048 one thread
    gets 2952.
    """
    count = 2 * -(-n // (2 * most)) if n > most else 1
    return row_blocks(n, -(-n // count) or 1)


def cache_blocks(n_rows: int, n_columns: int) -> list[tuple[int, int]]:
    """Ranges of rows of a dense matrix that fit into the cache of a thread."""
    return row_blocks(n_rows, max(FEWEST_ROWS, CACHE_ENTRIES // max(1, n_columns)))


def in_own_thread(function: Callable[[], T]) -> T:
    """Result of a function that uses OpenMP, called in a thread that ends with it.

    OpenMP keeps threads ready for every thread that has used it. A process that is forked later
    would wait for them for ever, because it does not have them. scikit-learn sets and restores BLAS
    threads too; inside of our limit it changes nothing. The thread keeps the limit itself, because
    nobody waits for it after a second Ctrl-C.
    """
    run = copy_context().run  # with the floating point errors that are ignored

    def call() -> T:
        with single_threaded_blas():
            return run(function)

    return in_thread_of_its_own(call)


class Reused:
    """Memory for matrices that tasks make one after the other, such as products.

    The system fills new memory with zeros, page by page. For a product with 50 columns that takes
    half as long as the product itself. What small matrices need is kept for later calls, whose
    threads would otherwise begin with new memory again.
    """

    _kept: ClassVar[list[Any]] = []  # for matrices of any kind, of `KEPT_BYTES` each

    def __init__(self, kind: type[np.float32 | np.float64]) -> None:
        self._kind = np.dtype(kind)
        self._free: list[Any] = []  # larger ones, for as long as this is there

    def product(self, left: Any, right: Any) -> Any:
        """The product of two matrices, to be given back when it is not needed any more."""
        shape = len(left), right.shape[1]
        n_bytes = shape[0] * shape[1] * self._kind.itemsize
        small = n_bytes <= KEPT_BYTES
        try:
            memory = (self._kept if small else self._free).pop()
        except IndexError:  # all are in use
            memory = None
        if memory is None or len(memory) < n_bytes:
            memory = np.empty(KEPT_BYTES if small else n_bytes, np.uint8)
        return np.matmul(left, right, out=memory[:n_bytes].view(self._kind).reshape(shape))

    def give_back(self, product: Any) -> None:
        """Take the memory of a product for others."""
        memory = product
        while memory.base is not None:
            memory = memory.base
        if len(memory) > KEPT_BYTES:
            self._free.append(memory)
        elif len(self._kept) < MOST_KEPT:
            self._kept.append(memory)


class Workers:
    """A pool of threads for one call of a public function."""

    def __init__(self, n_jobs: int | None = -1, *, progress: bool = False) -> None:
        check_n_jobs(n_jobs)
        self._n_jobs = n_jobs
        self.progress = progress
        self._pool: Threads | None = None

    def __getstate__(self) -> dict[str, object]:
        """Threads are not pickled; a copy starts its own when it needs them."""
        return {"_n_jobs": self.n_threads, "progress": self.progress, "_pool": None}

    @cached_property
    def n_threads(self) -> int:
        """Number of threads; small problems never ask for it."""
        return thread_count(self._n_jobs)

    def map(
        self,
        function: Callable[[S], T],
        items: Iterable[S],
        label: str | None = None,
        sizes: Sequence[float] | None = None,
    ) -> Iterator[T]:
        """Results in the order of ``items``; an exception or Ctrl-C cancels calls not yet begun.

        With a label, a progress bar is shown if the user asked for progress. ``sizes`` are the
        shares of the items in the work, from which the time to go is estimated.
        """
        items = list(items)
        results = self._map(function, items)
        if label is None or not self.progress:
            return results
        return self._shown(results, label, sizes or [1.0] * len(items))

    @staticmethod
    def _shown(results: Iterator[T], label: str, sizes: Sequence[float]) -> Iterator[T]:
        from tqdm.auto import tqdm

        style = "{desc}: {percentage:3.0f}%|{bar}| [{elapsed}<{remaining}]"
        with tqdm(desc=label, total=sum(sizes), leave=False, bar_format=style) as bar:
            for result, size in zip(results, sizes, strict=True):
                bar.update(size)
                yield result

    def _map(self, function: Callable[[S], T], items: list[S]) -> Iterator[T]:
        if len(items) < 2 or self.n_threads == 1:
            yield from map(function, items)
            return
        threads, calls = self._threads(), deque[Call[T]]()
        try:
            for item in items:
                calls.append(threads.submit(partial(function, item)))
            yield from _results(calls)
        finally:
            for call in calls:
                call.call_off()

    def _threads(self) -> Threads:
        if self._pool is None or not self._pool.usable:
            self._pool = Threads(self.n_threads, limit_this_thread)
        return self._pool

    def run(
        self, function: Callable[[S], object], items: Iterable[S], label: str | None = None
    ) -> None:
        """Call the function for every item, in any order, for its side effects."""
        work = deque(items)
        if len(work) < 2 and not self.progress:
            for item in work:
                function(item)
            return
        if label is not None or self.n_threads == 1:
            for _ in self.map(function, work, label):
                pass
            return

        # All threads, including this one, take items from a common queue. Submitting each item
        # separately would take longer than many of the calls.
        def take_all() -> None:
            try:
                while True:
                    try:
                        item = work.popleft()
                    except IndexError:  # nothing left
                        return
                    function(item)
            except BaseException:
                work.clear()  # the other threads stop too
                raise

        others: list[Call[None]] = []
        try:
            for _ in range(min(self.n_threads, len(work)) - 1):
                others.append(self._threads().submit(take_all))
            take_all()
        finally:
            work.clear()  # after an interrupt between two items
            for other in others:
                other.wait()
        for other in others:
            other.result()

    def error_bar(self, label: str, goal: float) -> ErrorBar:
        """A progress bar for an error that decreases to ``goal``, on a logarithmic scale."""
        return ErrorBar(label, goal, shown=self.progress)

    def close(self) -> None:
        """End the threads; a later call starts new ones."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


def _results(calls: deque[Call[T]]) -> Iterator[T]:
    """Results in turn; each is removed, so that its memory is freed after use.

    This loop stands alone because Python 3.13 does not run the ``finally`` around a ``while`` loop
    for an interrupt that comes between two rounds of it.
    """
    while calls:
        yield calls.popleft().result()


class ErrorBar:
    """Progress of an iteration: the decimal digits reached, out of the digits wanted."""

    def __init__(self, label: str, goal: float, *, shown: bool) -> None:
        self._bar: tqdm | None = None
        if shown:  # even a disabled bar would start the monitor thread of tqdm
            from tqdm.auto import tqdm

            digits = max(1.0, -math.log10(goal)) if goal > 0 else 16.0
            self._bar = tqdm(
                desc=label,
                total=round(digits, 1),
                leave=False,
                bar_format="{desc}: {bar} {postfix} [{elapsed}<{remaining}]",
            )

    def __enter__(self) -> ErrorBar:
        """The bar itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar, even after an error or Ctrl-C."""
        if self._bar is not None:
            self._bar.close()

    def update(self, error: float) -> None:
        """Show the current error."""
        if self._bar is None:
            return
        digits = -math.log10(error) if error > 0 else self._bar.total
        self._bar.n = min(max(digits, 0.0), self._bar.total)
        self._bar.set_postfix_str(f"marginal error {error:.1e}")
