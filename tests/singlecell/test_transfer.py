"""Labels and coordinates of new cells."""

from __future__ import annotations

import io

import anndata
import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
import otgraph.singlecell as ogs


@pytest.fixture
def parts(adata):
    """Reference and new cells, with components of the genes of all."""
    return adata[::2].copy(), adata[1::2].copy()


def test_labels_coordinates_and_rows(parts):
    reference, new = parts
    ogs.pp.neighbors(reference, 8)
    reference.obsm["X_flat"] = reference.obsm["X_pca"][:, :2]
    reference.uns["group_colors"] = ["red", "green", "blue"]
    before = {name: matrix.copy() for name, matrix in reference.obsp.items()}
    ogs.tl.transfer(reference, new, "group", obsm=["X_flat"], use_rep="X_pca")
    graph = otgraph.quadratic_ot_graph(reference.obsm["X_pca"], mean_degree=8)
    rows = graph.extend(new.obsm["X_pca"])
    np.testing.assert_array_equal(new.obsm["transfer_weights"].toarray(), rows.toarray())
    np.testing.assert_allclose(new.obsm["X_flat"], rows @ reference.obsm["X_flat"], atol=1e-9)
    votes = rows @ np.eye(3)[reference.obs["group"].cat.codes]
    np.testing.assert_array_equal(new.obs["group_transfer"].cat.codes, votes.argmax(axis=1))
    np.testing.assert_allclose(new.obs["group_transfer_probability"], votes.max(axis=1))
    assert (new.obs["group_transfer"] == new.obs["group"]).mean() > 0.9
    assert list(new.uns["group_transfer_colors"]) == ["red", "green", "blue"]
    assert all((reference.obsp[name] != matrix).nnz == 0 for name, matrix in before.items())


@pytest.mark.parametrize("centered", [True, False])
def test_components_come_from_the_loadings_of_the_reference(parts, centered, rng):
    """Components computed on the new cells alone have other axes, and are not used."""
    reference, new = parts
    genes = reference.X.toarray()
    center = genes.mean(axis=0) if centered else 0.0
    loadings = np.linalg.svd(genes - center, full_matrices=False)[2][:5].T
    reference.varm["PCs"] = loadings
    reference.obsm["X_pca"] = (genes - center) @ loadings
    ogs.pp.neighbors(reference, 8, 4)
    new.obsm["X_pca"] = rng.standard_normal((45, 5))
    order = rng.permutation(new.n_vars)
    shuffled = new[:, order].copy()  # genes are found by name
    out = ogs.tl.transfer(reference, shuffled, "group", copy=True)
    assert "group_transfer" not in shuffled.obs
    expected = ogs.read_graph(reference).extend(((new.X.toarray() - center) @ loadings)[:, :4])
    np.testing.assert_allclose(
        out.obsm["transfer_weights"].toarray(), expected.toarray(), atol=1e-5
    )


def test_genes_themselves(parts):
    reference, new = parts
    ogs.pp.neighbors(reference, 8, use_rep="X", method="knn")
    ogs.tl.transfer(reference, new, "group")
    backwards = ogs.tl.transfer(reference, new[:, ::-1].copy(), "group", copy=True)
    assert list(backwards.obs["group_transfer"]) == list(new.obs["group_transfer"])
    ogs.tl.transfer(reference, new, "group", unknown="a")
    assert set(new.obs["group_transfer"].dropna()) <= {"b/c", "d"}
    assert sp.issparse(new.obsm["transfer_weights"])


def test_missing_labels_do_not_count(parts):
    reference, new = parts
    ogs.pp.neighbors(reference, 8)
    reference.obs["group"] = reference.obs["group"].where(reference.obs["group"] == "a")
    ogs.tl.transfer(reference, new, "group", use_rep="X_pca")
    missing = new.obs["group_transfer"].isna()
    assert missing.any()
    assert (new.obs["group_transfer"][~missing] == "a").all()
    assert new.obs["group_transfer_probability"].isna().equals(missing)


def test_results_can_be_written(parts, tmp_path):
    reference, new = parts
    ogs.pp.neighbors(reference, 8)
    ogs.tl.transfer(reference, new, "group", use_rep="X_pca")
    new.write_h5ad(tmp_path / "new.h5ad")
    read = anndata.read_h5ad(tmp_path / "new.h5ad")
    assert (read.obsm["transfer_weights"] != new.obsm["transfer_weights"]).nnz == 0


