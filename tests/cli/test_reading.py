"""Points are read from every kind of file; bad cells are located."""

from __future__ import annotations

import gzip

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from otgraph.cli.labels import group_names
from otgraph.cli.options import ReadOptions
from otgraph.cli.reading import read_points


def write(path, text: str):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(text)
    return str(path)


ROWS = [[0.5, 2.0], [1.5, -3.0], [2.5, 4e3]]
# name: text, column names, row names
TEXTS = {
    "numbers": ("0.5,2\n1.5,-3\n2.5,4e3\n", None, None),
    "no last line end": ("0.5,2\n1.5,-3\n2.5,4e3", None, None),
    "windows": ("0.5,2\r\n1.5,-3\r\n2.5,4e3\r\n", None, None),
    "byte order mark": ("\ufeffa,b\n0.5,2\n1.5,-3\n2.5,4e3\n", "ab", None),
    "blank lines": ("\n0.5,2\n\n1.5,-3\n2.5,4e3\n\n", None, None),
    "blank line, header": ("\na,b\n0.5,2\n1.5,-3\n2.5,4e3\n", "ab", None),
    "spaces": ("a, b\n 0.5, 2\n 1.5, -3\n 2.5, 4e3\n", "ab", None),
    "header": ("a,b\n0.5,2\n1.5,-3\n2.5,4e3\n", "ab", None),
    "quoted": ('"a","b"\n0.5,2\n1.5,-3\n2.5,4e3\n', "ab", None),
    "empty corner": (",a,b\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", "ab", "rst"),
    "empty corner, numbers": (",a,b\n5,0.5,2\n6,1.5,-3\n7,2.5,4e3\n", "ab", "567"),
    "named corner": ("cell,a,b\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", "ab", "rst"),
    "missing corner": ("a,b\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", "ab", "rst"),
    "index": ("index,a,b\n5,0.5,2\n6,1.5,-3\n7,2.5,4e3\n", "ab", "567"),
    "row names alone": ("r,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", None, "rst"),
    "pandas, unnamed": (",0,1\n0,0.5,2\n1,1.5,-3\n2,2.5,4e3\n", "01", "012"),
    "pandas, unnamed, no index": ("0,1\n0.5,2\n1.5,-3\n2.5,4e3\n", "01", None),
    "corner over counted columns": ("cell,1,2\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", "12", "rst"),
    "semicolons": ("a;b\n0.5;2\n1.5;-3\n2.5;4e3\n", "ab", None),
    "decimal commas": ("a;b\n0,5;2,0\n1,5;-3,0\n2,5;4e3\n", "ab", None),
    "trailing separators": ("a,b,\n0.5,2,\n1.5,-3,\n2.5,4e3,\n", "ab", None),
    "trailing separators, no header": ("0.5,2,\n1.5,-3,\n2.5,4e3,\n", None, None),
    "numpy.savetxt": ("0.5 2\n1.5 -3\n2.5 4e3\n", None, None),
    "aligned by spaces": ("  0.5   2\n  1.5  -3\n  2.5 4e3\n", None, None),
    "years": (",2019,2020\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n", ["2019", "2020"], "rst"),
    "years beside a word": (
        "land,2019,2020\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n",
        ["2019", "2020"],
        "rst",
    ),
    "tabs": ("a\tb\n0.5\t2\n1.5\t-3\n2.5\t4e3\n", "ab", None),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_text_tables(name, suffix, tmp_path):
    text, columns, rows = TEXTS[name]
    found = read_points(write(tmp_path / f"table{suffix}", text))
    np.testing.assert_array_equal(found.values, ROWS)
    assert (found.column_names is None) == (columns is None)
    assert (found.row_names is None) == (rows is None)
    if columns:
        assert list(found.column_names) == list(columns)
    if rows:
        assert list(found.row_names) == list(rows)


def test_one_column_and_one_row(tmp_path):
    one_column = read_points(write(tmp_path / "column.csv", "x\n1\n2\n"))
    np.testing.assert_array_equal(one_column.values, [[1], [2]])
    one_row = read_points(write(tmp_path / "row.csv", "1,2,3\n"))
    np.testing.assert_array_equal(one_row.values, [[1, 2, 3]])


def test_a_first_row_that_counts_is_data_among_integers(tmp_path):
    found = read_points(write(tmp_path / "counts.csv", "0,1\n5,2\n3,4\n"))
    np.testing.assert_array_equal(found.values, [[0, 1], [5, 2], [3, 4]])


def test_detection_can_be_overruled(tmp_path):
    counting = write(tmp_path / "counts.csv", "0,1\n5,2\n3,4\n")
    found = read_points(counting, ReadOptions(header=True, row_names=True))
    np.testing.assert_array_equal(found.values, [[2], [4]])
    assert list(found.row_names) == ["5", "3"]
    indexed = write(tmp_path / "indexed.csv", "index,a\n1,0.5\n2,1.5\n")
    found = read_points(indexed, ReadOptions(row_names=False))
    np.testing.assert_array_equal(found.values, [[1, 0.5], [2, 1.5]])


def test_tabs_by_name(tmp_path):
    found = read_points(write(tmp_path / "table.tsv", "a,1\tb\n1\t2\n3\t4\n"))
    assert list(found.column_names) == ["a,1", "b"]
    np.testing.assert_array_equal(found.values, [[1, 2], [3, 4]])


class TestColumns:
    TEXT = "id,a,species,b\nr,1,cat,2\ns,3,dog,4\nt,5,cat,6\n"

    @pytest.mark.parametrize(
        ("options", "names"),
        [
            (ReadOptions(drop=["species"]), ["a", "b"]),
            (ReadOptions(columns=["b,a"]), ["b", "a"]),
            (ReadOptions(columns=["b"]), ["b"]),
            (ReadOptions(columns=["2", "0"]), ["b", "a"]),
        ],
    )
    def test_are_chosen(self, options, names, tmp_path):
        found = read_points(write(tmp_path / "pets.csv", self.TEXT), options)
        assert list(found.column_names) == names
        values = {"a": [1, 3, 5], "b": [2, 4, 6]}
        np.testing.assert_array_equal(found.values, np.transpose([values[name] for name in names]))
        assert list(found.row_names) == ["r", "s", "t"]

    def test_words_are_refused_by_name(self, tmp_path):
        path = write(tmp_path / "pets.csv", self.TEXT)
        with pytest.raises(
            ValueError, match=r"column 'species' is not numeric: 'cat' in row 0.*--drop species"
        ):
            read_points(path)

    def test_a_first_column_of_groups_is_no_row_names(self, tmp_path):
        path = write(tmp_path / "groups.csv", "group,a\nx,1\nx,2\ny,3\n")
        with pytest.raises(ValueError, match="column 'group' is not numeric"):
            read_points(path)

    def test_groups_without_a_header_lose_no_row(self, tmp_path):
        path = write(tmp_path / "iris.csv", "5.1,3.5,setosa\n4.9,3.0,setosa\n6.2,2.8,virginica\n")
        with pytest.raises(ValueError, match="column '2' is not numeric"):
            read_points(path)
        assert read_points(path, ReadOptions(drop=["2"])).values.shape == (3, 2)

    def test_a_bad_cell_in_the_first_row_is_no_header(self, tmp_path):
        path = write(tmp_path / "bad.csv", "oops,2,9\n3,4,5\n6,7,8\n")
        with pytest.raises(ValueError, match=r"column '0' is not numeric: 'oops' in row 0"):
            read_points(path)

    def test_a_bad_cell_is_found(self, tmp_path):
        path = write(tmp_path / "bad.csv", "a,b\n1,2\n3,4\noops,6\n")
        with pytest.raises(ValueError, match=r"column 'a' is not numeric: 'oops' in row 2"):
            read_points(path)

    def test_missing_values_are_found(self, tmp_path):
        path = write(tmp_path / "missing.csv", "a,b\n1,2\n3,\n5,NA\n")
        with pytest.raises(ValueError, match=r"NaN at row 1, column 'b' \(2 missing"):
            read_points(path)

    def test_unknown_names_get_a_suggestion(self, tmp_path):
        path = write(tmp_path / "pets.csv", self.TEXT)
        with pytest.raises(ValueError, match="no column 'specie'; did you mean 'species'"):
            read_points(path, ReadOptions(drop=["specie"]))

    def test_set_aside(self, tmp_path):
        found = read_points(write(tmp_path / "pets.csv", self.TEXT), aside="species")
        assert list(found.aside) == ["cat", "dog", "cat"]
        assert list(found.column_names) == ["a", "b"]

    def test_of_arrays_go_by_number(self, tmp_path, X):
        np.save(tmp_path / "X.npy", X)
        found = read_points(str(tmp_path / "X.npy"), ReadOptions(columns=["2,0"]))
        np.testing.assert_array_equal(found.values, X[:, [2, 0]])


def test_transposed_tables_swap_their_names(tmp_path):
    path = write(tmp_path / "genes.csv", ",cell1,cell2\ng,1,2\nh,3,4\ni,5,6\n")
    found = read_points(path, ReadOptions(transpose=True))
    np.testing.assert_array_equal(found.values, [[1, 3, 5], [2, 4, 6]])
    assert list(found.row_names) == ["cell1", "cell2"]
    assert list(found.column_names) == ["g", "h", "i"]


class TestArrays:
    def test_npy_is_mapped_not_read(self, tmp_path, X):
        np.save(tmp_path / "X.npy", X.astype(np.float32))
        found = read_points(str(tmp_path / "X.npy"))
        assert isinstance(found.values.base, np.memmap)
        np.testing.assert_array_equal(found.values, X.astype(np.float32))

    def test_npz_dense(self, tmp_path, X):
        np.savez(tmp_path / "one.npz", anything=X)
        np.testing.assert_array_equal(read_points(str(tmp_path / "one.npz")).values, X)
        np.savez(tmp_path / "two.npz", other=X[:2], X=X)
        np.testing.assert_array_equal(read_points(str(tmp_path / "two.npz")).values, X)
        np.savez(tmp_path / "three.npz", other=X[:2], another=X)
        with pytest.raises(ValueError, match=r"several arrays; choose one with --key: other, ano"):
            read_points(str(tmp_path / "three.npz"))
        found = read_points(str(tmp_path / "three.npz"), ReadOptions(key="another"))
        np.testing.assert_array_equal(found.values, X)

    @pytest.mark.parametrize("format", ["csr", "csc", "coo"])
    def test_npz_sparse(self, tmp_path, X, format):
        sparse = sp.random(30, 8, density=0.3, format=format, random_state=0)
        sp.save_npz(tmp_path / "sparse.npz", sparse)
        found = read_points(str(tmp_path / "sparse.npz"))
        assert found.values.format == "csr"
        assert (found.values != sparse).nnz == 0

    @pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
    def test_mtx(self, tmp_path, suffix):
        sparse = sp.random(30, 8, density=0.3, format="csr", random_state=0)
        scipy.io.mmwrite(tmp_path / "m.mtx", sparse)
        if suffix == ".mtx.gz":
            (tmp_path / "m.mtx.gz").write_bytes(gzip.compress((tmp_path / "m.mtx").read_bytes()))
        found = read_points(str(tmp_path / f"m{suffix}"))
        np.testing.assert_allclose(found.values.toarray(), sparse.toarray(), rtol=1e-15)

    def test_mtx_dense_and_transposed(self, tmp_path, X):
        scipy.io.mmwrite(tmp_path / "m.mtx", X.T)
        found = read_points(str(tmp_path / "m.mtx"), ReadOptions(transpose=True))
        np.testing.assert_allclose(found.values, X, rtol=1e-15)


class TestParquet:
    def test_names(self, tmp_path, X):
        frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(len(X))])
        frame.to_parquet(tmp_path / "t.parquet")
        found = read_points(str(tmp_path / "t.parquet"))
        np.testing.assert_array_equal(found.values, X)
        assert list(found.column_names) == list("abc")
        assert list(found.row_names) == list(frame.index)

    def test_plain_index_is_no_names(self, tmp_path, X):
        pd.DataFrame(X, columns=list("abc")).to_parquet(tmp_path / "t.parquet")
        assert read_points(str(tmp_path / "t.parquet")).row_names is None


class TestH5ad:
    @pytest.fixture
    def path(self, tmp_path, X):
        adata = anndata.AnnData(np.abs(X).astype(np.float32))
        adata.obsm["X_umap"] = X[:, :2]
        adata.obs["kind"] = pd.Categorical(["a", "b"] * 20)
        adata.obs_names = [f"cell{i}" for i in range(len(X))]
        adata.var_names = ["g", "h", "i"]
        adata.write_h5ad(tmp_path / "cells.h5ad")
        return str(tmp_path / "cells.h5ad")

    def test_genes(self, path, X):
        found = read_points(path, ReadOptions(columns=["i,g"]), aside="kind")
        np.testing.assert_array_equal(found.values, np.abs(X).astype(np.float32)[:, [2, 0]])
        assert list(found.column_names) == ["i", "g"]
        assert list(found.row_names[:2]) == ["cell0", "cell1"]
        assert list(found.aside[:3]) == ["a", "b", "a"]

    def test_representation(self, path, X):
        found = read_points(path, ReadOptions(use_rep="X_umap"))
        np.testing.assert_array_equal(found.values, X[:, :2])
        assert found.column_names is None


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
def test_unknown_labels(values, expected):
    assert list(group_names(np.array(values, dtype=object))) == expected
