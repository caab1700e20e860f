"""The graph and the slots it goes to."""

from __future__ import annotations

from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import otgraph
import otgraph.singlecell as ogs
from otgraph.exceptions import StaleGraphWarning
from otgraph.singlecell._matrices import SMALLEST_DISTANCE, distances


def assert_scanpy_can_read(matrix, n):
    assert isinstance(matrix, sp.csr_matrix)  # scvelo errs silently on csr_array
    assert matrix.shape == (n, n)
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.has_sorted_indices
    assert not matrix.diagonal().any()
    assert matrix.data.min() > 0
    assert (matrix != matrix.T).nnz == 0


@pytest.mark.parametrize(("key", "prefix"), [(None, ""), ("neighbors", ""), ("ot", "ot_")])
def test_slots(adata, key, prefix):
    ogs.pp.neighbors(adata, eps=1.0, key_added=key)
    graph = otgraph.quadratic_ot_graph(adata.obsm["X_pca"], eps=1.0)
    record = adata.uns[key or "neighbors"]
    names = ("connectivities", "distances", "weights")
    assert [record[f"{name}_key"] for name in names] == [prefix + name for name in names]
    assert set(adata.obsp) == {prefix + name for name in names}
    for name in names:
        assert_scanpy_can_read(adata.obsp[prefix + name], adata.n_obs)
    np.testing.assert_array_equal(adata.obsp[f"{prefix}weights"].toarray(), graph.weights.toarray())
    for name in names:
        np.testing.assert_array_equal(adata.obsp[prefix + name].indices, graph.weights.indices)


@pytest.mark.parametrize("options", [{"min_degree": 0}, {"min_degree": 9}])
def test_a_mean_of_plans_is_read_back(adata, tmp_path, options):
    ogs.pp.neighbors(adata, n_neighbors=12, method="multiscale", **options)
    expected = otgraph.multiscale_graph(adata.obsm["X_pca"], mean_degree=12, **options)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    graph = ogs.read_graph(anndata.read_h5ad(tmp_path / "cells.h5ad"))
    assert isinstance(graph, otgraph.MultiscaleGraph)
    assert (graph.weights != expected.weights).nnz == 0
    assert graph.certificate == expected.certificate
    assert graph.certificate.verify(adata.obsm["X_pca"])
    assert (graph.floors[-1] is not None) == bool(options["min_degree"])
    assert graph.degrees.min() >= options["min_degree"]
    ogs.pp.neighbors(adata, eps=1.0)
    assert "floors" not in adata.obsm
    assert isinstance(ogs.read_graph(adata), otgraph.TransportGraph)