class TestRefusals:
    def test_no_loadings(self, parts):
        reference, new = parts
        ogs.pp.neighbors(reference, 8)
        with pytest.raises(ValueError, match=r"no loadings `varm\['PCs'\]`.*pass `use_rep`"):
            ogs.tl.transfer(reference, new, "group")

    def test_components_of_other_genes(self, parts, rng):
        reference, new = parts
        ogs.pp.neighbors(reference, 8)
        reference.varm["PCs"] = rng.standard_normal((60, 5))
        with pytest.raises(ValueError, match=r"is not `adata_ref\.X` times the loadings"):
            ogs.tl.transfer(reference, new, "group")

    def test_missing_genes(self, parts):
        reference, new = parts
        ogs.pp.neighbors(reference, 8, use_rep="X")
        with pytest.raises(ValueError, match="2 are missing: 'gene0', 'gene1'"):
            ogs.tl.transfer(reference, new[:, 2:].copy(), "group")

    def test_representation_is_gone(self, parts):
        reference, new = parts
        ogs.pp.neighbors(reference, 8)
        del reference.obsm["X_pca"]
        with pytest.raises(ValueError, match=r"built on \('X_pca'\); run it again"):
            ogs.tl.transfer(reference, new, "group")

    def test_other_components_than_those_of_the_graph(self, parts):
        reference, new = parts
        ogs.pp.neighbors(reference, 8)
        reference.obsm["X_pca"] = reference.obsm["X_pca"] * 1.01
        with pytest.raises(ValueError, match="other values of 'X_pca' than those"):
            ogs.tl.transfer(reference, new, "group", use_rep="X_pca")

    def test_unknown_coordinates(self, parts):
        reference, new = parts
        ogs.pp.neighbors(reference, 8)
        with pytest.raises(KeyError, match="got 'X_umap'; there are: "):
            ogs.tl.transfer(reference, new, obsm="X_umap")


def test_scanpys_log_tells_what_was_done(parts):
    sc = pytest.importorskip("scanpy")
    reference, new = parts
    verbosity, logfile = sc.settings.verbosity, sc.settings.logfile
    sc.settings.verbosity, sc.settings.logfile = 3, (log := io.StringIO())
    try:
        ogs.pp.neighbors(reference, 8, key_added="ot")
        ogs.tl.transfer(reference, new, "group", use_rep="X_pca", neighbors_key="ot")
        said = log.getvalue()
        sc.settings.verbosity = verbosity
        ogs.pp.neighbors(reference, 8)
        assert log.getvalue() == said  # scanpy's default shows warnings only
    finally:
        sc.settings.verbosity, sc.settings.logfile = verbosity, logfile
    assert "computing quadratic graph on 'X_pca'" in said
    assert said.count("finished: added") == 2
    assert "`.obsp['ot_connectivities']`, weighted adjacency matrix" in said
    assert "the exact weights (0:00:" in said  # with the time that it took


def test_a_plan_ignores_a_shift(parts):
    reference, new = parts
    ogs.pp.neighbors(reference, 8)
    new.obsm["X_moved"] = new.obsm["X_pca"] + 5.0  # another batch
    ogs.tl.transfer(reference, new, "group", method="plan", use_rep="X_moved")
    graph = ogs.read_graph(reference)
    plan = otgraph.transport_graph(new.obsm["X_moved"], graph.points, mean_degree=graph.mean_degree)
    np.testing.assert_allclose(
        new.obsm["transfer_weights"].toarray(), plan.weights.toarray(), atol=1e-6
    )
    assert (new.obs["group_transfer"] == new.obs["group"]).mean() > 0.9
    assert new.uns["transfer"]["params"]["method"] == "plan"
    with pytest.raises(ValueError, match="`method` must be one of 'rows', 'plan'"):
        ogs.tl.transfer(reference, new, "group", method="knn")


def test_cells_without_a_counterpart_get_no_label(parts):
    reference, new = parts
    ogs.pp.neighbors(reference, 8)
    moved = new.obsm["X_pca"].copy()
    moved[:5] += 100.0  # cells of a kind that the reference does not have
    new.obsm["X_other"] = moved
    reference.obsm["X_flat"] = reference.obsm["X_pca"][:, :2]
    ogs.tl.transfer(
        reference, new, "group", obsm="X_flat", method="plan", use_rep="X_other", outlier_cost=0.5
    )
    assert new.obs["group_transfer"].isna().to_numpy().nonzero()[0].tolist() == [0, 1, 2, 3, 4]
    assert np.isnan(new.obsm["X_flat"][:5]).all()
    assert np.isfinite(new.obsm["X_flat"][5:]).all()
    kept = new.obs["transfer_mass_kept"].to_numpy()
    np.testing.assert_allclose(kept, new.obsm["transfer_weights"].sum(axis=1).A1)
    assert kept[:5].max() == 0.0
    assert new.uns["transfer"]["params"]["outlier_cost"] == 0.5
    with pytest.raises(ValueError, match="`outlier_cost` must be None unless method='plan'"):
        ogs.tl.transfer(reference, new, "group", outlier_cost=0.5, use_rep="X_other")
