"""What scanpy makes of the graph: everything runs, unchanged."""

from __future__ import annotations

import anndata
import numpy as np
import pytest

import otgraph
import otgraph.singlecell as ogs

sc = pytest.importorskip("scanpy")

N_PER_GROUP = 60


@pytest.fixture
def cells(rng):
    """Three groups along a line, connected by the cells between them."""
    centers = np.repeat(np.arange(3.0), N_PER_GROUP)
    X = rng.standard_normal((3 * N_PER_GROUP, 6))
    X[:, 0] += 4.0 * centers
    return anndata.AnnData(X, obs={"place": X[:, 0]})


def run_all(cells, **key):
    sc.tl.umap(cells, **key)
    sc.tl.leiden(cells, flavor="igraph", n_iterations=2, directed=False, **key)
    sc.tl.diffmap(cells, **key)
    cells.uns["iroot"] = int(cells.obs["place"].argmin())
    sc.tl.dpt(cells, **key)
    sc.tl.paga(cells, groups="leiden", **key)
    sc.tl.draw_graph(cells, layout="fr", niter=20, **key)


# One test for both keys: umap compiles for ten seconds in every process that calls it.
def test_everything_runs_under_both_keys(cells, tmp_path):
    other = cells.copy()
    ogs.pp.neighbors(cells, eps=2.0)
    run_all(cells)
    ogs.pp.neighbors(other, eps=2.0, key_added="ot")
    run_all(other, neighbors_key="ot")
    for name in ("X_umap", "X_diffmap", "X_draw_graph_fr"):
        assert np.isfinite(cells.obsm[name]).all()
        np.testing.assert_array_equal(cells.obsm[name], other.obsm[name])
    pseudotime = cells.obs["dpt_pseudotime"]
    assert np.isfinite(pseudotime).all()
    assert np.corrcoef(pseudotime.rank(), cells.obs["place"].rank())[0, 1] > 0.8
    assert cells.uns["paga"]["connectivities"].nnz > 0
    assert list(cells.obs["leiden"]) == list(other.obs["leiden"])
    cells.write_h5ad(tmp_path / "cells.h5ad")
    read = sc.read_h5ad(tmp_path / "cells.h5ad")
    sc.tl.leiden(read, flavor="igraph", n_iterations=2, directed=False, key_added="again")
    assert list(read.obs["again"]) == list(cells.obs["leiden"])


def test_diffusion_map_of_exact_weights_is_the_walk_itself(cells):
    """Rows sum to one: scanpy's normalizations change nothing, and both packages agree."""
    ogs.pp.neighbors(cells, eps=2.0)
    cells.obsp["connectivities"] = cells.obsp["weights"]
    sc.tl.diffmap(cells, n_comps=5)
    ogs.tl.eigenmaps(cells, 4)
    np.testing.assert_allclose(
        cells.uns["diffmap_evals"][1:], cells.uns["X_eigenmaps"]["eigenvalues"], rtol=1e-5
    )


def test_own_tools_take_scanpys_graph(cells):
    sc.pp.neighbors(cells, n_neighbors=10)
    ogs.tl.eigenmaps(cells, 3)
    W = cells.obsp["connectivities"]
    expected = otgraph.eigenmaps(W, 3).coordinates
    np.testing.assert_array_equal(cells.obsm["X_eigenmaps"], expected)


def test_scanpys_graph_after_ours_is_what_is_read(cells):
    ogs.pp.neighbors(cells, eps=2.0)
    sc.pp.neighbors(cells, n_neighbors=10)
    assert (ogs.read_graph(cells).weights != cells.obsp["connectivities"]).nnz == 0


def test_representation_is_the_one_scanpy_would_choose(cells, adata):
    from scanpy.tools._utils import _choose_representation

    few = adata[:, :50].copy()
    for data, keywords in [
        (adata, {}),
        (adata, {"n_pcs": 3}),
        (adata, {"use_rep": "X_pca", "n_pcs": 2}),
        (adata, {"n_pcs": 0}),
        (few, {}),
        (few, {"use_rep": "X_pca"}),
    ]:
        theirs = _choose_representation(data, **keywords)
        ogs.pp.neighbors(data, eps=1.0, **keywords)
        ours = otgraph.quadratic_ot_graph(theirs, eps=1.0).weights
        assert (data.obsp["weights"] != ours).nnz == 0
        # and umap, which reads the parameters, finds it again
        params = data.uns["neighbors"]["params"]
        again = _choose_representation(data, use_rep=params["use_rep"], n_pcs=params.get("n_pcs"))
        assert again.shape == theirs.shape


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Graph is not fully connected:UserWarning:sklearn")
def test_copies_do_not_starve_the_layout(rng):
    """A third of the cells twice: umap respects neighborhoods better on what is in its slot."""
    from sklearn.manifold import trustworthiness

    X = sc.datasets.pbmc68k_reduced().obsm["X_pca"]
    X = np.vstack([X, X[rng.choice(len(X), len(X) // 3, replace=False)]])
    cells = anndata.AnnData(X)
    with pytest.warns(otgraph.exceptions.DisconnectedWarning, match="exact duplicates"):
        ogs.pp.neighbors(cells, mean_degree=15, use_rep="X")
    faithful = {}
    for name in ("connectivities", "weights"):
        cells.obsp["connectivities"] = cells.obsp[name]
        sc.tl.umap(cells)
        faithful[name] = trustworthiness(X, cells.obsm["X_umap"], n_neighbors=15)
    assert faithful["connectivities"] > faithful["weights"] + 0.01
