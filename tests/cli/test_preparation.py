"""Tables as people have them: units, identifiers, words, dates and missing values."""

from __future__ import annotations

import json
import re
import shlex
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

import otgraph
from otgraph.cli.columns import describe_columns, handles, identifiers, unequal_spread
from otgraph.cli.labels import read_labels
from otgraph.cli.options import ReadOptions
from otgraph.cli.preparation import RECORD
from otgraph.cli.reading import read_points

CULTIVARS = np.array(["barolo", "grignolino", "barbera"])
KNOWN = 0.1  # share of the wines whose cultivar is given
N_MISSING = 12


@pytest.fixture
def wine(rng) -> pd.DataFrame:
    """The wines of scikit-learn with a tenth of the cultivars."""
    wine = load_wine()
    frame = pd.DataFrame(wine.data, columns=wine.feature_names)
    known = otgraph.datasets.label_mask(wine.target, KNOWN, random_state=0)
    frame["cultivar"] = np.where(known, CULTIVARS[wine.target], "")
    return frame


def accuracy(path: str) -> float:
    """Share of right cultivars; the table names its rows by their numbers, if it names them."""
    found = pd.read_csv(path)
    rows = found.iloc[:, 0] if found.columns[0].startswith("Unnamed") else np.arange(len(found))
    return float(np.mean(found["label"] == CULTIVARS[load_wine().target[rows]]))


class TestUnits:
    """Columns of different units need `--standardize`, and the command says so."""

    OPTIONS = ("--label-column", "cultivar", "--json")

    def test_standardized_wines_are_labeled_right(self, cli, wine):
        wine.to_csv("wine.csv", index=False)
        raw = cli("labels", "wine.csv", *self.OPTIONS, "-o", "raw.csv")
        scaled = cli("labels", "wine.csv", *self.OPTIONS, "-o", "scaled.csv", "--standardize")
        assert (raw.code, scaled.code) == (0, 0)
        assert accuracy("raw.csv") < 0.75
        assert accuracy("scaled.csv") > 0.93
        (warning,) = raw.json["warnings"]
        assert "the spread of 'proline' is 388 times" in warning
        assert "'nonflavanoid_phenols' hardly count" in warning
        assert "--standardize" in warning
        assert scaled.json["warnings"] == []

    @pytest.mark.parametrize("option", ["--standardize", "--no-standardize", "--pca=2"])
    def test_a_choice_silences_the_warning(self, cli, wine, option):
        wine.to_csv("wine.csv", index=False)
        done = cli("path", "wine.csv", "--drop", "cultivar", "--eps", 1, "--json", option)
        assert done.json["warnings"] == []

    def test_metrics_without_units_need_none(self, cli, wine):
        wine.to_csv("wine.csv", index=False)
        options = ("--drop", "cultivar", "--json", "-o", "g.otg", "--metric", "seuclidean")
        assert cli("graph", "wine.csv", *options).json["warnings"] == []

    @pytest.mark.parametrize(
        ("X", "unequal"),
        [
            (load_iris().data, False),
            (load_digits().data, False),  # pixels at the border hardly vary; the others do
            (load_breast_cancer().data, True),
            (PCA(30).fit_transform(load_digits().data) * np.geomspace(100, 1, 30), False),
            (np.random.default_rng(0).normal(size=(50, 2)) * [10, 30_000], True),  # age, income
            (np.full((9, 3), 5.0), False),
            (np.array([[1.0, np.inf], [2.0, 1e9], [3.0, 5.0]]), False),
        ],
    )
    def test_which_columns_are_unequal(self, X, unequal):
        assert (unequal_spread(X) is not None) is unequal