def test_copies_are_read_back(adata):
    adata.obsm["X_pca"][1::2] = adata.obsm["X_pca"][::2]
    ogs.pp.neighbors(adata, collapse=True)
    graph = ogs.read_graph(adata)
    np.testing.assert_array_equal(graph.copies, np.arange(adata.n_obs) // 2)
    assert graph.certificate.verify(adata.obsm["X_pca"])


def test_masses_from_columns(adata):
    adata.obs["size"] = np.linspace(1.0, 2.0, adata.n_obs)
    adata.obs["batch"] = pd.Categorical(np.where(np.arange(adata.n_obs) < 20, "a", "b"))
    ogs.pp.neighbors(adata, mass="size")
    np.testing.assert_allclose(ogs.read_graph(adata).mass, adata.obs["size"])
    ogs.pp.neighbors(adata, balance="batch")
    mass = ogs.read_graph(adata).mass
    assert mass[:20].sum() == pytest.approx(mass[20:].sum())
    with pytest.raises(KeyError, match="`balance` must be a column of"):
        ogs.pp.neighbors(adata, balance="donor")
    with pytest.raises(TypeError, match="one of `mass` and `balance`"):
        ogs.pp.neighbors(adata, balance="batch", mass="size")


def test_cells_may_drop_out(adata):
    """Their rows are empty, and the graph that is read is not called stale."""
    points = adata.obsm["X_pca"]
    points[:3] = points.mean(axis=0) + 50.0 * np.eye(points.shape[1])[:3]
    ogs.pp.neighbors(adata, eps=0.5, outlier_cost="auto", connect=False)
    graph = ogs.read_graph(adata)
    assert graph.dropped[:3].all()
    built = otgraph.quadratic_ot_graph(points, eps=0.5, outlier_cost="auto", connect=False)
    np.testing.assert_allclose(graph.mass_kept, built.mass_kept)
    assert adata.uns["neighbors"]["params"]["outlier_cost"] == built.params["outlier_cost"]
    ogs.tl.cluster(adata)
    assert adata.obs["cluster"][:3].isna().all()


def test_params_are_flat_and_true(adata):
    ogs.pp.neighbors(adata, eps=0.7, n_pcs=4)
    params = adata.uns["neighbors"]["params"]
    graph = otgraph.quadratic_ot_graph(adata.obsm["X_pca"][:, :4], eps=0.7)
    assert all(isinstance(value, str | int | float | bool) for value in params.values())
    assert params["n_neighbors"] == round(graph.mean_degree)
    assert params["n_connected"] == graph.n_connected
    assert (params["method"], params["metric"], params["eps"]) == ("quadratic", "euclidean", 0.7)
    assert (params["use_rep"], params["n_pcs"]) == ("X_pca", 4)
    assert params["status"] == graph.certificate.status == "exact"
    assert params["marginal_error"] == graph.certificate.marginal_error


def test_connectivities_are_weights_up_to_a_factor_and_a_cut(adata):
    ogs.pp.neighbors(adata, eps=1.0)
    W, C = adata.obsp["weights"].toarray(), adata.obsp["connectivities"].toarray()
    typical = np.median(W.max(axis=1))
    np.testing.assert_allclose(C, np.minimum(W / typical, 1.0), rtol=1e-6)
    assert 0.4 <= (C.max(axis=1) == 1.0).mean() <= 0.6  # half of the cells have such an edge


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock", "sqeuclidean"])
def test_distances(adata, metric):
    ogs.pp.neighbors(adata, eps=1.0, metric=metric, power=1.5)
    D = adata.obsp["distances"].tocoo()
    X = adata.obsm["X_pca"]
    np.testing.assert_allclose(D.data, cdist(X, X, metric)[D.row, D.col], rtol=1e-5)
    assert adata.uns["neighbors"]["params"]["distances"] == "metric"


def test_distances_are_those_of_the_plan(adata, monkeypatch):
    """Nothing is measured again: the plan has the cost of every edge."""
    graph = otgraph.quadratic_ot_graph(adata.obsm["X_pca"], 1.0, self_loops=True)
    measured = distances(replace(graph, edge_costs=None))
    monkeypatch.setattr("otgraph.graphs.distances.metric_cost", None)
    kept = distances(graph)
    np.testing.assert_array_equal(kept.indices, measured.indices)
    np.testing.assert_allclose(kept.data, measured.data, rtol=1e-6)


def test_distances_of_tiny_points(adata):
    """Costs whose scale underflows: distances are measured."""
    X = adata.obsm["X_pca"].astype(float) * 1e-30
    graph = otgraph.quadratic_ot_graph(X, 1.0, power=12.0)
    D = distances(graph).tocoo()
    np.testing.assert_allclose(D.data, cdist(X, X)[D.row, D.col], rtol=1e-5)


def test_metric_function(adata):
    def steps(x, y):
        return np.abs(x - y).max()

    ogs.pp.neighbors(adata, eps=1.0, metric=steps)
    X, D = adata.obsm["X_pca"], adata.obsp["distances"].tocoo()
    np.testing.assert_allclose(D.data, cdist(X, X, "chebyshev")[D.row, D.col], rtol=1e-5)
    params = adata.uns["neighbors"]["params"]
    assert params["metric"] == "euclidean"  # the name goes to scikit-learn, which knows no steps
    assert params["metric_given"] == "callable steps"


def test_copies_of_a_cell_keep_their_edge(adata):
    adata.obsm["X_pca"][1] = adata.obsm["X_pca"][0]
    ogs.pp.neighbors(adata, eps=0.3)
    assert adata.obsp["distances"][0, 1] == np.float32(SMALLEST_DISTANCE)
    assert adata.obsp["connectivities"][0, 1] == 1.0


def test_eps_is_chosen(tmp_path):
    X = otgraph.datasets.noisy_manifold(200, dim=20, intrinsic_dim=2).X
    adata = anndata.AnnData(X)
    ogs.pp.neighbors(adata, eps="auto")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = ogs.read_graph(anndata.read_h5ad(tmp_path / "cells.h5ad"))
    assert read.params["eps"] == otgraph.choose_eps(X).eps
    kept = otgraph.EpsChoice.from_params(read.params)
    np.testing.assert_array_equal(kept.scores, otgraph.choose_eps(X).scores)


def test_fifteen_neighbors_unless_told(adata):
    ogs.pp.neighbors(adata)
    assert ogs.read_graph(adata).mean_degree == pytest.approx(15, rel=0.05)
    small = adata[:8].copy()
    ogs.pp.neighbors(small)
    assert small.uns["neighbors"]["params"]["n_neighbors"] == 7


@pytest.mark.parametrize(
    ("method", "keywords", "build"),
    [
        ("entropic", {"eps": 0.5}, otgraph.entropic_ot_graph),
        ("knn", {"n_neighbors": 7}, otgraph.knn_gaussian_graph),
        ("gaussian", {"eps": 0.2}, otgraph.gaussian_graph),
        ("magic", {"n_neighbors": 4}, otgraph.magic_graph),
        ("quadratic", {"mean_degree": 9, "self_loops": True}, otgraph.quadratic_ot_graph),
    ],
)
def test_every_construction(adata, method, keywords, build):
    ogs.pp.neighbors(adata, method=method, **keywords)
    expected = build(adata.obsm["X_pca"], **keywords)
    np.testing.assert_array_equal(adata.obsp["weights"].toarray(), expected.weights.toarray())
    for name in ("connectivities", "distances"):
        assert_scanpy_can_read(adata.obsp[name], adata.n_obs)
    assert adata.uns["neighbors"]["params"]["method"] == expected.params["method"]


class TestRepresentation:
    def used(self, adata, **keywords):
        ogs.pp.neighbors(adata, eps=1.0, **keywords)
        return adata.uns["neighbors"]["params"]["use_rep"]

    def test_components_for_many_genes(self, adata):
        assert self.used(adata) == "X_pca"

    def test_genes_for_few(self, adata):
        assert self.used(adata[:, :50].copy()) == "X"
        assert self.used(adata[:, :51].copy()) == "X_pca"

    def test_genes_on_request(self, adata):
        assert self.used(adata, use_rep="X") == self.used(adata, n_pcs=0) == "X"
        expected = otgraph.quadratic_ot_graph(adata.X, eps=1.0).weights
        np.testing.assert_array_equal(adata.obsp["weights"].toarray(), expected.toarray())

    def test_data_frame(self, adata):
        frame = pd.DataFrame(adata.obsm["X_pca"], index=adata.obs_names).add_prefix("f")
        adata.obsm["frame"] = frame
        assert self.used(adata, use_rep="frame") == "frame"

    def test_components_are_computed_if_missing(self, adata):
        sc = pytest.importorskip("scanpy")
        other = adata.copy()
        del adata.obsm["X_pca"], other.obsm["X_pca"]
        with pytest.warns(UserWarning, match="computing 50 components"):
            ogs.pp.neighbors(adata, eps=1.0)
        sc.pp.pca(other, n_comps=50)
        ogs.pp.neighbors(other, eps=1.0)
        np.testing.assert_array_equal(
            adata.obsp["weights"].toarray(), other.obsp["weights"].toarray()
        )

    def test_missing_name_lists_what_is_there(self, adata):
        adata.obsm["X_other"] = adata.obsm["X_pca"]
        with pytest.raises(KeyError, match=r"got 'X_pac'; there are: 'X_pca', 'X_other'"):
            ogs.pp.neighbors(adata, use_rep="X_pac")

    def test_too_many_columns(self, adata):
        with pytest.raises(ValueError, match=r"`n_pcs` must lie in 1\.\.5.*got 6"):
            ogs.pp.neighbors(adata, n_pcs=6)

    def test_nan_names_the_place(self, adata):
        adata.obsm["X_pca"][7, 2] = np.nan
        with pytest.raises(ValueError, match=r"`adata.obsm\['X_pca'\]` contains NaN.*row 7"):
            ogs.pp.neighbors(adata)
        assert not adata.obsp


class TestKindsOfAnnData:
    def test_copy_leaves_the_original(self, adata):
        result = ogs.pp.neighbors(adata, eps=1.0, copy=True)
        assert "weights" in result.obsp
        assert not adata.obsp
        assert "neighbors" not in adata.uns

    def test_view_becomes_an_object_of_its_own(self, adata):
        view = adata[:40]
        with pytest.warns(anndata.ImplicitModificationWarning):
            ogs.pp.neighbors(view, eps=1.0)
        assert not view.is_view
        assert view.obsp["connectivities"].shape == (40, 40)
        assert not adata.obsp

    def test_on_disk(self, adata, tmp_path):
        adata.write_h5ad(tmp_path / "cells.h5ad")
        backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
        try:
            ogs.pp.neighbors(backed, eps=1.0)
            ogs.pp.neighbors(backed, eps=1.0, use_rep="X", key_added="genes")
            ogs.pp.neighbors(adata, eps=1.0, use_rep="X")
            np.testing.assert_array_equal(
                backed.obsp["genes_weights"].toarray(), adata.obsp["weights"].toarray()
            )
            copy = ogs.pp.neighbors(backed, eps=2.0, copy=True)
            assert not copy.isbacked
            assert copy.uns["neighbors"]["params"]["eps"] == 2.0
            assert backed.uns["neighbors"]["params"]["eps"] == 1.0
            with pytest.raises(ValueError, match=r"to_memory\(\)"):
                ogs.pp.neighbors(backed[:20], eps=1.0)
            del backed.obsm["X_pca"]
            with pytest.raises(ValueError, match="has no principal components"):
                ogs.pp.neighbors(backed, eps=1.0)
        finally:
            backed.file.close()

    def test_file_and_back(self, adata, tmp_path):
        for key in (None, "ot"):
            ogs.pp.neighbors(adata, eps=1.0, key_added=key)
        adata.write_h5ad(tmp_path / "cells.h5ad")
        read = anndata.read_h5ad(tmp_path / "cells.h5ad")
        for key in ("neighbors", "ot"):
            before, after = adata.uns[key]["params"], read.uns[key]["params"]
            assert {k: after[k] for k in before} == before
        for name, matrix in adata.obsp.items():
            assert (read.obsp[name] != matrix).nnz == 0
            assert read.obsp[name].indices.dtype == np.int32

    @pytest.mark.parametrize("key", ["a/b", "/", ".", "a\0b", "\ud800"])
    def test_key_that_no_file_can_hold(self, adata, key):
        match = "`key_added` must be a name without '/'"
        with pytest.raises(ValueError, match=match):
            ogs.pp.neighbors(adata, eps=1.0, key_added=key)
        assert not adata.obsp
        ogs.pp.neighbors(adata, eps=1.0)
        for tool in (ogs.tl.eigenmaps, ogs.tl.cluster):
            with pytest.raises(ValueError, match=match):
                tool(adata, key_added=key)

    def test_odd_keys_come_back_from_a_file(self, adata, tmp_path):
        for key in ("a b", "ä", "..", "$x", "a.b"):
            ogs.pp.neighbors(adata, eps=1.0, key_added=key)
        adata.write_h5ad(tmp_path / "cells.h5ad")
        found = anndata.read_h5ad(tmp_path / "cells.h5ad")
        assert set(found.obsp) == set(adata.obsp)
        assert set(found.uns) == set(adata.uns)

    def test_key_is_replaced_whole(self, adata):
        adata.uns["neighbors"] = {"rp_forest": 1, "params": {"n_neighbors": 3, "old": 1}}
        adata.obsp["connectivities"] = sp.identity(adata.n_obs, format="csr")
        ogs.pp.neighbors(adata, eps=1.0)
        once = ogs.read_graph(adata)
        assert "rp_forest" not in adata.uns["neighbors"]
        assert "old" not in adata.uns["neighbors"]["params"]
        ogs.pp.neighbors(adata, eps=2.0)
        ogs.pp.neighbors(adata, eps=1.0)
        assert (ogs.read_graph(adata).weights != once.weights).nnz == 0

    @pytest.mark.parametrize("n", [0, 1])
    def test_too_few_cells(self, adata, n):
        with pytest.raises(ValueError, match=f"at least 2 cells, got {n}"):
            ogs.pp.neighbors(adata[:n].copy())

    def test_array(self):
        with pytest.raises(TypeError, match="must be an AnnData object, got ndarray"):
            ogs.pp.neighbors(np.zeros((3, 2)))


class TestArguments:
    def test_number_of_neighbors_means_what_it_means_in_scanpy(self, adata):
        """By name and by position, and `n_pcs` after it."""
        expected = otgraph.quadratic_ot_graph(adata.obsm["X_pca"][:, :4], mean_degree=9).weights
        for arguments, keywords in [((9, 4), {}), ((), {"n_neighbors": 9, "n_pcs": 4})]:
            ogs.pp.neighbors(adata, *arguments, **keywords)
            assert (adata.obsp["weights"] != expected).nnz == 0
        ogs.pp.neighbors(adata, 9, method="knn")
        expected = otgraph.knn_gaussian_graph(adata.obsm["X_pca"], n_neighbors=9).weights
        assert (adata.obsp["weights"] != expected).nnz == 0

    @pytest.mark.parametrize("other", ["eps", "mean_degree"])
    def test_one_size_is_enough(self, adata, other):
        with pytest.raises(TypeError, match=f"one of `n_neighbors` and `{other}`"):
            ogs.pp.neighbors(adata, 15, **{other: 5.0})

    def test_number_of_neighbors_where_all_are(self, adata):
        with pytest.raises(TypeError, match=r"`n_neighbors` is not a keyword.*All cells are neigh"):
            ogs.pp.neighbors(adata, 15, method="gaussian")

    def test_keyword_of_another_construction(self, adata):
        with pytest.raises(TypeError, match=r"`mean_degree` is not a keyword of method='magic'"):
            ogs.pp.neighbors(adata, method="magic", mean_degree=15)

    def test_unknown_method(self, adata):
        with pytest.raises(ValueError, match="must be one of 'quadratic', 'multiscale'"):
            ogs.pp.neighbors(adata, method="umap")

    def test_eps_and_mean_degree_exclude_each_other(self, adata):
        with pytest.raises(TypeError, match="at most one of `eps` and `mean_degree`"):
            ogs.pp.neighbors(adata, eps=1.0, mean_degree=15)

    def test_precomputed(self, adata):
        with pytest.raises(ValueError, match="write_slots"):
            ogs.pp.neighbors(adata, metric="precomputed")

    @pytest.mark.parametrize("key", ["", 3])
    def test_key_must_be_a_name(self, adata, key):
        with pytest.raises(TypeError, match="`key_added` must be a name or None"):
            ogs.pp.neighbors(adata, key_added=key)


class TestSlots:
    def test_graph_of_other_size(self, adata):
        graph = otgraph.knn_gaussian_graph(np.arange(9.0)[:, None], n_neighbors=2)
        with pytest.raises(ValueError, match="9 points, but `adata` has 90 cells"):
            ogs.write_slots(adata, graph)

    def test_graph_without_points(self, adata):
        X = adata.obsm["X_pca"]
        graph = otgraph.quadratic_ot_graph(cdist(X, X) ** 2, eps=1.0, metric="precomputed")
        ogs.write_slots(adata, graph)
        assert set(adata.obsp["distances"].data) == {1.0}
        params = adata.uns["neighbors"]["params"]
        assert params["distances"] == "pattern"
        assert params["metric"] == "euclidean"  # what umap hands to scikit-learn

    def test_any_weights(self, adata, rng):
        W = sp.random_array((90, 90), density=0.1, random_state=rng)
        graph = otgraph.Graph.from_weights((W + W.T).tocsr())
        ogs.write_slots(adata, graph, "mine")
        assert adata.uns["mine"]["params"]["method"] == "weights"
        assert (ogs.read_graph(adata, "mine").weights != graph.weights).nnz == 0

    def test_nothing_is_written_on_failure(self, adata):
        graph = otgraph.knn_gaussian_graph(adata.obsm["X_pca"], metric=lambda x, y: 1.0)
        with pytest.raises(ValueError, match="`metric` must be"):
            ogs.write_slots(adata, graph)  # the function is missing
        assert not adata.obsp
        assert not adata.uns

    def test_graph_without_edges(self, adata):
        ogs.write_slots(adata, otgraph.Graph.from_weights(sp.csr_matrix((90, 90))))
        assert adata.obsp["connectivities"].nnz == adata.obsp["distances"].nnz == 0
        assert adata.uns["neighbors"]["params"]["n_neighbors"] == 1

    def test_missing_graph_lists_those_there(self, adata):
        ogs.pp.neighbors(adata, eps=1.0, key_added="ot")
        with pytest.raises(KeyError, match=r"no neighborhood graph 'neighbors'; it has 'ot'"):
            ogs.read_graph(adata)
        del adata.obsp["ot_weights"]
        with pytest.raises(KeyError, match="names 'ot_weights'"):
            ogs.read_graph(adata, "ot")


def edges_kept_by_umap(C, n_epochs=500):
    """Edges per cell that ``umap.simplicial_set_embedding`` does not set to zero."""
    return (C.data >= C.data.max() / n_epochs).sum() / C.shape[0]


def test_copies_do_not_starve_the_others(rng):
    """Pairs of far-away copies share all their mass, edges of other cells weigh far less."""
    X = rng.standard_normal((300, 2))
    # Fifty neighbors each, and ten pairs of duplicates that nobody else comes near.
    copies = np.repeat(30.0 + 10.0 * rng.standard_normal((10, 2)), 2, axis=0)
    adata = anndata.AnnData(np.vstack([X, copies]))
    with pytest.warns(otgraph.exceptions.DisconnectedWarning, match="exact duplicates"):
        ogs.pp.neighbors(adata, eps=0.5)
    W, C = adata.obsp["weights"], adata.obsp["connectivities"]
    body = np.arange(300)
    # How often an edge of an ordinary cell is drawn, as a share of the epochs.
    drawn = [M[body][:, body].data.mean() / M.data.max() for M in (W, C)]
    assert drawn[1] > 5 * drawn[0]
    assert edges_kept_by_umap(C) > edges_kept_by_umap(W)


class TestReading:
    """The graph comes back as it was written, or says that cells are missing."""

    def test_transport_graph_with_its_certificate(self, adata, tmp_path):
        adata.obsm["X_pca"][0] += 30.0  # alone, so that it gets minimum flows
        graph = otgraph.quadratic_ot_graph(adata.obsm["X_pca"], mean_degree=8)
        assert graph.floors is not None
        ogs.pp.neighbors(adata, 8)
        adata.write_h5ad(tmp_path / "cells.h5ad")
        read = ogs.read_graph(anndata.read_h5ad(tmp_path / "cells.h5ad"))
        assert read.certificate.record() == graph.certificate.record()
        assert read.certificate.verify(adata.obsm["X_pca"])
        np.testing.assert_array_equal(read.potentials, graph.potentials)
        assert (read.floors != graph.floors).nnz == 0
        new = adata.obsm["X_pca"][:5] + 0.1
        np.testing.assert_array_equal(read.extend(new).toarray(), graph.extend(new).toarray())

    @pytest.mark.parametrize(
        ("method", "keywords"),
        [("entropic", {"eps": 0.5}), ("knn", {}), ("gaussian", {}), ("magic", {"n_pca": 2})],
    )
    def test_every_construction_extends(self, adata, method, keywords):
        ogs.pp.neighbors(adata, method=method, key_added="other", **keywords)
        build = otgraph.graphs.constructions.CONSTRUCTIONS[method].build
        new = adata.obsm["X_pca"][:5] + 0.1
        expected = build(adata.obsm["X_pca"], **keywords).extend(new).toarray()
        read = ogs.read_graph(adata, "other")
        np.testing.assert_array_equal(read.extend(new).toarray(), expected)

    def test_metric_function_is_not_forgotten(self, adata):
        def metric(x, y):
            return float(np.abs(x - y).max())

        ogs.pp.neighbors(adata, 8, metric=metric)
        read = ogs.read_graph(adata)
        with pytest.raises(ValueError, match="`metric` must be the function"):
            read.extend(adata.obsm["X_pca"])
        assert read.extend(adata.obsm["X_pca"], metric=metric).shape == (90, 90)

    def test_smaller_graph_leaves_no_part_of_the_older(self, adata):
        ogs.pp.neighbors(adata, 8)
        ogs.pp.neighbors(adata, method="knn")
        assert not isinstance(ogs.read_graph(adata), otgraph.TransportGraph)
        assert "potentials" not in adata.obsm

    def test_order_of_the_cells_does_not_matter(self, adata, rng):
        ogs.pp.neighbors(adata, 8)
        order = rng.permutation(adata.n_obs)
        read = ogs.read_graph(adata[order].copy())
        assert read.certificate.verify(adata.obsm["X_pca"][order])

    def test_without_its_representation(self, adata):
        ogs.pp.neighbors(adata, 8)
        del adata.obsm["X_pca"]
        read = ogs.read_graph(adata)
        assert read.points is None
        assert read.certificate.status == "exact"

    @pytest.mark.parametrize("method", ["quadratic", "knn"])
    def test_subset_is_stale(self, adata, method):
        ogs.pp.neighbors(adata, 8, method=method)
        part = adata[::3].copy()
        assert part.uns["neighbors"]["params"].get("status", "exact") == "exact"  # as anndata does
        with pytest.warns(StaleGraphWarning, match=r"built on 90 cells.* has 30.*neighbors` again"):
            read = ogs.read_graph(part)
        assert read.params["status"] == "stale"
        assert not hasattr(read, "certificate")
        with pytest.warns(StaleGraphWarning):
            ogs.tl.denoise(part)

    def test_rows_that_lost_mass_are_stale(self, adata):
        """Also if the number of cells is right by chance."""
        ogs.pp.neighbors(adata, 8)
        adata.obsp["weights"] = adata.obsp["weights"] * 0.99
        with pytest.warns(StaleGraphWarning):
            ogs.read_graph(adata)

    def test_stale_graph_is_replaced(self, adata):
        ogs.pp.neighbors(adata, 8)
        part = adata[:40].copy()
        ogs.pp.neighbors(part, 8)
        assert ogs.read_graph(part).certificate.status == "exact"
