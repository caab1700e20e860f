"""Checks of the client, the workers and their memory, before any work begins."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from otgraph._memory import available_bytes, format_bytes
from otgraph._optional import require
from otgraph._validation import check_count
from otgraph.exceptions import ClusterError, MemoryLimitError, argument_error, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from distributed import Client, Worker

    from otgraph.distributed._cluster import Cluster

FEWEST_ROWS = 1 << 14  # rows of a block; for shorter blocks messages dominate a round
BLOCKS_PER_THREAD = 2  # so that threads end at about the same time; each block is a message
BLOCK_SHARE = 0.5  # of the memory of a thread, at most, that rows of a block may need on their way
MANY_BLOCKS = 128  # with more blocks the exchange of entries dominates; blocks get longer instead
MOST_BLOCKS = 1024  # limit; more tasks would overload the scheduler
# Share of the memory of a thread that one task may take for the active pairs of all blocks. Its
# worker holds its own pairs meanwhile.
TASK_SHARE = 0.25
TASKS_AHEAD = 2  # tasks of a search for each thread: one that runs, one whose input comes meanwhile
USABLE_SHARE = 0.8  # usable share of a worker's memory; above it Dask pauses the worker
# Copies of the points as float64 while a worker prepares them: given, centered, sorted by cell.
COPIES_OF_POINTS = 3
# Copies of shared points while they change hands: as read, and in groups of cells.
COPIES_OF_SHARE = 2
# Groups of points that a task gets: its own and another one. A search in near cells gets cells of
# many groups, which take as much at most.
GROUPS_OF_INPUT = 2
# What a thread holds in a search, in units of the input of a task: that of the task that runs, the
# same scaled, that of the next task, and cells copied for two tasks of other workers.
INPUTS_OF_THREAD = 5
# The same in units of the size of a group as float64.
GROUPS_OF_THREAD = GROUPS_OF_INPUT * INPUTS_OF_THREAD
MOST_GROUP_BYTES = 1 << 25  # larger groups would not be faster
LEAST_GROUP_BYTES = 1 << 20
# What kernels add to a process that has loaded the library: 75 MB, measured, and some for buffers.
# (Compiling them takes 180 MB, once, when there are no pairs yet.)
KERNEL_BYTES = 100_000_000
# Bytes per row of about 40 candidates, half as many pairs: as found, as received, in rows, and the
# list of active ones.
ROW_BYTES = 20 * (16 + 16) + 40 * (12 + 4)

REACH_SECONDS = 2.0  # to connect to a worker; a firewall may swallow the attempt

WORKER_DIED = (
    "A worker died while it loaded otgraph, most likely because Dask ends workers that reach their "
    "limit. Start fewer workers with more memory (`memory_limit`)."
)


class WorkerFacts(NamedTuple):
    """Version of otgraph and number of threads of a worker; its memory, and what it holds now."""

    version: str
    threads: int
    memory: int
    held: int = 0

    @property
    def usable(self) -> float:
        """Bytes that a computation may take before Dask pauses the worker."""
        return max(0.0, USABLE_SHARE * self.memory - self.held)


def find_client(client: Client | None) -> Client:
    """The given client or the current one; a new client is never created."""
    distributed = require("distributed", "distributed")
    if client is None:
        try:
            client = distributed.get_client()
        except ValueError as error:
            msg = (
                "`client` is None and there is no current Dask client. Start one: "
                "`from distributed import Client; client = Client()` for the cores of this "
                "machine, or `Client('tcp://scheduler:8786')` for a cluster that is running."
            )
            raise ClusterError(msg) from error
    if not isinstance(client, distributed.Client):
        msg = f"`client` must be a distributed.Client, got {client!r}."
        if isinstance(client, str):
            msg += f" Pass `Client({client!r})`."
        raise argument_error(TypeError, "client", msg)
    if client.asynchronous:
        msg = "must not be asynchronous: the solver waits for each result."
        raise invalid("client", msg, TypeError)
    if client.status != "running":
        msg = f"`client` is {client.status}; connect a new one to the cluster."
        raise ClusterError(msg)
    return client


def ask_workers(cluster: Cluster) -> dict[str, WorkerFacts]:
    """Facts of all workers; raises if one of them cannot be used."""
    distributed = require("distributed", "distributed")
    try:
        with cluster.errors():
            facts: dict[str, WorkerFacts] = cluster.client.run(_facts)
    except ClusterError as error:
        # The scheduler is there, so it was a worker that closed the connection.
        closed = isinstance(error.__cause__, distributed.comm.CommClosedError)
        if not closed or cluster.client.status != "running":
            raise
        raise MemoryLimitError(WORKER_DIED) from error
    except ImportError as error:
        msg = f"Every worker must have otgraph installed; one says: {error}."
        raise ClusterError(msg) from error
    if not facts:
        cluster.refuse_without_workers()
    cluster.reaches_workers = cluster.client.sync(_reach, list(facts), cluster.client)
    for address, fact in facts.items():
        if fact.version != version("otgraph"):
            msg = (
                f"Worker {address} has otgraph {fact.version}, and this process has "
                f"{version('otgraph')}. Install the same version everywhere."
            )
            raise ClusterError(msg)
    return facts


def choose_block_rows(
    n: int, block_rows: int | None, facts: Iterable[WorkerFacts] = (), point_bytes: int = 0
) -> int:
    """Rows of a block: as many as are given, or few blocks per thread that fit into memory.

    ``point_bytes`` are the points that each worker holds.
    """
    if block_rows is None:
        facts = list(facts)
        threads = sum(fact.threads for fact in facts) or 1
        rows = -(-n // (BLOCKS_PER_THREAD * threads))
        for fact in facts:
            room = BLOCK_SHARE * (fact.usable - KERNEL_BYTES - point_bytes) / fact.threads
            rows = min(rows, int(room / ROW_BYTES))
        return max(FEWEST_ROWS, rows, -(-n // MANY_BLOCKS))
    rows = check_count(block_rows, "block_rows")
    if -(-n // rows) > MOST_BLOCKS:
        msg = (
            f"`block_rows`={rows} would cut {n} rows into more than {MOST_BLOCKS} blocks, whose "
            f"exchange would overload the scheduler. Pass at least {-(-n // MOST_BLOCKS)}."
        )
        raise argument_error(ValueError, "block_rows", msg)
    return rows


class Room(NamedTuple):
    """Bytes that pairs may take on all workers together, and one task for those of all blocks.

    ``group`` is the size of a group of points, ``input`` that of all points that a task of a search
    may get, and ``ahead`` what all that are under way may get together.
    """

    pairs: int
    group: int
    task: int
    input: int
    ahead: int


def check_memory(
    facts: dict[str, WorkerFacts], point_bytes: int, block_rows: int, *, shared: bool = False
) -> Room:
    """The room for pairs; raises if points or a block do not fit.

    Points are copied to every worker as float64, or shared by all.
    """
    for address, fact in facts.items():
        if fact.usable < KERNEL_BYTES:
            msg = (
                f"Worker {address} has {format_bytes(fact.memory)} and already holds "
                f"{format_bytes(fact.held)}; Dask pauses it at {USABLE_SHARE:.0%}, and the process "
                f"alone needs {format_bytes(KERNEL_BYTES)} more. Start fewer workers with more "
                "memory (`memory_limit`), or release what they hold."
            )
            raise MemoryLimitError(msg)
    room = _room_for_shared if shared else _room_for_copies
    held, points = room(facts, point_bytes)
    for address, fact in facts.items():
        usable = fact.usable - KERNEL_BYTES
        per_row = fact.threads * ROW_BYTES
        if held + per_row * block_rows > usable:
            fits = int((usable - held) / per_row)
            msg = (
                f"A block of {block_rows} rows needs about {format_bytes(ROW_BYTES * block_rows)} "
                f"for each of the {fact.threads} thread(s) of worker {address}, in addition "
                f"to the points; it may use {format_bytes(usable)}. Pass "
                f"`block_rows={fits}` or less."
            )
            raise MemoryLimitError(msg)
    # Shared points are idle while the solver works on pairs, and can be written to disk.
    kept = 0 if shared else held
    left = [fact.usable - KERNEL_BYTES - kept for fact in facts.values()]
    tasks = [room / fact.threads for room, fact in zip(left, facts.values(), strict=True)]
    ahead = TASKS_AHEAD * points * sum(fact.threads for fact in facts.values())
    group = min(MOST_GROUP_BYTES, points // GROUPS_OF_INPUT)
    return Room(int(sum(left)), group, int(TASK_SHARE * min(tasks)), points, ahead)


def _room_for_copies(facts: dict[str, WorkerFacts], point_bytes: int) -> tuple[int, int]:
    """Bytes of points that every worker holds, and those that a task gets from others: none."""
    for address, fact in facts.items():
        usable = fact.usable - KERNEL_BYTES
        if COPIES_OF_POINTS * point_bytes > usable:
            msg = (
                f"Every worker holds all points, which take {format_bytes(point_bytes)} as "
                f"float64, and {COPIES_OF_POINTS} times that while they are prepared; worker "
                f"{address} may use {format_bytes(usable)}. Start fewer workers with more memory, "
                "or reduce the dimension (principal components)."
            )
            raise MemoryLimitError(msg)
    return point_bytes, 0


def _room_for_shared(facts: dict[str, WorkerFacts], point_bytes: int) -> tuple[int, int]:
    """The same where workers share the points in groups."""
    share = -(-point_bytes // len(facts))
    room = []
    for address, fact in facts.items():
        usable = fact.usable - KERNEL_BYTES
        left = usable - COPIES_OF_SHARE * share
        room.append(int(left / (INPUTS_OF_THREAD * fact.threads)))
        if room[-1] < GROUPS_OF_INPUT * LEAST_GROUP_BYTES:
            need = COPIES_OF_SHARE * share + GROUPS_OF_THREAD * fact.threads * LEAST_GROUP_BYTES
            msg = (
                f"The points take {format_bytes(point_bytes)}, of which each of {len(facts)} "
                f"worker(s) holds its share, twice while they change hands: "
                f"{format_bytes(need)} with what a task needs. Worker {address} may use "
                f"{format_bytes(usable)}. Start more workers, or some with more memory."
            )
            raise MemoryLimitError(msg)
    return share, min(room)


async def _reach(addresses: list[str], client: Client) -> bool:
    """Whether this process can connect to all workers.

    It need not: a cluster behind a gateway shows only its scheduler.
    """
    connect = require("distributed", "distributed").comm.connect
    try:
        for comm in await asyncio.gather(
            *(connect(a, timeout=REACH_SECONDS, **client.connection_args) for a in addresses)
        ):
            await comm.close()
    except (OSError, TimeoutError):
        return False
    return True


def _facts(dask_worker: Worker) -> WorkerFacts:
    """Runs on every worker; Dask fills in which one."""
    threads, limit = dask_worker.state.nthreads, dask_worker.memory_manager.memory_limit
    if not limit:
        return WorkerFacts(version("otgraph"), threads, available_bytes())
    # A worker in the process of its client shares it: what that holds is not the worker's.
    alone = dask_worker.nanny is not None
    held = int(dask_worker.monitor.get_process_memory()) if alone else 0
    return WorkerFacts(version("otgraph"), threads, limit, held)
