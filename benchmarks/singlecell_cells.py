"""A hundred thousand simulated cells: time, memory and the rare types.

Every contender runs in a process of its own: ``python -m benchmarks.singlecell_cells '{...}'``
prints one JSON line. Kernels are compiled on a few thousand cells first, for both packages;
the data are loaded before the clock starts.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import otgraph

DATA = Path("out/bench/simulated_cells.npz")
N_TYPES = 12
RAREST = 0.001
N_PCS = 50
SIZE = 15
WARM_UP_CELLS = 6000  # above 4096 scanpy takes the way it takes for many cells
RESOLUTIONS = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0]
LABELED = 0.01
SEEDS = range(5)
CONTENDERS: dict[str, dict[str, Any]] = {
    "otgraph": {"package": "otgraph", "options": {"mean_degree": SIZE}},
    "otgraph approximate": {
        "package": "otgraph",
        "options": {"mean_degree": SIZE, "search": "approximate"},
    },
    "scanpy": {"package": "scanpy", "options": {"n_neighbors": SIZE}},
}


def measure(n: int, repeats: int) -> dict[str, Any]:
    """Fastest of some runs of every contender, which take turns; recovery once for each."""
    prepare(n)
    results: dict[str, Any] = {name: {"runs": []} for name in CONTENDERS}
    for repeat in range(repeats):
        for name, spec in CONTENDERS.items():
            run = in_process({**spec, "recovery": repeat == 0})
            print(name, run["seconds"], run["peak_gb"], flush=True)
            results[name]["runs"].append({k: run[k] for k in ("seconds", "peak_gb", "before_gb")})
            if repeat == 0:
                results[name] |= {k: run[k] for k in ("leiden", "spreading", "graph")}
    labels = np.load(DATA)["labels"]
    return {
        "n": n,
        "types": N_TYPES,
        "sizes": np.bincount(labels).tolist(),
        "size": SIZE,
        "labeled": LABELED,
        "seeds": len(SEEDS),
        "resolutions": RESOLUTIONS,
        "contenders": results,
    }


def in_process(spec: dict[str, Any]) -> dict[str, Any]:
    """One contender in a new process."""
    command = [sys.executable, "-m", "benchmarks.singlecell_cells", json.dumps(spec)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().split("\n")[-1])
    return result


def prepare(n: int) -> None:
    """Principal components of simulated counts, the same file for all."""
    import scanpy as sc

    if DATA.exists() and len(np.load(DATA)["labels"]) == n:
        return
    cells = otgraph.datasets.simulated_cells(n, n_types=N_TYPES, rarest=RAREST)
    adata = cells.to_anndata()
    sc.pp.normalize_total(adata, target_sum=1e4)
    sc.pp.log1p(adata)
    sc.pp.pca(adata, n_comps=N_PCS)
    DATA.parent.mkdir(parents=True, exist_ok=True)
    np.savez(DATA, X_pca=adata.obsm["X_pca"], labels=cells.labels)


def run(spec: dict[str, Any]) -> dict[str, Any]:
    """Time, memory and, if asked for, recovery of one contender."""
    import anndata
    import scanpy as sc

    import otgraph.singlecell as ogs

    warnings.simplefilter("ignore")
    if not hasattr(sp.csr_array, "getnnz"):
        # pynndescent 0.7 hands out a csr_array, on which scanpy 1.11 and 1.12 call this.
        sp.csr_array.getnnz = sp.csr_array._getnnz
    # scanpy keeps its default of one thread: on all cores it was three times slower.
    data = np.load(DATA)
    X, labels = data["X_pca"].astype(np.float32), data["labels"]
    build = ogs.pp.neighbors if spec["package"] == "otgraph" else sc.pp.neighbors
    build(anndata.AnnData(X[:WARM_UP_CELLS]), use_rep="X", **spec["options"])
    adata = anndata.AnnData(X)
    before = peak_gb()
    began = time.perf_counter()
    build(adata, use_rep="X", **spec["options"])
    seconds = time.perf_counter() - began
    result: dict[str, Any] = {"seconds": seconds, "before_gb": before, "peak_gb": peak_gb()}
    if spec["recovery"]:
        graph = ogs.read_graph(adata)
        status = adata.uns["neighbors"]["params"].get("status")
        result |= {
            "graph": {
                "mean_degree": graph.mean_degree,
                "n_connected": graph.n_connected,
                "status": status,
            },
            "leiden": leiden(adata, labels),
            "spreading": spreading(graph, labels),
        }
    return result


def peak_gb() -> float:
    """Largest memory of this process so far; Linux.

    Not ``getrusage``: its maximum is handed down from the process that started this one.
    """
    (line,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line) / 1e6


def leiden(adata: Any, labels: Any) -> list[dict[str, Any]]:
    """For every type the F1 score of the cluster that fits it best, per resolution."""
    import scanpy as sc
    from sklearn.metrics import adjusted_rand_score
    from sklearn.metrics.cluster import contingency_matrix

    rows = []
    for resolution in RESOLUTIONS:
        sc.tl.leiden(adata, resolution, flavor="igraph", n_iterations=2, directed=False)
        clusters = adata.obs["leiden"].cat.codes.to_numpy()
        table = contingency_matrix(labels, clusters)
        f1 = 2 * table / (table.sum(axis=1, keepdims=True) + table.sum(axis=0, keepdims=True))
        rows.append(
            {
                "resolution": resolution,
                "clusters": table.shape[1],
                "ari": float(adjusted_rand_score(labels, clusters)),
                "f1": f1.max(axis=1).tolist(),
            }
        )
    return rows


def spreading(graph: Any, labels: Any) -> dict[str, Any]:
    """Share of every type's cells that get their label back, mean over seeds."""
    recalls, precisions, accuracies = [], [], []
    for seed in SEEDS:
        known = otgraph.datasets.label_mask(labels, LABELED, random_state=seed)
        found = otgraph.spread_labels(graph, np.where(known, labels, -1)).labels
        right = (found == labels) & ~known
        hidden = np.bincount(labels[~known], minlength=N_TYPES)
        called = np.bincount(found[~known & (found >= 0)], minlength=N_TYPES)
        hits = np.bincount(labels[right], minlength=N_TYPES)
        recalls.append(hits / hidden)
        precisions.append(hits / np.maximum(called, 1))
        accuracies.append(float(right.sum() / (~known).sum()))
    return {
        "recall": np.mean(recalls, axis=0).tolist(),
        "precision": np.mean(precisions, axis=0).tolist(),
        "accuracy": float(np.mean(accuracies)),
    }


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
