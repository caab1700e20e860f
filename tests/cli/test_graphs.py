"""The commands `path` and `info`."""

from __future__ import annotations

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otgraph


class TestOutliers:
    def test_cost(self, cli, points, X):
        done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--outlier-cost", 0.05, "--json")
        graph = otgraph.quadratic_ot_graph(X, 1.0, outlier_cost=0.05, connect=False)
        assert done.json["n_dropped"] == int(graph.dropped.sum())
        loaded = otgraph.load_graph("g.otg")
        np.testing.assert_array_equal(loaded.mass_kept, graph.mass_kept)

    def test_choice(self, cli, points):
        done = cli("graph", points, "-o", "g.otg", "--outlier-cost", "auto", "-v")
        assert done.code == 0
        assert "of the mass is held back" in done.out + done.err
        assert isinstance(otgraph.load_graph("g.otg").params["outlier_cost"], float)
        assert cli("path", points, "--eps", "1,2", "--outlier-cost", "auto").code == 0

    @pytest.mark.parametrize("options", [["much"], ["-1"], ["1", "--min-degree", 2]])
    def test_refusals(self, cli, points, options):
        done = cli("graph", points, "-o", "g.otg", "--outlier-cost", *options)
        assert done.code == 1
        assert "outlier-cost" in done.err
        assert "Traceback" not in done.err


class TestPath:
    def test_prints_a_table(self, cli, points, X):
        done = cli("path", points, "--eps", "0.1,1", "--eps", "10")
        path = otgraph.eps_path(X, [0.1, 1, 10])
        assert done.code == 0
        header, *rows = [line.split() for line in done.out.splitlines()]
        assert header == ["eps", "mean", "min", "max", "components", "status"]
        assert [row[0] for row in rows] == ["0.1", "1", "10"]
        assert [row[1] for row in rows] == [f"{degree:.2f}" for degree in path.mean_degree]
        assert [int(row[4]) for row in rows] == list(path.n_connected)

    @pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
    def test_writes_a_table(self, cli, points, X, suffix):
        range_ = ("--eps-min", 0.1, "--eps-max", 10, "--steps", 3)
        assert cli("path", points, "-o", f"path.{suffix}", *range_, "--self-loops").code == 0
        read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[suffix]
        expected = pd.DataFrame(otgraph.eps_path(X, [0.1, 1, 10], self_loops=True).table())
        found = read(f"path.{suffix}")
        assert list(found) == list(expected)
        np.testing.assert_allclose(found["eps"], expected["eps"])
        np.testing.assert_array_equal(found["mean_degree"], expected["mean_degree"])

    def test_draws(self, cli, points):
        done = cli("path", points, "-o", "path.png", "--picture", "path.pdf", "--steps", 3)
        assert done.code == 0
        assert Path("path.png").read_bytes().startswith(b"\x89PNG")
        assert Path("path.pdf").read_bytes().startswith(b"%PDF")

    def test_json(self, cli, points):
        facts = cli("path", points, "--steps", 2, "--json").json
        assert [row["status"] for row in facts["path"]] == ["exact", "exact"]

    @pytest.mark.parametrize(
        "options", [["--eps", "1,x"], ["--eps-min", 0], ["--steps", 0], ["--eps", "0"]]
    )
    def test_bad_ranges(self, cli, points, options):
        done = cli("path", points, *options)
        assert done.code == 1
        assert "Traceback" not in done.err
        assert "eps" in done.err

    def test_not_converged(self, cli, points):
        done = cli("path", points, "--eps", 0.01, "--max-iter", 1, "--tol", 1e-9, "-o", "p.csv")
        assert done.code == 3
        assert "not_converged" in Path("p.csv").read_text()


class TestInfo:
    def test_graph(self, cli, graph):
        graph.save("g.otg")
        done = cli("info", "g.otg")
        assert done.code == 0
        assert "quadratic" in done.out
        assert "exact: optimal among all pairs" in done.out
        assert "holds       weights, potentials, mass, points in 3 dimensions" in done.out
        facts = cli("info", "g.otg", "--json").json
        assert facts["kind"] == "graph"
        assert facts["params"]["eps"] == 1.0
        assert facts["certificate"]["status"] == "exact"

    def test_table_that_needs_a_choice(self, cli, table):
        done = cli("info", table)
        assert done.code == 0
        assert "--drop kind" in done.out
        facts = cli("info", table, "--drop", "kind", "--json").json
        assert (facts["n_points"], facts["n_features"]) == (40, 3)
        assert facts["columns"][-1] == {
            "name": "kind", "type": "words", "low": None, "high": None,
            "words": ["right", "left"], "missing": 0, "distinct": 2,
        }  # fmt: skip

    def test_dimension(self, cli, graph):
        np.save("circle.npy", otgraph.datasets.circle(500).X)
        facts = cli("info", "circle.npy", "--dimension", "--json").json
        assert abs(facts["dimension"]["value"] - 1) < 0.1
        assert "dimension   1.0" in cli("info", "circle.npy", "--dimension").out
        graph.save("g.otg")
        assert "holds a graph" in cli("info", "g.otg", "--dimension").err

    def test_arrays(self, cli, X):
        X[3, 1] = np.nan
        np.save("x.npy", X.astype(np.float32))
        facts = cli("info", "x.npy", "--json").json
        assert facts["dtype"] == "float32"
        assert facts["n_not_finite"] == 1
        sp.save_npz("s.npz", sp.identity(10, format="csr"))
        assert "10.0% stored" in cli("info", "s.npz").out

    def test_cells(self, cli, X):
        adata = anndata.AnnData(X)
        adata.obsm["X_umap"] = X[:, :2]
        adata.write_h5ad("cells.h5ad")
        assert cli("info", "cells.h5ad", "--json").json["obsm"] == ["X_umap"]

    def test_missing_file(self, cli):
        for name in ("none.otg", "none.csv", "none.npy"):
            done = cli("info", name)
            assert (done.code, done.err) == (1, f"otgraph: {name}: no such file.\n")


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


def test_neither_eps_nor_mean_degree(cli, points, X):
    assert cli("graph", points, "-o", "g.otg").code == 0
    expected = otgraph.quadratic_ot_graph(X, mean_degree=15)
    assert (otgraph.load_graph("g.otg").weights != expected.weights).nnz == 0


def test_info_verifies_a_graph_against_its_points(cli, tmp_path, rng):
    X = rng.normal(size=(40, 3))
    np.savetxt(tmp_path / "points.csv", X, delimiter=",")
    np.savetxt(tmp_path / "others.csv", X**2, delimiter=",")
    cli("graph", tmp_path / "points.csv", "--eps", 1, "-o", tmp_path / "a.otg")
    done = cli("info", tmp_path / "a.otg", "--verify", tmp_path / "points.csv", "--verbose")
    assert done.code == 0
    assert "40 rows against all points" in done.out
    failed = cli("info", tmp_path / "a.otg", "--verify", tmp_path / "others.csv")
    assert failed.code == 1
    assert "NOT verified" in failed.err
