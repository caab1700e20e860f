"""The same points, several graphs."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

import otgraph
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.methods import perplexity
from otgraph.plots import compare_graphs, layout


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def of_kind(ax, kind):
    (found,) = [c for c in ax.collections if isinstance(c, kind)]
    return found


def test_every_construction_on_the_same_points(X):
    axes = compare_graphs(X, labels=np.arange(40) % 3)
    assert [ax.get_title().split("\n")[0] for ax in axes] == [
        construction.title for construction in CONSTRUCTIONS.values()
    ]
    places = [of_kind(ax, PathCollection).get_offsets() for ax in axes]
    colors = [of_kind(ax, PathCollection).get_facecolors() for ax in axes]
    for place, color in zip(places, colors, strict=True):
        np.testing.assert_array_equal(place, places[0])
        np.testing.assert_array_equal(color, colors[0])
    assert [ax.get_legend() is not None for ax in axes] == [False] * 5 + [True]
    axes[0].figure.draw_without_rendering()
    plt.close(axes[0].figure)


def test_methods_and_their_options(X):
    axes = Figure().subplots(1, 2)
    found = compare_graphs(
        X, ["knn", "quadratic"], options={"knn": {"n_neighbors": 3}}, layout="force", ax=axes
    )
    assert list(found) == list(axes)
    graph = otgraph.knn_gaussian_graph(X, n_neighbors=3)
    assert axes[0].get_title() == f"kNN\nperplexity {perplexity(graph):.3g}"
    drawn = of_kind(axes[0], PathCollection).get_offsets()
    np.testing.assert_array_equal(drawn, layout(graph, "force", X=X))


def test_edges_without_weight_are_left_out(X):
    (ax,) = compare_graphs(
        X, ["gaussian"], options={"gaussian": {"eps": 0.05}}, ax=Figure().add_subplot()
    )
    weights = otgraph.gaussian_graph(X, eps=0.05).weights
    assert len(of_kind(ax, LineCollection).get_segments()) < 0.5 * weights.nnz / 2


def test_finished_graphs_with_hostile_names(X):
    graphs = {name: otgraph.knn_gaussian_graph(X, n_neighbors=3) for name in (r"$\frac{1}$", "b")}
    figure = Figure()
    axes = compare_graphs(graphs, layout="spectral", color="degree", ax=figure.subplots(1, 2))
    figure.canvas.draw()
    assert axes[0].get_title().startswith(r"$\frac{1}$")
    (bar,) = axes[1].child_axes
    assert bar.get_ylabel() == "degree"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"methods": ["knn", "tree"]}, "`methods` must be some of quadratic, .* got tree"),
        ({"methods": []}, "`methods` must be some of"),
        ({"options": {"tree": {}}}, "got tree"),
        ({"ax": Figure().subplots(1, 2)}, "`ax` must hold 6 axes, one for each graph, got 2"),
        ({"columns": 0}, "`columns` must be an integer >= 1"),
    ],
)
def test_bad_arguments(X, arguments, message):
    with pytest.raises(ValueError, match=message):
        compare_graphs(X, **arguments)


def test_graphs_of_other_points(X):
    graphs = {str(n): otgraph.knn_gaussian_graph(X[:n], n_neighbors=3) for n in (20, 40)}
    with pytest.raises(ValueError, match=r"graphs of the same points, got \[20, 40\] points"):
        compare_graphs(graphs)
