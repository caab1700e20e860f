"""Points at the coordinates of an embedding, colored by groups or numbers."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import otgraph
from otgraph.plots import plot_embedding
from otgraph.plots.colors import GROUPS, UNKNOWN


@pytest.fixture
def coordinates(rng):
    return rng.normal(size=(7, 3))


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_points_of_the_chosen_columns(coordinates, ax):
    assert plot_embedding(coordinates, components=(2, 0), ax=ax) is ax
    (points,) = ax.collections
    np.testing.assert_array_equal(points.get_offsets(), coordinates[:, [2, 0]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coordinate 3", "coordinate 1")


def test_embedding_names_its_eigenvalues(rng, ax):
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(50, 2)), eps=2.0)
    embedding = otgraph.eigenmaps(graph)
    plot_embedding(embedding, ax=ax, title="moons")
    (points,) = ax.collections
    np.testing.assert_array_equal(points.get_offsets(), embedding.coordinates)
    assert ax.get_xlabel() == f"eigenvector 1 (λ = {embedding.eigenvalues[0]:.4g})"
    assert ax.get_title() == "moons"


def test_groups(coordinates, ax):
    plot_embedding(coordinates, labels=[0, 1, 1, -1, 0, 0, 1], ax=ax)
    colors = ax.collections[0].get_facecolor()
    np.testing.assert_allclose(colors[:4], [to_rgba(c) for c in (*GROUPS[:2], GROUPS[1], UNKNOWN)])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1", "unknown"]


def test_missing_names_are_unknown(coordinates, ax):
    plot_embedding(coordinates, labels=["b", None, "a", np.nan, "a", "a", "b"], ax=ax)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "unknown"]
    colors = ax.collections[0].get_facecolor()
    expected = [to_rgba(c) for c in (GROUPS[1], UNKNOWN, UNKNOWN)]
    np.testing.assert_allclose(colors[[0, 1, 3]], expected)


def test_numbers_and_their_bar(coordinates, ax):
    plot_embedding(coordinates, color=np.arange(7), color_label="time", cmap="cividis", ax=ax)
    colors = ax.collections[0].get_facecolor()
    np.testing.assert_allclose(colors, mpl.colormaps["cividis"](np.arange(7) / 6))
    (bar,) = ax.child_axes
    assert bar.get_ylim() == (0.0, 6.0)
    assert bar.get_ylabel() == "time"


def test_no_legend_where_none_is_wanted(coordinates, ax):
    plot_embedding(coordinates, color=np.arange(7), legend=False, ax=ax)
    assert not ax.child_axes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedding": np.arange(4.0)}, r"at least two columns, got shape \(4,\)"),
        ({"embedding": np.ones((4, 1))}, r"at least two columns, got shape \(4, 1\)"),
        ({"embedding": np.ones((4, 2)), "components": (0, 2)}, "two columns among 0..1"),
        ({"embedding": np.ones((4, 2)), "labels": [1, 2]}, r"shape \(4,\), got shape \(2,\)"),
        ({"embedding": np.ones((4, 2)), "color": "degree"}, "needs a graph"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        plot_embedding(**arguments)


def ring(n=100):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


class TestView:
    """Scales are equal, all points are inside, and what would be one dot is shown enlarged."""

    @pytest.mark.parametrize("stretch", [(1, 1), (1, 50), (50, 1), (1, 0), (0, 0)])
    def test_scales_are_equal_and_points_inside(self, stretch, ax):
        plot_embedding(ring() * stretch, ax=ax)
        assert ax.get_aspect() == 1.0
        for limits, reach in zip((ax.get_xlim(), ax.get_ylim()), stretch, strict=True):
            assert limits[0] < -reach
            assert limits[1] > reach
        width, height = np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim())
        assert 1 / 3 < width / height < 3

    def test_a_circle_has_no_enlarged_part(self, ax):
        plot_embedding(ring(), ax=ax)
        assert not ax.child_axes

    def crowd(self):
        """Most points in a small circle, and two far groups."""
        far = np.repeat([[50.0, 0.0], [0.0, 80.0]], 10, axis=0)
        return np.concatenate([ring(), far])

    def test_the_dot_is_enlarged_where_there_are_no_points(self, ax):
        points = self.crowd()
        plot_embedding(points, ax=ax)
        (inset,) = ax.child_axes
        assert inset.get_xlim()[0] < -1 < 1 < inset.get_xlim()[1] < 5
        assert inset.get_ylim()[0] < -1 < 1 < inset.get_ylim()[1] < 5
        ax.figure.draw_without_rendering()
        pixels = ax.transData.transform(points)
        assert not inset.get_window_extent().contains(*pixels.T[:, 0])
        assert not any(inset.get_window_extent().contains(x, y) for x, y in pixels)

    def test_only_where_wanted(self, ax):
        plot_embedding(self.crowd(), zoom=None, ax=ax)
        assert not ax.child_axes
        plot_embedding(self.crowd(), zoom=(49.0, 51.0, -1.0, 1.0), ax=ax)
        (inset,) = ax.child_axes
        assert inset.get_xlim() == (49.0, 51.0)

    def test_no_place_no_enlarged_part(self, ax):
        corners = np.repeat([[0.0, 0.0], [0.0, 90.0], [90.0, 0.0], [90.0, 90.0]], 10, axis=0)
        plot_embedding(np.concatenate([ring() + 45, corners]), ax=ax)
        assert not ax.child_axes