class TestIdentifiers:
    def test_are_named_and_left_out_on_request_only(self, cli, wine, rng):
        wine.insert(0, "patient_id", 1000 + rng.permutation(len(wine)))
        wine.to_csv("wine.csv", index=False)
        options = ("--standardize", "--json", "--force", "-o", "g.otg", "--eps", 1)
        done = cli("graph", "wine.csv", "--drop", "cultivar", *options).json
        (warning,) = done["warnings"]
        assert "'patient_id' numbers the rows" in warning
        assert done["n_features"] == 14
        drop = re.search(r"--drop (\S+) leaves", warning)[1]
        assert drop == "cultivar,patient_id"
        done = cli("graph", "wine.csv", "--drop", drop, *options).json
        assert (done["warnings"], done["n_features"]) == ([], 13)

    @pytest.mark.parametrize(
        "name", ["patient_id", "ID", "cell id", "cellID", "PatientId", "plasma.id", "sample_idx"]
    )
    def test_names(self, name):
        assert identifiers(np.arange(5.0)[:, None], [name]) == [0]

    @pytest.mark.parametrize("name", ["fluid", "acid", "grid", "valid", "mean", "NO"])
    def test_other_names(self, name):
        assert identifiers(np.arange(5.0)[:, None], [name]) == []

    @pytest.mark.parametrize("column", [[1, 1, 2], [0.5, 1, 2]])
    def test_must_be_different_whole_numbers(self, column):
        assert identifiers(np.array(column, float)[:, None], ["cell_id"]) == []

    def test_numbers_without_a_gap_count_the_rows(self, rng):
        counted = 500.0 + rng.permutation(30)
        with_gap = np.append(counted[:-1], 999.0)
        values = np.column_stack([counted, with_gap])
        assert identifiers(values, ["visit", "age"]) == [0]


class TestMissing:
    TEXT = "name,a,b,kind\nr,1,2,x\ns,3,,y\nt,5,7,x\nu,6,1,y\n"

    def test_error_names_the_way_out(self, cli):
        Path("t.csv").write_text(self.TEXT)
        done = cli("graph", "t.csv", "-o", "g.otg", "--drop", "kind")
        assert done.code == 1
        assert "1 missing value(s) in 1 of 4 rows, by column: b (1)" in done.err
        assert "Add --missing drop-rows; --missing mean fills in means instead" in done.err

    def test_dropped_rows_keep_names_and_labels_aligned(self, tmp_path):
        path = tmp_path / "t.csv"
        path.write_text(self.TEXT)
        points = read_points(str(path), ReadOptions(missing="drop-rows"), aside="kind")
        np.testing.assert_array_equal(points.values, [[1, 2], [5, 7], [6, 1]])
        assert list(points.row_names) == ["r", "t", "u"]
        assert list(points.aside) == ["x", "x", "y"]
        labels = tmp_path / "labels.csv"
        labels.write_text("k\nl\nm\nn\n")  # for the rows of the file
        assert list(read_labels(str(labels), points, 3)) == ["k", "m", "n"]
        labels.write_text("name,label\nu,n\ns,l\n")  # a row that was left out may have a label
        assert list(read_labels(str(labels), points, 3)) == [None, None, "n"]

    def test_rows_without_names_are_known_by_their_numbers(self, cli, X):
        X[[3, 5], 1] = np.nan
        np.save("x.npy", X)
        done = cli("embed", "x.npy", "-o", "e.csv", "--missing", "drop-rows", "--eps", 5)
        assert "2 row(s) with missing values left out" in done.out
        rows = pd.read_csv("e.csv", index_col=0).index
        assert list(rows) == [i for i in range(40) if i not in (3, 5)]

    def test_masses_follow_the_rows(self, cli, X, rng):
        X[3, 1] = np.nan
        np.save("x.npy", X)
        mass = rng.uniform(0.5, 1.5, 40)
        np.save("mass.npy", mass)
        options = ("--missing", "drop-rows", "--mass", "mass.npy", "--eps", 1)
        assert cli("graph", "x.npy", "-o", "g.otg", *options).code == 0
        np.testing.assert_array_equal(otgraph.load_graph("g.otg").mass, np.delete(mass, 3))

    @pytest.mark.parametrize("sparse", [False, True])
    def test_means(self, tmp_path, sparse):
        X = np.array([[1.0, 0.0], [np.nan, 2.0], [4.0, np.nan], [1.0, 1.0]])
        if sparse:
            sp.save_npz(tmp_path / "x.npz", sp.csr_matrix(X))
        else:
            np.savez(tmp_path / "x.npz", X)
        points = read_points(str(tmp_path / "x.npz"), ReadOptions(missing="mean"))
        values = points.values.toarray() if sparse else points.values
        np.testing.assert_allclose(values, SimpleImputer().fit_transform(X), rtol=1e-15)

    def test_an_empty_column_is_to_be_dropped(self, cli):
        Path("t.csv").write_text("a,b,c\n1,,2\n3,,\n5,,6\n7,,8\n")
        done = cli("graph", "t.csv", "-o", "g.otg")
        assert "Add --drop b --missing drop-rows" in done.err
        assert "'b' has no values" in cli("graph", "t.csv", "-o", "g.otg", "--missing=mean").err
        done = cli("graph", "t.csv", "-o", "g.otg", "--missing=drop-rows")
        assert "leaves 0 of 4 rows" in done.err


