"""Edges by the eps at which they appear, as a picture."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

import otgraph
from otgraph.plots import plot_scales


@pytest.fixture
def graph(rng):
    return otgraph.multiscale_graph(rng.normal(size=(80, 2)), mean_degree=[4, 8, 16])


def test_every_edge_once_in_the_color_of_its_eps(graph):
    ax = plot_scales(graph)
    lines = [each for each in ax.collections if isinstance(each, LineCollection)]
    assert sum(len(each.get_segments()) for each in lines) == graph.weights.nnz // 2
    counts = [np.count_nonzero(graph.edge_eps == eps) // 2 for eps in graph.eps]
    assert [len(each.get_segments()) for each in lines] == counts[::-1]
    assert len({to_rgb(each.get_color()[0]) for each in lines}) == 3


def test_the_legend_lists_every_eps_with_the_degree_up_to_it(graph):
    texts = [text.get_text() for text in plot_scales(graph).get_legend().get_texts()]
    assert len(texts) == 3
    assert texts[0].startswith(f"ε = {graph.eps[0]:.2g}")
    assert f"({graph.mean_degree:.1f} neighbors)" in texts[-1]
    assert plot_scales(graph, legend=False, title="scales").get_legend() is None


def test_other_graphs_are_refused(rng):
    with pytest.raises(TypeError, match="`graph` must be a MultiscaleGraph, got TransportGraph"):
        plot_scales(otgraph.quadratic_ot_graph(rng.normal(size=(30, 2))))


def test_potentials_of_a_mean_are_no_colors(graph):
    with pytest.raises(ValueError, match="a mean of several"):
        otgraph.plots.draw_graph(graph, color="potential")
