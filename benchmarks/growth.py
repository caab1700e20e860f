"""Line 9: how time and memory grow with the number of points, for ours and for peers.

The points are those of the manifold in 50 dimensions, and graphs have a mean degree of 15. Peers
stop where they would take minutes, or more memory than there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.lines import STOP, spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

DATA = "manifold"
SAME_DATA = (DATA, "manifold_file")  # the latter from a file, for ten million points
OURS = ("otgraph, approximate", "otgraph, exact")
# By contender: the job with its options, sizes, and sizes of `make bench-large`. `rows` takes all
# that was measured with these jobs and options, whoever did it; line 4d has ten million points.
CONTENDERS: dict[str, tuple[dict[str, Any], tuple[int, ...], tuple[int, ...]]] = {
    OURS[0]: (
        {"job": "otgraph", "options": {"mean_degree": 15, "search": "approximate"}},
        (10_000, 30_000, 100_000),
        (300_000, 1_000_000),
    ),
    OURS[1]: (
        {"job": "otgraph", "options": {"mean_degree": 15, "search": "exact"}},
        (1000, 3000, 10_000, 30_000, 100_000),
        (300_000, 1_000_000),
    ),
    "solve alone": (  # the same problem on candidates that are there: no search, no screen
        {"job": "solve_only", "options": {"mean_degree": 15, "search": "approximate"}},
        (10_000, 30_000, 100_000),
        (300_000,),
    ),
    "scikit-learn, k = 15": (
        {"job": "kneighbors_graph", "options": {"k": 15}},
        (1000, 3000, 10_000, 30_000, 100_000),
        (),
    ),
    "pynndescent, k = 30": (
        {"job": "nn_descent", "options": {"k": 30}},
        (10_000, 30_000, 100_000),
        (300_000, 1_000_000),
    ),
    "RegOT, dense, eps = 1": (
        {"job": "regot", "options": {"eps": 1.0, "solver": "qrot_grssn"}},
        (1000, 3000, 5000),
        (),
    ),
}


def measure(measured: Callable[..., dict[str, Any]], *, large: bool) -> None:
    """Measure what is missing; large sizes instead of the others if they are asked for."""
    for label, (wanted, sizes, large_sizes) in CONTENDERS.items():
        stop = None if label in OURS else STOP
        for n in large_sizes if large else sizes:
            measured(spec(wanted["job"], DATA, n, **wanted["options"]), 0, stop)


def rows(measurements: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Contender, n, seconds and memory of all that was measured, the fastest of repetitions."""
    best: dict[tuple[str, int], dict[str, Any]] = {}
    for found in measurements:
        if (
            found["data"] not in SAME_DATA
            or "dim" in found
            or "error" in found
            or "stopped" in found
        ):
            continue
        for label, (wanted, _, _) in CONTENDERS.items():
            if found["job"] == wanted["job"] and found["options"] == wanted["options"]:
                known = best.get((label, found["n"]))
                if known is None or found["seconds"] < known["seconds"]:
                    best[label, found["n"]] = {"contender": label, **found}
    places = {label: place for place, label in enumerate(CONTENDERS)}
    return sorted(best.values(), key=lambda row: (places[row["contender"]], row["n"]))


def of(rows: list[dict[str, Any]], label: str) -> list[dict[str, Any]]:
    """The rows of one contender."""
    return [row for row in rows if row["contender"] == label]


# Exponents are fitted from here on: the time of fewer points is that of Python calls.
FITTED_FROM = 10_000


def exponent(rows: list[dict[str, Any]], key: str) -> float | None:
    """Slope of log ``key`` against log n; None if there are fewer than two sizes to fit."""
    far = [row for row in rows if row["n"] >= FITTED_FROM]
    fitted = far if len(far) > 1 else rows
    if len(fitted) < 2:
        return None
    n, value = np.array([[row["n"], row[key]] for row in fitted]).T
    return float(np.polyfit(np.log(n), np.log(value), 1)[0])


def table(rows: list[dict[str, Any]]) -> str:
    """Measurements and fitted exponents as Markdown."""
    out = ["| contender | n | seconds | peak GB | commit |", "|---|---|---|---|---|"]
    for label in CONTENDERS:
        mine = of(rows, label)
        out += [
            f"| {label} | {row['n']:,} | {row['seconds']:.3g} | {row['peak_gb']:.2f} | "
            f"{row['commit']} |"
            for row in mine
        ]
        slopes = exponent(mine, "seconds"), exponent(mine, "peak_gb")
        if None not in slopes:
            out.append(f"| {label} | exponent | {slopes[0]:.2f} | {slopes[1]:.2f} | |")
    return "\n".join(out)
