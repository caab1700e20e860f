"""Graphs of cells hold together by default; where they do not, a warning says what to do."""

from __future__ import annotations

import warnings

import anndata
import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import otgraph
import otgraph.singlecell as ogs
from otgraph.exceptions import DisconnectedWarning
from otgraph.singlecell._messages import CONSEQUENCE, REMEDY
from otgraph.solvers.floors import SMALL_SHARE

# Cells that come with scanpy: sorted blood cells, and a simulated differentiation.
BUNDLED = ("pbmc68k_reduced", "krumsiek11")
ASKED = 4  # default of `min_degree` at a mean degree of 15


def simulated(n, seed):
    cells = otgraph.datasets.simulated_cells(n, n_genes=600, random_state=seed)
    counts = cells.counts.toarray()
    expression = np.log1p(1e4 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0))
    centered = expression - expression.mean(axis=0)
    left, values, _ = np.linalg.svd(centered, full_matrices=False)
    adata = anndata.AnnData(left[:, :30] * values[:30])
    adata.obs["type"] = cells.labels
    return adata


def component_sizes(adata):
    return np.bincount(connected_components(adata.obsp["connectivities"])[1])


def assert_nobody_is_lonely(adata):
    params = adata.uns["neighbors"]["params"]
    sizes = component_sizes(adata)
    assert params["min_degree"] == ASKED
    assert np.diff(adata.obsp["connectivities"].indptr).min() == params["smallest_degree"] >= ASKED
    assert sizes.min() >= SMALL_SHARE * adata.n_obs
    assert params["n_connected"] == len(sizes)


def pseudotime(adata):
    sc = pytest.importorskip("scanpy")
    adata.uns["iroot"] = 0
    sc.tl.diffmap(adata)
    sc.tl.dpt(adata)
    return adata.obs["dpt_pseudotime"].to_numpy()


@pytest.mark.filterwarnings("ignore:Observation names are not unique")
@pytest.mark.parametrize("name", BUNDLED)
class TestCellsThatComeWithScanpy:
    @pytest.fixture
    def cells(self, name):
        sc = pytest.importorskip("scanpy")
        return getattr(sc.datasets, name)()

    def test_default(self, cells):
        sc = pytest.importorskip("scanpy")
        theirs = cells.copy()
        sc.pp.neighbors(theirs)
        ogs.pp.neighbors(cells)
        assert_nobody_is_lonely(cells)
        assert len(component_sizes(cells)) <= len(component_sizes(theirs))
        finite = np.isfinite(pseudotime(theirs))
        assert np.isfinite(pseudotime(cells)[finite]).all()

    def test_the_plain_plan_needs_help(self, cells):
        """Without minimum flows there are lonely cells, so the test above can fail."""
        ogs.pp.neighbors(cells, min_degree=0, connect=False)
        params = cells.uns["neighbors"]["params"]
        assert params["smallest_degree"] < ASKED
        assert params["n_floors"] == params["floor_share"] == 0


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("seed", range(3))
def test_simulated_cells(seed):
    """Components are whole families of cell types; `connect=True` joins them."""
    cells = simulated(600, seed)
    ogs.pp.neighbors(cells)
    assert_nobody_is_lonely(cells)
    labels = connected_components(cells.obsp["connectivities"])[1]
    assert cells.obs.assign(part=labels).groupby("type")["part"].nunique().max() == 1
    ogs.pp.neighbors(cells, connect=True)
    assert_nobody_is_lonely(cells)
    assert len(component_sizes(cells)) == 1


@pytest.fixture
def apart(adata):
    """Three groups; the first is far away, and three of its cells are farther."""
    adata.obsm["X_pca"][:30] += 40.0
    adata.obsm["X_pca"][:3] += 40.0
    return adata


def test_pseudotime_is_finite_in_the_component_of_the_root_only(apart):
    pytest.importorskip("scanpy")
    with pytest.warns(DisconnectedWarning, match=r"2 connected components.*sc\.tl\.dpt"):
        ogs.pp.neighbors(apart)
    np.testing.assert_array_equal(np.isfinite(pseudotime(apart)), np.arange(90) < 30)
    ogs.pp.neighbors(apart, connect=True)
    assert np.isfinite(pseudotime(apart)).all()


def test_params_tell_whether_the_graph_holds_together(apart, tmp_path):
    ogs.pp.neighbors(apart, connect=True)
    graph = otgraph.quadratic_ot_graph(apart.obsm["X_pca"], connect=True)
    apart.write_h5ad(tmp_path / "cells.h5ad")
    params = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["neighbors"]["params"]
    assert params["connect"]
    assert params["n_connected"] == 1
    assert params["min_degree"] == ASKED
    assert params["smallest_degree"] == graph.degrees.min() >= ASKED
    assert params["n_floors"] == graph.certificate.n_floors > 0
    assert params["floor_share"] == graph.certificate.floor_share > 0


class TestWarnings:
    def test_keywords_that_help_are_named(self, apart):
        with pytest.warns(DisconnectedWarning) as caught:
            ogs.pp.neighbors(apart)
        (found,) = caught
        assert "Pass `connect=True`" in str(found.message)
        assert "`min_degree=4`" not in str(found.message)  # it is the default here
        assert str(found.message).endswith(CONSEQUENCE)
        assert found.filename == __file__  # the line of the user, not one of the library
        with pytest.warns(DisconnectedWarning, match="`min_degree=4` to join only the small ones"):
            ogs.pp.neighbors(apart, eps=0.01)

    @pytest.mark.parametrize("connect", [True, False])
    def test_none_if_the_user_decided(self, apart, connect):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ogs.pp.neighbors(apart, connect=connect)
        assert (apart.uns["neighbors"]["params"]["n_connected"] == 1) == connect

    def test_tools_say_how_to_build_one_component(self, apart):
        ogs.pp.neighbors(apart, eps=0.01, connect=False)
        apart.obs["few"] = apart.obs["group"].where(np.arange(90) == 80)
        for tool in (
            lambda: ogs.tl.eigenmaps(apart, 2),
            lambda: ogs.tl.cluster(apart, 2),
            lambda: ogs.tl.spread_labels(apart, "few"),
        ):
            with pytest.warns(DisconnectedWarning) as caught:
                tool()
            assert [str(found.message).endswith(REMEDY) for found in caught] == [True]
            assert caught[0].filename == __file__
        ogs.pp.neighbors(apart, connect=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ogs.tl.eigenmaps(apart, 2)
            ogs.tl.cluster(apart, 2)
            ogs.tl.spread_labels(apart, "few")

    def test_nothing_is_written_if_the_warning_is_an_error(self, apart):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(DisconnectedWarning, match="connect=True"):
                ogs.pp.neighbors(apart)
        assert not apart.obsp

    def test_other_warnings_stay_what_they_are(self, adata):
        with pytest.warns(otgraph.exceptions.ConvergenceWarning) as caught:
            ogs.pp.neighbors(adata, eps=1.0, max_iter=1)
        assert not any(CONSEQUENCE in str(found.message) for found in caught)
