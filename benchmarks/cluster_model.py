"""Time against workers, from what one machine measured: the tables of docs/distributed.md.

    python -m benchmarks.cluster_model             prints the tables
    python -m benchmarks.cluster_model --write     puts them into docs/distributed.md

Reads ``benchmarks/distributed.json``, a copy of what ``benchmarks.distributed`` wrote. Every
number that is not measured is an assumption, named below.
"""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from otgraph.distributed._checks import MOST_GROUP_BYTES, WorkerFacts, choose_block_rows
from otgraph.distributed._cost import BYTES_PER_PAIR
from otgraph.distributed._points import FEWEST_GROUPS

HERE = Path(__file__).parent
MEASURED = HERE / "distributed.json"
PAGE = HERE.parent / "docs" / "distributed.md"
BEGIN, END = "<!-- begin {} -->", "<!-- end {} -->"
PAGE_WIDTH = 100  # of its lines

# Assumptions.
BANDWIDTH = 1.25e9  # bytes per second into and out of a machine: 10 gigabit Ethernet
SHUFFLES = 3  # first candidates, those of the screen, the finished graph
NEAR_BLOCKS = 30  # blocks that a block shares pairs with, at most: points are sorted by cell
NEAR_GROUPS = 30  # the same for groups of points, which travel to each other once per search
THREADS_PER_WORKER = 32  # of one machine, if there are so many
MEMORY_PER_WORKER = 10**12  # so much that it does not limit the size of blocks
# Bytes that workers hold per point: as given (float32), twice while points change hands, and 19
# pairs of candidates, as a million points had.
BYTES_PER_NUMBER = 2 * 4
PAIR_BYTES = 19 * BYTES_PER_PAIR
POINTS = (10**5, 10**6, 10**7, 10**8, 10**9)
THREADS = (1, 2, 8, 32, 128, 512)


