"""Everything asked of a Dask cluster in one computation.

Results that others are made of stay on the workers as futures. They consist of tasks alone,
down to the vectors that the driver sends: Dask can compute each of them again when a worker
dies. (Data that is merely scattered would be lost for good.)
"""

from __future__ import annotations

import itertools
import logging
import secrets
import weakref
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from otgraph._optional import require
from otgraph._parallel import row_blocks
from otgraph.distributed._blocks import SEGMENT_ROWS
from otgraph.exceptions import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

logger = logging.getLogger("otgraph.distributed")

# Numbers in one piece of a vector: 8 MB, below what Dask warns about in a task.
PIECE_ENTRIES = 1 << 20
SPREAD_SECONDS = 120  # for which copies of the points are waited for, at most
NAMED_TASKS = 8  # in one line of the log


@dataclass(frozen=True)
class Vector:
    """A vector on the cluster, in pieces of ``piece_rows`` rows."""

    piece_rows: int
    pieces: list[Any]

    def part(self, segments: NDArray[np.int64]) -> list[Any]:
        """The pieces that hold some segments."""
        numbers = np.unique(segments * SEGMENT_ROWS // self.piece_rows)
        return [self.pieces[number] for number in numbers.tolist()]


class Cluster:
    """A client, with names for its tasks, sentences for its errors, and an end."""

    def __init__(self, client: Any, *, progress: bool = False) -> None:
        self.client = client
        self.progress = progress
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count()
        self._live: weakref.WeakSet[Any] = weakref.WeakSet()
        self._watched: set[str] = set()
        self._departures = 0

    def submit(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """The future of a task, computed where Dask sees fit: where most of its input is.

        Never at a wanted worker. If all workers die at once, the scheduler forgets that such a
        wish was only one, and tasks wait for ever for the worker that was.
        """
        with self.errors():
            future = self.client.submit(
                function,
                *args,
                key=f"otgraph-{name}-{self._run}-{next(self._numbers)}",
                pure=False,
            )
        self._live.add(future)
        return future

    def gather(self, futures: Sequence[Any], label: str | None = None) -> list[Any]:
        """Results in order; with a label and ``progress``, under a bar."""
        if self._departures:  # others may have come in their place
            self.watch()
        with self.errors():
            if label is not None and self.progress:
                distributed = require("distributed", "distributed")
                with self.client.as_current():
                    done = distributed.as_completed(futures)
                for _ in tqdm(done, desc=label, total=len(futures), leave=False):
                    pass
            return list(self.client.gather(list(futures)))

    def result(self, future: Any) -> Any:
        """One result."""
        return self.gather([future])[0]

    def send(self, name: str, values: Any) -> Any:
        """The future of something that the driver has."""
        return self.submit(name, _itself, values)

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Futures of delayed objects, such as the chunks of a Dask array."""
        futures = self.client.compute(delayed)
        self._live.update(futures)
        return list(futures)

    def spread(self, future: Any) -> None:
        """Copy a result to all workers: tasks that need it then go to whoever is free.

        Only a matter of speed, so that nobody waits long for a worker that has died.
        (``Client.replicate`` writes a log that subscribers cannot receive.)
        """
        distributed = require("distributed", "distributed")
        departures = self._departures
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

    def hold(self, values: NDArray[Any]) -> Vector:
        """Send a vector, or a narrow matrix, to the workers."""
        width = int(np.prod(values.shape[1:]))
        piece_rows = max(1, PIECE_ENTRIES // width // SEGMENT_ROWS) * SEGMENT_ROWS
        pieces = [self.send("vector", values[a:b]) for a, b in row_blocks(len(values), piece_rows)]
        return Vector(piece_rows, pieces)

    def refuse_without_workers(self) -> None:
        """Raise: nobody is there to compute."""
        msg = (
            f"The cluster at {self.address} has no workers. Start some, or scale the cluster, and "
            "wait for them with `client.wait_for_workers(1)`."
        )
        raise ClusterError(msg)

    def again(self) -> Cluster:
        """The same cluster for another computation, whose end leaves the results of this alone."""
        return Cluster(self.client, progress=self.progress)

    @property
    def address(self) -> str:
        """Where the scheduler is, or was."""
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "an unknown address"))

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn what Dask says of itself into what the caller can do; task errors pass through."""
        distributed = require("distributed", "distributed")
        lost = CancelledError, TimeoutError, distributed.comm.CommClosedError, _closed_client()
        try:
            yield
        except distributed.scheduler.KilledWorker as error:
            msg = (
                f"{_readable(error.task)} was running on {error.allowed_failures + 1} workers when "
                "they died, most likely for want of memory. Give the workers more, or pass a "
                "smaller `block_rows`."
            )
            raise ClusterError(msg) from error
        except lost as error:
            msg = (
                f"The scheduler at {self.address} was lost, and with it all that the workers had "
                "computed. Start the cluster again, and this computation."
            )
            raise ClusterError(msg) from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Log what is computed again; whatever ends this early, Ctrl-C too, frees the cluster."""
        self.watch()
        try:
            yield
        except BaseException:
            self.release()
            raise
        finally:
            for address in self._watched:
                with suppress(Exception):  # the client may be closed
                    self.client.unsubscribe_topic(address)
            self._watched.clear()

    def watch(self) -> None:
        """Listen to the workers that are there now: the scheduler tells when one leaves."""
        with self.errors():
            for address in self.client.nthreads():
                if address not in self._watched:
                    self.client.subscribe_topic(address, partial(self._on_event, address))
                    self._watched.add(address)

    def release(self) -> None:
        """Give up everything that was asked for: what nobody wants is not computed.

        ``Client.cancel`` is not used. It fails on results that were let go but are still part of
        how others are computed, and takes the connection to the scheduler with it.
        """
        futures = list(self._live)
        logger.info("giving up %d results", len(futures))
        for future in futures:
            with suppress(Exception):  # the cluster may be gone already
                future.release()

    def _on_event(self, address: str, event: tuple[float, Any]) -> None:
        message = event[1]
        if not isinstance(message, dict):
            return
        if message.get("action") == "remove-worker" and not message.get("expected"):
            self._departures += 1
            lost = [*message.get("lost-computed-tasks", ()), *message.get("processing-tasks", ())]
            mine = [_readable(key) for key in lost if self._run in str(key)]
            logger.warning(
                "worker %s left; computed again, with what they need: %s",
                address, _listed(mine),
            )  # fmt: skip


def _closed_client() -> type[Exception]:
    """What a client raises that has given up its scheduler; older ones raise plain errors."""
    client = require("distributed.client", "distributed")
    return getattr(client, "ClosedClientError", CancelledError)


def _itself(values: Any) -> Any:
    return values


def _touch(values: Any) -> None:
    """To have its argument is all that is asked."""


def _readable(key: Any) -> str:
    """Name and number of a task."""
    parts = str(key).split("-")
    return f"{' '.join(parts[1:-2])} (task {parts[-1]})" if len(parts) > 3 else str(key)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_TASKS} more" if len(names) > NAMED_TASKS else ""
    return (", ".join(sorted(names)[:NAMED_TASKS]) or "nothing") + more
