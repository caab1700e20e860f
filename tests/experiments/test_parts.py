"""Statistics, grids and figures that the experiments share, and the page."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure

import otgraph
from otgraph.exceptions import ExperimentError
from otgraph.experiments import laplace
from otgraph.experiments._framework.experiment import Verdict
from otgraph.experiments._framework.figures import (
    AROUND,
    aligned,
    cyclic_colors,
    equal_ink,
    heat_map,
)
from otgraph.experiments._framework.methods import KNN, METHOD_STYLES, knn_gaussian_path, log_grid
from otgraph.experiments._framework.report import as_json
from otgraph.experiments._framework.statistics import (
    at_best,
    best_of,
    best_per_seed,
    circle_variations,
    judged_lead,
    paired_sentence,
    share_within,
    spread,
    table_of_best,
)

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page():
    spec = importlib.util.spec_from_file_location("page", DOCS / "make_reproduction.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def scores():
    """Two seeds, two methods; method b has no eps."""
    rows = [
        (0, "a", 0.1, "error", 3.0), (0, "a", 1.0, "error", 1.0), (0, "a", 0.1, "size", 30.0),
        (0, "a", 1.0, "size", 10.0), (1, "a", 0.1, "error", 2.0), (1, "a", 1.0, "error", 4.0),
        (1, "a", 0.1, "size", 20.0), (1, "a", 1.0, "size", 40.0), (0, "b", np.nan, "error", 5.0),
        (1, "b", np.nan, "error", 7.0),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["seed", "method", "eps", "score", "value"])
    return frame.assign(experiment="toy", variant="text")


def test_best_of_each_seed(scores):
    best = best_per_seed(scores, "error", largest=False)
    assert best["value"].tolist() == [1.0, 2.0, 5.0, 7.0]
    a, b = table_of_best(best)
    assert (a["mean"], a["std"]) == (1.5, pytest.approx(np.sqrt(0.5)))
    assert a["best at"] == {"eps": [1.0, 0.1]}
    assert b["best at"] == {}
    found = best_of(scores, "error", "a", largest=False, seed=1)
    assert (found.value, found.params) == (2.0, {"eps": 0.1})
    assert str(found) == "ε = 0.1"


def test_other_score_at_the_best_parameters(scores):
    np.testing.assert_array_equal(at_best(scores, "a", "error", "size", largest=False), [10, 20])
    np.testing.assert_array_equal(at_best(scores, "b", "error", "error", largest=False), [5, 7])


def test_leads_are_judged_with_their_reason():
    assert judged_lead([0.1, 0.2]) == (Verdict.CONFIRMED, "ahead in 2 of 2 seeds.")
    verdict, reason = judged_lead([0.1, -0.1, 0.02])
    assert verdict is Verdict.TIE
    assert reason == "ahead in 2 of 3 seeds, and the mean lead 0.00667 is within its spread 0.1."
    assert judged_lead([-0.2, -0.3, -0.25])[0] is Verdict.NOT_CONFIRMED
    assert judged_lead([0.3, 0.3, 0.3, 0.3, -0.01])[0] is Verdict.CONFIRMED


def test_share_of_weight_within():
    weights = np.array([[9, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 4], [0, 0, 4, 0]], dtype=float)
    graph = otgraph.Graph.from_weights(sp.csr_matrix(weights))
    # The first two send 1 to each other, both ways, and 2 away; the loop is no edge.
    assert share_within(graph, np.array([True, True, False, False])) == pytest.approx(2 / 4)
    assert share_within(graph, np.ones(4, dtype=bool)) == 1.0


def test_alignment_undoes_turns_and_mirrors(rng):
    X = rng.standard_normal((30, 2))
    turned = X @ np.array([[0.6, 0.8], [0.8, -0.6]])
    np.testing.assert_allclose(aligned(turned, X), X, atol=1e-12)


def test_equal_ink_for_graphs_of_different_density(rng):
    X = rng.random((50, 2))
    few, many = (otgraph.knn_gaussian_graph(X, k) for k in (12, 40))

    def spent(graph):
        weights, strength = equal_ink(graph, X)
        i, j = sp.triu(weights).nonzero()  # equal weights: all lines have full strength
        return strength * np.linalg.norm(X[i] - X[j], axis=1).sum()

    assert spent(few) == pytest.approx(spent(many))
    dense = otgraph.gaussian_graph(X, 0.02)  # most pairs weigh next to nothing
    assert 0 < equal_ink(dense, X)[0].nnz < dense.weights.nnz / 2


def test_spread_and_pairs():
    assert spread([1.0, 2.0, 3.0]) == "2.000 ± 1.000"
    assert spread([0.25], 2) == "0.25 ± 0.00"
    sentence = paired_sentence([0.9, 0.8, 0.95], [0.5, 0.5, 0.5])
    assert sentence.startswith("difference 0.383 ± 0.076, in every seed between 0.300 and 0.450")
    p = float(re.search(r"p = (.*)\)", sentence).group(1))
    assert 0.001 < p < 0.01


def test_circle_variations():
    angle = 2 * np.pi * np.arange(50) / 50
    circle = np.c_[np.cos(angle), np.sin(angle)]
    np.testing.assert_allclose(circle_variations(circle), 0, atol=1e-12)
    radius, gaps = circle_variations(circle * (1 + 0.3 * np.cos(5 * angle))[:, None])
    assert radius == pytest.approx(0.3 / np.sqrt(2))
    assert gaps == pytest.approx(0, abs=1e-12)
    uneven = angle[:40]  # a gap of 11 steps among 39 of one
    radius, gaps = circle_variations(np.c_[np.cos(uneven), np.sin(uneven)])
    assert radius == pytest.approx(0, abs=1e-12)
    assert gaps == pytest.approx(np.std([1] * 39 + [11]) / 1.25)


@pytest.mark.parametrize("options", [{}, {"include_self": True, "symmetrize": "average"}])
def test_knn_path_is_the_graphs_one_by_one(rng, options):
    X = rng.standard_normal((60, 3))
    grid = log_grid(-2, 1, 4)
    for eps, graph in zip(grid, knn_gaussian_path(X, 5, grid, **options), strict=True):
        alone = otgraph.knn_gaussian_graph(X, 5, eps, **options)
        assert graph.params == alone.params
        np.testing.assert_allclose(
            graph.weights.toarray(), alone.weights.toarray(), rtol=1e-11, atol=0
        )


def test_log_grid_holds_round_numbers():
    grid = log_grid(-1.5, 1.5, 25)
    assert len(grid) == 25
    assert grid[12] == 1.0
    assert grid[0] == pytest.approx(10**-1.5, rel=1e-5)


def test_methods_have_one_color_each_and_none_is_grey():
    colors = {method: style["color"] for method, style in METHOD_STYLES.items()}
    assert len(set(colors.values())) == len(colors)
    for color in (*colors.values(), *AROUND):
        _, saturation, _ = rgb_to_hsv(to_rgb(color))
        assert saturation > 0.3
    shared = colors.keys() & laplace.STYLES.keys()
    assert KNN in shared
    assert {laplace.STYLES[method]["color"] for method in shared} == {colors[m] for m in shared}


def test_cyclic_colors_end_where_they_begin_and_are_never_near_white():
    around = cyclic_colors()(np.linspace(0, 1, 200))
    np.testing.assert_allclose(around[0], around[-1])
    luminance = around[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert luminance.max() < 0.7


def test_heat_map_places_cells_around_their_values():
    rows = [(e, n, e * n) for e in (0.1, 1.0, 10.0) for n in (50, 100)]
    scores = pd.DataFrame(rows, columns=["eps", "n_per_arm", "value"])
    ax = Figure().subplots()
    mesh = heat_map(ax, scores, x="eps", y="n_per_arm", label="accuracy")
    corners = mesh.get_coordinates()
    np.testing.assert_allclose(corners[0, :, 0], 10.0 ** np.array([-1.5, -0.5, 0.5, 1.5]))
    np.testing.assert_allclose(corners[:, 0, 1], [25, 75, 125])
    np.testing.assert_allclose(np.ravel(mesh.get_array()), [5, 50, 500, 10, 100, 1000])
    assert ax.get_xscale() == "log"


def test_json_is_strict():
    text = as_json([], table=[{"a": float("nan"), "b": [1.0, float("inf")]}]).decode()
    assert json.loads(text, parse_constant=pytest.fail)["table"] == [{"a": None, "b": [1.0, None]}]


def test_tables_of_the_page(page):
    rows = [
        {
            "method": "a",
            "mean": 0.12345,
            "std": 0.01,
            "per seed": [1.0],
            "best at": {"eps": [1.0, 0.5, 1.0]},
        }
    ]
    assert page.markdown_table(rows).splitlines() == [
        "| method | mean | best at |",
        "| --- | --- | --- |",
        "| a | 0.123 ± 0.010 | ε = 0.5 / 1 |",
    ]


def test_page_without_results(page, tmp_path):
    with pytest.raises(ExperimentError, match="no summaries"):
        page.write_page(tmp_path, docs=tmp_path)
    assert not list(tmp_path.iterdir())


def test_page_shows_claims_and_small_pictures(page, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(page, "MAX_PICTURE_BYTES", 20_000)
    folder = tmp_path / "out" / "curve"
    folder.mkdir(parents=True)
    figure = Figure(figsize=(3, 2))
    figure.subplots().imshow(rng.random((200, 300)))  # noise does not compress
    for name in ("graphs", "graphs-code"):
        figure.savefig(folder / f"{name}.png", dpi=100)
    assert (folder / "graphs.png").stat().st_size > page.MAX_PICTURE_BYTES
    claim = {
        "text": "It holds.", "verdict": "not confirmed", "sentence": "It was 3.",
        "variant": "text", "reason": "It had to be 4.",
    }  # fmt: skip
    summary = {
        "title": "A curve", "source": "figure 1", "seeds": 5, "quick": False, "claims": [claim],
        "table": [], "figures": [{"name": "graphs", "caption": "Two."},
                                 {"name": "graphs-code", "caption": "Two again."}],
    }  # fmt: skip
    (folder / "summary.json").write_text(json.dumps(summary))
    text = page.write_page(tmp_path, tmp_path / "out", docs=tmp_path / "docs").read_text()
    assert "**Not confirmed** (text): *It holds.*\n  It was 3.\n  Why: It had to be 4." in text
    assert "0 of 1" in text
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert pictures == ["images/reproduction/curve-graphs.png"]  # the other looks the same
    assert (tmp_path / "docs" / pictures[0]).stat().st_size <= page.MAX_PICTURE_BYTES


def test_page_shows_every_data_set(page, tmp_path):
    for folder, data in (("a", "cells.csv"), ("b", "/elsewhere/other.csv"), ("c", "cells.csv")):
        out = tmp_path / folder / "cells"
        out.mkdir(parents=True)
        summary = {
            "title": f"Run {folder}", "source": "", "seeds": 1, "quick": False, "claims": [],
            "table": [], "figures": [], "parameters": {"data": data},
        }  # fmt: skip
        (out / "summary.json").write_text(json.dumps(summary))
    folders = (tmp_path / folder for folder in "abc")
    text = page.write_page(*folders, docs=tmp_path / "docs").read_text()
    assert re.findall(r"## (.*)", text) == ["cells", "cells-other"]
    assert "Run c" in text  # the same data as the first run, and later
    assert "Run a" not in text


def test_page_keeps_sections_without_new_results(page, tmp_path):
    def run(folder, name, title):
        out = tmp_path / folder / name
        out.mkdir(parents=True)
        summary = {
            "title": title, "source": "", "seeds": 1, "quick": False, "claims": [],
            "table": [{"method": "a"}], "figures": [],
        }  # fmt: skip
        (out / "summary.json").write_text(json.dumps(summary))

    for name in ("spiral", "curve", "laplace"):
        run("old", name, f"Old {name}")
    run("new", "spiral", "New spiral")
    docs = tmp_path / "docs"
    before = page.write_page(tmp_path / "old", docs=docs).read_text()
    after = page.write_page(tmp_path / "new", docs=docs, keep=True).read_text()
    assert after == before.replace("Old spiral", "New spiral") != before
    only = page.write_page(tmp_path / "new", docs=docs).read_text()
    assert "Old" not in only


def test_published_page_is_complete(page):
    """Every picture is there and small, and no section comes from a quick run."""
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / page.PAGE).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.*\]\((.*)\)", text)
    assert len(pictures) == len(set(pictures)) > 10
    for picture in pictures:
        assert (docs / picture).stat().st_size <= page.MAX_PICTURE_BYTES
    assert "quick run" not in text
