from __future__ import annotations

import inspect
import json
from typing import get_type_hints

import numpy as np
import pytest

import otgraph
from otgraph.cli.building import FUNCTIONS
from otgraph.cli.options import GraphOptions, Method

METHODS = {
    "quadratic": (["--eps", 1], {"eps": 1.0}),
    "entropic": (["--eps", 0.5, "-p", 1], {"eps": 0.5, "power": 1.0}),
    "knn": (["-k", 4, "--symmetrize", "average"], {"n_neighbors": 4, "symmetrize": "average"}),
    "gaussian": (["--eps", 0.3, "--no-normalize"], {"eps": 0.3, "normalize": False}),
    "magic": (["-k", 3, "--decay", 2, "--thresh", 0.01],
              {"n_neighbors": 3, "decay": 2.0, "thresh": 0.01}),
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_methods_equal_their_functions(cli, points, X, method):
    options, keywords = METHODS[method]
    done = cli("graph", points, "-o", "g.otg", "--method", method, *options)
    assert (done.code, done.err) == (0, "")
    expected = getattr(otgraph, FUNCTIONS[Method(method)])(X, **keywords)
    found = otgraph.load_graph("g.otg")
    assert found.params == expected.params
    assert (found.weights != expected.weights).nnz == 0


def test_every_keyword_is_an_option():
    for name in FUNCTIONS.values():
        keywords = set(inspect.signature(getattr(otgraph, name)).parameters)
        assert keywords - {"X", "progress"} <= set(GraphOptions.__dataclass_fields__)


@pytest.mark.parametrize("method", FUNCTIONS)
def test_help_says_the_true_defaults(method):
    """Defaults are not written by hand where the function has a number or a word."""
    parameters = inspect.signature(getattr(otgraph, FUNCTIONS[method])).parameters
    shown = {"yes": True, "no": False}
    hints = get_type_hints(GraphOptions, include_extras=True)
    checked = 0
    for name, hint in hints.items():
        text = hint.__metadata__[0].show_default
        if name not in parameters or not text or parameters[name].default is None:
            continue
        values = [shown.get(word, word) for word in text.split(", ")]
        default = parameters[name].default
        assert any(str(value) == str(default) or as_number(value) == default for value in values)
        checked += 1
    assert checked >= 2


def as_number(word) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def test_all_solver_options_arrive(cli, points, X):
    mass = np.linspace(0.5, 1.5, len(X))
    np.savetxt("mass.csv", mass)
    done = cli(
        "graph", points, "-o", "g.otg", "--mean-degree", 6, "--metric", "manhattan", "-p", 1,
        "--mass", "mass.csv", "--self-loops", "--tol", 1e-8, "--search", "exact",
        "--n-candidates", 20, "--max-iter", 500, "--on-failure", "raise", "--n-jobs", 1,
        "--random-state", 3,
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    found = otgraph.load_graph("g.otg")
    assert found.params["metric"] == "manhattan"
    assert found.params["random_state"] == 3
    assert found.mean_degree == pytest.approx(6, abs=0.3)
    np.testing.assert_allclose(found.weights @ np.ones(len(X)), mass, rtol=1e-8)


def test_starts_from_potentials(cli, points):
    cli("graph", points, "-o", "first.otg", "--eps", 1, "--tol", 1e-9)
    again = cli("graph", points, "-o", "second.otg", "--eps", 1, "--u0", "first.otg", "--json")
    first = otgraph.load_graph("first.otg").certificate
    assert again.json["certificate"]["n_steps"] < first.n_steps
    np.save("u.npy", otgraph.load_graph("first.otg").potentials)
    vector = cli("graph", points, "-o", "third.otg", "--eps", 1, "--u0", "u.npy", "--json")
    assert vector.json["certificate"] == again.json["certificate"]


class TestDask:
    def test_is_the_same_graph(self, cli, points, X):
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster:
            address = cluster.scheduler_address
            done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--dask", address)
        assert done.code == 0, done.err
        expected = otgraph.quadratic_ot_graph(X, eps=1.0)
        assert (otgraph.load_graph("g.otg").weights != expected.weights).nnz == 0

    def test_nobody_there(self, cli, points, monkeypatch):
        import dask

        with dask.config.set({"distributed.comm.timeouts.connect": "100ms"}):
            done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--dask", "tcp://127.0.0.1:1")
        assert done.code == 1
        assert "--dask tcp://127.0.0.1:1: no scheduler answers there" in done.err
        assert "Traceback" not in done.err

    def test_blocks_are_for_dask_only(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--block-rows", 7)
        assert done.code == 1
        assert "--method quadratic has no --block-rows" in done.err


class TestReport:
    def test_one_line_in_a_pipe(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1)
        assert done.err == ""
        (line,) = done.out.splitlines()
        assert line.startswith("g.otg: exact, 40 points, ")

    def test_full(self, cli, points):
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
            "n_connected", "n_isolated", "params", "certificate", "written", "converged",
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
        assert line.startswith("otgraph: warning: --n-candidates 900 is more than")

    def test_bars_on_request_only(self, cli, points):
        assert cli("graph", points, "-o", "a.otg", "--eps", 1).err == ""
        assert "marginal error" in cli("graph", points, "-o", "b.otg", "--eps", 1, "--progress").err


def test_standard_input(cli, points, X):
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
    assert cli("graph", "-", "-o", "g.otg", "--eps", 1, stdin=text).code == 0
    assert cli("graph", points, "-o", "h.otg", "--eps", 1).code == 0
    found, expected = otgraph.load_graph("g.otg"), otgraph.load_graph("h.otg")
    assert (found.weights != expected.weights).nnz == 0


def test_standard_output_is_the_edge_list_alone(cli, points):
    done = cli("graph", points, "-o", "-", "--eps", 1)
    lines = done.out.splitlines()
    assert lines[0] == "source,target,weight"
    assert cli("graph", points, "-o", "g.otg", "--eps", 1).code == 0
    assert len(lines) == 1 + len(otgraph.load_graph("g.otg").edges().i)
