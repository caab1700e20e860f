"""What the page is made of, against the graphs themselves."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import otgraph
from otgraph.graphs.path import EpsPath
from otgraph.methods import perplexity
from otgraph.plots import explore
from otgraph.plots.colors import GROUPS, UNKNOWN
from otgraph.plots.explorer.eps import DENSEST, N_VALUES, SPARSEST, chosen_eps, curve_of
from otgraph.plots.explorer.figures import log_ticks
from otgraph.plots.explorer.rebuild import rebuilding
from otgraph.plots.explorer.scene import LEVELS, scene_of

N = 90


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(3).normal(size=(N, 4))


@pytest.fixture(scope="module")
def path(X):
    return otgraph.eps_path(X, [0.05, 0.5, 3.0])


def scene(path, **changes):
    settings = {
        "coordinates": None, "labels": None, "names": None,
        "max_points": 10**6, "max_edges": 10**6, "source": "POINTS",
    }  # fmt: skip
    settings |= {"layout": "pca", "columns": {}, "curve": {"text": ""}}
    return scene_of(list(path), **{**settings, **changes})


def drawn_pairs(shown, value):
    """Row numbers of the edges that the page would draw."""
    there = shown.strength[value] > 0
    i, j = shown.rows[shown.edge_i[there]], shown.rows[shown.edge_j[there]]
    return set(zip(i.tolist(), j.tolist(), strict=True))


def pairs_of(graph):
    edges = graph.edges()
    return set(zip(edges.i.tolist(), edges.j.tolist(), strict=True))


class TestScene:
    def test_every_edge_of_every_graph(self, path):
        shown = scene(path)
        for value, graph in enumerate(path):
            assert drawn_pairs(shown, value) == pairs_of(graph)

    def test_opacity_rises_with_weight(self, path):
        shown = scene(path)
        for value, graph in enumerate(path):
            weight = np.asarray(graph.weights[shown.edge_i, shown.edge_j]).ravel()
            level = shown.strength[value].astype(int)
            order = np.argsort(weight)
            assert np.all(np.diff(level[order]) >= 0)
            assert set(level[weight > 0]) <= set(range(1, LEVELS + 1))
            assert level.max() == LEVELS

    def test_quantities_of_the_points(self, path, X):
        shown = scene(path)
        for value, graph in enumerate(path):
            np.testing.assert_array_equal(shown.degree[value], graph.degrees)
            np.testing.assert_allclose(shown.potential[value], graph.potentials, rtol=1e-6)
            sizes = np.bincount(shown.component[value])
            assert len(sizes) == graph.n_connected
            assert np.all(np.diff(sizes) <= 0)
            for of in range(graph.n_connected):  # the same partition, other numbers
                assert len(set(graph.component_labels[shown.component[value] == of])) == 1

    def test_readings(self, path):
        for said, graph in zip(scene(path).values, path, strict=True):
            assert said["eps"] == graph.params["eps"]
            assert float(said["mean_degree"]) == pytest.approx(graph.mean_degree, abs=0.005)
            assert float(said["perplexity"]) == pytest.approx(perplexity(graph), abs=0.005)
            assert said["n_connected"] == graph.n_connected
            assert said["n_edges"] == said["n_drawn"] == len(graph.edges().i)
            assert said["status"] == graph.certificate.status
            assert said["histogram"].sum() == N
            low, high = graph.degrees.min(), graph.degrees.max()
            assert said["degree_range"] == f"{low} to {high}"
            assert said["bins"][0] < low <= high < said["bins"][-1]

    def test_first_shown_is_nearest_to_fifteen_neighbors(self, path):
        assert scene(path).start == np.argmin(np.abs(path.mean_degree - 15))

    def test_labels_and_names(self, path):
        labels = np.where(np.arange(N) % 2, "odd", "even").astype(object)
        labels[5] = None
        shown = scene(path, labels=labels, names=[f"p{k}" for k in range(N)])
        assert shown.columns[0]["names"] == ["even", "odd", "unknown"]
        assert shown.columns[0]["colors"] == [*GROUPS[:2], UNKNOWN]
        assert shown.texts[4:6] == ["row 4: p4 (even)", "row 5: p5 (unknown)"]
        few = scene(path, max_points=3)
        assert few.texts == [f"row {row}" for row in few.rows]

    def test_positions(self, path, X):
        shown = scene(path, coordinates=X[:, 2:])
        np.testing.assert_array_equal(np.stack([shown.x, shown.y], axis=1), X[:, 2:])


class TestThinning:
    def test_few_points(self, path):
        shown = scene(path, max_points=30)
        assert len(shown.x) == len(set(shown.rows)) == 30
        for value, graph in enumerate(path):
            between = {(i, j) for i, j in pairs_of(graph) if {i, j} <= set(shown.rows.tolist())}
            assert drawn_pairs(shown, value) == between
            np.testing.assert_array_equal(shown.degree[value], graph.degrees[shown.rows])

    def test_few_edges(self, path):
        shown = scene(path, max_edges=100)
        for value, graph in enumerate(path):
            drawn, there = drawn_pairs(shown, value), pairs_of(graph)
            assert drawn <= there
            assert len(drawn) == min(100, len(there))

    def test_the_same_edges_are_preferred_at_every_eps(self, path):
        """What a dense graph still draws, a sparse one that has it draws too: no flicker."""
        shown = scene(path, max_edges=60)
        for value in (0, 1):
            sparse, dense = pairs_of(path[value]), pairs_of(path[value + 1])
            assert len(sparse) > 60
            missing = (drawn_pairs(shown, value + 1) & sparse) - drawn_pairs(shown, value)
            assert len(missing) <= len(sparse - dense)

    def test_numbers_stay_those_of_the_whole(self, path):
        whole, thin = scene(path), scene(path, max_points=20, max_edges=5)
        for full, few in zip(whole.values, thin.values, strict=True):
            assert few["n_drawn"] <= 5
            for name in set(full) - {"n_drawn", "histogram", "bins"}:
                assert full[name] == few[name]
            np.testing.assert_array_equal(full["histogram"], few["histogram"])


class TestChosenEps:
    def test_from_sparse_to_dense(self):
        X = np.random.default_rng(0).normal(size=(300, 3))
        eps = chosen_eps(X, {})
        assert len(eps) == N_VALUES
        np.testing.assert_allclose(np.diff(np.log(eps)), np.log(eps[1] / eps[0]), rtol=0.05)
        ends = otgraph.eps_path(X, eps[[0, -1]]).mean_degree
        np.testing.assert_allclose(ends, [SPARSEST, DENSEST], rtol=0.1)
        assert all(len(f"{value:.3g}") >= len(repr(float(value))) - 2 for value in eps)

    @pytest.mark.parametrize("n", [2, 3, 10])
    def test_few_points(self, n):
        eps = chosen_eps(np.random.default_rng(0).normal(size=(n, 2)), {})
        assert len(eps) >= 1
        assert np.all(np.diff(eps) > 0)


class TestRebuilding:
    def test_only_what_differs_from_the_defaults(self, X):
        graph = otgraph.quadratic_ot_graph(X, eps=1.0)
        assert rebuilding(graph, "my file.csv --header") == {
            "python": "graph = otgraph.quadratic_ot_graph(X, eps=1.0)\ngraph.save('graph.otg')",
            "command": "otgraph graph my file.csv --header -o graph.otg --eps 1.0",
        }

    @pytest.mark.parametrize(
        "keywords",
        [
            {"metric": "cosine", "power": 1.0},
            {"normalize": False, "tol": 1e-8},
            {"self_loops": True, "random_state": 7, "search": "approximate"},
            {"metric": "manhattan", "mass": np.linspace(1, 2, N)},
        ],
    )
    def test_python_gives_the_same_graph_and_saves_it(self, X, keywords, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        graph = otgraph.quadratic_ot_graph(X, eps=1 / 3, **keywords)
        names = {"otgraph": otgraph, "X": X, "mass": keywords.get("mass")}
        exec(rebuilding(graph, "")["python"], names)
        assert (names["graph"].weights != graph.weights).nnz == 0
        differences = names["graph"].params.items() ^ graph.params.items()
        assert {name for name, _ in differences} <= {"connect"}  # which stands for no warning
        assert otgraph.load_graph("graph.otg").certificate.status is graph.certificate.status

    def test_options_of_the_command(self, X):
        graph = otgraph.quadratic_ot_graph(
            X, eps=2.0, normalize=False, self_loops=True, mass=np.full(N, 2.0)
        )
        words = shlex.split(rebuilding(graph, "x.csv")["command"])
        assert graph.n_connected > 1  # whoever sees that needs no warning
        options = ["--eps", "2.0", "--no-normalize", "--self-loops", "--no-connect"]
        assert words[-7:] == [*options, "--mass", "MASS"]

    def test_wanted_degree_is_rebuilt_by_its_eps(self, X):
        graph = otgraph.quadratic_ot_graph(X, mean_degree=6)
        assert "mean_degree" not in rebuilding(graph, "")["python"]
        assert repr(graph.params["eps"]) in rebuilding(graph, "")["python"]

    def test_function_as_metric(self, X):
        def city(a, b):
            return float(np.abs(a - b).sum())

        graph = otgraph.quadratic_ot_graph(X[:12], eps=1.0, metric=city)
        assert rebuilding(graph, "")["python"].startswith(
            "graph = otgraph.quadratic_ot_graph(X, eps=1.0, metric=city)\n"
        )


class TestExplore:
    def test_file_is_written_and_can_be_opened_by_the_page(self, path, tmp_path):
        page = explore(path, tmp_path / "page.html", title="Eps & <you>")
        text = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert Path(page).read_text(encoding="utf-8") == text == page.html
        assert os.fspath(page) == str(tmp_path / "page.html")
        assert "<title>Eps &amp; &lt;you&gt;</title>" in text
        assert os.listdir(tmp_path) == ["page.html"]

    def test_notebook(self, path):
        page = explore(path)
        assert page._repr_html_().startswith("<iframe srcdoc=")
        assert "not written" in repr(page)
        with pytest.raises(TypeError, match="pass `out`"):
            os.fspath(page)

    def test_points_and_their_keywords(self, X):
        page = explore(X, eps=[2.0, 0.5, 2.0], metric="cosine", source="cells.csv")
        assert "otgraph graph cells.csv -o graph.otg --eps 0.5 --metric cosine" in page.html
        assert "2 values of ε" in page.html

    def test_pieces_raise_no_warning(self, X):
        assert explore(np.vstack([X[:9], X[:9]]), eps=[1e-3]).html  # copies pair up

    def test_script_and_style_are_shipped(self):
        folder = resources.files("otgraph.plots.explorer")
        for name in ("explore.js", "explore.css", "page.html"):
            assert (folder / name).is_file()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"eps": [1.0]}, TypeError, "`eps` cannot be chosen for a finished path"),
            ({"metric": "cosine", "power": 1}, TypeError, "`metric`, `power` cannot be chosen"),
            ({"labels": [1, 2]}, ValueError, r"`labels` must hold one value per point"),
            ({"names": ["a"]}, ValueError, r"`names` must hold one value per point"),
            ({"coordinates": np.ones((3, 2))}, ValueError, r"shape \(90, 2\), got \(3, 2\)"),
            ({"max_points": 0}, ValueError, "`max_points` must be an integer >= 1"),
            ({"max_edges": 1.5}, TypeError, "`max_edges` must be an integer"),
            ({"out": "/nowhere/at/all.html"}, FileNotFoundError, "create it first"),
        ],
    )
    def test_bad_arguments(self, path, arguments, error, message):
        with pytest.raises(error, match=message):
            explore(path, **arguments)

    def test_without_bokeh(self, path, monkeypatch):
        monkeypatch.setitem(sys.modules, "bokeh", None)
        with pytest.raises(ImportError, match=r'pip install "otgraph\[plots\]"'):
            explore(path)

    def test_not_a_path(self, path, X):
        with pytest.raises(ValueError, match="got an empty path"):
            explore(EpsPath([]))
        with pytest.raises(TypeError, match="must hold quadratic optimal transport graphs"):
            explore(EpsPath([otgraph.knn_gaussian_graph(X, n_neighbors=3)]))
        with pytest.raises(TypeError, match="got one graph"):
            explore(path[0])
        with pytest.raises(ValueError, match="NaN"):
            explore(np.full((5, 2), np.nan))

    def test_costs_have_no_place(self, X):
        costs = np.abs(X[:20, :1] - X[:20, 0]) ** 2
        with pytest.raises(ValueError, match="Pass `coordinates`"):
            explore(costs, metric="precomputed", eps=[1.0])
        assert explore(costs, metric="precomputed", eps=[1.0], coordinates=X[:20, :2]).html


@pytest.mark.parametrize(
    ("low", "high"), [(0.2, 0.9), (0.003, 1.5), (1e-6, 1e6), (1.0, 1.0), (0.41, 0.44), (3, 60)]
)
def test_ticks_are_few_round_and_apart(low, high):
    ticks = log_ticks(low, high)
    assert 1 <= len(ticks) <= 5
    assert all(low <= tick <= high for tick in ticks)
    if len(ticks) > 1:  # no two are nearer than a tenth of the axis
        assert np.diff(np.log(ticks)).min() > 0.1 * np.log(high / low)


class TestCurve:
    def test_values_of_the_page_are_tried_as_well(self, path):
        curve = curve_of(list(path), "auto")
        found = otgraph.choose_eps(path[0].points)
        assert f"smallest at ε = {found.eps:.3g}" in curve["text"]
        assert len(curve["at"]) == len(curve["scores"]) >= len(path)
        assert np.all(np.diff(curve["at"]) > 0)

    def test_reason_where_there_is_none(self, path):
        assert curve_of([replace(path[0], points=None)], "auto") == {
            "text": "No curve of predictions: the graphs hold no points."
        }
        assert curve_of(list(path), None) == {"text": ""}
        with pytest.raises(TypeError, match="`choice` must come from `choose_eps`"):
            curve_of(list(path), 3.0)
