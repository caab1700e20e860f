"""The commands that compute on a graph: coordinates, labels, denoised features."""

from __future__ import annotations

import json
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otgraph

NAMES = [f"r{i}" for i in range(40)]
MAGIC = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


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

    def test_colors_of_clusters(self, cli, graph):
        graph.save("g.otg")
        assert cli("cluster", "g.otg", "-o", "groups.csv", "--n-clusters", 3).code == 0
        done = cli("embed", "g.otg", "-o", "groups.svg", "--labels", "groups.csv")
        assert (done.code, done.err) == (0, "")
        assert cli("embed", "g.otg", "-o", "degrees.svg").code == 0
        assert Path("groups.svg").read_bytes() != Path("degrees.svg").read_bytes()
        both = cli("embed", "g.otg", "-o", "x.svg", "--labels", "groups.csv", "--color", "degree")
        assert "at most one of --color, --labels" in both.err
        missing = cli("embed", "g.otg", "-o", "x.svg", "--labels", "none.csv")
        assert "none.csv: no such file" in missing.err

    def test_without_the_density(self, cli, table, graph):
        options = ("--eps", 1, "--drop", "kind", "--density", "corrected")
        facts = cli("embed", table, "-o", "e.npy", *options, "--dim", 2, "--json").json
        expected = otgraph.eigenmaps(graph, density="corrected", dim=2)
        np.testing.assert_allclose(np.load("e.npy"), expected.coordinates)
        assert facts["dim"] == 2.0
        np.testing.assert_allclose(facts["laplacian_eigenvalues"], expected.laplacian_eigenvalues)
        found = cli("embed", table, "-o", "f.npy", "--eps", 1, "--drop", "kind", "--dim", 2)
        assert found.code == 1
        assert "--dim is used with" in found.err

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
            (("points.npy", "--eps", "1", "--mean-degree", "5"), "one of --eps and --mean-degree"),
            (("g.otg", "--eigen-tol", "-1"), "--eigen-tol must be a positive, finite number"),
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


class TestCluster:
    def test_points(self, cli, table, graph):
        options = ("--n-clusters", 3, "--drop", "kind", "--eps", 1)
        done = cli("cluster", table, "-o", "out.csv", "--picture", "e.png", "-v", *options)
        assert done.code == 0
        found = pd.read_csv("out.csv", index_col=0)
        assert list(found.index) == NAMES
        assert list(found) == ["cluster"]
        np.testing.assert_array_equal(found["cluster"], otgraph.cluster(graph, 3).labels)
        assert Path("e.png").stat().st_size > 1000
        assert "clusters    3, of " in done.out

    def test_graph_by_the_gap(self, cli, graph):
        graph.save("g.otg")
        done = cli("cluster", "g.otg", "-o", "out.csv", "--max-clusters", 4, "--json")
        expected = otgraph.cluster(graph, max_clusters=4)
        assert done.code == 0
        facts = json.loads(done.out)
        assert facts["n_clusters"] == expected.n_clusters
        np.testing.assert_allclose(facts["eigenvalues"], expected.eigenvalues)
        np.testing.assert_array_equal(pd.read_csv("out.csv")["cluster"], expected.labels)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("--n-clusters", 41), "--n-clusters must be at most the number of points, 40, got 41"),
            (("--eigen-tol", 0), "--eigen-tol must be a positive"),
            (("--cluster-seed", -1), "--cluster-seed must be an integer >= 0"),
            (("--mean-degree", 5), "is a graph already"),
        ],
    )
    def test_errors(self, cli, graph, options, message):
        graph.save("g.otg")
        done = cli("cluster", "g.otg", "-o", "out.csv", *options)
        assert done.code == 1
        assert message in done.err
        assert not Path("out.csv").exists()


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

    @pytest.mark.parametrize("stdin", [False, True])
    def test_eps_by_labels(self, cli, stdin):
        arms = otgraph.datasets.spiral_arms(40, n_arms=3, dim=20, noise=0.3)
        known = otgraph.datasets.label_mask(arms.labels, 0.2, random_state=0)
        labels = np.where(known, arms.labels, -1)
        np.save("arms.npy", arms.X)
        pd.Series(labels, name="arm").to_csv("labels.csv", index=False)
        text = Path("labels.csv").read_bytes() if stdin else None
        source = "-" if stdin else "labels.csv"
        options = ("-o", "out.csv", "--eps", "auto", "--json", "--force")
        done = cli("labels", "arms.npy", "--labels", source, *options, stdin=text)
        assert done.code == 0, done.err
        choice = otgraph.choose_eps(arms.X, labels)
        assert done.json["params"]["eps"] == choice.eps

    def test_labels_that_do_not_tell(self, cli, partly):
        done = cli("labels", partly, "--label-column", "kind", "-o", "out.csv", "--eps", "auto")
        assert done.code == 0
        assert "labels do not tell the best eps" in done.err

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

    def test_a_missing_table_is_noticed_before_the_work(self, cli, points, monkeypatch):
        def fail(*_, **__):
            pytest.fail("the work began")

        monkeypatch.setattr("otgraph.cli.building.read_points", fail)
        done = cli("labels", points, "--labels", "none.csv", "-o", "out.csv")
        assert (done.code, done.err) == (1, "otgraph: none.csv: no such file.\n")

    def test_advice_names_options_of_this_command(self, cli, partly):
        options = ("--label-column", "kind", "--eps", 1, "--spread-steps", 1, "--spread-tol", 1e-9)
        done = cli("labels", partly, *options, "-o", "out.csv")
        assert done.code == 3
        assert "(--spread-tol is 1.0e-09). Raise --spread-steps, or raise --mu." in done.err

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

    def test_genes_over_the_graph_of_a_representation(self, cli, X, graph, rng):
        """The genes vary smoothly over the graph, so an automatic time is found."""
        counts = sp.csr_matrix(np.exp(X @ rng.normal(size=(3, 60))))
        adata = anndata.AnnData(counts)
        adata.obsm["X_pca"] = X
        adata.write_h5ad("cells.h5ad")
        done = cli("denoise", "cells.h5ad", "-o", "out.parquet", "--eps", 1, "-t", "auto")
        assert (done.code, done.err) == (0, "")
        found = pd.read_parquet("out.parquet")
        t = otgraph.methods.diffusion_time(graph, counts)
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
