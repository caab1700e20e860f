"""Small problems, thousands of which are solved in a grid search: lines "small".

All contenders of a line take turns in one process, warm, and the fastest of many calls counts: a
call takes a millisecond, and processes differ by more than that. The worse of our two calls gives
the ratio.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bounds import graph_of
from benchmarks.lines import spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (100, 300, 1000, 3000, 10_000)
DIMENSIONS = (10, 50)
AT_MOST = 2.0  # time of ours over that of scikit-learn
NEIGHBORS = 15
SECONDS = 3.0  # time for the turns of a line, after
FEWEST_TURNS = 5
MOST_TURNS = 300
OURS = ("otgraph mean_degree = 15", "otgraph eps = 1")
THEIRS = "scikit-learn k = 15"


def turns(X: Any) -> dict[str, Any]:
    """The job: seconds of the fastest call of every contender."""
    from sklearn.neighbors import kneighbors_graph

    import otgraph

    calls: dict[str, Callable[[], object]] = {
        OURS[0]: lambda: otgraph.quadratic_ot_graph(X),
        OURS[1]: lambda: otgraph.quadratic_ot_graph(X, eps=1.0),
        THEIRS: lambda: kneighbors_graph(X, NEIGHBORS),
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
    return {"seconds": max(best[label] for label in OURS), "best": best}


def lines(
    measured: Callable[[dict[str, Any]], dict[str, Any]],
) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Every size and dimension: a name, and the function that measures the line."""
    for dim in DIMENSIONS:
        for n in SIZES:
            yield f"small ({n}, d = {dim})", partial(_line, measured, n, dim)


def _line(measured: Callable[[dict[str, Any]], dict[str, Any]], n: int, dim: int) -> dict[str, Any]:
    best = measured(spec("small", "manifold", n, dim=dim))["best"]
    worse = max(OURS, key=lambda label: best[label])
    ratio = best[worse] / best[THEIRS]
    least = graph_of(n, dim, 1.0)
    return {
        "line": f"small ({n}, d = {dim})",
        "title": f"n = {n:,}, d = {dim}, warm, against a kNN graph",
        "ratio": ratio,
        "at_most": AT_MOST,
        "memory_gb": None,
        "reached": ratio <= AT_MOST,
        "bound_seconds": least.seconds(measured(spec("rates", "manifold", 100))),
        "bound_reason": least.reason,
        "contenders": {
            label: {"seconds": seconds, "peak_gb": 0.0} for label, seconds in best.items()
        },
        "ours": worse,
    }
