"""The 700 cells of scanpy's ``pbmc68k_reduced``: clusters and labels against `bulk_labels`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import otgraph
import otgraph.singlecell as ogs

if TYPE_CHECKING:
    from collections.abc import Iterable

RESOLUTIONS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0]
SIZES = [5, 8, 10, 15, 20, 30, 50, 70, 100, 150, 200]  # mean degrees, or numbers of neighbors
LEIDEN_SEEDS = range(5)
LABELED = 0.02
SEEDS = range(20)
TUNING_SEEDS = range(100, 120)
MU = [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]
DEFAULT_SIZE = 15


def measure() -> dict[str, Any]:
    """Scores of all graphs, sizes and resolutions."""
    import scanpy as sc

    warnings.simplefilter("ignore", otgraph.exceptions.DisconnectedWarning)
    adata = sc.datasets.pbmc68k_reduced()
    truth = adata.obs["bulk_labels"].cat.codes.to_numpy()
    names = []
    for size in SIZES:
        ogs.pp.neighbors(adata, mean_degree=size, key_added=f"otgraph_{size}")
        sc.pp.neighbors(adata, n_neighbors=size, key_added=f"scanpy_{size}")
        names += [f"otgraph_{size}", f"scanpy_{size}"]
    return {
        "n": adata.n_obs,
        "types": len(np.unique(truth)),
        "resolutions": RESOLUTIONS,
        "sizes": SIZES,
        "default_size": DEFAULT_SIZE,
        "leiden_seeds": len(LEIDEN_SEEDS),
        "leiden": {name: leiden_scores(adata, name, truth) for name in names}
        | {
            f"exact_{size}": leiden_scores(adata, f"otgraph_{size}", truth, exact=True)
            for size in SIZES
        },
        "mean_degree": {name: ogs.read_graph(adata, name).mean_degree for name in names},
        "spreading": spreading(adata, truth),
    }


def leiden_scores(
    adata: Any, key: str, truth: Any, *, exact: bool = False
) -> list[dict[str, float]]:
    """Mean scores over seeds, one entry per resolution."""
    import scanpy as sc

    obsp = f"{key}_weights" if exact else f"{key}_connectivities"
    rows = []
    for resolution in RESOLUTIONS:
        found = []
        for seed in LEIDEN_SEEDS:
            sc.tl.leiden(
                adata, resolution, obsp=obsp, flavor="igraph", n_iterations=2, directed=False,
                random_state=seed, key_added="found",
            )  # fmt: skip
            clusters = adata.obs["found"].cat.codes.to_numpy()
            found.append(
                [
                    adjusted_rand_score(truth, clusters),
                    normalized_mutual_info_score(truth, clusters),
                    len(np.unique(clusters)),
                ]
            )
        ari, nmi, clusters = np.mean(found, axis=0)
        rows.append({"ari": float(ari), "nmi": float(nmi), "clusters": float(clusters)})
    return rows


def spreading(adata: Any, truth: Any) -> dict[str, Any]:
    """Accuracy of labels from 2 % of the cells; sizes and mu chosen on other seeds."""
    result: dict[str, Any] = {"labeled": LABELED, "seeds": len(SEEDS)}
    for family in ("otgraph", "scanpy"):
        graphs = {size: ogs.read_graph(adata, f"{family}_{size}") for size in SIZES}
        for name, sizes in (("default", [DEFAULT_SIZE]), ("tuned", SIZES)):
            grid = [(size, mu) for size in sizes for mu in MU]
            size, mu = max(
                grid, key=lambda at: np.mean(accuracies(graphs[at[0]], truth, at[1], TUNING_SEEDS))
            )
            found = accuracies(graphs[size], truth, mu, SEEDS)
            result[f"{family}_{name}"] = {"size": size, "mu": mu, "accuracies": found}
    return result


def accuracies(graph: Any, truth: Any, mu: float, seeds: Iterable[int]) -> list[float]:
    """Share of right labels among the cells without one, per seed."""
    found = []
    for seed in seeds:
        known = otgraph.datasets.label_mask(truth, LABELED, random_state=seed)
        labels = otgraph.spread_labels(graph, np.where(known, truth, -1), mu).labels
        found.append(float((labels == truth)[~known].mean()))
    return found
