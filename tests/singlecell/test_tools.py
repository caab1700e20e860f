"""Eigenmaps, clusters, labels and denoising on annotated data equal the functions on arrays."""

from __future__ import annotations

import tracemalloc

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otgraph
import otgraph.singlecell as ogs
from otgraph.exceptions import DisconnectedWarning


@pytest.fixture
def cells(adata):
    ogs.pp.neighbors(adata, eps=2.0)
    return adata


@pytest.fixture
def graph(cells):
    return otgraph.quadratic_ot_graph(cells.obsm["X_pca"], eps=2.0)


def few_labels(cells, every=10):
    labels = cells.obs["group"].copy()
    labels[np.arange(cells.n_obs) % every != 0] = np.nan
    return labels


class TestEigenmaps:
    def test_same_as_on_arrays(self, cells, graph):
        ogs.tl.eigenmaps(cells, 4)
        expected = otgraph.eigenmaps(graph, 4)
        np.testing.assert_array_equal(cells.obsm["X_eigenmaps"], expected.coordinates)
        np.testing.assert_array_equal(cells.uns["X_eigenmaps"]["eigenvalues"], expected.eigenvalues)

    def test_without_the_density(self, cells, graph):
        ogs.tl.eigenmaps(cells, 4, density="corrected", dim=2)
        expected = otgraph.eigenmaps(graph, 4, density="corrected", dim=2)
        np.testing.assert_array_equal(cells.obsm["X_eigenmaps"], expected.coordinates)
        stored = cells.uns["X_eigenmaps"]
        np.testing.assert_array_equal(
            stored["laplacian_eigenvalues"], expected.laplacian_eigenvalues
        )
        assert stored["dim"] == 2.0
        assert stored["params"]["density"] == "corrected"

    def test_keys_and_copy(self, cells):
        ogs.pp.neighbors(cells, method="knn", n_neighbors=20, key_added="knn")
        result = ogs.tl.eigenmaps(cells, 2, neighbors_key="knn", key_added="X_modes", copy=True)
        assert result.obsm["X_modes"].shape == (90, 2)
        assert "X_modes" not in cells.obsm


class TestCluster:
    def test_same_as_on_arrays(self, cells, graph):
        ogs.tl.cluster(cells, 3, random_state=1)
        expected = otgraph.cluster(graph, 3, random_state=1)
        column = cells.obs["cluster"]
        assert list(column.cat.categories) == ["0", "1", "2"]
        np.testing.assert_array_equal(column.cat.codes, expected.labels)
        np.testing.assert_array_equal(cells.uns["cluster"]["eigenvalues"], expected.eigenvalues)
        assert cells.uns["cluster"]["n_clusters"] == 3
        assert cells.uns["cluster"]["params"] == {
            "neighbors_key": "neighbors", "max_clusters": 20, "tol": 1e-8, "max_restarts": 500,
            "random_state": 1,
        }  # fmt: skip

    def test_cells_in_no_cluster_are_missing(self, cells):
        parts = [sp.csr_matrix(part) for part in (np.ones((30, 30)), np.ones((30, 30)), np.eye(30))]
        cells.obsp["parts"] = sp.block_diag(parts, format="csr")
        cells.uns["parts"] = {"connectivities_key": "parts", "distances_key": "parts", "params": {}}
        with pytest.warns(DisconnectedWarning, match="30 point"):
            ogs.tl.cluster(cells, 2, neighbors_key="parts")
        np.testing.assert_array_equal(cells.obs["cluster"].isna(), np.arange(90) >= 60)

    def test_keys_and_copy(self, cells, tmp_path):
        result = ogs.tl.cluster(cells, key_added="groups", copy=True)
        assert "groups" not in cells.obs
        result.write_h5ad(tmp_path / "cells.h5ad")
        again = anndata.read_h5ad(tmp_path / "cells.h5ad")
        assert list(again.obs["groups"]) == list(result.obs["groups"])


