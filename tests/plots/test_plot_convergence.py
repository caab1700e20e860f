"""The error of every Newton step, drawn from certificates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import otgraph
from otgraph.plots import plot_convergence
from otgraph.solvers import Certificate, Status

CERTIFICATE = Certificate(
    Status.EXACT, 1e-8, 1e-9, 10, 0, 4, 0.5,
    history=((1.0, 0.1), (0.1, 0.01), (2.0, 0.5, 1e-8)),
)  # fmt: skip


@pytest.fixture(scope="module")
def graph():
    return otgraph.quadratic_ot_graph(np.random.default_rng(1).normal(size=(60, 2)), eps=0.5)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_line_breaks_where_the_problem_changed_and_only_there(ax):
    assert plot_convergence(CERTIFICATE, ax=ax) is ax
    (line,) = ax.get_lines()
    steps, errors = line.get_xydata().T
    np.testing.assert_array_equal(steps, [0, 1, 1, 2, np.nan, 2, 3, 4])
    np.testing.assert_array_equal(errors, [1.0, 0.1, 0.1, 0.01, np.nan, 2.0, 0.5, 1e-8])
    assert ax.get_yscale() == "log"


def test_graph_ends_at_its_error_below_the_tolerance(graph, ax):
    plot_convergence(graph, ax=ax, title="down")
    line, tolerance = ax.get_lines()
    assert line.get_xdata()[-1] == graph.certificate.n_steps
    assert line.get_ydata()[-1] == max(graph.certificate.marginal_error, 1e-17)
    assert set(tolerance.get_ydata()) == {graph.params["tol"]}
    assert ax.get_title() == "down"
    assert ax.get_legend() is None


def test_several_have_a_legend(graph, ax):
    plot_convergence({"one": graph, "two": CERTIFICATE}, ax=ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one", "two"]
    one, two = ax.get_lines()[:2]
    assert one.get_color() != two.get_color()
    assert one.get_linestyle() != two.get_linestyle()


def test_path_and_entropic(rng, ax):
    X = rng.normal(size=(40, 2))
    path = otgraph.eps_path(X, [0.1, 1.0])
    plot_convergence([*path, otgraph.entropic_ot_graph(X, eps=0.5)], ax=ax)
    names = [t.get_text() for t in ax.get_legend().get_texts()]
    assert names == ["quadratic OT, ε = 0.1", "quadratic OT, ε = 1", "entropic OT, ε = 0.5"]


def test_cross_where_the_tolerance_was_not_reached(ax):
    plot_convergence(replace(CERTIFICATE, status=Status.NOT_CONVERGED), ax=ax)
    cross = ax.get_lines()[1]
    assert cross.get_marker() == "x"
    np.testing.assert_array_equal(cross.get_xydata(), [[4, 1e-8]])


def test_zero_error_stays_visible(ax):
    plot_convergence(replace(CERTIFICATE, history=((1.0, 0.0),)), ax=ax)
    assert ax.get_lines()[0].get_ydata()[-1] > 0.0


def test_bad_input(rng):
    kernel = otgraph.knn_gaussian_graph(rng.normal(size=(10, 2)), n_neighbors=3)
    with pytest.raises(TypeError, match="must be optimal transport graphs"):
        plot_convergence(kernel)
    with pytest.raises(ValueError, match="holds no history"):
        plot_convergence(replace(CERTIFICATE, history=()))
