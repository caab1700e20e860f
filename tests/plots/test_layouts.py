"""Positions from the graph alone."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist, squareform

import otgraph
from otgraph.plots import layout
from otgraph.plots._forces import GRAVITY, MESH, _field_of_one_charge, _push, balanced


@pytest.fixture(scope="module")
def groups():
    """Three groups of fifty points in ten dimensions, and their graph."""
    rng = np.random.default_rng(0)
    centers = 8.0 * np.eye(10)[:3]
    X = np.concatenate([center + rng.normal(size=(50, 10)) for center in centers])
    return X, otgraph.knn_gaussian_graph(X, n_neighbors=8)


@pytest.mark.parametrize("kind", ["pca", "force", "umap"])
def test_groups_stay_together(groups, kind):
    X, graph = groups
    positions = layout(graph, kind, X=X)
    assert positions.shape == (150, 2)
    distances = squareform(pdist(positions)) + np.diag([np.inf] * 150)
    own = np.repeat(range(3), 50)
    assert np.mean(own[distances.argmin(axis=1)] == own) > 0.95
    np.testing.assert_array_equal(layout(graph, kind, X=X), positions)  # the same every time


@pytest.mark.parametrize("kind", ["force", "umap"])
def test_no_points_are_needed(groups, kind):
    weights = groups[1].weights
    positions = layout(weights, kind)
    i, j = sp.triu(weights, 1).nonzero()
    edges = np.linalg.norm(positions[i] - positions[j], axis=1)
    assert np.median(edges) < 0.5 * np.median(pdist(positions))
    assert (layout(weights, kind, random_state=1) != positions).any()


def test_spectral_is_eigenmaps(groups, rng):
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(80, 3)), mean_degree=8)
    np.testing.assert_array_equal(layout(graph, "spectral"), otgraph.eigenmaps(graph).coordinates)
    assert np.isfinite(layout(groups[1], "spectral")).all()  # several components, no warning


def test_unknown_kind(groups):
    with pytest.raises(ValueError, match="must be one of 'pca', 'force', 'spectral', 'umap'"):
        layout(groups[1], "tsne")


def test_umap_that_is_not_installed(groups, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match="pip install umap-learn"):
        layout(groups[1], "umap")


class TestForces:
    def test_push_of_all_points(self, rng):
        """The mesh gives the sum over all pairs, up to pairs nearer than a few cells."""
        positions = rng.normal(size=(300, 2))
        differences = positions[:, None] - positions
        squared = (differences**2).sum(axis=2) + np.eye(300)
        expected = (differences / squared[:, :, None]).sum(axis=1)
        found = _push(positions, _field_of_one_charge())
        far = np.sqrt((squared + 9 * np.eye(300)).min(axis=1)) > 3 * np.ptp(positions) / MESH
        assert far.sum() > 100
        error = np.linalg.norm(found - expected, axis=1)[far]
        assert error.max() < 0.02 * np.linalg.norm(expected, axis=1)[far].mean()

    def test_two_points_balance(self):
        """Pull 2 d + gravity d/2 = push 1/(2 d) of each, at distance d."""
        found = balanced(sp.csr_array([[0.0, 1.0], [1.0, 0.0]]), np.array([[-1.0, 0], [1.0, 0.0]]))
        distance = np.linalg.norm(found[0] - found[1])
        # Force on one end: spring of weight one, gravity towards the middle, push 1/(2 d).
        assert distance == pytest.approx((0.5 / (1 + GRAVITY / 2)) ** 0.5, rel=0.02)

    def test_separate_components_stay_in_the_picture(self):
        blocks = sp.block_diag([sp.csr_array(np.ones((20, 20)) - np.eye(20))] * 2, format="csr")
        positions = layout(blocks, "force")
        first, second = positions[:20], positions[20:]
        gap = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
        assert 2 * first.std() < gap < 30

    def test_no_edges_and_one_point(self):
        assert np.isfinite(layout(sp.csr_array((30, 30)), "force")).all()
        assert np.isfinite(layout(sp.csr_array((1, 1)), "force")).all()
