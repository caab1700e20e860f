"""What a lost worker, full memory, a lost scheduler or a smaller cluster cost in time.

    python -m benchmarks.cluster_events kill --n 100000

Builds a graph without and with the event, with the same workers, and prints both times as JSON. The
event comes with the tenth evaluation of the solver, full memory in the first screen.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
from distributed import Client, LocalCluster
from distributed.deploy.subprocess import SubprocessCluster

from benchmarks import data
from otgraph.distributed import quadratic_ot_graph
from otgraph.distributed._cluster import Cluster
from otgraph.exceptions import ClusterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVALUATIONS = 10  # before the event
N_BLOCKS = 4  # of rows, with two threads
EATEN = 4_000_000  # numbers of 32 MB
OPTIONS = {"mean_degree": 15, "search": "approximate"}


def eat_memory(marker: str, function: Any, *args: Any) -> Any:
    """A task that takes memory until its worker is ended; the next one works."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return function(*args)
    eaten = []
    while True:
        eaten.append(np.ones(EATEN))
        time.sleep(0.01)


@contextlib.contextmanager
def happening(event: Callable[[Cluster], None]) -> Iterator[None]:
    """Call a function once, in a round of the solver."""
    submit, asked = Cluster.submit, {"evaluate": 0, "events": 0}

    def submit_and_happen(self: Cluster, name: str, *args: Any) -> Any:
        future = submit(self, name, *args)
        asked["evaluate"] += name == "evaluate"
        if asked["evaluate"] >= N_BLOCKS * EVALUATIONS and not asked["events"]:
            asked["events"] = 1
            event(self)
        return future

    Cluster.submit = submit_and_happen  # type: ignore[method-assign]
    try:
        yield
    finally:
        Cluster.submit = submit  # type: ignore[method-assign]


@contextlib.contextmanager
def hungry(marker: str) -> Iterator[None]:
    """Let the first screen take all memory."""
    submit = Cluster.submit

    def submit_hungry(self: Cluster, name: str, function: Any, *args: Any) -> Any:
        if name == "screen":
            return submit(self, name, eat_memory, marker, function, *args)
        return submit(self, name, function, *args)

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    Cluster.submit = submit_hungry  # type: ignore[method-assign]
    try:
        yield
    finally:
        Cluster.submit = submit  # type: ignore[method-assign]


def kill(cluster: Cluster) -> None:
    """End one worker as the system would."""
    os.kill(min(cluster.client.run(os.getpid).values()), signal.SIGKILL)


def started(n_workers: int, *, apart: bool = False) -> Any:
    """Workers of one thread and 1 GB; the scheduler may have a process of its own."""
    if apart:
        limits = {"nthreads": 1, "memory_limit": "1GB"}
        return SubprocessCluster(n_workers=n_workers, threads_per_worker=1, worker_kwargs=limits)
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit="1GB", dashboard_address=":0"
    )


def main() -> None:
    """Build a graph twice and print both times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("event", choices=["kill", "memory", "scheduler", "shrink"])
    parser.add_argument("--n", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        path = Path(folder) / "points.npy"
        np.save(path, data.make("manifold", options.n))
        lost = options.event == "scheduler"
        cluster = started(3 if options.event == "shrink" else 2, apart=lost)
        stack.callback(lambda: quietly(cluster.close))
        client = Client(cluster)
        stack.callback(lambda: quietly(client.close))
        client.wait_for_workers(2)
        small = data.make("manifold", 10_000)
        quadratic_ot_graph(small, client=client, **OPTIONS)  # loads the kernels
        plain, W = timed(path, client)
        if options.event == "memory":
            with hungry(str(Path(folder) / "eaten")):
                seconds, other = timed(path, client)
        elif options.event == "scheduler":
            seconds, other = resumed(path, client, cluster, stack, Path(folder) / "state.npz")
        else:
            event = kill if options.event == "kill" else lambda _: cluster.scale(1)
            with happening(event):
                seconds, other = timed(path, client)
        same = "the same bits" if (other != W).nnz == 0 else f"{abs(W - other).max():.1e}"
        result = {"event": options.event, "n": options.n, "without": plain, "with": seconds}
        print(json.dumps(result | {"difference": same}))


def quietly(close: Callable[[], object]) -> None:
    """Close what may have lost its scheduler."""
    with contextlib.suppress(Exception):
        close()


def timed(path: Path, client: Client, **options: Any) -> tuple[float, Any]:
    """Seconds and weights of a graph."""
    began = time.perf_counter()
    graph = quadratic_ot_graph(path, client=client, **OPTIONS, **options)
    seconds = time.perf_counter() - began
    return seconds, graph.to_scipy()


def resumed(
    path: Path, client: Client, cluster: Any, stack: contextlib.ExitStack, state: Path
) -> tuple[float, Any]:
    """Time until the scheduler is lost, and that of the rest on a new cluster, which is started."""
    began = time.perf_counter()
    with happening(lambda _: cluster.scheduler.process.kill()), contextlib.suppress(ClusterError):
        quadratic_ot_graph(path, client=client, checkpoint=state, **OPTIONS)
    before = time.perf_counter() - began
    again = stack.enter_context(Client(stack.enter_context(started(2))))
    quadratic_ot_graph(data.make("manifold", 10_000), client=again, **OPTIONS)
    seconds, W = timed(path, again, checkpoint=state)
    return before + seconds, W


if __name__ == "__main__":
    main()
