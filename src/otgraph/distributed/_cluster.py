"""Dask client wrapper: names tasks, translates errors, releases futures.

Intermediate results stay on the workers as futures. All of them are results of tasks, even the
vectors that the driver sends, so Dask can compute them again if a worker dies. (Scattered data
would be lost, because no task can compute it again.)
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import threading
import weakref
from collections import defaultdict, deque
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from pickle import dumps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
from tqdm.auto import tqdm

from otgraph._memory import LARGE_BYTES, format_bytes, keep_freed_memory, return_free_memory
from otgraph._optional import require
from otgraph._text import listed
from otgraph.exceptions import ClusterError, MemoryLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dask.delayed import Delayed
    from distributed import Client, Future

logger = logging.getLogger("otgraph.distributed")

# Entries that one task sends to the cluster: 8 MB. Dask warns about larger tasks.
PIECE_ENTRIES = 1 << 20
# Tasks that are sent together: not so many that workers would wait for the last one to be made, and
# few enough bytes that Dask does not warn.
MOST_WAITING = 64
MESSAGE_BYTES = 9_000_000
# Share of the memory of a worker above which it returns what it has freed after every task, which
# takes milliseconds. Dask spills above 0.7 and pauses above 0.8 of the memory of the process, and
# half of that was free: small arrays that were spilled leave holes.
SHORT_SHARE = 0.5
# A computation ends if all workers were paused and idle in this many checks in a row. Dask lets a
# paused worker go on as soon as its memory is below the limit, which it looks at every 0.1 s.
PAUSE_SECONDS = 2.0
PAUSED_CHECKS = 8
SPREAD_SECONDS = 120  # seconds to wait for copies of the points on all workers

T = TypeVar("T")
N = TypeVar("N")


@dataclass(frozen=True)
class Kept(Generic[T, N]):
    """Result of a task that stays on the worker: the value, and a note about it.

    The driver gathers the note (`Cluster.notes`). Tasks that take the future get the value.
    """

    value: T
    note: N

    def __sizeof__(self) -> int:
        """Bytes of all arrays. Dask uses it to place tasks and to watch memory."""
        return _array_bytes((self.value, self.note))


class Cluster:
    """The client of one computation; ``piece_entries`` limits what one task sends."""

    def __init__(
        self,
        client: Client,
        *,
        progress: bool = False,
        piece_entries: int = PIECE_ENTRIES,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        self.client = client
        self.progress = progress
        self.piece_entries = piece_entries
        self.reaches_workers = False  # without the scheduler, which would pass results on
        self.n_threads = 1  # of all workers
        self.input_bytes = 0  # groups of points, or cells of them, that one task may get
        self.ahead_bytes = 0  # that all tasks of a search that are under way may get together
        self.task_bytes = 0  # memory that one task may take for what all blocks hold together
        self._pause_seconds = pause_seconds
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count()
        self._waiting: list[tuple[Future, tuple[object, ...]]] = []
        self._waiting_bytes = 0
        self._live: weakref.WeakSet[Future] = weakref.WeakSet()
        self._watched: set[str] = set()
        self._departures = 0
        self._stalled: str | None = None  # why the computation was given up
        self._finished = threading.Event()

    def key(self, name: str) -> str:
        """A new key for a task."""
        return f"otgraph-{name}-{self._run}-{next(self._numbers)}"

    def submit(self, name: str, function: Callable[..., object], *args: object) -> Future:
        """The future of a task. Dask chooses the worker: the one with most of the input.

        A preferred worker is never passed. If all workers die at once, the scheduler treats
        the preference as a condition, and the task waits forever for a worker that is gone.
        """
        return self._submit(name, _call, function, *args)

    def _submit(self, name: str, *task: object) -> Future:
        """The future of a task that waits to be sent with others; see `flush`."""
        size = _array_bytes(task)
        if len(self._waiting) >= MOST_WAITING or self._waiting_bytes + size > MESSAGE_BYTES:
            self.flush()
        with self.errors():
            future = require("distributed", "distributed").Future(self.key(name), self.client)
        self._waiting.append((future, task))
        self._waiting_bytes += size
        self._live.add(future)
        return future

    def flush(self) -> None:
        """Send the tasks that are waiting, in one message.

        A message for each would take the scheduler longer than the tasks of a round, and Dask
        sends none within 10 ms of another.
        """
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:  # or given up by the thread that watches for paused workers
            return
        futures, tasks = zip(*waiting, strict=True)
        with self.errors():
            self.client.map(_run, tasks, key=[future.key for future in futures], pure=False)

    def notes(self, futures: Sequence[Future], label: str | None = None) -> list[Any]:
        """The notes of `Kept` results, in order.

        The workers are asked for them. Where this process does not reach these, or one has been
        lost, a task for each result returns its note; these are half of the tasks of a round.
        """
        found: dict[str, Any] = {}
        if self._direct:
            self._completed(futures, label)
            with self.errors():
                keys = [future.key for future in futures]
                found = self.client.sync(_ask_for_notes, self.client, keys)
        left = [future for future in futures if future.key not in found]
        if left:  # a task that has failed is among them
            tasks = [self._submit("note", _note, future) for future in left]
            notes = self.gather(tasks, None if found else label)
            found |= {future.key: note for future, note in zip(left, notes, strict=True)}
        return [found[future.key] for future in futures]

    def held_together(self, futures: Sequence[Future]) -> list[list[int]]:
        """The numbers of results by the worker that has them; those of no known place alone.

        Those of one worker take no more than ``input_bytes`` together: a task that gets them needs
        all of them at once, and some may be on disk.
        """
        keys = [future.key for future in futures]
        with self.errors():
            workers = self.client.who_has(list(futures))
            sizes = self.client.nbytes(keys, summary=False)
        places: dict[str, list[int]] = {}
        taken: dict[str, int] = defaultdict(int)
        parts: list[list[int]] = []
        for number, key in enumerate(keys):
            place = min(workers.get(key, ()), default=key)
            taken[place] += sizes.get(key, 0)
            if place not in places or taken[place] > self.input_bytes:
                places[place], taken[place] = [], sizes.get(key, 0)
                parts.append(places[place])
            places[place].append(number)
        return parts

    def gather(self, futures: Sequence[Future], label: str | None = None) -> list[Any]:
        """Results in order; shows a progress bar if there is a label and ``progress`` is set."""
        if label is not None and self.progress:
            self._completed(futures, label)
        self.flush()
        if self._departures:  # new workers may have replaced them
            self.watch()
        with self.errors():
            return list(self.client.gather(list(futures), direct=self._direct or None))

    @property
    def _direct(self) -> bool:
        return self.reaches_workers and not self._departures

    def _completed(self, futures: Sequence[Future], label: str | None) -> None:
        """Wait for tasks, with a progress bar as in `gather`."""
        self.flush()
        distributed = require("distributed", "distributed")
        with self.errors(), self.client.as_current():
            if label is None or not self.progress:
                distributed.wait(list(futures))
                return
            done = distributed.as_completed(futures)
            for _ in tqdm(done, desc=label, total=len(futures), leave=False):
                pass

    def paced(self) -> Pace:
        """For the tasks of a search, which begin a few at a time."""
        return Pace(self)

    def wait(self, future: Future) -> None:
        """Wait for one task."""
        self.flush()
        with self.errors(), self.client.as_current():
            require("distributed", "distributed").wait([future])

    def result(self, future: Future) -> Any:
        """One result."""
        return self.gather([future])[0]

    def send(self, name: str, values: object) -> Future:
        """The future of something that the driver has."""
        return self.submit(name, _identity, values)

    def compute(self, delayed: Sequence[Delayed]) -> list[Future]:
        """Futures of delayed objects, such as the chunks of a Dask array."""
        futures = self.client.compute(list(delayed))
        self._live.update(futures)
        return list(futures)

    def spread(self, future: Future) -> None:
        """Copy a result to all workers: tasks that need it can then run on any of them.

        This only saves time, so a worker that has died is not waited for long.
        (``Client.replicate`` writes a log that subscribers cannot receive.)
        """
        distributed = require("distributed", "distributed")
        departures = self._departures
        self.flush()
        with self.errors():
            touched = [
                self.client.submit(
                    _touch, future, workers=[address], allow_other_workers=True, pure=False
                )
                for address in self.client.nthreads()
            ]
        for _ in range(SPREAD_SECONDS):
            with suppress(TimeoutError, CancelledError), self.client.as_current():
                distributed.wait(touched, timeout=1)
                return
            if self._departures > departures:
                return

    def refuse_without_workers(self) -> None:
        """Raise the error for a cluster without workers."""
        msg = (
            f"The cluster at {self.address} has no workers. Start some, or scale the cluster, and "
            "wait for them with `client.wait_for_workers(1)`."
        )
        raise ClusterError(msg)

    def again(self) -> Cluster:
        """The same cluster for another computation. Its end does not release our results."""
        return Cluster(self.client, progress=self.progress, piece_entries=self.piece_entries)

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "an unknown address"))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise Dask's own failures as `ClusterError`; errors of tasks pass through."""
        distributed = require("distributed", "distributed")
        lost = (
            CancelledError,
            TimeoutError,
            distributed.comm.CommClosedError,
            distributed.client.ClosedClientError,
        )
        try:
            yield
            if self._stalled:  # the results were released before they were asked for
                raise MemoryLimitError(self._stalled)
        except distributed.scheduler.KilledWorker as error:
            msg = (
                f"{_readable(error.task)} was running on {error.allowed_failures + 1} workers when "
                "they died, most likely because memory ran out. Give the workers more, or pass a "
                "smaller `block_rows`."
            )
            raise ClusterError(msg) from error
        except lost as error:
            if self._stalled:
                raise MemoryLimitError(self._stalled) from error
            msg = (
                f"The scheduler at {self.address} was lost, and with it all that the workers had "
                "computed. Start the cluster again, and this computation; with `checkpoint=` it "
                "goes on from the potentials that it had reached."
            )
            raise ClusterError(msg) from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Log lost workers; after an error or Ctrl-C, release all results."""
        self.watch()
        self.keep_no_messages()
        watcher = threading.Thread(target=self._give_up_if_paused, daemon=True)
        watcher.start()
        try:
            yield
            self.flush()
        except BaseException:
            self.release()
            raise
        finally:
            self._finished.set()
            watcher.join()
            for address in self._watched:
                with suppress(Exception):  # the client may be closed
                    self.client.unsubscribe_topic(address)
            self._watched.clear()

    def _give_up_if_paused(self) -> None:
        """Release all results if every worker is paused and idle: Dask would wait forever."""
        idle = 0
        while not self._finished.wait(self._pause_seconds):
            with suppress(Exception):  # the scheduler may be busy or gone, which others notice
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
                idle = idle + 1 if workers and all(map(_is_stuck, workers.values())) else 0
                if idle >= PAUSED_CHECKS:
                    limits = {format_bytes(worker["memory_limit"]) for worker in workers.values()}
                    self._stalled = (
                        f"All {len(workers)} workers are paused, because their memory "
                        f"({', '.join(sorted(limits))}) is full. Start fewer workers with more "
                        "memory, or pass a smaller `block_rows`."
                    )
                    self.release()
                    return

    def keep_no_messages(self) -> None:
        """Let Dask forget the messages that it has sent, here and in the scheduler.

        For debugging it keeps the last thousand of each connection that are below 1 MB, with the
        parts of vectors in them, until the connection ends: 60 vectors of 100 000 points. This
        only saves memory, so a version of Dask without such a log, or whose scheduler runs no
        functions, does no harm.
        """
        _forget_messages([self.client.scheduler_comm])
        with suppress(Exception):
            self.client.run_on_scheduler(_forget_sent)

    def watch(self) -> None:
        """Subscribe to the events of all current workers, which report lost workers."""
        with self.errors():
            if self.client.scheduler is None:  # Dask would fail with an AttributeError
                distributed = require("distributed", "distributed")
                msg = "the client has lost its scheduler"
                raise distributed.comm.CommClosedError(msg)
            for address in self.client.nthreads():
                if address not in self._watched:
                    self.client.subscribe_topic(address, partial(self._on_event, address))
                    self._watched.add(address)

    def release(self) -> None:
        """Release all futures: Dask then drops the results and the tasks behind them.

        ``Client.cancel`` is not used. For a released result that others still depend on, it
        fails inside the scheduler, which then closes the connection.
        """
        self._waiting = []
        futures = list(self._live)
        logger.info("giving up %d results", len(futures))
        for future in futures:
            with suppress(Exception):  # the cluster may be gone already
                future.release()

    def _on_event(self, address: str, event: tuple[float, object]) -> None:
        report = event[1]
        if not isinstance(report, dict):
            return
        if report.get("action") == "remove-worker" and not report.get("expected"):
            self._departures += 1
            lost = [*report.get("lost-computed-tasks", ()), *report.get("processing-tasks", ())]
            mine = sorted(_readable(key) for key in lost if self._run in str(key))
            again = listed(mine) if mine else "nothing"
            logger.warning(
                "worker %s left; computed again, with what they need: %s", address, again
            )


class Pace:
    """Tasks under way, whose input takes no more than ``ahead_bytes`` of a cluster together.

    Workers fetch the input of all tasks that they were given, also of those that wait, and keep
    what is made for others. So a task is sent when there is room for its input.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._under_way: deque[tuple[Future, int]] = deque()
        self._bytes = 0

    def make_room(self, n_bytes: int) -> None:
        """Wait until there is room for one more task."""
        while self._under_way and self._bytes + n_bytes > self._cluster.ahead_bytes:
            first, freed = self._under_way.popleft()
            self._cluster.wait(first)
            self._bytes -= freed

    def add(self, task: Future, n_bytes: int) -> None:
        """Send a task, which begins while the driver prepares the next one, and count it."""
        self._cluster.flush()
        self._under_way.append((task, n_bytes))
        self._bytes += n_bytes


