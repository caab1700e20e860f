"""Curves over the eps of a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import otgraph
from otgraph.graphs.path import EpsPath
from otgraph.methods import perplexity
from otgraph.plots import plot_path
from otgraph.solvers import Status

EPS = [10.0, 0.01, 1.0, 0.1]


@pytest.fixture(scope="module")
def path():
    return otgraph.eps_path(np.random.default_rng(1).normal(size=(80, 2)), EPS)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_curves_hold_what_the_graphs_say(path, ax):
    assert plot_path(path, ax=ax, title="a path") is ax
    curves = {line.get_label(): line for line in ax.get_lines()}
    order = np.argsort(EPS)
    assert set(curves) == {"mean degree", "perplexity", "components"}
    for line in curves.values():
        np.testing.assert_array_equal(line.get_xdata(), np.sort(EPS))
    np.testing.assert_allclose(curves["mean degree"].get_ydata(), path.mean_degree[order])
    np.testing.assert_allclose(curves["components"].get_ydata(), path.n_connected[order])
    np.testing.assert_allclose(
        curves["perplexity"].get_ydata(), [perplexity(path[k]) for k in order]
    )
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_title()) == ("log", "log", "a path")


def test_lines_differ_in_more_than_color(path, ax):
    plot_path(path, ax=ax)
    assert len({line.get_linestyle() for line in ax.get_lines()}) == 3
    assert len({line.get_marker() for line in ax.get_lines()}) == 3


def test_band_holds_nine_degrees_in_ten(path, ax):
    plot_path(path, ax=ax)
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == min(np.quantile(g.degrees, 0.05) for g in path)
    assert heights.max() == max(np.quantile(g.degrees, 0.95) for g in path)


def test_perplexity_of_known_rows():
    ring = otgraph.Graph.from_weights(
        np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
    )
    assert perplexity(ring) == pytest.approx(2.0)
    uneven = otgraph.Graph.from_weights([[0, 3, 1], [3, 0, 0], [1, 0, 0]])
    row = 0.25 * np.log(4) + 0.75 * np.log(4 / 3)
    assert perplexity(uneven) == pytest.approx((np.exp(row) + 2) / 3)


def test_what_did_not_converge_is_marked(path, ax):
    failed = replace(path[1].certificate, status=Status.NOT_CONVERGED)
    graphs = [replace(path[1], certificate=failed), path[2]]
    plot_path(EpsPath(graphs), ax=ax)
    (mark,) = [line for line in ax.get_lines() if line.get_label() == "not converged"]
    np.testing.assert_allclose(mark.get_xydata(), [[0.01, path[1].mean_degree]])
    assert mark.get_marker() == "x"


@pytest.mark.parametrize("wrong", [[1, 2], EpsPath([]), None])
def test_not_a_path(wrong):
    with pytest.raises(TypeError, match="`path` must be a path of graphs"):
        plot_path(wrong)
