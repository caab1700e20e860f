"""Jobs on a graph that is there already: methods of a million points, beside their peers.

The graph is made once, in a process of its own, so that it counts neither in the time nor in the
memory of a job: ``python -m benchmarks.methods build manifold 1000000``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path("out/bench")
N_CLASSES, LABELED = 10, 0.01
DENSITY, STEPS = 0.02, 3
N_COMPONENTS = 50
SCIPY_GENES = 50  # 400 MB for a million points
ALPHA = 2.0 / 3.0  # of scikit-learn, where mu = 1 of ours


def eigenmaps(X: Any, **options: Any) -> dict[str, Any]:
    """Ten eigenvectors of the random walk, by us."""
    import otgraph

    graph = graph_of(X)
    return timed(lambda: otgraph.eigenmaps(graph, options["k"]))


def scipy_eigenvectors(X: Any, **options: Any) -> dict[str, Any]:
    """The same by scipy's Lanczos method on the normalized matrix, to the same tolerance."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import eigsh

    W = graph_of(X).weights
    root = sp.diags(1.0 / np.sqrt(np.asarray(W.sum(axis=1)).ravel()))
    S = (root @ W @ root).tocsr()
    return timed(lambda: eigsh(S, options["k"] + 1, which="LA", tol=1e-10))


def spectral_embedding(X: Any, **options: Any) -> dict[str, Any]:
    """scikit-learn's embedding of the same graph."""
    from sklearn.manifold import spectral_embedding as embed

    W = graph_of(X).weights
    return timed(lambda: embed(W, n_components=options["k"], random_state=0))


def spread_labels(X: Any, **options: Any) -> dict[str, Any]:
    """Labels of ten classes from one point in a hundred, by us."""
    import otgraph

    graph, labels = graph_of(X), some_labels(len(X))
    return timed(lambda: otgraph.spread_labels(graph, labels))


def label_spreading(X: Any, **options: Any) -> dict[str, Any]:
    """scikit-learn's label spreading with the same graph as its kernel."""
    from sklearn.semi_supervised import LabelSpreading

    W, labels = graph_of(X).weights, some_labels(len(X))
    spread = LabelSpreading(kernel=lambda A, B: W, alpha=ALPHA, tol=1e-4, max_iter=1000)
    return timed(lambda: spread.fit(X, labels))


def denoise(X: Any, **options: Any) -> dict[str, Any]:
    """Sparse genes after three steps of the walk, by us; the result is not kept."""
    import otgraph

    graph, genes = graph_of(X), some_genes(len(X), options["genes"])
    return timed(lambda: otgraph.denoise(graph, genes, STEPS, out=Sink(genes.shape)))


def scipy_products(X: Any, **options: Any) -> dict[str, Any]:
    """The same by scipy, some genes at a time."""
    graph, genes = graph_of(X), some_genes(len(X), options["genes"]).tocsc()
    P = graph.transition()

    def products() -> None:
        for a in range(0, genes.shape[1], SCIPY_GENES):
            block = genes[:, a : a + SCIPY_GENES].toarray()
            for _ in range(STEPS):
                block = P @ block

    return timed(products)


def denoised_cells(X: Any, **options: Any) -> dict[str, Any]:
    """Genes of cells from counts to smooth values: components, graph and three steps, by us."""
    from sklearn.decomposition import TruncatedSVD

    import otgraph

    def denoised() -> Any:
        components = TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(X)
        return otgraph.denoise(otgraph.quadratic_ot_graph(components), X, STEPS)

    return timed(denoised)


def magic_impute(X: Any, **options: Any) -> dict[str, Any]:
    """The same by MAGIC, with its own components and graph."""
    import magic

    operator = magic.MAGIC(t=STEPS, n_pca=N_COMPONENTS, verbose=0, random_state=0, n_jobs=-1)
    return timed(lambda: operator.fit_transform(X))


class Sink:
    """Takes a result and forgets it, like a file."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape

    def __setitem__(self, key: Any, value: Any) -> None:
        """Nothing."""


def timed(function: Callable[[], object]) -> dict[str, Any]:
    """The time of one call, without what came before it."""
    began = time.perf_counter()
    function()
    return {"seconds": time.perf_counter() - began}


def some_labels(n: int) -> Any:
    """One label in a hundred points, ten classes."""
    rng = np.random.default_rng(0)
    labels = np.full(n, -1)
    known = rng.choice(n, max(N_CLASSES, int(LABELED * n)), replace=False)
    labels[known] = np.arange(len(known)) % N_CLASSES
    return labels


def some_genes(n: int, n_genes: int) -> Any:
    """Sparse expression values; some genes at a time, because scipy permutes all places."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    blocks = [
        sp.random(n, min(SCIPY_GENES, n_genes - a), DENSITY, dtype=np.float32, random_state=rng)
        for a in range(0, n_genes, SCIPY_GENES)
    ]
    return sp.hstack(blocks, format="csr")


def graph_of(X: Any) -> Any:
    """The graph of these points from a file, which another process makes if it is missing."""
    import otgraph

    path = FOLDER / f"graph-{len(X)}.otg"
    if len(X) <= 10_000:
        return otgraph.quadratic_ot_graph(X, mean_degree=15)
    if not path.exists():
        command = [sys.executable, "-m", "benchmarks.methods", "build", "manifold", str(len(X))]
        subprocess.run(command, check=True)
    return otgraph.load_graph(path)


def build(name: str, n: int) -> None:
    """Make a graph of mean degree 15 and write it without its points."""
    import otgraph
    from benchmarks import data

    FOLDER.mkdir(parents=True, exist_ok=True)
    graph = otgraph.quadratic_ot_graph(data.make(name, n), mean_degree=15, search="approximate")
    graph.save(FOLDER / f"graph-{n}.otg", include_points=False)


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "eigenmaps": eigenmaps,
    "scipy_eigenvectors": scipy_eigenvectors,
    "spectral_embedding": spectral_embedding,
    "spread_labels": spread_labels,
    "label_spreading": label_spreading,
    "denoise": denoise,
    "scipy_products": scipy_products,
    "denoised_cells": denoised_cells,
    "magic_impute": magic_impute,
}

if __name__ == "__main__":
    build(sys.argv[2], int(sys.argv[3]))
