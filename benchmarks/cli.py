"""What the command line adds to the same call in Python.

Run it with ``python -m benchmarks.cli``, in an environment that has the extra ``cli``. Each run is
a process of its own, from its start to its end; contenders take turns, and the fastest counts.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.data import make

MEAN_DEGREE = 15
MUST_REACH = 1.10  # the command against the script that builds and saves
BUILD = "import numpy as np, otgraph; "
BUILD += f"g = otgraph.quadratic_ot_graph(np.load('X.npy'), mean_degree={MEAN_DEGREE})"
CONTENDERS = {
    "otgraph graph": [
        "-m", "otgraph", "graph", "X.npy", "-o", "cli.otg",
        "--mean-degree", str(MEAN_DEGREE), "--force", "--quiet",
    ],
    "Python, saved": ["-c", f"{BUILD}; g.save('python.otg')"],
    "Python, not saved": ["-c", BUILD],
}  # fmt: skip


def main() -> None:
    """Measure, compare, and say whether the limit holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="points, in 50 dimensions")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        np.save(Path(directory, "X.npy"), make("manifold", options.n))
        runs = measure(directory, options.repeat)
        same = Path(directory, "cli.otg").read_bytes() == Path(directory, "python.otg").read_bytes()
    report(runs)
    print(f"\nboth files are {'the same' if same else 'DIFFERENT'}")


class Run(NamedTuple):
    """What one process took."""

    seconds: float
    cpu_seconds: float  # of all threads: steadier than the clock on a busy machine
    peak_gb: float


def measure(directory: str, repeat: int) -> dict[str, list[Run]]:
    """Every run, after one round that fills caches."""
    runs: dict[str, list[Run]] = {name: [] for name in CONTENDERS}
    for _ in range(repeat + 1):
        for name, arguments in CONTENDERS.items():
            runs[name].append(run([sys.executable, *arguments], directory))
    return {name: each[1:] for name, each in runs.items()}


def run(command: list[str], directory: str) -> Run:
    """One process from its start to its end."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=directory)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6)


def report(runs: dict[str, list[Run]]) -> None:
    """Table as Markdown, and the ratio that counts."""
    fastest = {name: Run(*(min(column) for column in zip(*each, strict=True)))
               for name, each in runs.items()}  # fmt: skip
    command = fastest["otgraph graph"]
    print("| contender | seconds | CPU seconds | peak GB | command / it | by CPU | all runs |")
    print("|---|---|---|---|---|---|---|")
    for name, best in fastest.items():
        listed = ", ".join(f"{each.seconds:.2f}" for each in runs[name])
        print(
            f"| {name} | {best.seconds:.2f} | {best.cpu_seconds:.2f} | {best.peak_gb:.2f} | "
            f"{command.seconds / best.seconds:.3f} | {command.cpu_seconds / best.cpu_seconds:.3f} "
            f"| {listed} |"
        )
    ratio = command.seconds / fastest["Python, saved"].seconds
    verdict = "yes" if ratio <= MUST_REACH else "NO"
    print(f"\nratio {ratio:.3f}, must reach <= {MUST_REACH:.2f}: {verdict}")


if __name__ == "__main__":
    main()
