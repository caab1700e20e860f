"""Geometry without density, and intrinsic dimensions: ``python -m benchmarks.geometry [PART ...]``.

Tables of docs/geometry.md, as mean ± standard deviation over five seeds:

angles      distance of eigenvectors from Laplace-Beltrami on unevenly sampled manifolds
curves      the same on the curves of the paper's figure 1
dimensions  intrinsic dimensions beside Levina-Bickel and TwoNN
doubts      clouds on which nothing was chosen: noise that is told, and clean points doubted
limits      where dividing the density out does not help
cost        time of the parts, in units of the graph itself

A minute or two each on one core; ``cost`` measures time and wants a quiet machine.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import make_swiss_roll
from sklearn.metrics import normalized_mutual_info_score
from sklearn.neighbors import NearestNeighbors

import otgraph
from otgraph import datasets
from otgraph.experiments._manifolds import MANIFOLDS, mode_values, modes
from otgraph.experiments._outline import eigenfunctions
from otgraph.experiments.curve import CURVES, PAPERS_EPS, Parameters, places
from otgraph.experiments.curve import sample as curve_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from otgraph.typing import FloatArray

SEEDS = range(5)
N = 2000
DEGREE = 30  # of all graphs of the comparison
CONCENTRATION = 1.0  # the density is e^(cos t)
N_MODES = {"circle": 4, "sphere": 8, "torus": 8}  # complete groups of eigenvalues
NEGLIGIBLE = 1e-10  # weights of a Gaussian kernel that are dropped
BANDWIDTHS = 2.0 ** np.arange(-2, 4)  # tried for the best diffusion map, in units of ours
EPS_FACTORS = 4.0 ** np.arange(-1, 4)  # the same for ours
CURVE, PLANE = 1, 2  # dimensions of the spiral and circle, and of the centers of the mixture
EIGEN_TOL = 1e-8


def main(parts: Sequence[str]) -> None:
    """Print the tables of some parts, or of all."""
    for part in parts or PARTS:
        print(f"\n{part}\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PARTS[part]()


def angles() -> None:
    """Eigenvectors against the eigenfunctions of the manifold."""
    _header(["manifold", "n", *METHODS, BEST_WIDTH, BEST_EPS])
    for name in N_MODES:
        scores: dict[str, list[float]] = {}
        for seed in SEEDS:
            manifold = MANIFOLDS[name]
            sample = manifold.sample(N, concentration=CONCENTRATION, random_state=seed)
            leading = modes(name, 0.0, 0.0)[: N_MODES[name]]
            truth = mode_values(name, leading, sample.t)
            graph = otgraph.quadratic_ot_graph(sample.X, mean_degree=DEGREE, n_jobs=1)
            _score(scores, sample.X, graph, manifold.dim, truth)
        _row([name, f"{N:,}", *map(_spread, scores.values())])


def curves() -> None:
    """The same on the curves of figure 1, at the paper's eps: with noise, and without."""
    _header(["curve", "n", *METHODS, BEST_WIDTH, BEST_EPS])
    for name in CURVES:
        scores: dict[str, list[float]] = {}
        for seed in SEEDS:
            curve = curve_sample(name, Parameters(), seed)
            truth = eigenfunctions(places(name, curve, Parameters()))
            graph = otgraph.quadratic_ot_graph(curve.X, PAPERS_EPS, n_jobs=1)
            _score(scores, curve.X, graph, CURVE, truth)
        _row([name, len(curve.X), *map(_spread, scores.values())])


def _score(
    scores: dict[str, list[float]],
    X: FloatArray,
    graph: otgraph.TransportGraph,
    dim: int,
    truth: FloatArray,
) -> None:
    """Add the angle of every method."""

    def angle(graph: Any, **keywords: Any) -> float:
        k = truth.shape[1]
        found = otgraph.eigenmaps(graph, k, tol=EIGEN_TOL, **keywords)
        return float(otgraph.subspace_angle(found, truth))

    for method, embed in METHODS.items():
        scores.setdefault(method, []).append(embed(X, graph, dim, angle))
    tried = [angle(_gaussian(X, graph, dim, width), density="corrected") for width in BANDWIDTHS]
    scores.setdefault(BEST_WIDTH, []).append(min(tried))
    path = otgraph.eps_path(X, graph.eps * EPS_FACTORS, connect=False, n_jobs=1)
    scores.setdefault(BEST_EPS, []).append(min(angle(each, density="corrected") for each in path))


