"""What minimum flows do to the paper's experiments: ``python -m benchmarks.minimum_flows``.

The noisy spiral (mean angle, smaller is better) and the spiral arms (accuracy), each with the plain
plan, with `min_degree`, and with `connect=True`. Every number is the best over the paper's grid of
eps, averaged over the seeds. Some minutes on one core.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

import otgraph
from otgraph.experiments import arms, spiral
from otgraph.experiments._framework import labels

if TYPE_CHECKING:
    from collections.abc import Callable

SEEDS = range(3)
WISHES: dict[str, dict[str, Any]] = {
    "plain": {"min_degree": 0, "connect": False},
    "min_degree=4": {"min_degree": 4, "connect": False},
    "connect=True": {"min_degree": 0, "connect": True},
}
# Above this eps lie the best graphs of the spiral, with and without self-loops.
SMALLEST_SPIRAL_EPS = 0.5


def main() -> None:
    """Print a table."""
    warnings.simplefilter("ignore")
    print("| experiment | variant | self-loops | " + " | ".join(WISHES) + " |")
    print("|---" * (3 + len(WISHES)) + "|")
    for title, best in (("spiral, mean angle", best_angle), ("arms, accuracy", best_accuracy)):
        for variant in ("text", "code"):
            for self_loops in (True, False):
                cells = [_mean(best, variant, self_loops, wish) for wish in WISHES.values()]
                kept = "yes" if self_loops else "no"
                print(f"| {title} | {variant} | {kept} | {' | '.join(cells)} |", flush=True)


def _mean(best: Callable[..., float], variant: str, self_loops: bool, wish: Any) -> str:
    scores = [best(variant, seed, self_loops=self_loops, **wish) for seed in SEEDS]
    return f"{np.mean(scores):.3f}"


def best_angle(variant: str, seed: int, **options: Any) -> float:
    """Smallest angle to the eigenvectors of the clean points."""
    parameters = spiral.Parameters()
    sample = spiral.sample(parameters, seed)
    n_vectors = parameters.n_eigenvectors
    clean = spiral.reference_graph(sample, variant, parameters)
    reference = spiral.leading_modes(clean, n_vectors).vectors
    grid = [eps for eps in parameters.quadratic_eps if eps >= SMALLEST_SPIRAL_EPS]
    path = otgraph.eps_path(sample.X, grid, n_jobs=1, **options)
    modes = (spiral.leading_modes(graph, n_vectors).vectors for graph in path)
    return min(otgraph.subspace_angle(vectors, reference) for vectors in modes)


def best_accuracy(variant: str, seed: int, **options: Any) -> float:
    """Largest accuracy from 2.5 % of the labels."""
    parameters = arms.Parameters()
    sample = arms.labeled_arms(parameters, variant, seed)
    grid = parameters.quadratic_eps if options["self_loops"] else parameters.hollow_eps
    path = otgraph.eps_path(sample.sample.X, grid, n_jobs=1, **options)
    return max(labels.accuracy(graph, sample, variant) for graph in path)


if __name__ == "__main__":
    main()