@dataclass(frozen=True)
class Model:
    """Seconds of each kind of work."""

    latency: float  # of a round
    per_task: float
    per_number: float  # that goes out to the workers and comes back
    prepare: float  # per point: reading, centering, sorting
    cells: float  # per point and cell
    search: float  # per point and sqrt(n): points of the nearest cells
    screen: float
    evaluation: float  # per point
    product: float  # per point
    n_rounds: int
    n_products: int
    n_evaluations: int
    dim: int
    factor: float = 1.0  # on everything, so that the measured run is met

    def seconds(self, n: int, threads: int) -> dict[str, float]:
        """Parts of the time of a graph on n points."""
        return {name: self.factor * part for name, part in self._parts(n, threads).items()}

    def _parts(self, n: int, threads: int) -> dict[str, float]:
        worker = WorkerFacts("", THREADS_PER_WORKER, MEMORY_PER_WORKER)
        workers = [worker] * max(1, threads // THREADS_PER_WORKER)
        if threads < THREADS_PER_WORKER:
            workers = [worker._replace(threads=threads)]
        blocks = -(-n // choose_block_rows(n, None, workers))
        busy = min(threads, blocks)
        groups = max(FEWEST_GROUPS, -(-8 * self.dim * n // MOST_GROUP_BYTES))
        entries = SHUFFLES * groups * min(blocks, NEAR_BLOCKS)
        moved = 4.0 * n * self.dim * (1 + SHUFFLES * min(groups, NEAR_GROUPS)) / len(workers)
        vectors = self.n_rounds * 8.0 * n / BANDWIDTH * (threads > 1)
        return {
            "points": self.prepare * n / threads + moved / BANDWIDTH * (len(workers) > 1),
            "search": (self.cells + self.search + self.screen) * n**1.5 / min(threads, groups),
            "solve": (self.n_products * self.product + self.n_evaluations * self.evaluation)
            * n
            / busy,
            "messages": self.n_rounds
            * (self.latency + self.per_task * blocks + self.per_number * n)
            + self.per_task * entries
            + vectors,
        }


def model_of(measured: dict[str, Any]) -> Model:
    """Constants from measurements."""
    kernels, graph = measured["kernels"], measured["graph"]
    n = kernels["n"]
    latency, per_task, per_number = _round_costs(measured["rounds"])
    few, all_ = kernels["prepare_seconds"]
    # a n + b n^1.5 through both measurements.
    system = np.array([[n / 4, (n / 4) ** 1.5], [n, n**1.5]])
    prepare, cells = np.maximum(np.linalg.solve(system, [few, all_]), 0.0)
    model = Model(
        latency=latency,
        per_task=per_task,
        per_number=per_number,
        prepare=float(prepare),
        cells=float(cells),
        search=kernels["search_seconds"] / n**1.5,
        screen=kernels["screen_seconds"] / n**1.5,
        evaluation=kernels["evaluate_seconds_per_entry"] * kernels["candidates_per_row"],
        product=kernels["product_seconds_per_entry"] * graph["mean_degree"],
        n_rounds=graph["n_rounds"],
        n_products=graph["n_products"],
        n_evaluations=graph["n_evaluations"],
        dim=kernels["dim"],
    )
    predicted = sum(model.seconds(graph["n"], measured["n_workers"]).values())
    return replace(model, factor=graph["seconds"] / predicted)


def _round_costs(rounds: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Latency, seconds per task and per number, by least squares."""
    system = np.array([[1.0, row["n_blocks"], row["n"]] for row in rounds])
    seconds = np.array([row["seconds"] for row in rounds])
    constants, *_ = np.linalg.lstsq(system / seconds[:, None], np.ones(len(seconds)))
    latency, per_task, per_number = np.maximum(constants, 0.0).tolist()
    return latency, per_task, per_number


def rounds_table(measured: dict[str, Any]) -> str:
    """What a round costs."""
    lines = ["| numbers in the vector | blocks | milliseconds |", "|---|---|---|"]
    lines += [
        f"| {row['n']:,} | {row['n_blocks']} | {1e3 * row['seconds']:.0f} |"
        for row in measured["rounds"]
    ]
    model = model_of(measured)
    product = measured["kernels"]["product_seconds_per_entry"]
    fitted = (
        f"Fitted: {1e3 * model.latency:.1f} ms, and {1e3 * model.per_task:.2f} ms for each block, "
        f"and {1e9 * model.per_number:.0f} ns for each number. A product takes "
        f"{1e9 * product:.1f} ns of one core for each active pair in a row."
    )
    lines += ["", textwrap.fill(fitted, PAGE_WIDTH)]
    return "\n".join(lines)


def run_table(measured: dict[str, Any]) -> str:
    """The measured graph beside the local one."""
    graph = measured["graph"]
    peaks = ", ".join(f"{peak:.2f}" for peak in graph["worker_peak_gb"])
    rows = {
        "points": f"{graph['n']:,} in 50 dimensions, {graph['search']}, mean degree 15",
        "blocks, rounds, products": (
            f"{graph['n_blocks']}, {graph['n_rounds']}, {graph['n_products']}"
        ),
        "cluster": f"{graph['seconds']:.1f} s ({measured['n_workers']} workers of one thread)",
        "one process, two threads": f"{graph['local_seconds']:.1f} s",
        "ratio": f"{graph['ratio']:.2f}",
        "peak memory of the driver": f"{graph['driver_peak_gb']:.2f} GB",
        "of the workers": f"{peaks} GB, limit {graph['memory_limit']}",
        "of one process": f"{graph['local_peak_gb']:.2f} GB",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {k} | {v} |" for k, v in rows.items())])


def time_table(measured: dict[str, Any]) -> str:
    """Model of the whole time."""
    model = model_of(measured)
    threads = " | ".join(f"{w} threads" for w in THREADS)
    lines = [f"| points | {threads} | memory of all workers | of the driver |"]
    lines.append("|---" * (len(THREADS) + 3) + "|")
    graph = measured["graph"]
    grown = graph["driver_peak_gb"] - graph["driver_peak_before_gb"]
    for n in POINTS:
        cells = [_duration(sum(model.seconds(n, w).values())) for w in THREADS]
        workers = n * (BYTES_PER_NUMBER * model.dim + PAIR_BYTES) / 1e9
        driver = n * grown / graph["n"]
        cells += [f"{_rounded(workers)} GB", f"{_rounded(driver)} GB"]
        lines.append(f"| {n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parts_table(measured: dict[str, Any]) -> str:
    """Model of the parts, for many threads."""
    model, threads = model_of(measured), 32
    lines = [
        f"| points, {threads} threads | prepare points | search and screen | solve | messages |",
        "|---|---|---|---|---|",
    ]
    for n in POINTS:
        parts = model.seconds(n, threads)
        lines.append(f"| {n:,} | " + " | ".join(_duration(s) for s in parts.values()) + " |")
    lines += [
        "",
        f"All parts are multiplied by {model.factor:.2f}, so that the sum is the time of the run "
        "above.",
    ]
    return "\n".join(lines)


def _rounded(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


TABLES = {"rounds": rounds_table, "run": run_table, "time": time_table, "parts": parts_table}


def filled(page: str, measured: dict[str, Any]) -> str:
    """The page with every table made anew."""
    for name, make in TABLES.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n\n{make(measured)}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    results = json.loads(MEASURED.read_text())
    if "--write" in sys.argv:
        PAGE.write_text(filled(PAGE.read_text(), results))
    else:
        print("\n\n".join(make(results) for make in TABLES.values()))
