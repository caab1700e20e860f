"""Distributions of degrees, of one graph or of several."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import otgraph
from otgraph.plots import plot_degrees
from otgraph.plots.degrees import MOST_BINS


@pytest.fixture
def star():
    W = np.zeros((5, 5))
    W[0, 1:] = W[1:, 0] = 1.0
    W[0, 0] = 1.0  # a point is no neighbor of its own
    return sp.csr_array(W)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def outlines(ax):
    return [p for p in ax.patches if isinstance(p, StepPatch) and not p.get_fill()]


def test_shares_of_points(star, ax):
    assert plot_degrees(star, ax=ax, title="star") is ax
    (outline,) = outlines(ax)
    shares, edges, _ = outline.get_data()
    np.testing.assert_allclose(edges, [0.5, 1.5, 2.5, 3.5, 4.5])
    np.testing.assert_allclose(shares, [0.8, 0, 0, 0.2])
    (mean,) = ax.get_lines()
    np.testing.assert_allclose(mean.get_xdata(), 8 / 5)
    assert ax.get_legend().get_texts()[0].get_text() == "graph 1 (mean 1.6)"
    assert ax.get_title() == "star"


def test_several_graphs_share_their_bins(rng, ax):
    X = rng.normal(size=(60, 2))
    graphs = {
        "few": otgraph.knn_gaussian_graph(X, n_neighbors=3),
        "many": otgraph.knn_gaussian_graph(X, n_neighbors=20),
    }
    plot_degrees(graphs, ax=ax)
    few, many = outlines(ax)
    np.testing.assert_array_equal(few.get_data().edges, many.get_data().edges)
    for outline, graph in zip((few, many), graphs.values(), strict=True):
        edges = outline.get_data().edges
        np.testing.assert_allclose(
            outline.get_data().values * 60, np.histogram(graph.degrees, edges)[0]
        )
    assert few.get_edgecolor() != many.get_edgecolor()
    assert few.get_linestyle() != many.get_linestyle()


def test_wide_ranges_are_binned(ax):
    star = np.zeros((1000, 1000))
    star[0, 1:] = star[1:, 0] = 1.0
    plot_degrees(sp.csr_array(star), ax=ax)
    shares, edges, _ = outlines(ax)[0].get_data()
    assert len(shares) <= MOST_BINS
    assert len(np.unique(np.diff(edges))) == 1
    assert shares.sum() == pytest.approx(1.0)


def test_cumulative(star, ax):
    plot_degrees(star, cumulative=True, ax=ax)
    curve = ax.get_lines()[0]
    np.testing.assert_allclose(curve.get_xydata(), [[1, 0.8], [4, 1.0]])


def test_names(rng, ax):
    X = rng.normal(size=(30, 2))
    path = otgraph.eps_path(X, [0.1, 1.0])
    plot_degrees(path, ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert [text.partition(" (")[0] for text in texts] == ["ε = 0.1", "ε = 1"]
    mixed = [path[0], otgraph.knn_gaussian_graph(X, n_neighbors=4)]
    plot_degrees(mixed, ax=(other := Figure().add_subplot()))
    texts = [text.get_text() for text in other.get_legend().get_texts()]
    assert texts[0].startswith("quadratic OT, ε = 0.1")
    assert texts[1].startswith("kNN")
    plot_degrees(mixed, names=["a", "b"], ax=(third := Figure().add_subplot()))
    assert third.get_legend().get_texts()[1].get_text().startswith("b (mean")


def test_bad_input(star):
    with pytest.raises(ValueError, match="`names` must be a list of 1 names"):
        plot_degrees(star, names=["a", "b"])
    with pytest.raises(TypeError, match="`graphs` must be a Graph or a square scipy sparse"):
        plot_degrees([np.eye(3)])
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_degrees([])
