"""How good the automatic eps is, and what it costs: ``python -m benchmarks.auto_eps``.

Ten samples whose truth is known. The graph of the chosen eps is compared with the best graph of a
fine grid, which needs the truth. Cost is the time of the whole call in units of one graph with the
chosen eps. ``transfer`` shows what becomes of the choice when there are more points than the sample
that it is made on. A minute or two each on one core.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA

import otgraph
from otgraph import datasets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GRID = np.logspace(-3, 1.5, 37)
NEAR = 0.1  # relative distance from the best score that counts as good
REPETITIONS = 3
N_COMPONENTS = 50  # of the cells, as in scanpy
TOTAL = 10_000  # library size that cells are scaled to


@dataclass(frozen=True)
class Case:
    """Points, the score of a graph on them (smaller is better), and the choice of eps."""

    name: str
    X: Any
    score: Callable[[otgraph.Graph], float]
    choose: Callable[[], otgraph.EpsChoice]
    auto: bool = True  # whether eps="auto" makes this choice


def main() -> None:
    """Print a line for each sample."""
    print(
        f"{'sample':<24} {'eps':>7} {'score':>8} {'best':>8} {'at':>7} {'ratio':>6} {'solves':>7}"
    )
    good = 0
    for case in cases():
        choice = case.choose()
        scores = [case.score(graph) for graph in otgraph.eps_path(case.X, GRID)]
        best = min(scores)
        score = case.score(otgraph.quadratic_ot_graph(case.X, choice.eps))
        good += score <= (1 + NEAR) * best
        at = GRID[int(np.argmin(scores))]
        print(
            f"{case.name:<27}{choice.eps:>8.3g}{score:>8.3g}{best:>8.3g}{at:>8.3g}"
            f"{score / best:>8.3f}{solves(case, choice):>8.1f}",
            f"  {choice.doubt.value}" if choice.doubt else "",
            flush=True,
        )
    print(f"{good} of 10 within {NEAR:.0%} of the best")


def cases() -> Iterator[Case]:
    """The ten samples."""
    for seed in (0, 1):
        yield spiral(seed)
    for seed in (0, 1):
        yield arms(seed)
    for dim, noise in ((1, 0.5), (2, 0.3), (5, 0.3)):
        yield manifold(dim, noise)
    for seed in (0, 1, 2):
        yield cells(seed)


def spiral(seed: int) -> Case:
    """Ten eigenvectors against those of the clean points (section 3.1 of the paper)."""
    sample = datasets.noisy_spiral(random_state=seed)
    clean = otgraph.knn_gaussian_graph(sample.clean, n_neighbors=10, eps=0.025)
    truth = otgraph.eigenmaps(clean, 10).coordinates

    def angle(graph: otgraph.Graph) -> float:
        return otgraph.subspace_angle(otgraph.eigenmaps(graph, 10).coordinates, truth)

    return Case(f"spiral, seed {seed}", sample.X, angle, lambda: otgraph.choose_eps(sample.X))


def arms(seed: int) -> Case:
    """Share of wrong labels from 2.5 % of them (section 3.2)."""
    sample = datasets.spiral_arms(random_state=seed)
    truth = sample.labels
    known = datasets.label_mask(truth, 0.025, random_state=seed)
    labels = np.where(known, truth, -1)

    def wrong(graph: otgraph.Graph) -> float:
        found = otgraph.spread_labels(graph, labels).labels
        return float(np.mean(found[~known] != truth[~known]))

    def choose() -> otgraph.EpsChoice:
        return otgraph.choose_eps(sample.X, labels)

    return Case(f"arms by labels, seed {seed}", sample.X, wrong, choose, auto=False)


def manifold(dim: int, noise: float, n: int = 1000) -> Case:
    """Distance of the averages over neighbors from the clean points."""
    sample = datasets.noisy_manifold(n, intrinsic_dim=dim, noise=noise)
    clean = sample.clean @ sample.basis.T
    name = f"manifold, {dim} dim., n = {n}"
    return Case(name, sample.X, denoised(sample.X, clean), lambda: otgraph.choose_eps(sample.X))


def cells(seed: int) -> Case:
    """Distance of denoised expression from the true one; molecules are split."""
    sample = datasets.simulated_cells(1000, n_genes=1000, random_state=seed)
    truth = np.sqrt(TOTAL * sample.expression())
    X = components(sample.counts)

    def choose() -> otgraph.EpsChoice:
        return otgraph.choose_eps(sample.counts, split="counts", prepare=components)

    return Case(f"cells, seed {seed}", X, denoised(roots(sample.counts), truth), choose, auto=False)


def denoised(X: Any, truth: Any) -> Callable[[otgraph.Graph], float]:
    """Root mean square distance of one step of diffusion from the truth."""

    def error(graph: otgraph.Graph) -> float:
        return float(np.sqrt(np.mean((otgraph.denoise(graph, X, 1) - truth) ** 2)))

    return error


def roots(counts: Any) -> Any:
    """Square roots of counts scaled to one library size."""
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    return (sp.diags(TOTAL / totals) @ counts).sqrt().toarray()


def components(counts: Any) -> Any:
    """Principal components of the roots."""
    return PCA(N_COMPONENTS, svd_solver="randomized", random_state=0).fit_transform(roots(counts))


def solves(case: Case, choice: otgraph.EpsChoice) -> float:
    """Time of the choice and its graph, in units of the time of the graph.

    For cells it includes the principal components of both halves.
    """

    def whole() -> None:
        if case.auto:
            otgraph.quadratic_ot_graph(case.X, "auto")
        else:
            case.choose()
            otgraph.quadratic_ot_graph(case.X, choice.eps)

    return seconds(whole) / seconds(lambda: otgraph.quadratic_ot_graph(case.X, choice.eps))


def seconds(work: Callable[[], Any]) -> float:
    """Shortest of a few repetitions."""
    times = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def transfer() -> None:
    """Print what the choice on a sample costs in accuracy, for growing numbers of points."""
    names = ("points", "growth", "eps", "best at", "ratio", "solves")
    print(f"{'sample':<27}" + "".join(f"{name:>8}" for name in names))
    grid = GRID[(GRID > 0.3) & (GRID < 20)][::2]
    for dim in (2, 3, 5):
        for n in (2000, 8000):
            case = manifold(dim, 0.3, n)
            choice = case.choose()
            scores = [case.score(graph) for graph in otgraph.eps_path(case.X, grid)]
            score = case.score(otgraph.quadratic_ot_graph(case.X, choice.eps))
            print(
                f"{case.name:<27}{choice.n_points:>8}{choice.growth:>8.2f}{choice.eps:>8.3g}"
                f"{grid[int(np.argmin(scores))]:>8.3g}{score / min(scores):>8.3f}"
                f"{solves(case, choice):>8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transfer() if sys.argv[1:] == ["transfer"] else main()
