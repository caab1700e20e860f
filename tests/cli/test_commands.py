from __future__ import annotations

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otgraph
from otgraph.cli.labeling import group_names

NAMES = [f"r{i}" for i in range(40)]
MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.fixture
def graph(X):
    return otgraph.quadratic_ot_graph(X, eps=1.0)


@pytest.fixture
def table(X, tmp_path):
    """Points with names, and a column of words."""
    frame = pd.DataFrame(X, columns=list("abc"), index=NAMES)
    frame["kind"] = np.where(X[:, 0] > 0, "right", "left")
    frame.to_csv(tmp_path / "table.csv")
    return "table.csv"


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
        assert Path("path.png").read_bytes().startswith(MAGIC[".png"])
        assert Path("path.pdf").read_bytes().startswith(MAGIC[".pdf"])

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


class TestEmbed:
    @pytest.mark.parametrize("suffix", ["csv", "npy", "npz", "parquet"])
    def test_coordinates(self, cli, table, graph, suffix):
        options = ("--eps", 1, "--drop", "kind", "--dims", 3)
        done = cli("embed", table, "-o", f"e.{suffix}", *options)
        assert (done.code, done.err) == (0, "")
        expected = otgraph.eigenmaps(graph, 3).coordinates
        if suffix == "npy":
            found = np.load("e.npy")
        elif suffix == "npz":
            with np.load("e.npz") as archive:
                assert list(archive["row_names"]) == NAMES
                found = archive["X"]
        else:
            frame = (
                pd.read_csv("e.csv", index_col=0)
                if suffix == "csv"
                else pd.read_parquet("e.parquet")
            )
            assert list(frame.index) == NAMES
            assert list(frame) == ["eigenmap_1", "eigenmap_2", "eigenmap_3"]
            found = frame.to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("suffix", MAGIC)
    def test_pictures(self, cli, graph, suffix):
        graph.save("g.otg")
        for name in ("first", "second"):
            done = cli("embed", "g.otg", "-o", f"{name}{suffix}", "--color", "component")
            assert (done.code, done.err) == (0, "")
        picture = Path(f"first{suffix}").read_bytes()
        assert picture.startswith(MAGIC[suffix])
        assert picture == Path(f"second{suffix}").read_bytes()

    @pytest.mark.parametrize(
        "options",
        [["--label-column", "kind"], ["--drop", "kind", "--color", "b"],
         ["--drop", "kind", "--color", "potential"]],
    )  # fmt: skip
    def test_colors(self, cli, table, options):
        done = cli("embed", table, "-o", "e.csv", "--picture", "e.png", "--eps", 1, *options)
        assert (done.code, done.err) == (0, "")

    def test_of_weights(self, cli, graph):
        sp.save_npz("w.npz", graph.weights)
        assert cli("embed", "w.npz", "-o", "e.npy", "--weights").code == 0
        np.testing.assert_allclose(np.load("e.npy"), otgraph.eigenmaps(graph).coordinates)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("g.otg", "--eps", "1"), "is a graph already; --eps would build one"),
            (("g.otg", "--method", "knn"), "is a graph already; --method would"),
            (("g.otg", "--color", "a"), "a graph file has no columns"),
            (("g.otg", "--label-column", "a"), "is a graph and has no column 'a'"),
            (("g.otg", "--dims", "99"), "--n-components must be at most n - 1 = 39, got 99"),
            (("g.otg", "-d", "1"), "--n-components must be at least 2 for a picture"),
            (("points.npy", "--weights"), "must be a square matrix, got shape (40, 3)"),
            (("points.npy",), "exactly one of --eps and --mean-degree"),
            (("damaged.otg",), "damaged.otg: cannot be read: This file is not a graph"),
            (("none.otg",), "none.otg: no such file"),
        ],
    )
    def test_errors(self, cli, points, graph, arguments, message):
        graph.save("g.otg")
        Path("damaged.otg").write_bytes(Path("g.otg").read_bytes()[:-1])
        done = cli("embed", *arguments, "-o", "e.png")
        assert done.code == 1
        assert message in done.err
        assert len(done.err.splitlines()) == 1
        assert not Path("e.png").exists()


