"""The graph in other programs: the figures of docs/elsewhere.md and of "Batches" in singlecell.md.

python -m benchmarks.elsewhere digits      weights and distances in KNeighborsClassifier
python -m benchmarks.elsewhere transfer    ogs.tl.transfer and sc.tl.ingest
python -m benchmarks.elsewhere batches     graphs over two batches; needs bbknn
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

import otgraph
from otgraph.estimators import QuadraticOTTransformer

SPLITS = 5
BATCH_SEEDS = 3
RESOLUTIONS = (0.05, 0.1, 0.2, 0.4, 0.8)


def digits() -> None:
    """Accuracy on one half of the digits from the other."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer

    X, y = load_digits(return_X_y=True)
    X, new, y, truth = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    for k in (1, 3, 5):
        for name, transformer in {
            "affinity": QuadraticOTTransformer(),
            "distance": QuadraticOTTransformer(mode="distance"),
            "distance, filled": QuadraticOTTransformer(mode="distance", min_neighbors=k),
            "scikit-learn": KNeighborsTransformer(n_neighbors=15),
        }.items():
            classifier = KNeighborsClassifier(k, metric="precomputed")
            try:
                classifier.fit(transformer.fit_transform(X), y)
                print(k, name, f"{classifier.score(transformer.transform(new), truth):.3f}")
            except ValueError as error:
                print(k, name, error)


def transfer() -> None:
    """Accuracy on random halves of pbmc68k_reduced from the other halves."""
    import scanpy as sc

    import otgraph.singlecell as ogs

    adata = sc.datasets.pbmc68k_reduced()
    found = []
    for seed in range(SPLITS):
        is_new = np.random.default_rng(seed).random(adata.n_obs) < 0.5
        reference, new = adata[~is_new].copy(), adata[is_new].copy()
        del new.obsm
        sc.pp.pca(reference, n_comps=50)
        ogs.pp.neighbors(reference)
        ogs.tl.transfer(reference, new, "bulk_labels")
        truth = new.obs["bulk_labels"].astype(str)
        ours = (new.obs["bulk_labels_transfer"].astype(str) == truth).mean()
        sc.pp.neighbors(reference)
        sc.tl.umap(reference)
        sc.tl.ingest(new, reference, obs="bulk_labels")
        found.append((ours, (new.obs["bulk_labels"].astype(str) == truth).mean()))
    for name, values in zip(("transfer", "ingest"), np.transpose(found), strict=True):
        print(name, f"{values.mean():.3f} ± {values.std():.3f}")


def batches() -> None:
    """Adjusted Rand index of leiden, the best of some resolutions, on two simulated batches."""
    import anndata
    import bbknn
    import scanpy as sc
    from sklearn.decomposition import PCA

    for strength in (0.5, 1.0, 1.5):
        for missing in (False, True):
            scores: dict[str, list[float]] = {}
            for seed in range(BATCH_SEEDS):
                X, batch, types = two_batches(seed, strength, missing=missing)
                adata = anndata.AnnData(X, obs={"batch": batch.astype(str)})
                points = adata.obsm["X_pca"] = PCA(20, random_state=0).fit_transform(X)
                sc.pp.neighbors(adata, 15, use_rep="X_pca")
                graphs = {"scanpy": adata.obsp["connectivities"].copy()}
                bbknn.bbknn(adata, batch_key="batch", use_rep="X_pca", neighbors_within_batch=7)
                graphs["bbknn"] = adata.obsp["connectivities"]
                graphs["otgraph"] = otgraph.quadratic_ot_graph(points, connect=False).weights
                graphs["balanced"] = balanced(points, batch, 15)
                for name, weights in graphs.items():
                    scores.setdefault(name, []).append(best_leiden(weights, types))
            means = {name: f"{np.mean(values):.2f}" for name, values in scores.items()}
            print(strength, "a type is missing" if missing else "all types in both", means)


def two_batches(seed: int, strength: float, *, missing: bool, n: int = 700) -> Any:
    """Six types of unequal size in two batches, which shift all cells and every type a little."""
    rng = np.random.default_rng(seed)
    shares = [0.3, 0.25, 0.2, 0.12, 0.08, 0.05]
    k, d = len(shares), 30
    centers = 2.0 * rng.normal(size=(k, d))
    batch, types = rng.integers(2, size=n), rng.choice(k, size=n, p=shares)
    if missing:
        there = (batch == 0) | (types != 1)
        batch, types = batch[there], types[there]
    shift = rng.normal(size=(2, d))
    shift *= strength * np.sqrt(d) / np.linalg.norm(shift, axis=1, keepdims=True)
    of_type = 0.4 * strength * rng.normal(size=(2, k, d))
    noise = rng.normal(size=(len(types), d))
    return centers[types] + shift[batch] + of_type[batch, types] + noise, batch, types


def balanced(X: Any, batch: Any, mean_degree: float) -> Any:
    """A graph within every batch, plus a plan between them in which both have half of the mass."""
    from scipy.spatial.distance import cdist

    n = len(X)
    weights = sp.csr_matrix((n, n))
    for each in np.unique(batch):
        members = np.flatnonzero(batch == each)
        inside = otgraph.quadratic_ot_graph(
            X[members], mean_degree=mean_degree / 2, connect=False
        ).weights.tocoo()
        place = members[inside.row], members[inside.col]
        weights = weights + sp.csr_matrix((inside.data, place), shape=(n, n))
    across = sp.csr_matrix(np.where(batch[:, None] == batch, 0.0, cdist(X, X) ** 2))
    between = otgraph.quadratic_ot_graph(
        across, mean_degree=mean_degree / 2, metric="precomputed", min_degree=0, connect=False,
        mass=n / (2.0 * np.bincount(batch)[batch]),
    )  # fmt: skip
    return weights + between.weights


def best_leiden(weights: Any, types: Any) -> float:
    """The best agreement of leiden's clusters with the types."""
    import anndata
    import scanpy as sc
    from sklearn.metrics import adjusted_rand_score

    adata = anndata.AnnData(np.zeros((len(types), 1)))
    scores = []
    for resolution in RESOLUTIONS:
        sc.tl.leiden(
            adata, adjacency=sp.csr_matrix(weights), resolution=resolution, flavor="igraph",
            n_iterations=2, directed=False,
        )  # fmt: skip
        scores.append(adjusted_rand_score(types, adata.obs["leiden"]))
    return max(scores)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name in sys.argv[1:]:
        {"digits": digits, "transfer": transfer, "batches": batches}[name]()
