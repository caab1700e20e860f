"""What a command prints."""

from __future__ import annotations

import json
import re
import warnings

import pytest

import otgraph
from otgraph.cli.app import _heard_warnings
from otgraph.cli.report import blaming, one_line
from otgraph.exceptions import argument_error


class TestReport:
    def test_one_line_in_a_pipe(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1)
        assert done.err == ""
        (line,) = done.out.splitlines()
        assert line.startswith("g.otg: exact, 40 points, ")

    def test_verbose_report_has_every_line(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--verbose")
        graph = otgraph.load_graph("g.otg")
        labels = [line.split(" ")[0] for line in done.out.splitlines() if line[0] != " "]
        assert labels == [
            "points", "certificate", "edges", "degrees", "components", "time", "memory", "written",
        ]  # fmt: skip
        assert "exact: optimal among all pairs" in done.out
        assert f"/ {graph.mean_degree:.1f} / {graph.degrees.max()} (min" in done.out

    def test_quiet(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "-q")
        assert (done.code, done.out, done.err) == (0, "", "")

    def test_json(self, cli, points, X):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--json")
        graph = otgraph.load_graph("g.otg")
        facts = done.json
        assert list(facts) == [
            "command", "points", "n_features", "n_points", "n_edges", "n_self_loops", "degree",
            "n_connected", "n_isolated", "n_dropped", "params", "certificate", "written",
            "converged",
            "warnings", "seconds", "peak_memory_bytes",
        ]  # fmt: skip
        assert facts["command"] == "graph"
        assert facts["n_points"], facts["n_features"] == X.shape
        assert facts["n_edges"] == len(graph.edges().i)
        assert facts["degree"]["mean"] == graph.mean_degree
        assert facts["params"] == json.loads(json.dumps(graph.params))
        assert facts["certificate"]["status"] == "exact"
        assert facts["written"] == ["g.otg"]
        assert set(facts["seconds"]) == {"read", "build", "write", "total"}
        assert facts["peak_memory_bytes"] > 1e6

    def test_json_has_no_certificate_for_kernels(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--method", "knn", "--json")
        assert done.json["certificate"] is None

    def test_warnings_are_one_line(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--n-candidates", 900)
        assert done.code == 0
        (line,) = done.err.splitlines()
        assert line.startswith("otgraph: warning: --n-candidates=900 is more than")

    def test_deprecations_are_for_developers(self, capsys):
        class Both(UserWarning, DeprecationWarning):
            """As pyparsing has it, of which matplotlib makes use."""

        with _heard_warnings([], silent=False) as heard:
            warnings.warn("'oneOf' deprecated", Both, stacklevel=1)
            warnings.warn("look here", UserWarning, stacklevel=1)
        assert heard == [("look here", False)]
        assert capsys.readouterr().err == "otgraph: warning: look here\n"

    def test_bars_on_request_only(self, cli, points):
        assert cli("graph", points, "-o", "a.otg", "--eps", 1).err == ""
        shown = cli("graph", points, "-o", "b.otg", "--eps", 1, "--progress").err
        assert re.search(r"marginal error .*\[\d\d:\d\d<", shown)  # time passed < time to go


def test_json_is_plain(cli, points):
    done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--search", "approximate", "--json")
    report = json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert report["certificate"]["status"] == "exact"  # for few points all pairs are cheap


class TestOneLine:
    """Messages of the library in the words of the command line."""

    @pytest.mark.parametrize(
        ("message", "expected"),
        [
            ("`n_jobs` must be -1", "--n-jobs must be -1"),
            ("pass `self_loops=True`.", "pass --self-loops."),
            ("pass `self_loops=False`.", "pass --no-self-loops."),
            ("pass `metric='cosine'`.", "pass --metric cosine."),
            ("`n_jobs`=4 is\n  too  much", "--n-jobs=4 is too much"),
            ("`elsewhere` and `elsewhere=1` stay", "`elsewhere` and `elsewhere=1` stay"),
        ],
    )
    def test_arguments_become_options(self, message, expected):
        options = ("n_jobs", "self_loops", "metric")
        assert one_line(ValueError(message), options) == expected

    def test_errors_about_an_argument_are_no_slips(self):
        error = argument_error(KeyError, "use_rep", "`use_rep` must be 'X'")
        assert one_line(error, ["use_rep"]) == "--use-rep must be 'X'"
        assert one_line(KeyError("`use_rep` must be 'X'")).startswith("unexpected KeyError")

    def test_system_errors(self):
        assert one_line(OSError(28, "No space left", "a.csv")) == "a.csv: no space left"
        assert one_line(MemoryError()) == "not enough memory"


class TestBlaming:
    def test_only_errors_about_the_argument_change(self):
        with (
            pytest.raises(ValueError, match=r"^cells\.csv: contains NaN$"),
            blaming(X="cells.csv:"),
        ):
            raise argument_error(ValueError, "X", "`X` contains NaN")
        with pytest.raises(TypeError, match="`X` contains NaN"), blaming(X="cells.csv:"):
            raise argument_error(TypeError, "Y", "`X` contains NaN")

    def test_warnings(self):
        expected = "^raise --eigen-tol, not `eps`$"
        with pytest.warns(UserWarning, match=expected), blaming(tol="--eigen-tol"):
            warnings.warn("raise `tol`, not `eps`", UserWarning, stacklevel=1)
