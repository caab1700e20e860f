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
from scipy.optimize import nnls

from otgraph._text import listed
from otgraph.distributed._checks import MOST_GROUP_BYTES, WorkerFacts, choose_block_rows
from otgraph.distributed._cost import BYTES_PER_PAIR
from otgraph.distributed._pairs import solved_by_one
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
# pairs of candidates, as a million points had, with lists of the active ones.
BYTES_PER_NUMBER = 2 * 4
PAIR_BYTES = 19 * (BYTES_PER_PAIR + 8)
DEGREE = 15
PRODUCTS = 62  # of all linear systems for 200,000 points
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
    n_evaluations: int
    dim: int
    factors: tuple[float, float] = (1.0, 1.0)  # on work and on messages, fitted to measured runs

    def seconds(self, n: int, threads: int) -> dict[str, float]:
        """Parts of the time of a graph on n points."""
        work, messages = self.factors
        parts = self._parts(n, threads)
        return {
            name: (messages if name == "messages" else work) * part for name, part in parts.items()
        }

    def _parts(self, n: int, threads: int) -> dict[str, float]:
        worker = WorkerFacts("", THREADS_PER_WORKER, MEMORY_PER_WORKER)
        workers = [worker] * max(1, threads // THREADS_PER_WORKER)
        if threads < THREADS_PER_WORKER:
            workers = [worker._replace(threads=threads)]
        blocks = -(-n // choose_block_rows(n, None, workers))
        busy = min(threads, blocks)
        # Products, which one worker takes alone otherwise.
        by_rounds = not solved_by_one(n * DEGREE, n, blocks, threads)
        n_rounds = self.n_rounds + by_rounds * PRODUCTS
        alone = 0 if by_rounds else PRODUCTS
        groups = max(FEWEST_GROUPS, -(-8 * self.dim * n // MOST_GROUP_BYTES))
        entries = SHUFFLES * groups * min(blocks, NEAR_BLOCKS)
        moved = 4.0 * n * self.dim * (1 + SHUFFLES * min(groups, NEAR_GROUPS)) / len(workers)
        vectors = n_rounds * 8.0 * n / BANDWIDTH * (threads > 1)
        return {
            "points": self.prepare * n / threads + moved / BANDWIDTH * (len(workers) > 1),
            "search": (self.cells + self.search + self.screen) * n**1.5 / min(threads, groups),
            "solve": (by_rounds * PRODUCTS * self.product + self.n_evaluations * self.evaluation)
            * n
            / busy
            + alone * self.product * n,
            "messages": n_rounds * (self.latency + self.per_task * blocks + self.per_number * n)
            + self.per_task * entries
            + vectors,
        }


def model_of(measured: dict[str, Any]) -> Model:
    """Constants from measurements."""
    kernels, runs = measured["kernels"], fitted_runs(measured)
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
        product=kernels["product_seconds_per_entry"] * DEGREE,
        n_rounds=max(run["n_rounds"] for run in runs),
        n_evaluations=max(run["n_evaluations"] for run in runs),
        dim=kernels["dim"],
    )
    # Relative errors of all runs are least, and no factor is negative.
    system, ones = [], np.ones(len(runs))
    for run in runs:
        parts = model.seconds(run["n"], run["n_workers"])
        messages = parts.pop("messages")
        system.append([sum(parts.values()) / run["seconds"], messages / run["seconds"]])
    work, messages = nnls(np.array(system), ones)[0].tolist()
    return replace(model, factors=(work, messages))


def fitted_runs(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs that the model is of: approximate, on a quiet machine."""
    return [run for run in measured["graphs"] if run["search"] == "approximate" and run["quiet"]]


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


def pays_line(measured: dict[str, Any]) -> str:
    """How much longer the cluster takes than one process, in a sentence."""
    runs = fitted_runs(measured)
    ratios = [f"{run['seconds'] / run['local_seconds']:.1f} at {run['n']:,}" for run in runs]
    line = f"Times as long as one process on the same two cores: {listed(ratios)} points."
    return textwrap.fill(line, PAGE_WIDTH)


def run_table(measured: dict[str, Any]) -> str:
    """The measured graphs beside local ones, and what the model says."""
    model = model_of(measured)
    lines = [
        "| points | cluster | one process | ratio | model | rounds | tasks | CPU of workers "
        "| of the driver | peak of workers | of the driver | of one process |",
        "|---" * 12 + "|",
    ]
    for run in fitted_runs(measured):
        peaks = ", ".join(f"{peak:.2f}" for peak in run["worker_peak_gb"])
        fitted = sum(model.seconds(run["n"], run["n_workers"]).values())
        cells = [
            f"{run['n']:,}",
            f"{run['seconds']:.1f} s",
            f"{run['local_seconds']:.1f} s",
            f"{run['seconds'] / run['local_seconds']:.2f}",
            f"{fitted:.1f} s",
            f"{run['n_rounds']}",
            f"{run['n_tasks']:,}",
            f"{sum(run['worker_cpu_seconds']):.1f} s",
            f"{run['driver_cpu_seconds']:.1f} s",
            f"{peaks} GB",
            f"{run['driver_peak_gb']:.2f} GB",
            f"{run['local_peak_gb']:.2f} GB",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def time_table(measured: dict[str, Any]) -> str:
    """Model of the whole time."""
    model = model_of(measured)
    threads = " | ".join(f"{w} threads" for w in THREADS)
    lines = [f"| points | {threads} | memory of all workers | of the driver |"]
    lines.append("|---" * (len(THREADS) + 3) + "|")
    graph = max(measured["graphs"], key=lambda run: run["n"])
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
    work, messages = model.factors
    sizes = ", ".join(f"{run['n']:,}" for run in fitted_runs(measured))
    fitted = (
        f"Messages are multiplied by {messages:.2f} and everything else by {work:.2f}, so that the "
        f"relative errors for the measured runs ({sizes} points) are least."
    )
    lines += ["", textwrap.fill(fitted, PAGE_WIDTH)]
    return "\n".join(lines)


def _rounded(number: float) -> str:
    return f"{number:.2g}" if number < 10 else f"{number:.0f}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


TABLES = {
    "pays": pays_line,
    "rounds": rounds_table,
    "run": run_table,
    "time": time_table,
    "parts": parts_table,
}


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