def _gaussian(X: FloatArray, graph: otgraph.Graph, dim: int, width: float = 1.0) -> otgraph.Graph:
    """The Gaussian kernel with the mean square step of a quadratic OT graph, times a factor."""
    assert graph.edge_costs is not None
    step = (graph.weights.data * graph.edge_costs).sum() / graph.weights.sum()
    kernel = otgraph.gaussian_graph(X, 2.0 * width * step / dim, n_jobs=1)
    kernel.weights.data[kernel.weights.data < NEGLIGIBLE] = 0.0
    kernel.weights.eliminate_zeros()
    return kernel


METHODS: dict[str, Callable[..., float]] = {
    "quadratic OT": lambda X, graph, dim, angle: angle(graph),
    "corrected, d of the plan": lambda X, graph, dim, angle: angle(graph, density="corrected"),
    "corrected, d estimated": lambda X, graph, dim, angle: angle(
        graph, density="corrected", dim=otgraph.intrinsic_dimension(X, n_jobs=1)
    ),
    "corrected, true d": lambda X, graph, dim, angle: angle(graph, density="corrected", dim=dim),
    "kNN": lambda X, graph, dim, angle: angle(
        otgraph.knn_gaussian_graph(X, round(graph.mean_degree), symmetrize="average", n_jobs=1)
    ),
    "MAGIC": lambda X, graph, dim, angle: angle(
        otgraph.magic_graph(X, max(2, round(graph.mean_degree / 3)), n_jobs=1)
    ),
    "diffusion maps, alpha = 1": lambda X, graph, dim, angle: angle(
        _gaussian(X, graph, dim), density="corrected"
    ),
}
BEST_WIDTH, BEST_EPS = "the same, best width", "corrected, best eps"


def dimensions() -> None:
    """Intrinsic dimensions of clouds that are known, and of some that have none."""
    _header(["points", "true", "otgraph", "its error bar", "larger scale", "doubted",
             "Levina-Bickel", "TwoNN"])  # fmt: skip
    for name, (true, make) in CLOUDS.items():
        found, others = [], []
        for seed in SEEDS:
            X = make(seed)
            found.append(otgraph.intrinsic_dimension(X, n_jobs=1))
            others.append((levina_bickel(X), two_nn(X)))
        _row([
            name, true, _spread([each.value for each in found]),
            f"{np.mean([each.error for each in found]):.2f}",
            _spread([each.coarse for each in found]),
            f"{sum(bool(each.doubt) for each in found)} of {len(found)}",
            *(_spread(values) for values in zip(*others, strict=True)),
        ])  # fmt: skip


def _noisy_circle(seed: int) -> FloatArray:
    flat = np.pad(datasets.circle(N, random_state=seed).X, ((0, 0), (0, 8)))
    return np.asarray(flat + 0.05 * np.random.default_rng(seed + 99).normal(size=flat.shape))


def _bent(dim: int, seed: int) -> FloatArray:
    sample = datasets.noisy_manifold(
        N, dim=4 * dim, intrinsic_dim=dim, noise=0.0, random_state=seed
    )
    return np.asarray(sample.X)


CLOUDS: dict[str, tuple[object, Callable[[int], FloatArray]]] = {
    "circle": (1, lambda seed: datasets.circle(N, random_state=seed).X),
    "uneven circle": (1, lambda seed: datasets.circle(N, concentration=1, random_state=seed).X),
    "sphere": (2, lambda seed: datasets.sphere(N, random_state=seed).X),
    "torus": (2, lambda seed: datasets.flat_torus(N, random_state=seed).X),
    "swiss roll": (2, lambda seed: make_swiss_roll(N, random_state=seed)[0]),
    "5-d sphere": (5, lambda seed: _round(np.random.default_rng(seed), N, 5)),
    "5-d bent surface": (5, lambda seed: _bent(5, seed)),
    "20-d sphere": (20, lambda seed: _round(np.random.default_rng(seed), N, 20)),
    "20-d bent surface": (20, lambda seed: _bent(20, seed)),
    "circle, noise 0.05 in 10-d": ("1 + noise", _noisy_circle),
    "the paper's noisy spiral": (
        "1 + noise", lambda seed: datasets.noisy_spiral(random_state=seed).X
    ),
}  # fmt: skip


