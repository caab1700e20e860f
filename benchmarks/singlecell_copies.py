"""What umap makes of a graph with near-duplicates: exact weights against connectivities."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.manifold import trustworthiness

import otgraph.singlecell as ogs

SHARES = [0.0, 0.02, 0.1, 0.3]  # of the cells that are there twice
SEEDS = range(3)
MEAN_DEGREE = 15
EPOCHS = 500  # of umap, up to 10 000 cells
NEIGHBORS = 15  # of the trustworthiness


def measure() -> dict[str, Any]:
    """One row per share of copies and matrix, means over seeds."""
    import scanpy as sc

    warnings.simplefilter("ignore")  # copies fall apart from the rest, as they should
    X = sc.datasets.pbmc68k_reduced().obsm["X_pca"]
    rows = []
    for share in SHARES:
        found: dict[str, list[Any]] = {"weights": [], "connectivities": []}
        for seed in SEEDS:
            for matrix, values in one(X, share, seed).items():
                found[matrix].append(values)
        for matrix, values in found.items():
            means = {k: float(np.mean([v[k] for v in values])) for k in values[0]}
            rows.append({"share": share, "matrix": matrix, **means})
    return {"rows": rows, "seeds": len(SEEDS), "mean_degree": MEAN_DEGREE, "n": len(X)}


def one(X: Any, share: float, seed: int) -> dict[str, dict[str, float]]:
    """Edges that umap keeps, how often it draws them, and how faithful the layout is."""
    import anndata
    import scanpy as sc

    rng = np.random.default_rng(seed)
    copies = rng.choice(len(X), round(share * len(X)), replace=False)
    adata = anndata.AnnData(np.vstack([X, X[copies]]))
    ogs.pp.neighbors(adata, mean_degree=MEAN_DEGREE, use_rep="X")
    result = {}
    slots = {name: adata.obsp[name] for name in ("weights", "connectivities")}
    for name, matrix in slots.items():
        adata.obsp["connectivities"] = matrix
        sc.tl.umap(adata, random_state=seed)
        draws = EPOCHS * matrix.data / matrix.data.max()
        draws[draws < 1.0] = 0.0  # umap drops these
        result[name] = {
            "kept": np.count_nonzero(draws) / adata.n_obs,
            "stored": matrix.nnz / adata.n_obs,
            "draws": float(draws.mean()),
            "trustworthiness": float(
                trustworthiness(adata.X, adata.obsm["X_umap"], n_neighbors=NEIGHBORS)
            ),
        }
    return result
