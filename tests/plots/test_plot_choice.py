from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import otgraph
from otgraph import datasets
from otgraph.plots import plot_choice


@pytest.fixture(scope="module")
def X():
    return datasets.noisy_manifold(200, intrinsic_dim=2).X


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_curve_and_choice(X, ax):
    choice = otgraph.choose_eps(X)
    assert plot_choice(choice, ax=ax, title="a choice") is ax
    curve, chosen = (
        next(line for line in ax.get_lines() if line.get_label() == name)
        for name in ("features", "chosen")
    )
    np.testing.assert_array_equal(curve.get_xdata(), choice.grid)
    np.testing.assert_array_equal(curve.get_ydata(), choice.scores)
    assert set(chosen.get_xdata()) == {choice.eps}
    (band,) = ax.collections
    top = (choice.scores + 2 * choice.standard_errors).max()
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(top)
    assert [text.get_text() for text in ax.texts] == [f"ε = {choice.eps:.3g}"]
    assert (ax.get_xscale(), ax.get_title()) == ("log", "a choice")


def test_graph_that_keeps_its_choice(X, ax):
    plot_choice(otgraph.quadratic_ot_graph(X, "auto"), ax=ax)
    curve = next(line for line in ax.get_lines() if line.get_label() == "features")
    np.testing.assert_array_equal(curve.get_ydata(), otgraph.choose_eps(X).scores)


def test_doubt_is_written_down(X, ax):
    plot_choice(otgraph.choose_eps(X, eps=[0.01, 0.1]), ax=ax)
    assert any("not to be trusted" in text.get_text() for text in ax.texts)


def test_nothing_to_plot(X):
    with pytest.raises(TypeError, match=r"must come from `otgraph\.choose_eps`"):
        plot_choice([1.0, 2.0])
    with pytest.raises(ValueError, match="hold no choice of eps"):
        plot_choice(otgraph.quadratic_ot_graph(X, 1.0))
