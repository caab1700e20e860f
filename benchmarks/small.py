"""Small problems, thousands of which are solved in a grid search: lines "small".

All contenders of a line take turns in one process, warm, and the fastest of many calls counts: a
call takes a millisecond, and processes differ by more than that. The worse of our two calls gives
the ratio.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import data

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (100, 300, 1000, 3000, 10_000)
DIMENSIONS = (10, 50)
AT_MOST = 2.0  # time of ours over that of scikit-learn
NEIGHBORS = 15
SECONDS = 3.0  # time for the turns of a line, after
FEWEST_TURNS = 5
MOST_TURNS = 300


def fastest(X: Any) -> dict[str, float]:
    """Seconds of the fastest call of every contender."""
    from sklearn.neighbors import kneighbors_graph

    import otgraph

    calls: dict[str, Callable[[], object]] = {
        "otgraph mean_degree = 15": lambda: otgraph.quadratic_ot_graph(X),
        "otgraph eps = 1": lambda: otgraph.quadratic_ot_graph(X, eps=1.0),
        "scikit-learn k = 15": lambda: kneighbors_graph(X, NEIGHBORS),
    }
    best = dict.fromkeys(calls, np.inf)
    end = time.perf_counter() + SECONDS
    for turn in range(MOST_TURNS):
        if turn > FEWEST_TURNS and time.perf_counter() > end:
            break
        for label, call in calls.items():
            began = time.perf_counter()
            call()
            if turn:  # the first one loads and compiles
                best[label] = min(best[label], time.perf_counter() - began)
    return best


def all_sizes(_: Any) -> dict[str, Any]:
    """The job: every size and dimension."""
    lines = []
    for dim in DIMENSIONS:
        for n in SIZES:
            best = fastest(data.make("manifold", n, dim=dim))
            *ours, theirs = best.values()
            lines.append({"n": n, "dim": dim, "best": best, "ratio": max(ours) / theirs})
    return {"seconds": sum(sum(line["best"].values()) for line in lines), "lines": lines}


def results(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Lines of the table from what the job has measured."""
    return [
        {
            "line": f"small ({line['n']}, d = {line['dim']})",
            "title": f"n = {line['n']:,}, d = {line['dim']}, warm, against a kNN graph",
            "ratio": line["ratio"],
            "at_most": AT_MOST,
            "memory_gb": None,
            "reached": line["ratio"] <= AT_MOST,
            "contenders": {
                label: {"seconds": seconds, "peak_gb": 0.0}
                for label, seconds in line["best"].items()
            },
            "ours": "otgraph mean_degree = 15",
        }
        for line in measured["lines"]
    ]
