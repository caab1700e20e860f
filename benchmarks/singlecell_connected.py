"""Components and degrees of scanpy's graphs and ours, on cells with and without gaps."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import connected_components

import otgraph
import otgraph.singlecell as ogs

if TYPE_CHECKING:
    from collections.abc import Iterator

BUNDLED = ("pbmc68k_reduced", "krumsiek11")
SIZES = (500, 1000, 2000, 5000)
SEEDS = (0, 1, 2)


def measure() -> dict[str, Any]:
    """Every set with every graph."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of disconnected graphs, which are counted
        return {"sets": [of_cells(name, adata, types) for name, adata, types in all_cells()]}


def all_cells() -> Iterator[tuple[str, Any, Any]]:
    """Name, annotated data, and true types if they are known."""
    import anndata
    import scanpy as sc

    for name in BUNDLED:
        yield f"`{name}`", getattr(sc.datasets, name)(), None
    for n in SIZES:
        for seed in SEEDS:
            cells = otgraph.datasets.simulated_cells(n, random_state=seed)
            adata = anndata.AnnData(cells.counts)
            sc.pp.normalize_total(adata)
            sc.pp.log1p(adata)
            sc.pp.pca(adata)
            yield f"simulated, seed {seed}", adata, cells.labels


def of_cells(name: str, adata: Any, types: Any) -> dict[str, Any]:
    """Components, degrees and infinite pseudotimes; what separates ours."""
    import scanpy as sc

    theirs, ours, joined = (adata.copy() for _ in range(3))
    sc.pp.neighbors(theirs)
    ogs.pp.neighbors(ours)
    ogs.pp.neighbors(joined, connect=True)
    graphs = {"scanpy": theirs, "default": ours, "connected": joined}
    parts = connected_components(ours.obsp["connectivities"])[1]
    edges = theirs.obsp["connectivities"].tocoo()
    between = parts[edges.row] != parts[edges.col]
    torn = 0
    if types is not None:
        torn = sum(len(np.unique(parts[types == one])) > 1 for one in np.unique(types))
    print(name, adata.n_obs, flush=True)
    return {
        "name": name,
        "n": adata.n_obs,
        **{key: of_graph(found) for key, found in graphs.items()},
        "types_in_several_components": torn,
        "scanpys_edges_between": int(between.sum()) // 2,
        "scanpys_weight_between": float(edges.data[between].sum() / edges.data.sum()),
    }


def of_graph(adata: Any) -> dict[str, int]:
    """Components, smallest and largest degree, and cells with infinite pseudotime."""
    import scanpy as sc

    matrix = adata.obsp["connectivities"]
    labels = connected_components(matrix)[1]
    degrees = np.diff(matrix.indptr)
    adata.uns["iroot"] = 0
    sc.tl.diffmap(adata)
    sc.tl.dpt(adata)
    return {
        "components": int(labels.max()) + 1,
        "smallest_component": int(np.bincount(labels).min()),
        "smallest_degree": int(degrees.min()),
        "largest_degree": int(degrees.max()),
        "infinite": int(np.isinf(adata.obs["dpt_pseudotime"]).sum()),
    }