async def _ask_for_notes(client: Any, keys: list[str]) -> dict[str, Any]:
    """The notes of results, by key, as far as workers have them; runs in the loop of the client."""
    own: dict[str, list[str]] = defaultdict(list)
    for key, workers in (await client.scheduler.who_has(keys=keys)).items():
        if workers:
            own[min(workers)].append(key)
    calls = [
        client.rpc(worker).run(function=_pickled_notes(), kwargs=dumps({"keys": held}))
        for worker, held in own.items()
    ]
    found: dict[str, Any] = {}
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, dict) and answer["status"] == "OK":
            found |= answer["result"]
    return found


@cache
def _pickled_notes() -> bytes:
    return dumps(_notes_here)


def _notes_here(dask_worker: Any, keys: list[str]) -> dict[str, Any]:
    """Runs in a worker: the notes of results that it has."""
    return {key: dask_worker.data[key].note for key in keys if key in dask_worker.data}


def _forget_sent(dask_scheduler: Any) -> None:
    """Runs in the scheduler: forget the messages to its workers and clients."""
    connections = (dask_scheduler.stream_comms, dask_scheduler.client_comms)
    _forget_messages(comm for comms in connections for comm in comms.values())


def _forget_messages(connections: Iterable[Any]) -> None:
    for connection in connections:
        if hasattr(connection, "recent_message_log"):
            connection.recent_message_log = deque(maxlen=0)


