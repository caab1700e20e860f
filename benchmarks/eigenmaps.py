"""Time of ten eigenvectors: ``python -m benchmarks.eigenmaps``.

A noisy 5-dimensional manifold, on which a random walk mixes in hundreds of steps, and points along
a closed curve, on which it takes millions. Half a minute on one core, most of it for the graphs.
"""

from __future__ import annotations

import time

import numpy as np

import otgraph

N = 100_000


def main() -> None:
    """Print the measured times."""
    manifold = otgraph.datasets.noisy_manifold(N, dtype=np.float32)
    curve = otgraph.datasets.noisy_spiral(N, dim=3, noise=0.02)
    for name, sample in (("manifold", manifold), ("curve", curve)):
        graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=15)
        began = time.perf_counter()
        values = otgraph.eigenmaps(graph, 10).eigenvalues
        seconds = time.perf_counter() - began
        print(
            f"{name}, {N} points: {seconds:.1f} s, "
            f"1 - eigenvalues {1 - values[0]:.1e} to {1 - values[-1]:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
