"""Time of label spreading per iteration: ``python -m benchmarks.spread_labels [n]``.

Spreads ten classes over a quadratic OT graph of n points (200 000 by default) with a mean degree
of 15, and compares the time with that of one product of the graph with ten columns, times the
iterations that were reported. The graph itself takes most of the minute.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import numpy as np

import otgraph

if TYPE_CHECKING:
    from collections.abc import Callable

N_CLASSES = 10
LABELED = 0.01
REPEAT = 5


def main(n: int) -> None:
    """Print the measured times."""
    sample = otgraph.datasets.noisy_manifold(n, dtype=np.float32)
    graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=15, search="approximate")
    print(graph)
    y = np.floor(N_CLASSES * sample.t[:, 0]).astype(int)
    labeled = otgraph.datasets.label_mask(y, LABELED)
    W, Q = graph.transition(), np.random.default_rng(0).random((n, N_CLASSES))
    one_product = min(_seconds(lambda: W @ Q) for _ in range(REPEAT))
    for mu in (1.0, 0.1, 0.01):
        known = np.where(labeled, y, -1)
        began = time.perf_counter()
        spread = otgraph.spread_labels(graph, known, mu)
        seconds = time.perf_counter() - began
        print(
            f"mu {mu:g}: {seconds:.2f} s, {spread.n_iter} iterations, one product "
            f"{1000 * one_product:.0f} ms, {seconds / (spread.n_iter * one_product):.1f} times "
            f"the products alone; error below {spread.error:.0e}, accuracy "
            f"{(spread.labels == y)[~labeled].mean():.3f}"
        )


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
