"""Commands build the graphs that the functions build."""

from __future__ import annotations

import numpy as np
import pytest

import otgraph
from otgraph.graphs.constructions import CONSTRUCTIONS

METHODS = {
    "quadratic": (["--eps", 1], {"eps": 1.0}),
    "multiscale": (["--mean-degree", "5,9"], {"mean_degree": [5.0, 9.0]}),
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
    expected = CONSTRUCTIONS[method].build(X, **keywords)
    found = otgraph.load_graph("g.otg")
    assert found.params == expected.params
    assert (found.weights != expected.weights).nnz == 0


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


class TestAuto:
    @pytest.fixture
    def manifold(self, tmp_path):
        X = otgraph.datasets.noisy_manifold(200, dim=20, intrinsic_dim=2).X
        np.save(tmp_path / "manifold.npy", X)
        return X

    def test_is_the_choice_of_the_function(self, cli, manifold):
        done = cli("graph", "manifold.npy", "-o", "g.otg", "--eps", "auto")
        assert (done.code, done.err) == (0, "")
        expected = otgraph.quadratic_ot_graph(manifold, "auto")
        assert otgraph.load_graph("g.otg").params == expected.params
        described = cli("info", "g.otg").out
        assert f"chosen eps  {expected.eps:.4g} by features" in described
        assert "standard_errors" not in described

    def test_options_take_part(self, cli, manifold):
        cli("graph", "manifold.npy", "-o", "g.otg", "--eps", "auto", "--no-normalize")
        expected = otgraph.quadratic_ot_graph(manifold, "auto", normalize=False)
        assert otgraph.load_graph("g.otg").params == expected.params

    def test_fallback_is_a_warning(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--eps", "auto")
        assert done.code == 0
        assert "--eps" in done.err
        assert "cannot choose" in done.err

    @pytest.mark.parametrize("method", ["entropic", "gaussian", "knn"])
    def test_other_methods_have_none(self, cli, points, method):
        done = cli("graph", points, "-o", "g.otg", "--eps", "auto", "--method", method)
        assert done.code == 1
        assert (
            f"--eps auto chooses for quadratic graphs only, not for --method {method}" in done.err
        )


class TestDask:
    def test_is_the_same_graph(self, cli, points, X):
        from distributed import LocalCluster

        with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
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


@pytest.mark.parametrize("values", [("--eps", "0.2,2"), ("--mean-degree", "5,10"), ()])
def test_multiscale(cli, points, X, values):
    done = cli("graph", points, "-o", "mean.otg", "--method", "multiscale", *values)
    assert done.code == 0
    graph = otgraph.load_graph("mean.otg")
    names = {"--eps": "eps", "--mean-degree": "mean_degree"}
    keywords = {names[values[0]]: [float(v) for v in values[1].split(",")]} if values else {}
    assert (graph.weights != otgraph.multiscale_graph(X, **keywords).weights).nnz == 0
    assert "the mean of" in cli("info", "mean.otg").out


def test_several_values_are_for_multiscale_only(cli, points):
    done = cli("graph", points, "-o", "a.otg", "--eps", "0.2,2")
    assert done.code != 0
    assert "--eps" in done.err
    done = cli("graph", points, "-o", "a.otg", "--mean-degree", "many")
    assert "--mean-degree must be a positive number" in done.err


def test_copies(cli, X):
    np.savetxt("twice.csv", np.vstack([X, X[:10]]), delimiter=",")
    assert cli("graph", "twice.csv", "-o", "twice.otg", "--collapse").code == 0
    assert otgraph.load_graph("twice.otg").copies is not None