class TestSpreadLabels:
    def test_same_as_on_arrays(self, cells, graph):
        cells.obs["few"] = few_labels(cells)
        ogs.tl.spread_labels(cells, "few", mu=0.5)
        codes = np.where(cells.obs["few"].isna(), -1, cells.obs["group"].cat.codes)
        expected = otgraph.spread_labels(graph, codes, 0.5)
        np.testing.assert_array_equal(cells.obsm["few_spread"], expected.probabilities)
        np.testing.assert_array_equal(cells.obs["few_spread"].cat.codes, expected.labels)
        np.testing.assert_array_equal(
            cells.obs["few_spread_probability"], expected.probabilities.max(axis=1)
        )
        assert list(cells.uns["few_spread"]["classes"]) == ["a", "b/c", "d"]
        assert (cells.obs["few_spread"] == cells.obs["group"]).mean() > 0.9

    def test_unreachable_cells_are_marked(self, adata, rng):
        adata.obsm["X_pca"][:3] = 100.0 + rng.standard_normal((3, 5))
        ogs.pp.neighbors(adata, eps=0.5)
        adata.obs["few"] = few_labels(adata)
        adata.obs.loc["cell0", "few"] = np.nan
        with pytest.warns(DisconnectedWarning, match="reaches 3 of 90"):
            ogs.tl.spread_labels(adata, "few")
        far = np.arange(90) < 3
        np.testing.assert_array_equal(adata.obs["few_spread_unreachable"], far)
        np.testing.assert_array_equal(adata.obs["few_spread"].isna(), far)
        np.testing.assert_allclose(adata.obsm["few_spread"][:3], 1 / 3)

    @pytest.mark.parametrize(
        ("values", "unknown"),
        [
            (["x", "y", None], ()),
            (["x", "y", np.nan], ()),
            (["x", "y", "?"], "?"),
            (["x", "y", "?"], ["?", "other"]),
            ([4, 7, -1], -1),
            ([4.0, 7.0, np.nan], ()),
            (pd.array([True, False, None], dtype="boolean"), ()),
            (pd.array(["x", "y", None], dtype="string"), ()),
        ],
    )
    def test_kinds_of_labels(self, cells, values, unknown):
        column = pd.Series(values)[np.arange(90) % 3]
        cells.obs["few"] = column.set_axis(cells.obs_names)
        ogs.tl.spread_labels(cells, "few", unknown=unknown)
        assert set(cells.obs["few_spread"].cat.categories) == set(pd.Series(values)[:2])
        assert not cells.obs["few_spread"].isna().any()
        assert cells.obsm["few_spread"].shape == (90, 2)

    def test_file_and_back(self, cells, tmp_path):
        cells.obs["few"] = few_labels(cells)
        ogs.tl.spread_labels(cells, "few", tol=1e-3)
        ogs.tl.eigenmaps(cells, 2)
        ogs.tl.denoise(cells, genes=["gene3"])
        cells.write_h5ad(tmp_path / "cells.h5ad")
        read = anndata.read_h5ad(tmp_path / "cells.h5ad")
        assert list(read.obs["few_spread"]) == list(cells.obs["few_spread"])
        assert list(read.uns["few_spread"]["classes"]) == ["a", "b/c", "d"]
        assert read.uns["few_spread"]["params"]["tol"] == 1e-3

    def test_colors_follow(self, cells):
        cells.obs["few"] = few_labels(cells)
        cells.obs.loc[cells.obs["few"] == "b/c", "few"] = np.nan
        cells.uns["few_colors"] = ["#111111", "#222222", "#333333"]
        ogs.tl.spread_labels(cells, "few")
        assert list(cells.obs["few_spread"].cat.categories) == ["a", "d"]
        assert list(cells.uns["few_spread_colors"]) == ["#111111", "#333333"]

    def test_labels_of_a_view_are_written_to_it(self, cells):
        cells.obs["few"] = few_labels(cells)
        view = cells[::-1]
        with pytest.warns(anndata.ImplicitModificationWarning):
            ogs.tl.spread_labels(view, "few")
        assert "few_spread" in view.obs
        assert "few_spread" not in cells.obs

    def test_known_labels_are_never_replaced(self, cells):
        with pytest.raises(ValueError, match="must differ from `obs_key`"):
            ogs.tl.spread_labels(cells, "group", key_added="group")

    def test_missing_column(self, cells):
        with pytest.raises(KeyError, match="got 'gruop'; there are: 'group'"):
            ogs.tl.spread_labels(cells, "gruop")

    def test_no_label(self, cells):
        cells.obs["few"] = pd.Categorical([None] * 90, categories=["a"])
        with pytest.raises(ValueError, match="at least one known label"):
            ogs.tl.spread_labels(cells, "few")

    def test_numbers_are_no_labels(self, cells):
        cells.obs["depth"] = np.linspace(0, 1, 90)
        with pytest.raises(TypeError, match="numbers with fractions"):
            ogs.tl.spread_labels(cells, "depth")

    def test_no_graph(self, adata):
        with pytest.raises(KeyError, match=r"pp\.neighbors` first"):
            ogs.tl.spread_labels(adata, "group")


