"""The commands that write pages and figures."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otgraph


@pytest.fixture
def table(X, tmp_path):
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(len(X))])
    frame["kind of point"] = np.where(X[:, 0] > 0, "right", "left")
    frame.to_csv(tmp_path / "my table.csv")
    return "my table.csv"


def commands_of(page: str) -> list[str]:
    """The commands that the page offers, as its script will show them."""
    found = re.findall(r'"(otgraph graph (?:[^"\\]|\\.)*)"', Path(page).read_text())
    return [json.loads(f'"{text}"') for text in found]


def test_page_offers_commands_that_build_its_graphs(cli, table, X):
    options = ("--label-column", "kind of point", "--eps", "5,20", "--self-loops")
    done = cli("explore", table, "-o", "page.html", *options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("page.html: 40 points, ")
    commands = commands_of("page.html")
    assert len(commands) == 2
    for command, eps in zip(commands, (5.0, 20.0), strict=True):
        program, *arguments = shlex.split(command)
        assert program == "otgraph"
        rebuilt = cli(*arguments, "--force")
        assert (rebuilt.code, rebuilt.err) == (0, "")
        expected = otgraph.quadratic_ot_graph(X, eps=eps, self_loops=True).weights
        found = otgraph.load_graph("graph.otg").weights
        np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-5)


def test_range_is_chosen(cli, points):
    done = cli("explore", points, "-o", "page.html", "--json")
    assert done.code == 0
    assert done.json["n_points"] == 40
    assert len(commands_of("page.html")) > 5


def test_labels_from_a_table(cli, points):
    Path("labels.csv").write_text("label\n" + "cat\ndog\n" * 20)
    options = ("--labels", "labels.csv", "--eps", "1", "--title", "Cats and dogs")
    assert cli("explore", points, "-o", "page.html", *options).code == 0
    page = Path("page.html").read_text()
    assert "Cats and dogs" in page
    assert '"dog"' in page


def test_file_that_comes_while_the_page_is_made(cli, points, monkeypatch):
    from otgraph.plots import explore

    def make_slowly(*arguments, **options):
        page = explore(*arguments, **options)
        Path("page.html").write_text("somebody else's")
        return page

    monkeypatch.setattr("otgraph.plots.explore", make_slowly)
    done = cli("explore", points, "-o", "page.html", "--eps", 1)
    assert (done.code, done.out) == (1, "")
    assert done.err == "otgraph: page.html: exists already, and may not be replaced\n"
    assert Path("page.html").read_text() == "somebody else's"
    assert cli("explore", points, "-o", "page.html", "--eps", 1, "--force").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "page.png"], "page.png: the name of a page must end in .html"),
        (["-o", "-"], "standard output takes CSV only"),
        (["-o", "page.html", "--eps", "-1"], "--eps must be a positive"),
        (["-o", "page.html", "--labels", "x.csv", "--label-column", "y"], "got both"),
        (["-o", "page.html", "--max-points", "0"], "--max-points must be an integer >= 1"),
    ],
)
def test_errors(cli, points, options, message):
    done = cli("explore", points, *options)
    assert done.code == 1
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not Path("page.html").exists()


class TestReproduce:
    def test_lists_names(self, cli):
        from otgraph.experiments import NAMES as experiments

        assert cli("reproduce", "list").out.split() == list(experiments)

    def test_hands_everything_over(self, cli, monkeypatch):
        from otgraph import experiments
        from otgraph.experiments._framework.experiment import Claim

        calls = []

        def stand_in(name, **keywords):
            calls.append((name, keywords))
            claim = Claim("the sky is blue", True, "measured: blue")
            return experiments.Report("spiral", "a title", [claim], [Path("out/scores.csv")])

        monkeypatch.setattr(experiments, "reproduce", stand_in)
        options = ("--seeds", 3, "--quick", "--variant", "both", "--genes", "A,B,C", "--n-jobs", 1)
        done = cli("reproduce", "spiral", "-o", "folder", "--data", "cells.h5ad", *options)
        assert done.code == 0
        assert "[confirmed] the sky is blue" in done.out
        assert calls == [
            (
                "spiral",
                {
                    "out": "folder", "seeds": 3, "quick": True, "variant": "both",
                    "data": "cells.h5ad", "genes": ["A", "B", "C"], "progress": False, "n_jobs": 1,
                },
            )
        ]  # fmt: skip
        facts = cli("reproduce", "spiral", "--json").json
        assert facts["claims"][0]["verdict"] == "confirmed"
        assert facts["written"] == ["out/scores.csv"]

    def test_unknown_name(self, cli):
        done = cli("reproduce", "spirla")
        assert done.code == 1
        assert "no experiment 'spirla'" in done.err


class TestDemo:
    def test_points(self, cli):
        assert cli("demo", "-o", "spiral.csv").code == 0
        frame = pd.read_csv("spiral.csv", dtype=str).astype(float)  # exactly
        np.testing.assert_array_equal(frame, otgraph.datasets.noisy_spiral().X)

    def test_picture(self, cli, monkeypatch):
        from matplotlib.figure import Figure

        # The demo itself is tested with the experiments.
        monkeypatch.setattr("otgraph.experiments.demo.run", lambda: ("findings", Figure()))
        assert cli("demo").out == "findings\n"
        assert Path("spiral.png").read_bytes().startswith(b"\x89PNG")


def test_page_with_a_layout_and_the_columns_of_the_table(cli, points):
    table = pd.DataFrame(np.load(points)[:, :2], columns=["depth", "<b>odd</b>"])
    table.to_csv("-rf.csv", index=False)
    done = cli("explore", "-o", "page.html", "--eps", "1", "--layout", "force", "--", "-rf.csv")
    assert done.code == 0, done.err
    page = Path("page.html").read_text()
    assert "otgraph graph ./-rf.csv -o graph.otg" in page  # a name, and no options
    for name in ("depth", "&lt;b&gt;odd&lt;/b&gt;"):
        assert f">{name}</option>" in page
    assert cli("explore", points, "-o", "x.html", "--layout", "tsne").code == 1
