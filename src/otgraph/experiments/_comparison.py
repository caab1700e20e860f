"""All graphs of the comparison over their grids: clustering scores, and curves of a score."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.sparse.linalg import ArpackError
from sklearn.cluster import SpectralClustering
from sklearn.metrics import normalized_mutual_info_score

from otgraph.experiments._framework import figures, methods
from otgraph.experiments._framework.methods import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from otgraph import Graph
    from otgraph.experiments._framework.experiment import Params, Row, Scores, Task
    from otgraph.typing import FloatArray, IntArray

CONTENDERS = (
    QUADRATIC, HOLLOW, ENTROPIC, HOLLOW_ENTROPIC, GAUSSIAN, KNN_GAUSSIAN, KNN, MAGIC
)  # fmt: skip
OURS = (QUADRATIC, HOLLOW)
WITH_EPS = (QUADRATIC, HOLLOW, KNN_GAUSSIAN, ENTROPIC, HOLLOW_ENTROPIC, GAUSSIAN)
WITH_K = (KNN, KNN_GAUSSIAN, MAGIC)
NMI = "NMI"
COMPONENTS = "components"

# Above this share of all pairs, graphs are faster to decompose as dense matrices.
DENSE_SHARE = 0.1


@dataclass(frozen=True)
class Grids:
    """Parameters of the graphs; eps of the kernels is also that of nearest neighbors."""

    quadratic_eps: tuple[float, ...] = methods.log_grid(-1.5, 1.5, 25)
    kernel_eps: tuple[float, ...] = methods.log_grid(-2, 1, 25)
    k: tuple[int, ...] = (3, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100)
    gaussian_k: tuple[int, ...] = (5, 10, 15, 20, 25, 50, 100)


def contenders(grids: Grids) -> Iterator[tuple[str, Params]]:
    """Methods with the parts of the grid that make a task each, the dense ones first."""
    for method in (ENTROPIC, HOLLOW_ENTROPIC, GAUSSIAN, QUADRATIC, HOLLOW, KNN, MAGIC):
        yield method, {}
    for k in grids.gaussian_k:
        yield KNN_GAUSSIAN, {"k": k}


def graphs(task: Task, X: FloatArray, grids: Grids) -> Iterator[tuple[Row, Graph]]:
    """All graphs of a task with their parameters."""
    eps = grids.quadratic_eps if task.method in OURS else grids.kernel_eps
    k = (task.params["k"],) if task.method == KNN_GAUSSIAN else grids.k
    return methods.graphs_along(task.method, X, eps=eps, k=k)


def clusters(graph: Graph, n_clusters: int, *, seed: int) -> IntArray | None:
    """Spectral clustering by scikit-learn; None if its eigenvectors do not converge."""
    weights = graph.weights
    if weights.nnz > DENSE_SHARE * graph.n**2:
        weights = weights.toarray()
    clustering = SpectralClustering(n_clusters, affinity="precomputed", random_state=seed)
    with warnings.catch_warnings():
        # Disconnected graphs get low scores; no warning for each.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        warnings.filterwarnings("ignore", message="Exited")  # inaccurate eigenvectors
        try:
            return clustering.fit_predict(weights)
        except (ArpackError, RuntimeError):  # the latter from a singular factorization
            return None


def clustering_score(graph: Graph, labels: ArrayLike, *, n: int, seed: int) -> float:
    """Normalized mutual information of clusters and groups; 0 without clusters."""
    found = clusters(graph, n, seed=seed)
    return 0.0 if found is None else float(normalized_mutual_info_score(labels, found))


def draw_curves(axes: Sequence[Axes], scores: Scores, score: str) -> None:
    """Best value for every eps in the first panel and for every k in the second.

    White markers show graphs with several components, if the scores contain them.
    """
    apart = scores[(scores["score"] == COMPONENTS) & (scores["value"] > 1)]
    for ax, x, shown in zip(axes, ("eps", "k"), (WITH_EPS, WITH_K), strict=True):
        for method in shown:
            figures.plot_best(ax, scores, score, x, method, largest=True, hollow=apart)
        ax.set(ylim=(0, 1))
        figures.light_grid(ax)
    axes[0].set(xscale="log", ylabel=score)
