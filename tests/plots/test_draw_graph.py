"""Pictures of graphs: what is drawn, where, and how strongly."""

from __future__ import annotations

import io
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

import otgraph
from otgraph.plots import draw_graph, layout
from otgraph.plots._density import (
    COVERED_BY_LINES,
    COVERED_BY_POINTS,
    DENSEST_QUANTILE,
    LEAST_COVERED,
    STRENGTH_RANGE,
)
from otgraph.plots._pixel_lines import PixelLines
from otgraph.plots.colors import GROUPS, UNKNOWN
from otgraph.plots.graph import MAX_VECTOR_EDGES, _edges, draw_lines

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])


@pytest.fixture
def ring():
    """Four points in a circle, weights 1, 2, 3, 4, and a self-loop."""
    W = np.zeros((4, 4))
    for i in range(4):
        W[i, (i + 1) % 4] = W[(i + 1) % 4, i] = i + 1
    W[2, 2] = 9.0
    return sp.csr_array(W)


@pytest.fixture
def ax():
    return Figure().add_subplot()


def lines_of(ax):
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    return lines


def points_of(ax):
    (points,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    return points


def test_every_edge_once_between_its_points(ring, ax):
    draw_graph(ring, SQUARE, ax=ax)
    drawn = {frozenset(map(tuple, segment)) for segment in lines_of(ax).get_segments()}
    expected = {frozenset({tuple(SQUARE[i]), tuple(SQUARE[(i + 1) % 4])}) for i in range(4)}
    assert len(lines_of(ax).get_segments()) == 4
    assert drawn == expected
    np.testing.assert_array_equal(points_of(ax).get_offsets(), SQUARE)


def test_opacity_follows_weight_and_strong_edges_lie_on_top(ring, ax):
    draw_graph(ring, SQUARE, ax=ax, edge_strength=0.5)
    alpha = lines_of(ax).get_colors()[:, 3]
    full = np.quantile([1, 2, 3, 4], 0.95)
    np.testing.assert_allclose(alpha, 0.5 * np.minimum(np.array([1, 2, 3, 4]) / full, 1))


def test_one_heavy_edge_does_not_hide_the_others(ax):
    n = 100
    W = sp.diags_array(np.ones(n - 1), offsets=1, format="lil")
    W[0, 1] = 1e9
    W = W.tocsr()
    draw_graph(W + W.T, np.column_stack([np.arange(n), np.zeros(n)]), ax=ax, edge_strength=0.4)
    np.testing.assert_allclose(lines_of(ax).get_colors()[:, 3], 0.4)


def test_stored_zeros_are_not_edges(ring, ax):
    ring.data[:] = np.where(ring.data == 1, 0, ring.data)
    draw_graph(ring, SQUARE, ax=ax)
    assert len(lines_of(ax).get_segments()) == 3


def test_graph_without_edges(ax):
    draw_graph(sp.csr_array((4, 4)), SQUARE, ax=ax)
    assert len(lines_of(ax).get_segments()) == 0


def test_many_edges_are_all_there_and_become_pixels(rng, ax):
    n = 5000
    i, j = rng.integers(0, n, (2, 50_000))
    W = sp.coo_array((rng.random(len(i)), (i, j)), shape=(n, n)).tocsr()
    W = W + W.T
    draw_graph(W, rng.standard_normal((n, 2)), ax=ax)
    n_edges = sp.triu(W, 1).nnz
    assert n_edges > MAX_VECTOR_EDGES
    (lines,) = [artist for artist in ax.artists if isinstance(artist, PixelLines)]
    assert len(lines.i) == len(lines.j) == n_edges
    assert lines.get_rasterized()
    ax.figure.savefig(file := io.BytesIO(), format="svg")
    assert b"<image" in file.getvalue()


@pytest.mark.parametrize("window", [(0.0, 1.0), (0.4, 0.6)])
def test_pixels_look_like_lines(rng, window):
    """Both ways to draw give the same picture, up to how the ends of lines are rounded."""
    n = 40
    i, j = rng.integers(0, n, (2, 150))
    W = sp.coo_array((rng.random(len(i)), (i, j)), shape=(n, n)).tocsr()
    positions, edges = rng.random((n, 2)), _edges(W + W.T)

    def drawn(most):
        figure = Figure(figsize=(3, 3), dpi=100)
        ax = figure.add_subplot(xlim=window, ylim=window)
        draw_lines(ax, positions, edges, "k", 2.0, most)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.asarray(canvas.buffer_rgba()).astype(float)[:, :, :3]

    lines, pixels = drawn(len(edges.i)), drawn(0)
    ink = np.abs(lines - 255).mean()
    assert ink > 5  # there is something to see
    assert np.abs(lines - pixels).mean() < 0.1 * ink
    assert np.abs(lines - pixels[::-1]).mean() > 0.5 * ink  # a mirror image would be noticed


class TestPositions:
    def test_first_two_principal_components(self, ring, ax, rng):
        X = np.zeros((4, 10))
        X[:, [7, 3]] = SQUARE * [1.0, 3.0] + 5.0  # wide along dimension 3, then along 7
        draw_graph(ring, X=X, ax=ax)
        drawn = points_of(ax).get_offsets()
        np.testing.assert_allclose(abs(drawn[:, 0]), 1.5, atol=1e-12)
        np.testing.assert_allclose(abs(drawn[:, 1]), 0.5, atol=1e-12)

    def test_planar_points_stay(self, ring, ax):
        draw_graph(ring, X=SQUARE, ax=ax)
        np.testing.assert_array_equal(points_of(ax).get_offsets(), SQUARE)

    def test_points_as_a_list(self, ring, ax):
        draw_graph(ring, X=SQUARE.tolist(), ax=ax)
        np.testing.assert_array_equal(points_of(ax).get_offsets(), SQUARE)

    def test_points_on_a_line(self, ring, ax):
        draw_graph(ring, X=np.arange(4.0)[:, None], ax=ax)
        np.testing.assert_array_equal(points_of(ax).get_offsets()[:, 1], np.zeros(4))

    def test_graph_object_with_its_own_points(self, ring, ax):
        draw_graph(SimpleNamespace(weights=ring, points=SQUARE), ax=ax)
        np.testing.assert_array_equal(points_of(ax).get_offsets(), SQUARE)

    def test_sparse_points(self, ring, ax, rng):
        X = rng.standard_normal((4, 6))
        draw_graph(ring, X=X, ax=ax)
        draw_graph(ring, X=sp.csr_array(X), ax=(other := Figure().add_subplot()))
        np.testing.assert_allclose(
            abs(points_of(ax).get_offsets()), abs(points_of(other).get_offsets()), atol=1e-10
        )

    def test_no_points_at_all(self, ring):
        with pytest.raises(ValueError, match="Pass `coordinates`, or the points as `X`"):
            draw_graph(ring)

    def test_wrong_number_of_points(self, ring):
        with pytest.raises(ValueError, match=r"`coordinates` must have shape \(4, 2\)"):
            draw_graph(ring, SQUARE[:3])
        with pytest.raises(ValueError, match="`X` must hold the 4 points of the graph, got 3"):
            draw_graph(ring, X=SQUARE[:3])

    def test_coordinates_that_are_not_finite(self, ring):
        with pytest.raises(ValueError, match=r"must be finite, got .* in row 2"):
            draw_graph(ring, [[0, 0], [1, 1], [np.nan, 0], [2, 2]])

    def test_not_a_graph(self):
        with pytest.raises(TypeError, match="must be a Graph or a square scipy sparse matrix"):
            draw_graph(np.eye(4), SQUARE)
        with pytest.raises(TypeError, match=r"of shape \(4, 3\)"):
            draw_graph(sp.csr_array((4, 3)), SQUARE)


class TestColors:
    def test_labels(self, ring, ax):
        draw_graph(ring, SQUARE, labels=[1, -1, 0, 1], ax=ax)
        expected = [GROUPS[1], UNKNOWN, GROUPS[0], GROUPS[1]]
        np.testing.assert_allclose(points_of(ax).get_facecolor(), [to_rgba(c) for c in expected])

    def test_names_as_labels(self, ring, ax):
        draw_graph(ring, SQUARE, labels=["b", "a", "a", "b"], ax=ax)
        colors = points_of(ax).get_facecolor()
        np.testing.assert_allclose(colors[1], to_rgba(GROUPS[0]))
        np.testing.assert_allclose(colors[3], to_rgba(GROUPS[1]))

    def test_more_groups_than_colors_stay_distinct(self, ax):
        n = len(GROUPS) + 3
        draw_graph(sp.csr_array((n, n)), np.zeros((n, 2)), labels=np.arange(n), ax=ax)
        assert len(np.unique(points_of(ax).get_facecolor(), axis=0)) == n

    def test_degree(self, ax):
        star = np.zeros((4, 4))
        star[0, 1:] = star[1:, 0] = 1
        star[1, 1] = 1  # a self-loop is no neighbor
        draw_graph(sp.csr_array(star), SQUARE, color="degree", ax=ax)
        colors = points_of(ax).get_facecolor()
        np.testing.assert_allclose(colors[0], mpl.colormaps["viridis"](1.0))
        np.testing.assert_allclose(colors[1:], np.tile(mpl.colormaps["viridis"](0.0), (3, 1)))

    def test_potential(self, ax, rng):
        graph = otgraph.quadratic_ot_graph(rng.normal(size=(30, 2)), eps=1.0)
        draw_graph(graph, color="potential", ax=ax)
        u = graph.potentials
        expected = mpl.colormaps["viridis"]((u - u.min()) / (u.max() - u.min()))
        np.testing.assert_allclose(points_of(ax).get_facecolor(), expected)
        (bar,) = ax.child_axes
        assert bar.get_ylabel() == "potential"
        np.testing.assert_allclose(bar.get_ylim(), [u.min(), u.max()])

    def test_potential_of_a_kernel(self, ring):
        with pytest.raises(ValueError, match="needs a graph with potentials"):
            draw_graph(ring, SQUARE, color="potential")

    def test_components_by_size(self, ax):
        W = sp.csr_array((3 + 2 * len(GROUPS), 3 + 2 * len(GROUPS)), dtype=float).tolil()
        W[-3, -2] = W[-2, -3] = W[-2, -1] = W[-1, -2] = 1.0  # the last three are the largest
        draw_graph(W.tocsr(), np.zeros((W.shape[0], 2)), color="component", ax=ax)
        colors = points_of(ax).get_facecolor()
        np.testing.assert_allclose(colors[-3:], np.tile(to_rgba(GROUPS[0]), (3, 1)))
        assert (colors == to_rgba(UNKNOWN)).all(axis=1).sum() == len(GROUPS) + 1
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names[0] == "component 1: 3"
        assert names[-1] == f"{len(GROUPS) + 1} smaller: {len(GROUPS) + 1}"

    def test_numbers_that_are_missing_are_gray(self, ring, ax):
        draw_graph(ring, SQUARE, color=[0.0, np.nan, 1.0, 2.0], ax=ax)
        np.testing.assert_allclose(points_of(ax).get_facecolor()[1], to_rgba(UNKNOWN))
        np.testing.assert_allclose(points_of(ax).get_facecolor()[3], mpl.colormaps["viridis"](1.0))

    def test_legend_names_the_groups(self, ring, ax):
        draw_graph(ring, SQUARE, labels=["b", "a", "a", "b"], ax=ax)
        legend = ax.get_legend()
        assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
        assert [h.get_color() for h in legend.legend_handles] == list(GROUPS[:2])
        draw_graph(
            ring, SQUARE, labels=[0, 0, 1, 1], legend=False, ax=(other := Figure().subplots())
        )
        assert other.get_legend() is None

    def test_one_color(self, ring, ax):
        draw_graph(ring, SQUARE, color=(0.1, 0.2, 0.3), ax=ax)
        np.testing.assert_allclose(points_of(ax).get_facecolor()[2], [0.1, 0.2, 0.3, 1.0])

    def test_wrong_length(self, ring):
        with pytest.raises(ValueError, match="`color` must hold one value per point"):
            draw_graph(ring, SQUARE, color=[1.0, 2.0])

    def test_labels_and_color(self, ring):
        with pytest.raises(ValueError, match="pass one of them"):
            draw_graph(ring, SQUARE, labels=[0, 0, 1, 1], color="red")


class TestDensity:
    """Edges recede and points stand out, however many there are."""

    @staticmethod
    def lines_alone(rng, n, degree):
        """Opacity of the lines in every pixel."""
        positions = rng.random((n, 2))
        i, j = rng.integers(0, n, (2, n * degree))
        W = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
        figure = Figure(figsize=(4, 4), dpi=60)
        ax = figure.add_axes((0, 0, 1, 1))
        draw_graph(W + W.T, positions, ax=ax, edge_color="k", point_size=0)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return 1 - np.asarray(canvas.buffer_rgba())[:, :, 0] / 255

    @pytest.mark.parametrize(("n", "degree"), [(300, 20), (2000, 10), (5000, 40)])
    def test_paper_shines_through_the_densest_lines(self, rng, n, degree):
        """The densest quarter of the picture has the opacity that the module promises."""
        opacity = self.lines_alone(rng, n, degree)
        cells = opacity.reshape(48, 5, 48, 5).mean(axis=(1, 3))
        densest = np.quantile(cells[cells > 0], DENSEST_QUANTILE)
        assert densest == pytest.approx(COVERED_BY_LINES, rel=0.35)  # each line is rounded

    def test_a_few_lines_are_strong(self, ring, ax):
        draw_graph(ring, SQUARE, ax=ax)
        assert lines_of(ax).get_colors()[:, 3].max() == pytest.approx(STRENGTH_RANGE[1])

    @pytest.mark.parametrize("n", [200, 2000, 20_000])
    def test_points_cover_a_share_of_where_they_lie(self, rng, n):
        positions = rng.random((n, 2))
        ax = Figure(figsize=(5, 5)).add_axes((0, 0, 1, 1))
        draw_graph(sp.csr_array((n, n)), positions, ax=ax)
        covered = points_of(ax).get_sizes()[0] * n / (5 * 72) ** 2
        # Fewer than 200 have the largest size; all others cover the share, where cells are full.
        assert min(COVERED_BY_POINTS, 24 * n / 360**2) * 0.9 < covered < 1.1 * COVERED_BY_POINTS

    def test_points_in_two_places_are_seen(self, rng):
        ax = Figure(figsize=(5, 5)).add_axes((0, 0, 1, 1))
        positions = np.repeat([[0.0, 0.0], [1.0, 1.0]], 1000, axis=0)
        positions += 1e-3 * rng.random((2000, 2))
        draw_graph(sp.csr_array((2000, 2000)), positions, ax=ax)
        assert points_of(ax).get_sizes()[0] * 2000 > 0.9 * LEAST_COVERED * (5 * 72) ** 2


class TestLayout:
    def test_graph_without_points(self, ring, ax):
        draw_graph(ring, layout="spectral", ax=ax)
        np.testing.assert_array_equal(points_of(ax).get_offsets(), layout(ring, "spectral"))

    def test_unknown(self, ring):
        with pytest.raises(ValueError, match=r"`layout` must be one of 'pca', 'force'"):
            draw_graph(ring, layout="tsne", X=SQUARE)


class TestNames:
    """What colors show is written beside them, and text from data is only text."""

    def bar(self, ax):
        (bar,) = ax.child_axes
        return bar.get_ylabel()

    def test_color_bar(self, ring, ax):
        draw_graph(ring, SQUARE, color=[1.0, 2.0, 3.0, 4.0], color_label="CD3D", ax=ax)
        assert self.bar(ax) == "CD3D"

    def test_column_brings_its_name(self, ring, ax):
        draw_graph(ring, SQUARE, color=pd.Series([1.0, 2.0, 3.0, 4.0], name="depth"), ax=ax)
        assert self.bar(ax) == "depth"

    def test_legend_has_a_title(self, ring, ax):
        draw_graph(ring, SQUARE, labels=pd.Series(list("abab"), name="type"), ax=ax)
        assert ax.get_legend().get_title().get_text() == "type"

    @pytest.mark.parametrize("legend", ["right", "on data"])
    def test_hostile_text_is_drawn_as_it_is(self, ring, legend):
        names = [r"$\frac{1}$", "$x$ and $y", "\ud800half", "line\nbreak\x07"]
        figure = Figure()
        ax = figure.add_subplot(1, 2, 1)
        draw_graph(ring, SQUARE, labels=names, color_label=names[0], legend=legend, ax=ax)
        other = figure.add_subplot(1, 2, 2)
        draw_graph(ring, SQUARE, color=[1, 2, 3, 4], color_label=names[0], ax=other)
        figure.savefig(io.BytesIO(), format="svg")  # mathematics would not parse
        texts = ax.texts if legend == "on data" else ax.get_legend().get_texts()
        assert {text.get_text() for text in texts} == {*names[:2], "\ufffdhalf", "line break "}


class TestManyGroups:
    @pytest.mark.parametrize("n", [11, 28, 100])
    def test_legend_fits_beside_the_axes(self, rng, n):
        labels = [f"group {k}" for k in range(n)]
        ax = draw_graph(sp.csr_array((n, n)), rng.random((n, 2)), labels=labels)
        ax.figure.draw_without_rendering()
        legend = ax.get_legend()
        box, figure = legend.get_window_extent(), ax.figure.bbox
        assert [text.get_text() for text in legend.get_texts()] == sorted(labels)
        assert figure.y0 <= box.y0
        assert box.y1 <= figure.y1
        assert box.x1 <= figure.x1 + 1
        assert ax.get_window_extent().width > 4 * ax.figure.dpi  # the picture keeps its size
        plt.close(ax.figure)

    def test_more_than_a_hundred_are_counted(self, rng):
        ax = Figure().add_subplot()
        draw_graph(sp.csr_array((120, 120)), rng.random((120, 2)), labels=np.arange(120), ax=ax)
        assert ax.get_legend().get_texts()[-1].get_text() == "and 20 more"

    def test_names_on_the_data_lie_in_their_groups(self, ax):
        positions = np.array([[0, 0], [0.1, 0], [0, 0.1], [5, 5], [5.1, 5], [9, 0]], dtype=float)
        labels = ["a", "a", "a", "b", "b", None]
        draw_graph(sp.csr_array((6, 6)), positions, labels=labels, legend="on data", ax=ax)
        places = {text.get_text(): text.get_position() for text in ax.texts}
        assert set(places) == {"a", "b"}
        assert places["a"] == (0.0, 0.0)
        assert places["b"] in [(5.0, 5.0), (5.1, 5.0)]
        assert ax.get_legend() is None

    def test_unknown_place(self, ring):
        with pytest.raises(ValueError, match="`legend` must be True, False"):
            draw_graph(ring, SQUARE, legend="left", ax=Figure().add_subplot())


class TestZoom:
    def test_inset_shows_the_window_and_only_its_edges(self, ring, ax):
        draw_graph(ring, SQUARE, ax=ax, zoom=(-0.1, 0.1, -0.1, 0.1))
        (inset,) = ax.child_axes
        assert inset.get_xlim() == (-0.1, 0.1)
        assert inset.get_ylim() == (-0.1, 0.1)
        assert len(lines_of(inset).get_segments()) == 2

    def test_edge_across_the_window_without_an_end_in_it(self, ax):
        W = sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
        draw_graph(W, [[0.0, 0.0], [1.0, 1.0]], ax=ax, zoom=(0.4, 0.6, 0.4, 0.6))
        assert len(lines_of(ax.child_axes[0]).get_segments()) == 1


def test_new_figure_when_no_axes_are_given(ring, tmp_path):
    ax = draw_graph(ring, SQUARE, title="ring")
    assert ax.get_title() == "ring"
    ax.figure.savefig(tmp_path / "ring.png")
    assert (tmp_path / "ring.png").stat().st_size > 0
    plt.close(ax.figure)