class TestRecord:
    def test_new_points_can_be_treated_alike(self, cli, wine):
        wine.to_csv("wine.csv", index=False)
        options = ("--drop", "cultivar", "--standardize", "--pca", 5, "--missing", "mean")
        assert cli("graph", "wine.csv", "-o", "g.otg", *options).code == 0
        graph = otgraph.load_graph("g.otg")
        X = load_wine().data
        expected = PCA(5).fit_transform(StandardScaler().fit_transform(X))
        np.testing.assert_allclose(graph.points, expected, atol=1e-10)
        done = json.loads(graph.params[RECORD])
        assert done["columns"] == load_wine().feature_names
        again = (X - done["center"]) / done["scale"] @ np.transpose(done["components"])
        np.testing.assert_allclose(again, graph.points, atol=1e-10)
        np.testing.assert_allclose(done["fill"], X.mean(axis=0))
        assert "5 principal component(s), 80.2% of the variance" in cli("info", "g.otg").out

    def test_verification_hints_at_the_options(self, cli, wine):
        wine.to_csv("wine.csv", index=False)
        drop = ("--drop", "cultivar")
        assert cli("graph", "wine.csv", "-o", "g.otg", *drop, "--standardize").code == 0
        assert cli("info", "g.otg", "--verify", "wine.csv", *drop, "--standardize").code == 0
        done = cli("info", "g.otg", "--verify", "wine.csv", *drop)
        assert "(columns standardized): give the options that it had" in done.err

    def test_nothing_is_recorded_where_nothing_was_done(self, cli, points):
        assert cli("graph", points, "-o", "g.otg", "--eps", 1).code == 0
        assert RECORD not in otgraph.load_graph("g.otg").params

    def test_features_keep_their_units(self, cli, wine):
        """Scaling is for the graph; what is denoised and written is not scaled."""
        wine.to_csv("wine.csv", index=False)
        options = ("--drop", "cultivar", "--standardize", "--pca", 3, "-t", 1)
        assert cli("denoise", "wine.csv", "-o", "d.csv", *options).code == 0
        found = pd.read_csv("d.csv")
        assert list(found) == load_wine().feature_names
        assert found["proline"].mean() > 500

    def test_sparse_points_stay_sparse(self, tmp_path):
        X = sp.random(30, 8, density=0.3, format="csr", random_state=0)
        sp.save_npz(tmp_path / "x.npz", X)
        points = read_points(str(tmp_path / "x.npz"), ReadOptions(standardize=True))
        expected = StandardScaler().fit_transform(X.toarray())
        difference = points.values.toarray() - expected
        np.testing.assert_allclose(difference - difference[0], 0, atol=1e-12)

    @pytest.mark.parametrize("n", [0, 4])
    def test_number_of_components(self, cli, points, n):
        done = cli("graph", points, "-o", "g.otg", "--pca", n)
        assert done.code == 1
        assert f"--pca must be from 1 to 3 for 40 points in 3 dimensions, got {n}" in done.err