class TestDenoise:
    def test_same_as_on_arrays(self, cells, graph):
        X = cells.X.copy()
        ogs.tl.denoise(cells, t=2)
        expected = otgraph.denoise(graph, X, t=2)
        np.testing.assert_allclose(cells.layers["denoised"], expected, rtol=1e-6)
        assert cells.layers["denoised"].dtype == np.float32  # as the counts
        assert (cells.X != X).nnz == 0
        assert sp.issparse(cells.X)
        assert cells.uns["denoised"]["params"]["t"] == 2
        assert cells.var["denoised"].all()

    @pytest.mark.parametrize(
        "genes", [["gene7", "gene3"], [3, 7], np.isin(np.arange(60), [3, 7]), "chosen"]
    )
    def test_some_genes(self, cells, graph, genes):
        cells.var["chosen"] = np.isin(np.arange(60), [3, 7])
        ogs.tl.denoise(cells, t=3, genes=genes)
        layer = cells.layers["denoised"]
        assert isinstance(layer, sp.csc_matrix)
        assert layer.nnz <= 2 * 90
        expected = otgraph.denoise(graph, cells.X, t=3, columns=[3, 7])
        np.testing.assert_allclose(layer[:, [3, 7]].toarray(), expected, rtol=1e-6)
        assert list(cells.var_names[cells.var["denoised"]]) == ["gene3", "gene7"]
        np.testing.assert_allclose(
            cells[:, "gene7"].layers["denoised"].toarray().ravel(), expected[:, 1], rtol=1e-6
        )

    def test_sparse_counts_stay_sparse(self, rng):
        n, n_genes, dense_bytes = 4000, 6000, 4000 * 6000 * 4
        cells = anndata.AnnData(
            sp.random(n, n_genes, density=0.01, format="csr", dtype=np.float32, random_state=rng)
        )
        cells.obsm["X_pca"] = rng.standard_normal((n, 3))
        ogs.pp.neighbors(cells, mean_degree=10, use_rep="X_pca")
        tracemalloc.start()
        try:
            ogs.tl.denoise(cells, genes=np.arange(10, 20))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        # Half of it is the counts themselves, once by rows in float64 and once by columns.
        assert peak < 0.1 * dense_bytes
        assert sp.issparse(cells.X)

    def test_magic_is_one_keyword_away(self, cells):
        ogs.tl.denoise(cells, method="magic", n_neighbors=4, layer_added="magic")
        kernel = otgraph.magic_graph(cells.obsm["X_pca"], n_neighbors=4)
        expected = otgraph.denoise(kernel, cells.X, t=3)
        np.testing.assert_allclose(cells.layers["magic"], expected, rtol=1e-6)
        ogs.pp.neighbors(cells, method="magic", n_neighbors=4, key_added="kernel")
        ogs.tl.denoise(cells, neighbors_key="kernel", layer_added="again")
        np.testing.assert_array_equal(cells.layers["again"], cells.layers["magic"])
        assert cells.uns["magic"]["params"]["method"] == "magic"

    def test_steps_by_themselves(self, cells, graph):
        ogs.tl.denoise(cells, t="auto")
        found = cells.uns["denoised"]["params"]["t"]
        assert found == otgraph.methods.diffusion_time(graph, cells.X)

    def test_layer_in_and_out(self, cells, graph):
        cells.layers["root"] = np.sqrt(cells.X.toarray()).astype(np.float64)
        ogs.tl.denoise(cells, layer="root", layer_added="smooth", t=1, rescale=True)
        expected = otgraph.denoise(graph, cells.layers["root"], t=1, rescale=True)
        np.testing.assert_array_equal(cells.layers["smooth"], expected)

    def test_on_disk(self, cells, graph, tmp_path):
        cells.write_h5ad(tmp_path / "cells.h5ad")
        backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
        try:
            ogs.tl.denoise(backed, genes=["gene2", "gene9"])
            expected = otgraph.denoise(graph, cells.X, columns=[2, 9])
            np.testing.assert_allclose(
                backed.layers["denoised"][:, [2, 9]].toarray(), expected, rtol=1e-6
            )
        finally:
            backed.file.close()

    @pytest.mark.parametrize(
        ("keywords", "error", "message"),
        [
            ({"genes": ["gene1", "nope"]}, KeyError, "not there: 'nope'"),
            ({"genes": [60]}, ValueError, r"0\.\.59, got 60"),
            ({"genes": []}, ValueError, "at least one gene"),
            ({"genes": np.ones(3, dtype=bool)}, ValueError, "mask"),
            ({"layer": "counts"}, KeyError, "got 'counts'; there are: none"),
            ({"layer_added": "X"}, ValueError, "name of a layer"),
            ({"t": "often"}, ValueError, "'auto'"),
            ({"n_neighbors": 5}, TypeError, "pass `method` too"),
            ({"method": "magic", "neighbors_key": "neighbors"}, TypeError, "one of `method`"),
            ({"method": "magic", "eps": 1.0}, TypeError, "`eps` is not a keyword"),
        ],
    )
    def test_bad_arguments(self, cells, keywords, error, message):
        with pytest.raises(error, match=message):
            ogs.tl.denoise(cells, **keywords)
        assert "denoised" not in cells.layers

    def test_source_is_never_replaced(self, cells):
        cells.layers["counts"] = cells.X.copy()
        with pytest.raises(ValueError, match="must differ from `layer`"):
            ogs.tl.denoise(cells, layer="counts", layer_added="counts")

    def test_columns_of_others_are_never_replaced(self, cells):
        cells.var["highly_variable"] = True
        with pytest.raises(ValueError, match="another column of"):
            ogs.tl.denoise(cells, layer_added="highly_variable")
        ogs.tl.denoise(cells)
        ogs.tl.denoise(cells, genes=[4])  # its own column is
        assert cells.var["denoised"].sum() == 1


def test_metacells(cells):
    ogs.tl.metacells(cells, 12)
    found = otgraph.metacells(ogs.read_graph(cells), 12)
    assert list(cells.obs["metacell"].cat.codes) == list(found.labels)
    np.testing.assert_array_equal(cells.uns["metacell"]["sizes"], found.sizes)
    assert (cells.uns["metacell"]["weights"] != found.graph.weights).nnz == 0
    assert cells.uns["metacell"]["params"] == {"neighbors_key": "neighbors", "n_metacells": 12}
