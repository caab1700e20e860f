"""Run the benchmark lines and write a table, JSON and pictures.

    make bench              lines that take minutes, 15 in all
    make bench-large        the million-point lines, 25 minutes
    make bench ARGS="2 3"   some lines by name, large ones too
    make bench ARGS=small   100 to 10 000 points, warm
    make bench ARGS=growth  fitted exponents of time and memory
    make bench ARGS=show    only the table and the pictures of what was measured

Every measurement is a process of its own, contenders of a line take turns, and the fastest of
their repetitions counts. A run that was stopped goes on where it was: what was measured at the
present commit is not measured again, unless ``--again`` is given. Results go to out/bench/.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import figures, growth, small
from benchmarks.lines import LINES, STOP, Line, spec
from benchmarks.records import OUT, Records

if TYPE_CHECKING:
    from benchmarks.lines import Contender

FIRST_LIMITS = {"without cache": 5.0, "with cache": 1.2}  # seconds


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="lines to run; all by default")
    parser.add_argument("--large", action="store_true", help="the million-point lines instead")
    parser.add_argument("--again", action="store_true", help="measure what was measured already")
    arguments = parser.parse_args()
    names = set(arguments.names)
    bench = Bench(again=arguments.again)
    for line in LINES:
        if _chosen(line.name.split()[0], names, line.large == arguments.large):
            bench.result(f"line {line.name}", lambda line=line: bench.measured_line(line))
    if _chosen("small", names, not arguments.large):
        for key, make in small.lines(bench.measured):
            bench.result(key, make)
    if _chosen("first", names, not arguments.large):
        bench.result("first", measured_first_graph)
    if _chosen("growth", names, True):
        growth.measure(bench.measured, large=arguments.large)
    bench.show()


def _chosen(name: str, names: set[str], default: bool) -> bool:
    return name in names if names else default


class Bench:
    """Measurements and lines, each recorded when it is done."""

    def __init__(self, *, again: bool) -> None:
        self._lines = Records("results", again=again)
        self._measurements = Records("measurements", again=again)

    def result(self, key: str, make: Any) -> None:
        """Measure a line of the table, unless that was done at this commit."""
        known = self._lines.done(key)
        if known is None:
            known = self._lines.add(key, make())
            print(table([known]).splitlines()[-1], flush=True)
            self._write_table()

    def measured(
        self, spec: dict[str, Any], turn: int = 0, stop: float | None = None
    ) -> dict[str, Any]:
        """One measurement in a new process; several lines share it."""
        key = json.dumps([spec, turn])
        known = self._measurements.done(key)
        if known is None:
            known = self._measurements.add(key, {**spec, **measure(spec, stop)})
            print(f"  {spec['job']}, n = {spec['n']:,}: {known['seconds']:.3f} s", flush=True)
        return known

    def measured_line(self, line: Line) -> dict[str, Any]:
        """All contenders of a line, in turns."""
        print(f"line {line.name}: {line.title}", flush=True)
        contenders = [line.ours, *line.peers]
        best: dict[str, dict[str, Any]] = {}
        for turn in range(max(c.repeat for c in contenders)):
            for contender in contenders:
                if turn < contender.repeat:
                    stop = None if contender is line.ours else STOP
                    found = self.measured(_with_found_eps(contender, best), turn, stop)
                    keep_fastest(best, contender.label, found)
        ours = best[line.ours.label]
        peers = [best[c.label]["seconds"] for c in line.peers if "error" not in best[c.label]]
        ratio = ours["seconds"] / (line.times * min(peers, default=math.nan))
        reached = ratio <= line.at_most and line.status in ours.get("status", line.status)
        if line.memory_gb is not None:
            reached = reached and ours["peak_gb"] <= line.memory_gb
        return {
            "line": line.name,
            "title": line.title,
            "ratio": ratio,
            "at_most": line.at_most,
            "memory_gb": line.memory_gb,
            "reached": bool(reached),
            "bound_seconds": line.least.seconds(self.measured(spec("rates", "manifold", 100))),
            "bound_reason": line.least.reason,
            "contenders": best,
            "ours": line.ours.label,
        }

    def show(self) -> None:
        """Print the table and draw the pictures, from all that is recorded."""
        results, rows = self._lines.all(), growth.rows(self._measurements.all())
        if results:
            self._write_table()
            print(table(results))
            figures.draw_ratios(results, OUT / "ratios.png")
        if rows:
            text = growth.table(rows)
            (OUT / "growth.md").write_text(text + "\n")
            print(text)
            figures.draw_scaling(rows, OUT / "scaling.png")

    def _write_table(self) -> None:
        (OUT / "table.md").write_text(table(self._lines.all()) + "\n")


def measure(spec: dict[str, Any], stop: float | None = None) -> dict[str, Any]:
    """One measurement in a new process.

    A call that takes longer than ``stop`` seconds is stopped, and that time is its result. The
    process gets as long again to load and to compile.
    """
    python = sys.executable
    if "environment" in spec:
        python = str(Path(spec["environment"], "bin", "python"))
    if shutil.which(python) is None:
        return {"seconds": math.nan, "peak_gb": math.nan, "error": f"{python} is missing"}
    command = [python, "-m", "benchmarks.jobs", json.dumps(spec)]
    limit = None if stop is None else 2.0 * stop
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"seconds": stop, "peak_gb": math.nan, "stopped": True}
    if done.returncode:
        return {"seconds": math.nan, "peak_gb": math.nan, "error": done.stderr[-500:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _with_found_eps(contender: Contender, best: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Replace eps="found" by the value that the search for a degree has found."""
    spec = dict(contender.spec)
    if spec["options"].get("eps") == "found":
        spec["options"] = {**spec["options"], "eps": best["by degree"]["eps"]}
    return spec