class TestWholeMessage:
    """Everything that is wrong with a table is said at once, with what to add."""

    def advice(self, message: str) -> list[str]:
        """The options after "Add", as a shell would split them."""
        return shlex.split(re.search(r" Add (.*?)(?:; |\.$)", message.strip())[1])

    def test_all_word_columns(self, cli):
        Path("t.csv").write_text("a,group,b,color\n1,x,2,red\n3,x,4,green\n5,y,6,red\n")
        done = cli("graph", "t.csv", "-o", "g.otg", "--eps", 1)
        assert "'group' is not numeric: 'x' in row 0; column 'color' is not numeric" in done.err
        assert self.advice(done.err) == ["--drop", "group,color"]

    def test_names_that_need_care(self, cli):
        Path("t.csv").write_text('a,a,"b,c",cell type\n1,x,x,u v\n2,x,y,w\n3,x,x,w\n')
        done = cli("graph", "t.csv", "-o", "g.otg", "--eps", 1)
        advice = self.advice(done.err)
        assert advice == ["--drop", "1,2,cell type"]
        assert cli("graph", "t.csv", "-o", "g.otg", "--eps", 1, *advice).code == 0
        assert handles(["a", "a", "", "x,y"]) == ["a", "1", "2", "3"]

    def test_thousands_are_named(self, cli):
        Path("t.csv").write_text('a,b\n"1,200",1\n"3,400",2\n"1,100",3\n')
        done = cli("graph", "t.csv", "-o", "g.otg")
        assert "column 'a' has thousands separators: '1,200' in row 0" in done.err
        assert "write numbers without thousands separators" in done.err

    def test_from_a_fresh_table_to_labels_in_two_attempts(self, cli, wine, rng):
        """Only what the first attempt prints leads to the second."""
        n = len(wine)
        for cell in rng.choice(13 * n, size=N_MISSING, replace=False):
            wine.iloc[cell // 13, cell % 13] = np.nan
        wine.insert(0, "patient_id", 1000 + rng.permutation(n))
        wine["lab"] = rng.choice(["north", "south"], n)
        wine["visit"] = pd.date_range("2024-01-01", periods=n).astype(str)
        wine["smoker"] = rng.random(n) < 0.3
        wine.to_csv("patients.csv", index=False)
        command = ("labels", "patients.csv", "--label-column", "cultivar", "-o", "labels.csv")
        first = cli(*command)
        assert first.code == 1
        assert f"{N_MISSING} missing value(s)" in first.err
        second = cli(*command, *self.advice(first.err))
        assert (second.code, second.err) == (0, "")
        assert "12 row(s) with missing values left out; columns standardized" in second.out
        assert len(pd.read_csv("labels.csv")) == n - N_MISSING
        assert accuracy("labels.csv") > 0.9


class TestColumns:
    def test_info_shows_a_table_of_words(self, cli):
        Path("t.csv").write_text("a\nx\ny\n")
        done = cli("info", "t.csv")
        assert done.code == 0
        assert "no column holds numbers only" in done.out

    def test_info_shows_them(self, cli):
        Path("t.csv").write_text(
            "id,a,b,when,sure,kind\n1,0.5,2,2024-01-02,True,x\n2,1.5,,2024-01-03,False,x\n"
            "3,2.5,4,2024-02-02,True,y\n"
        )
        done = cli("info", "t.csv")
        assert done.code == 0
        header, *lines = done.out.splitlines()
        assert header.split() == ["column", "type", "range", "missing", "distinct"]
        cells = [re.split(r"\s{2,}", line) for line in lines[:6]]
        assert cells == [
            ["id", "integer", "1 to 3", "0", "3"],
            ["a", "number", "0.5 to 2.5", "0", "3"],
            ["b", "integer", "2 to 4", "1", "2"],
            ["when", "date", "2024-01-02, 2024-01-03, 2024-02-02", "0", "3"],
            ["sure", "boolean", "0 to 1", "0", "2"],
            ["kind", "words", "x, y", "0", "2"],
        ]
        assert "--drop when,kind --missing drop-rows" in done.out
        facts = cli("info", "t.csv", "--json").json
        assert facts["columns"][1]["high"] == 2.5
        assert facts["columns"][2]["missing"] == 1

    def test_wide_tables_take_seconds(self, tmp_path, rng):
        frame = pd.DataFrame(rng.normal(size=(5, 20_000)).round(3))
        frame.columns = [f"gene{i}" for i in range(20_000)]
        frame.to_csv(tmp_path / "wide.csv", index=False)
        start = time.perf_counter()
        assert read_points(str(tmp_path / "wide.csv")).values.shape == (5, 20_000)
        # Measured 1.5 s on a busy machine; quadratic time in the columns took minutes.
        assert time.perf_counter() - start < 20

    def test_long_words_are_cut(self):
        (column,) = describe_columns(pd.DataFrame({"text": ["x" * 200_000, "y"]}))
        assert len(column.range) < 40


class TestFormats:
    @pytest.mark.parametrize("name", ["t.txt", "t.dat", "t.txt.gz"])
    @pytest.mark.parametrize("separator", [",", ";", "\t", " "])
    def test_text_by_other_names(self, tmp_path, name, separator):
        frame = pd.DataFrame({"a": [0.5, 1.5], "b": [2, 3]})
        frame.to_csv(tmp_path / name, sep=separator, index=False)
        found = read_points(str(tmp_path / name))
        np.testing.assert_array_equal(found.values, frame.to_numpy())
        assert list(found.column_names) == ["a", "b"]

    def test_excel(self, tmp_path):
        pytest.importorskip("openpyxl")
        frame = pd.DataFrame({"cell": ["r", "s"], "a": [0.1, 1.5], "b": [2, 3]})
        path = str(tmp_path / "t.xlsx")
        with pd.ExcelWriter(path) as book:
            frame.to_excel(book, sheet_name="first", index=False)
            (frame.set_index("cell") * 2).to_excel(book, sheet_name="second")
        found = read_points(path)
        np.testing.assert_array_equal(found.values, [[0.1, 2], [1.5, 3]])
        assert list(found.row_names) == ["r", "s"]
        found = read_points(path, ReadOptions(key="second"))
        np.testing.assert_array_equal(found.values, [[0.2, 4], [3, 6]])
        with pytest.raises(ValueError, match=r"no sheet 'third'; .*--key: first, second"):
            read_points(path, ReadOptions(key="third"))

    def test_excel_without_the_extra(self, cli, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
        Path("t.xlsx").write_bytes(b"PK")
        done = cli("graph", "t.xlsx", "-o", "g.otg")
        assert done.code == 1
        assert 'pip install "otgraph[excel]"' in done.err


class TestLabelFiles:
    @pytest.fixture
    def labels(self, tmp_path):
        def read(text: str, n: int, names=None):
            path = tmp_path / "labels.csv"
            path.write_text(text)
            np.save(tmp_path / "x.npy", np.zeros((n, 2)))
            points = read_points(str(tmp_path / "x.npy"))
            if names is not None:
                object.__setattr__(points, "row_names", np.array(names))
            return list(read_labels(str(path), points, n))

        return read

    @pytest.mark.parametrize(
        "text",
        [
            "x\n\ny\n\n",
            "kind\nx\n\ny\n\n",
            "kind\nx\n\ny\n\n\n",  # an empty line too many at the end
        ],
    )
    def test_an_empty_line_is_unknown(self, labels, text):
        assert labels(text, 4) == ["x", None, "y", None]

    def test_the_first_may_be_unknown(self, labels):
        assert labels("\nx\n\ny\n", 4) == [None, "x", None, "y"]

    def test_numbers(self, labels):
        assert labels("1\n\n2\n\n", 4) == [1, -1, 2, -1]

    def test_a_first_label_that_comes_again_is_no_header(self, labels):
        assert labels("x\ny\nx\ny\n\n", 4) == ["x", "y", "x", "y"]

    def test_empty_lines_between_complete_labels_are_only_space(self, labels):
        assert labels("1\n\n2\n\n3\n\n4\n", 4) == [1, 2, 3, 4]

    def test_a_wrong_number_is_counted(self, labels):
        with pytest.raises(ValueError, match="each of the 7 points, got 4, 2 of them empty"):
            labels("1\n\n2\n\n", 7)

    def test_a_row_with_two_labels(self, labels):
        with pytest.raises(ValueError, match="labels twice the row 'r'"):
            labels("name,label\nr,a\ns,b\nr,b\n", 2, names=["r", "s"])

    def test_points_with_equal_names(self, labels):
        with pytest.raises(ValueError, match="the points have two rows 'r'"):
            labels("name,label\nr,a\n", 2, names=["r", "r"])

    def test_huge_numbers_are_words(self, labels):
        assert labels("kind\n1e30\n2\n", 2) == ["1e+30", "2.0"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            huge = labels("kind\n12345678901234567891\n12345678901234567892\n", 2)
        assert len(set(huge)) == 2