class TestLabels:
    @pytest.fixture
    def expected(self, X, graph):
        labels = np.full(40, None, dtype=object)
        labels[:5] = np.where(X[:5, 0] > 0, "right", "left")
        return otgraph.spread_labels(graph, labels)

    @pytest.fixture
    def partly(self, table):
        frame = pd.read_csv(table, index_col=0)
        frame.loc[frame.index[5:], "kind"] = ""
        frame.to_csv("partly.csv")
        return "partly.csv"

    def check(self, done, expected, path="out.csv", names=NAMES):
        assert (done.code, done.err) == (0, "")
        found = pd.read_csv(path, index_col=0 if names else None)
        if names:
            assert list(found.index) == names
        assert list(found) == ["label", "p_left", "p_right", "unreachable"]
        assert list(found["label"]) == list(expected.labels)
        np.testing.assert_allclose(found[["p_left", "p_right"]], expected.probabilities, atol=1e-9)
        assert not found["unreachable"].any()

    def test_column(self, cli, partly, expected):
        done = cli("labels", partly, "--label-column", "kind", "-o", "out.csv", "--eps", 1)
        self.check(done, expected)

    def test_table_by_name(self, cli, table, partly, expected):
        labels = pd.read_csv(partly, index_col=0, keep_default_na=False)["kind"]
        labels.iloc[:5][::-1].to_csv("labels.csv")  # the order does not matter
        options = ("--labels", "labels.csv", "--drop", "kind", "--eps", 1)
        self.check(cli("labels", table, *options, "-o", "out.csv"), expected)

    def test_table_in_order_for_a_graph(self, cli, partly, graph, expected):
        graph.save("g.otg")
        labels = pd.read_csv(partly, index_col=0)["kind"]
        labels.to_csv("labels.csv", index=False, na_rep="-1")
        done = cli("labels", "g.otg", "--labels", "labels.csv", "-o", "out.csv")
        self.check(done, expected, names=None)

    @pytest.mark.parametrize("with_names", [True, False])
    def test_table_without_a_header(self, cli, table, partly, expected, with_names):
        labels = pd.read_csv(partly, index_col=0)["kind"]
        labels.to_csv("labels.csv", header=False, index=with_names, na_rep="-1")
        options = ("--labels", "labels.csv", "--drop", "kind", "--eps", 1)
        self.check(cli("labels", table, *options, "-o", "out.csv"), expected)

    def test_observations(self, cli, X, partly, expected):
        adata = anndata.AnnData(X)
        adata.obs_names = NAMES
        adata.obs["kind"] = pd.Categorical(pd.read_csv(partly)["kind"])
        adata.write_h5ad("cells.h5ad")
        done = cli("labels", "cells.h5ad", "--label-column", "kind", "-o", "out.csv", "--eps", 1)
        self.check(done, expected)

    def test_numbers_and_what_no_label_reaches(self, cli):
        weights = sp.csr_matrix(np.kron(np.eye(2), [[0, 1], [1, 0]]))
        sp.save_npz("w.npz", weights)
        Path("labels.csv").write_text("label\n7\n-1\n-1\n\n")
        Path("labels.csv").write_text("7\n-1\n-1\n-1\n")
        done = cli("labels", "w.npz", "--weights", "--labels", "labels.csv", "-o", "out.csv")
        assert done.code == 0
        assert "No label reaches 2 of 4 point(s)" in done.err
        found = pd.read_csv("out.csv")
        assert list(found["label"]) == [7, 7, -1, -1]
        assert list(found["unreachable"]) == [False, False, True, True]

    @pytest.mark.parametrize(
        ("values", "expected"),
        [
            ([1.0, np.nan, 2.0], [1, -1, 2]),
            (["1", "", "-1"], [1, -1, -1]),
            (["a", "", "-1", None, np.nan], ["a", None, None, None, None]),
            ([0.5, 1.0], ["0.5", "1.0"]),
            ([True, False], ["True", "False"]),
        ],
    )
    def test_unknown_labels(self, values, expected):
        assert list(group_names(np.array(values, dtype=object))) == expected

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ([], "exactly one of --labels and --label-column, got neither"),
            (["--labels", "x.csv", "--label-column", "kind"], "got both"),
            (["--label-column", "knid"], "no column 'knid'; did you mean 'kind'?"),
            (["--drop", "kind", "--labels", "none.csv"], "none.csv: no such file"),
            (["--drop", "kind", "--labels", "short.csv"], "one label for each of the 40 points"),
            (["--drop", "kind", "--labels", "wide.csv"], "must hold one column of labels"),
            (["--drop", "kind", "--labels", "other.csv"], "labels a row 'q', which the points"),
        ],
    )
    def test_errors(self, cli, table, options, message):
        Path("short.csv").write_text("label\na\nb\n")
        Path("wide.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
        Path("other.csv").write_text("name,label\nq,a\nr1,b\n")
        done = cli("labels", table, "-o", "out.csv", "--eps", 1, *options)
        assert done.code == 1
        assert message in done.err
        assert not Path("out.csv").exists()


class TestDenoise:
    def test_points_over_their_own_graph(self, cli, table, graph, X):
        done = cli("denoise", table, "-o", "out.csv", "--drop", "kind", "--eps", 1, "-t", 2)
        assert (done.code, done.err) == (0, "")
        found = pd.read_csv("out.csv", index_col=0)
        assert list(found.index) == NAMES
        assert list(found) == list("abc")
        np.testing.assert_allclose(found, otgraph.denoise(graph, X, t=2), rtol=1e-12)

    def test_chosen_columns_over_a_given_graph(self, cli, table, graph, X):
        graph.save("g.otg")
        options = ("--graph", "g.otg", "--drop", "kind", "--genes", "c,a")
        assert cli("denoise", table, "-o", "out.npy", *options).code == 0
        np.testing.assert_allclose(np.load("out.npy"), otgraph.denoise(graph, X)[:, [2, 0]])

    def test_genes_over_the_graph_of_a_representation(self, cli, X, graph):
        counts = sp.random(40, 60, density=0.3, format="csr", random_state=0)
        adata = anndata.AnnData(counts)
        adata.obsm["X_pca"] = X
        adata.write_h5ad("cells.h5ad")
        done = cli("denoise", "cells.h5ad", "-o", "out.parquet", "--eps", 1, "-t", "auto")
        assert done.code in (0, 3)  # whether auto settles depends on random counts
        found = pd.read_parquet("out.parquet")
        t = otgraph.methods.diffusion_time(graph, counts) if done.code == 0 else 20
        np.testing.assert_allclose(found, otgraph.denoise(graph, counts, t=t), rtol=1e-6)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--eps", 1, "-t", "many"], "--t must be a number of steps or auto, got 'many'"),
            (["--eps", 1, "--genes", "9"], "no column '9'"),
            (["--eps", 1, "--rescale"], "needs values >= 0"),
            (["--graph", "small.otg"], "has 40 rows, but the graph has 2 points"),
            (["--graph", "small.otg", "--eps", 1], "is a graph already; --eps"),
        ],
    )
    def test_errors(self, cli, points, options, message):
        otgraph.Graph.from_weights([[0, 1], [1, 0]]).save("small.otg")
        done = cli("denoise", points, "-o", "out.npy", *options)
        assert done.code == 1
        assert message in done.err


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
        assert "kind (2 different)" in done.out
        assert "--drop kind" in done.out
        facts = cli("info", table, "--drop", "kind", "--json").json
        assert (facts["n_points"], facts["n_features"]) == (40, 3)
        assert facts["word_columns"]["kind"] == 2

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
        frame = pd.read_csv("spiral.csv", float_precision="round_trip")
        np.testing.assert_array_equal(frame, otgraph.datasets.noisy_spiral().X)

    def test_picture(self, cli, monkeypatch):
        from matplotlib.figure import Figure

        # The demo itself is tested with the experiments.
        monkeypatch.setattr("otgraph.experiments.demo.run", lambda: ("findings", Figure()))
        assert cli("demo").out == "findings\n"
        assert Path("spiral.png").read_bytes().startswith(MAGIC[".png"])


def test_json_is_plain(cli, points):
    done = cli("graph", points, "-o", "g.otg", "--eps", 1, "--search", "approximate", "--json")
    report = json.loads(done.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert report["certificate"]["status"] in {"exact", "exact_on_candidates"}


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