def doubts() -> None:
    """Clouds on which nothing was chosen: how often noise is told, and clean points are doubted.

    The neighbors and the factor behind the doubt were chosen on the clouds above.
    """
    _header(["points", "n", "true", "otgraph", "its error bar", "larger scale", "doubted"])
    for name, (true, make) in OTHER_CLOUDS.items():
        for n in (1000, 4000):
            found = [
                otgraph.intrinsic_dimension(make(np.random.default_rng(1000 + seed), n), n_jobs=1)
                for seed in SEEDS
            ]
            _row([
                name, f"{n:,}", true, _spread([each.value for each in found]),
                f"{np.mean([each.error for each in found]):.2f}",
                _spread([each.coarse for each in found]),
                f"{sum(bool(each.doubt) for each in found)} of {len(found)}",
            ])  # fmt: skip


def _helix(rng: np.random.Generator, n: int) -> FloatArray:
    t = rng.uniform(0, 4 * np.pi, n)
    return np.column_stack([np.cos(t), np.sin(t), t / 4])


def _round(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    X = rng.normal(size=(n, dim + 1))
    return np.asarray(X / np.linalg.norm(X, axis=1, keepdims=True))


def _noisy(rng: np.random.Generator, X: FloatArray, noise: float, dim: int) -> FloatArray:
    wide = np.pad(X, ((0, 0), (0, dim - X.shape[1])))
    return np.asarray(wide + noise * rng.normal(size=wide.shape))


OTHER_CLOUDS: dict[str, tuple[object, Callable[[np.random.Generator, int], FloatArray]]] = {
    "helix": (1, _helix),
    "3-d cube": (3, lambda rng, n: rng.uniform(size=(n, 3))),
    "3-d sphere": (3, lambda rng, n: _round(rng, n, 3)),
    "8-d sphere": (8, lambda rng, n: _round(rng, n, 8)),
    "12-d cube": (12, lambda rng, n: rng.uniform(size=(n, 12))),
    "helix, noise 0.1 in 3-d": ("1 + noise", lambda rng, n: _noisy(rng, _helix(rng, n), 0.1, 3)),
    "helix, noise 0.1 in 20-d": ("1 + noise", lambda rng, n: _noisy(rng, _helix(rng, n), 0.1, 20)),
    "sphere, noise 0.1 in 3-d": (
        "2 + noise", lambda rng, n: _noisy(rng, _round(rng, n, 2), 0.1, 3)
    ),
    "sphere, noise 0.1 in 10-d": (
        "2 + noise", lambda rng, n: _noisy(rng, _round(rng, n, 2), 0.1, 10)
    ),
    "8-d sphere, noise 0.1 in 30-d": (
        "8 + noise", lambda rng, n: _noisy(rng, _round(rng, n, 8), 0.1, 30)
    ),
}  # fmt: skip


def levina_bickel(X: FloatArray, first: int = 10, last: int = 20) -> float:
    """Maximum likelihood (Levina and Bickel 2005), inverses averaged (MacKay and Ghahramani)."""
    distances = NearestNeighbors(n_neighbors=last).fit(X).kneighbors()[0]
    found = []
    for k in range(first, last + 1):
        inverse = np.log(distances[:, k - 1 : k] / distances[:, : k - 1]).mean(axis=1)
        found.append(1.0 / inverse.mean())
    return float(np.mean(found))


def two_nn(X: FloatArray, share: float = 0.9) -> float:
    """Ratio of the two nearest distances (Facco et al. 2017); the largest tenth is left out."""
    distances = NearestNeighbors(n_neighbors=2).fit(X).kneighbors()[0]
    ratios = np.sort(distances[:, 1] / distances[:, 0])
    kept = int(share * len(ratios))
    x = np.log(ratios[:kept])
    y = -np.log1p(-np.arange(kept) / len(ratios))
    return float(x @ y / (x @ x))


def limits() -> None:
    """Noise, outliers and groups: plain graphs against corrected ones."""
    _header(["task", "score", "quadratic OT", "corrected, d of the plan", "its d",
             "corrected, smaller d"])  # fmt: skip
    _row(["the paper's noisy spiral, degree 50", "angle", *_limits(_spiral_angle)])
    _row(["circle with 20 outliers, degree 30", "angle", *_limits(_outlier_angle)])
    _row(["Gaussian mixture in 250-d, eps 1", "NMI", *_limits(_mixture_nmi)])


def _limits(score: Callable[[int], tuple[float, ...]]) -> Iterable[str]:
    return (_spread(values) for values in zip(*(score(seed) for seed in SEEDS), strict=True))


def _spiral_angle(seed: int) -> tuple[float, ...]:
    sample = datasets.noisy_spiral(random_state=seed)
    clean = otgraph.knn_gaussian_graph(sample.clean, n_neighbors=10, eps=0.025)
    truth = otgraph.eigenmaps(clean, 10).coordinates
    return _both_angles(otgraph.quadratic_ot_graph(sample.X, mean_degree=50, n_jobs=1), truth)


def _outlier_angle(seed: int) -> tuple[float, ...]:
    circle = datasets.circle(N, concentration=CONCENTRATION, random_state=seed)
    far = np.random.default_rng(seed).uniform(-3, 3, (20, 2))
    graph = otgraph.quadratic_ot_graph(np.r_[circle.X, far], mean_degree=DEGREE, n_jobs=1)
    return _both_angles(graph, circle.X, N)


def _both_angles(
    graph: otgraph.Graph, truth: FloatArray, n: int | None = None
) -> tuple[float, ...]:
    """Angles over the first n points: plain, corrected, the dimension used, corrected with 1."""

    def angle(**keywords: Any) -> float:
        found = otgraph.eigenmaps(graph, truth.shape[1], tol=EIGEN_TOL, **keywords)
        return float(otgraph.subspace_angle(found.coordinates[:n], truth))

    dim = float(graph.without_density().params["dim"])  # type: ignore[arg-type]
    corrected = angle(density="corrected")
    return angle(), corrected, dim, angle(density="corrected", dim=CURVE)


def _mixture_nmi(seed: int) -> tuple[float, ...]:
    sample = datasets.gaussian_mixture(random_state=seed)
    graph = otgraph.quadratic_ot_graph(sample.X, 1.0, n_jobs=1)
    without = graph.without_density()
    n_groups = len(np.unique(sample.labels))

    def nmi(graph: otgraph.Graph) -> float:
        found = otgraph.cluster(graph, n_groups).labels
        return float(normalized_mutual_info_score(sample.labels, found))

    dim = float(without.params["dim"])  # type: ignore[arg-type]
    return nmi(graph), nmi(without), dim, nmi(graph.without_density(PLANE))


def cost() -> None:
    """Seconds of the graph, and of everything else in units of it; over the seeds."""
    _header(["points", "n", "graph, degree 15", "correction", "10 eigenmaps", "corrected",
             "intrinsic_dimension"])  # fmt: skip
    makers = {
        "sphere": lambda n, seed: datasets.sphere(n, random_state=seed).X,
        "noisy manifold, 50-d": lambda n, seed: datasets.noisy_manifold(n, random_state=seed).X,
    }
    _costs_of(datasets.sphere(500).X)  # loads the kernels
    for name, n in (("sphere", 2000), ("sphere", 20_000), ("noisy manifold, 50-d", 20_000)):
        found = np.array([_costs_of(makers[name](n, seed)) for seed in SEEDS])
        seconds, *ratios = (_spread(column) for column in found.T)
        _row([name, f"{n:,}", f"{seconds} s", *ratios])


def _costs_of(X: FloatArray) -> list[float]:
    """Seconds of a graph, and of what can be done with it in units of that."""
    seconds, graph = _timed(lambda: otgraph.quadratic_ot_graph(X))
    parts: tuple[Callable[[], Any], ...] = (
        graph.without_density,
        lambda: otgraph.eigenmaps(graph, 10),
        lambda: otgraph.eigenmaps(graph, 10, density="corrected"),
        lambda: otgraph.intrinsic_dimension(X),
    )
    return [seconds, *(_timed(part)[0] / seconds for part in parts)]


def _timed(part: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = part()
    return time.perf_counter() - start, result


def _spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.3g} ± {np.std(known, ddof=1):.2g}" if known else "-"


def _header(cells: Sequence[object]) -> None:
    _row(cells)
    _row(["---"] * len(cells))


def _row(cells: Iterable[object]) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


PARTS = {
    "angles": angles,
    "curves": curves,
    "dimensions": dimensions,
    "doubts": doubts,
    "limits": limits,
    "cost": cost,
}

if __name__ == "__main__":
    main(sys.argv[1:])