def keep_fastest(best: dict[str, dict[str, Any]], label: str, result: dict[str, Any]) -> None:
    """Remember the fastest repetition, and the largest memory of all."""
    known = best.get(label)
    if known is None or result["seconds"] < known["seconds"]:
        peak = max(result["peak_gb"], known["peak_gb"]) if known else result["peak_gb"]
        best[label] = {**result, "peak_gb": peak}


def measured_first_graph() -> dict[str, Any]:
    """A first graph of 1000 points in a new process, with and without cached kernels."""
    code = (
        "import time; t = time.perf_counter(); import numpy as np, otgraph; "
        "otgraph.quadratic_ot_graph(np.random.default_rng(0).normal(size=(1000, 20)), eps=1.0); "
        "print(time.perf_counter() - t)"
    )
    seconds = {}
    for label in FIRST_LIMITS:
        cache = OUT.resolve() / "numba-cache"
        if label == "without cache" and cache.exists():
            for file in cache.rglob("*.nb?"):
                file.unlink()
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        seconds[label] = {"seconds": float(done.stdout), "peak_gb": 0.0}
    ratio = max(seconds[label]["seconds"] / limit for label, limit in FIRST_LIMITS.items())
    return {
        "line": "8",
        "title": "first graph of 1000 points in a new process: at most 5 s cold, 1.2 s cached",
        "ratio": ratio,
        "at_most": 1.0,
        "memory_gb": None,
        "reached": ratio <= 1.0,
        "contenders": seconds,
        "ours": "with cache",
    }


def table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown table."""
    rows = [
        "| line | work | contenders | ratio | must reach | reached | lower bound | commit, date |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        told = "; ".join(describe(label, c) for label, c in result["contenders"].items())
        limit = f"≤ {result['at_most']:.3g}"
        if result["memory_gb"]:
            limit += f", ≤ {result['memory_gb']:g} GB"
        stopped = any(c.get("stopped") for c in result["contenders"].values())
        rows.append(
            f"| {result['line']} | {result['title']} | {told} | "
            f"{'at most ' if stopped else ''}{result['ratio']:.3g} | {limit} | "
            f"{'yes' if result['reached'] else '**no**'} | {_bound(result)} | "
            f"{result['commit']}, {result['date']} |"
        )
    return "\n".join(rows)


def _bound(result: dict[str, Any]) -> str:
    """The lower bound, and how many times as long it takes."""
    seconds = result.get("bound_seconds")
    if not seconds:
        return ""
    times = result["contenders"][result["ours"]]["seconds"] / seconds
    return f"{_time(seconds)}, taken {times:.2g} times ({result['bound_reason']})"


def describe(label: str, result: dict[str, Any]) -> str:
    """Time, memory and what else is known of one contender."""
    if "error" in result:
        return f"{label} failed"
    if result.get("stopped"):
        return f"{label} stopped after {_time(result['seconds'])}"
    text = f"{label} {_time(result['seconds'])}"
    if result["peak_gb"]:
        text += f", {result['peak_gb']:.1f} GB"
    if "marginal_error" in result:
        text += f", error {result['marginal_error']:.0e}"
    if "status" in result:
        text += f", {result['status']}"
    if isinstance(result.get("mean_degree"), float):
        text += f", degree {result['mean_degree']:.1f}"
    if result.get("missing_pairs_bound"):
        share = result["missing_pairs"] / result["n_edges"]
        bound = result["missing_pairs_bound"] / result["n_edges"]
        text += f", missing {share:.2%} (at most {bound:.2%})"
    return text


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.2g} ms"


if __name__ == "__main__":
    main()
