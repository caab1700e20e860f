"""Graphs are written in every format and come back the same."""

from __future__ import annotations

import warnings
from pathlib import Path

import anndata
import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

import otgraph
from otgraph.cli.reading import Points
from otgraph.cli.writing import Target, write_array, write_graph

NAMES = [f"r{i}" for i in range(40)]


@pytest.fixture
def table(X, tmp_path):
    pd.DataFrame(X, columns=list("abc"), index=NAMES).to_csv(tmp_path / "points.csv")
    return "points.csv"


@pytest.fixture
def expected(X):
    return otgraph.quadratic_ot_graph(X, eps=1.0, self_loops=True).weights


def matrix_of(edges) -> sp.csr_matrix:
    position = {name: i for i, name in enumerate(NAMES)}
    i, j = edges["source"].map(position), edges["target"].map(position)
    upper = sp.csr_matrix((edges["weight"], (i, j)), shape=(40, 40))
    return upper + sp.triu(upper, k=1).T


def read(path: str):
    if path.endswith((".csv", ".csv.gz")):
        return matrix_of(pd.read_csv(path, converters={"weight": float}))  # exactly
    if path.endswith(".tsv"):
        return matrix_of(pd.read_csv(path, sep="\t", converters={"weight": float}))
    if path.endswith(".parquet"):
        return matrix_of(pd.read_parquet(path))
    if path.endswith(".npz"):
        return sp.load_npz(path)
    if path.endswith((".mtx", ".mtx.gz")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # matrix or array: both will do
            return scipy.io.mmread(path).tocsr()
    if path.endswith(".graphml"):
        network = networkx.read_graphml(path)
        assert [network.nodes[node]["name"] for node in network] == NAMES
        return networkx.to_scipy_sparse_array(network)
    return otgraph.load_graph(path).weights


@pytest.mark.parametrize(
    "suffix",
    ["otg", "npz", "mtx", "mtx.gz", "csv", "csv.gz", "tsv", "parquet", "graphml"],
)
def test_round_trip(cli, table, expected, suffix):
    done = cli("graph", table, "-o", f"out.{suffix}", "--eps", 1, "--self-loops")
    assert (done.code, done.err) == (0, "")
    np.testing.assert_allclose(read(f"out.{suffix}").toarray(), expected.toarray(), rtol=1e-14)


def test_compressed_files_are_reproducible(cli, table):
    for name in ("a.csv.gz", "b.csv.gz"):
        cli("graph", table, "-o", name, "--eps", 1)
    first, second = (Path(name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert first == second


class TestH5ad:
    @pytest.fixture
    def cells(self, X, tmp_path):
        adata = anndata.AnnData(np.abs(X))
        adata.obsm["X_pca"] = X[:, :2]
        adata.obs_names = NAMES
        adata.uns["note"] = "kept"
        adata.write_h5ad(tmp_path / "cells.h5ad")
        return "cells.h5ad"

    def test_is_a_copy_with_slots(self, cli, cells, X):
        before = Path(cells).read_bytes()
        options = ("--eps", 1, "--use-rep", "X_pca")
        assert cli("graph", cells, "-o", "out.h5ad", *options).code == 0
        assert Path(cells).read_bytes() == before
        adata = anndata.read_h5ad("out.h5ad")
        assert adata.uns["note"] == "kept"
        assert adata.uns["neighbors"]["connectivities_key"] == "connectivities"
        expected = otgraph.quadratic_ot_graph(X[:, :2], eps=1.0)
        assert (adata.obsp["weights"] != expected.weights).nnz == 0
        assert adata.obsp["distances"].nnz == expected.weights.nnz

    def test_from_a_table(self, cli, table, X, expected):
        assert cli("graph", table, "-o", "out.h5ad", "--eps", 1, "--self-loops").code == 0
        adata = anndata.read_h5ad("out.h5ad")
        np.testing.assert_allclose(adata.X, X)
        assert list(adata.obs_names) == NAMES
        assert list(adata.var_names) == list("abc")
        np.testing.assert_allclose(adata.obsp["weights"].toarray(), expected.toarray(), rtol=1e-12)

    def test_input_may_be_replaced(self, cli, cells):
        assert cli("graph", cells, "-o", cells, "--eps", 1, "--force").code == 0
        assert "weights" in anndata.read_h5ad(cells).obsp


class TestNamesThatAreNoText:
    """Control characters, which XML does not have, and halves of characters, which UTF-8 lacks."""

    NAMES = ("a\x0bb", "\x01", "\ud800", "\udcff.csv", "\uffff", "<&>", "tab\there", "plain")
    ESCAPED = (
        r"a\x0bb", r"\x01", r"\ud800", r"\udcff.csv", r"\uffff", "<&>", "tab\there", "plain",
    )  # fmt: skip

    @pytest.fixture
    def named(self, rng):
        X = rng.standard_normal((len(self.NAMES), 2))
        names = np.array(self.NAMES, dtype=object)
        return otgraph.knn_gaussian_graph(X, 3), Points(X, "points", names, names[:2])

    def test_graphml_is_valid(self, named, tmp_path):
        write_graph(Target(str(tmp_path / "g.graphml"), ".graphml"), *named)
        network = networkx.read_graphml(tmp_path / "g.graphml")
        assert tuple(network.nodes[node]["name"] for node in network) == self.ESCAPED

    @pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
    def test_tables(self, named, tmp_path, suffix):
        path = tmp_path / f"g{suffix}"
        write_graph(Target(str(path), suffix), *named)
        if suffix == ".parquet":
            edges = pd.read_parquet(path)
        else:
            edges = pd.read_csv(path, sep="\t" if suffix == ".tsv" else ",")
        assert {r"\ud800", r"\udcff.csv"} <= {*edges["source"], *edges["target"]}

    @pytest.mark.parametrize("suffix", [".csv", ".parquet"])
    def test_rows_and_columns(self, named, tmp_path, suffix):
        _, points = named
        place = Target(str(tmp_path / f"x{suffix}"), suffix)
        write_array(place, points.values, [r"a", "\ud800"], points.row_names)
        read = pd.read_parquet if suffix == ".parquet" else pd.read_csv
        assert r"\ud800" in read(place.path).columns


@pytest.mark.parametrize("suffix", ["otg", "csv", "h5ad"])
def test_file_that_comes_while_the_graph_is_computed(cli, table, monkeypatch, suffix):
    path = Path(f"out.{suffix}")

    def write_late(*arguments):
        path.write_text("somebody else's")
        write_graph(*arguments)

    monkeypatch.setattr("otgraph.cli.graphs.write_graph", write_late)
    done = cli("graph", table, "-o", path, "--eps", 1)
    assert (done.code, done.out) == (1, "")
    assert done.err == f"otgraph: {path}: exists already, and may not be replaced\n"
    assert path.read_text() == "somebody else's"
    assert cli("graph", table, "-o", path, "--eps", 1, "--force").code == 0