def _is_stuck(worker: dict[str, Any]) -> bool:
    """Whether a worker is paused and runs no task whose end could free memory."""
    counts = worker["metrics"].get("task_counts", worker["metrics"])
    return worker["status"] == "paused" and not counts.get("executing", 0)


def _run(task: tuple[Callable[..., T], Any]) -> T:
    """Run a task that was sent with others."""
    function, *args = task
    return function(*args)


def _call(function: Callable[..., T], *args: object) -> T:
    """Run a task; `Kept` arguments, also in containers, are replaced by their values."""
    keep_freed_memory()
    result = function(*map(_value, args))
    _return_memory_if_short()
    return result


def _note(kept: Kept[T, N]) -> N:
    """What the driver gathers of a result, which may have come from disk for it."""
    _return_memory_if_short()
    return kept.note


def _return_memory_if_short() -> None:
    """Return what was freed to the system before Dask takes it for memory in use."""
    worker = require("distributed", "distributed").get_worker()
    limit = worker.memory_manager.memory_limit
    if not limit or worker.nanny is None:  # no limit, or a worker in the process of its client
        return
    if worker.monitor.get_process_memory() > SHORT_SHARE * limit:
        return_free_memory(LARGE_BYTES)


def _value(arg: object) -> object:
    if isinstance(arg, list):
        return [_value(part) for part in arg]
    if isinstance(arg, dict):
        return {key: _value(part) for key, part in arg.items()}
    return arg.value if isinstance(arg, Kept) else arg


def _identity(values: T) -> T:
    return values


def _touch(values: object) -> None:
    """No-op. Its input makes Dask copy the data here."""


def _array_bytes(value: object) -> int:
    """Size of all arrays in a dataclass, a dictionary, a sequence or a sparse matrix."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    parts: Iterable[object] = ()
    if is_dataclass(value):
        parts = (getattr(value, part.name) for part in fields(value))
    elif isinstance(value, dict):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    elif isinstance(value, sp.csr_matrix):
        parts = (value.indptr, value.indices, value.data)
    return sum(_array_bytes(part) for part in parts)


def _readable(key: object) -> str:
    """Name and number of a task."""
    parts = str(key).split("-")
    return f"{' '.join(parts[1:-2])} (task {parts[-1]})" if len(parts) > 3 else str(key)
