"""The same graph by a cluster of processes on this machine, and what its messages cost.

    python -m benchmarks.distributed --all --quiet   all that docs/distributed.md shows
    python -m benchmarks.distributed --n 1000000     graph against the local one
    python -m benchmarks.distributed --n 0           rounds and kernels

Each adds to ``out/bench/distributed.json``. ``--all`` also puts the new figures into
``benchmarks/distributed.json``, fits the model again and writes the tables of docs/distributed.md
(`benchmarks.cluster_model`). ``--quiet`` says that nothing else runs on the machine.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from distributed import Client, LocalCluster

from benchmarks import cluster_model, data
from otgraph._memory import peak_bytes
from otgraph._parallel import Workers, row_blocks
from otgraph.costs import as_cost
from otgraph.distributed import quadratic_ot_graph
from otgraph.distributed._blocks import Blocks, Columns
from otgraph.distributed._cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

OUT = Path("out/bench/distributed.json")
DEGREE = 15
ROUNDS = 30
VECTOR_SIZES = [10_000, 100_000, 1_000_000]
PAGE_SIZES = [100_000, 200_000, 500_000, 1_000_000]  # of the page, on two workers of 2 GB
PAGE_MEMORY = "2GB"
KERNEL_POINTS = 50_000  # from which costs per pair are measured
# As this process was started: Dask sets variables of its workers here, too, and with these the C
# library gives freed memory back at once, which makes the local function almost twice as slow.
ENVIRONMENT = os.environ.copy()


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="3GB", help="limit of each worker")
    parser.add_argument("--search", default="approximate")
    parser.add_argument("--quiet", action="store_true", help="record that nothing else runs")
    parser.add_argument("--skip-local", action="store_true")
    parser.add_argument("--all", action="store_true", help="measure and write all of the page")
    options = parser.parse_args()
    if options.all:
        if not options.quiet:  # the model is fitted to runs on a quiet machine only
            parser.error("--all needs a quiet machine, and --quiet to say so.")
        measure_all()
        return
    results: dict[str, Any] = json.loads(OUT.read_text()) if OUT.exists() else {"graphs": []}
    with (
        LocalCluster(
            n_workers=options.workers,
            threads_per_worker=1,
            memory_limit=options.memory,
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        if options.n:  # first: the peak of the driver is that of this process so far
            graph = measure_graph(client, options)
            others = [run for run in results["graphs"] if _name(run) != _name(graph)]
            results["graphs"] = sorted([*others, graph], key=_name)
        else:
            results["rounds"] = measure_rounds(client)
    if not options.n:
        results["kernels"] = measure_kernels()
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


def measure_all() -> None:
    """Measure rounds, kernels and graphs, each in a process of its own, and fill the page."""
    command = [sys.executable, "-m", "benchmarks.distributed", "--quiet", "--memory", PAGE_MEMORY]
    for n in [0, *PAGE_SIZES]:
        subprocess.run(
            [*command, "--n", str(n)], check=True, stdout=subprocess.DEVNULL, env=ENVIRONMENT
        )
    found = json.loads(OUT.read_text())
    mine = [run for run in found["graphs"] if run["n"] in PAGE_SIZES]
    known = json.loads(cluster_model.MEASURED.read_text())
    others = [run for run in known["graphs"] if _name(run) not in {_name(new) for new in mine}]
    known |= {name: found[name] for name in ("rounds", "kernels")}
    known["graphs"] = sorted([*others, *mine], key=_name)
    cluster_model.MEASURED.write_text(json.dumps(known, indent=2) + "\n")
    page = cluster_model.PAGE
    page.write_text(cluster_model.filled(page.read_text(), known))
    print(cluster_model.run_table(known))


def measure_graph(client: Client, options: argparse.Namespace) -> dict[str, Any]:
    """Time and memory of driver and workers, and of the local function in another process."""
    stages = _Stages()
    logging.getLogger("otgraph").addHandler(stages)
    path = data.manifold_path(options.n)
    graph_options = {"mean_degree": DEGREE, "search": options.search}
    small = data.make("manifold", 10_000)
    quadratic_ot_graph(small, client=client, **graph_options)  # compiles
    before = peak_bytes()
    used, own = client.run(time.process_time), time.process_time()
    with _counted() as asked:
        began = time.perf_counter()
        graph = quadratic_ot_graph(path, client=client, **graph_options)
        seconds = time.perf_counter() - began
    own = time.process_time() - own
    after, peaks = client.run(time.process_time), client.run(peak_bytes)
    result = {
        "n": options.n,
        "search": options.search,
        "n_workers": options.workers,
        "quiet": options.quiet,
        "memory_limit": options.memory,
        "seconds": seconds,
        "driver_cpu_seconds": own,  # with the scheduler, which is in the same process
        # A worker that was lost took its count with it.
        "worker_cpu_seconds": [after[name] - used.get(name, 0.0) for name in after],
        "driver_peak_gb": _gigabytes(peak_bytes()),
        "driver_peak_before_gb": _gigabytes(before),
        "worker_peak_gb": [_gigabytes(peak) for peak in peaks.values()],
        "status": str(graph.certificate.status),
        "mean_degree": graph.mean_degree,
        "n_blocks": graph.n_blocks,
        "n_steps": graph.certificate.n_steps,
        "n_rounds": asked["rounds"],
        "n_tasks": sum(asked.values()) - asked["rounds"],
        "n_products": asked["product"] // graph.n_blocks,
        "n_evaluations": asked["evaluate"] // graph.n_blocks,
    }
    del graph
    if not options.skip_local:
        spec = {"job": "otgraph", "data": "manifold_file", "n": options.n, "options": graph_options}
        local = json.loads(_run([sys.executable, "-m", "benchmarks.jobs", json.dumps(spec)]))
        result |= {
            "local_seconds": local["seconds"],
            "local_peak_gb": local["peak_gb"],
            "ratio": seconds / local["seconds"],
        }
    return result


@contextlib.contextmanager
def _counted() -> Iterator[collections.Counter[str]]:
    """Count the tasks asked for by name, and the rounds in which they were waited for."""
    asked: collections.Counter[str] = collections.Counter()
    submit, gather, notes = Cluster.submit, Cluster.gather, Cluster.notes

    def counted_submit(self: Cluster, name: str, *args: Any, **keywords: Any) -> Any:
        asked[name] += 1
        return submit(self, name, *args, **keywords)

    def counted_gather(self: Cluster, *args: Any) -> Any:
        asked["rounds"] += 1
        return gather(self, *args)

    def counted_notes(self: Cluster, *args: Any) -> Any:
        rounds = asked["rounds"] + 1
        found = notes(self, *args)  # which may gather
        asked["rounds"] = rounds
        return found

    counted = {"submit": counted_submit, "gather": counted_gather, "notes": counted_notes}
    for name, function in counted.items():
        setattr(Cluster, name, function)
    try:
        yield asked
    finally:
        for name, function in {"submit": submit, "gather": gather, "notes": notes}.items():
            setattr(Cluster, name, function)


def measure_rounds(client: Client) -> list[dict[str, Any]]:
    """One vector out, one answer per row back, for some numbers of blocks."""
    rows = []
    for n_blocks in (2, 16):
        for n in VECTOR_SIZES:
            blocks = _blocks_of(Cluster(client), n, n_blocks)
            v = np.random.default_rng(0).normal(size=n)
            for _ in range(3):
                blocks.answers("round", _part, vector=v)
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                blocks.answers("round", _part, vector=v)
                times.append(time.perf_counter() - began)
            rows.append({"n": n, "n_blocks": n_blocks, "seconds": float(np.median(times))})
    return rows


def _blocks_of(cluster: Cluster, n: int, n_blocks: int) -> Blocks:
    """Blocks of rows without pairs, which need their own entries of a vector."""
    ranges = row_blocks(n, -(-n // n_blocks))
    none = np.empty(0, dtype=np.int32)
    needs = [Columns(n, first, last, none).need for first, last in ranges]
    futures = [cluster.send("block", None) for _ in ranges]
    return Blocks(cluster, ranges, futures, needs, [None] * len(ranges))


def _part(block: None, part: Any) -> Any:
    return part


def measure_kernels() -> dict[str, Any]:
    """Seconds of one thread per point, pair looked at, candidate and active pair."""
    X = data.make("manifold", KERNEL_POINTS)
    workers = Workers(1)
    as_cost(X[:9000].astype(np.float64), workers=workers).neighbors(5)  # compiles
    points = X.astype(np.float64)
    few = points[: KERNEL_POINTS // 4]
    prepare_few, _ = _timed(lambda: as_cost(few, exact=False, workers=workers))
    prepare, cost = _timed(lambda: as_cost(points, exact=False, workers=workers))
    search, pairs = _timed(lambda: cost.neighbors(int(1.3 * DEGREE)))
    entries = 2 * pairs.n_pairs
    problem = cost.restrict(pairs, np.full(cost.n, np.inf))
    u = problem.start(np.full(cost.n, 0.1))
    evaluate, _ = min((_timed(lambda: problem.evaluate(u.copy())) for _ in range(5)), key=_first)
    hessian = problem.hessian(u)
    product, _ = min((_timed(lambda: hessian.product(u)) for _ in range(5)), key=_first)
    screen, found = _timed(lambda: cost.screen(u))
    return {
        "n": KERNEL_POINTS,
        "dim": X.shape[1],
        "candidates_per_row": entries / cost.n,
        "prepare_seconds": [prepare_few, prepare],  # of a quarter of the points, and of all
        "search_seconds": search,
        "screen_seconds": screen,
        "screened_per_point": found.pairs_checked / cost.n,
        "evaluate_seconds_per_entry": evaluate / entries,
        "product_seconds_per_entry": product / hessian.n_active,
    }


def _name(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["n"], run["search"], run["n_workers"], run["memory_limit"]


def _timed(call: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


def _first(timed: tuple[float, Any]) -> float:
    return timed[0]


def _gigabytes(n_bytes: int | None) -> float | None:
    return None if n_bytes is None else round(n_bytes / 1e9, 3)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    return done.stdout


class _Stages(logging.Handler):
    """Prints what the solver reports, with the time."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        logging.getLogger("otgraph").setLevel(logging.DEBUG)
        self._began = time.perf_counter()

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        elapsed = time.perf_counter() - self._began
        print(f"  {elapsed:7.1f} s  {record.getMessage()}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
