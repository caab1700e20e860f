"""The reader of text tables by itself; tests/cli/test_reading.py shows which layouts it detects."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from otgraph._tables import first_word, has_row_names, has_thousands, read_table, table_chunks

TEXTS = {
    "header": b"a,b\n0.5,2\n1.5,-3\n2.5,4e3\n",
    "row names": b"cell,a,b\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n",
    "missing corner": b"a,b\nr,0.5,2\ns,1.5,-3\nt,2.5,4e3\n",
    "trailing separators": b"a,b,\n0.5,2,\n1.5,-3,\n2.5,4e3,\n",
    "no header": b"0.5,2\n1.5,-3\n2.5,4e3\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_parts_are_the_whole(name):
    whole, indexed = read_table(TEXTS[name])
    parts = list(table_chunks(TEXTS[name], rows=2))
    assert len(parts) == 2
    assert [flag for _, flag in parts] == [indexed, indexed]
    joined = pd.concat([part for part, _ in parts])
    assert list(joined.columns) == list(whole.columns)
    np.testing.assert_array_equal(joined.to_numpy(), whole.to_numpy())


def test_bytes_tell_whether_a_table_is_compressed(tmp_path):
    for name, content in (("a.csv", gzip.compress(TEXTS["header"])), ("a.gz", TEXTS["header"])):
        (tmp_path / name).write_bytes(content)
        assert list(read_table(str(tmp_path / name))[0].columns) == ["a", "b"]


def test_columns_of_the_same_name_keep_it():
    assert list(read_table(b"a,a\n1,2\n")[0].columns) == ["a", "a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "it is empty"),
        (b"a,b\n", "it has no rows"),
        (b"\xff\xfe\x00", "not text in UTF-8. Spreadsheets .*iconv"),
        (b"a,b\n1,2\n1,2,3\n", "Expected 2 fields in line 3, saw 3"),
        (b"a,b\n1,2,3,4\n", "first line has 2 names but the rows have 4 fields"),
    ],
)
def test_what_is_no_table(text, message):
    with pytest.raises(ValueError, match=message):
        read_table(text)


@pytest.mark.parametrize(
    ("columns", "indexed", "expected"),
    [
        ({"": [5, 6, 7], "a": [1, 2, 3]}, True, True),
        ({"cell": ["r", "s", "t"], "a": [1, 2, 3]}, False, True),
        ({"group": ["r", "r", "t"], "a": [1, 2, 3]}, False, False),
        ({"mass": ["1", "2", "oops"], "a": [1, 2, 3]}, False, False),
        ({"id": [5, 6, 7], "a": [1, 2, 3]}, False, True),
        ({"id": [5, 5, 7], "a": [1, 2, 3]}, False, False),
        ({"id": [0.5, 1.5, 2.5], "a": [1, 2, 3]}, False, False),
        ({"b": [5, 6, 7], "a": [1, 2, 3]}, False, False),
        ({"cell": ["r", "s", "t"]}, False, False),
    ],
)
def test_first_column_as_row_names(columns, indexed, expected):
    assert has_row_names(pd.DataFrame(columns), indexed=indexed) is expected


def test_first_word():
    assert first_word(pd.Series(["1", None, "x", "y"])) == (2, "x")


def test_numbers_are_read_exactly(rng):
    numbers = rng.normal(size=2000) * 10.0 ** rng.integers(-300, 300, 2000)
    frame, _ = read_table("\n".join(map(repr, numbers.tolist())).encode())
    np.testing.assert_array_equal(frame.to_numpy().ravel(), numbers)


class TestQuotes:
    """Rows are counted as they are read, not as lines."""

    def test_header_with_a_line_break_loses_no_row(self):
        frame, _ = read_table(b'"gene\nA",B\n1,2\n3,4\n5,7\n9,1\n')
        assert list(frame.columns) == ["gene\nA", "B"]
        np.testing.assert_array_equal(frame.to_numpy(), [[1, 2], [3, 4], [5, 7], [9, 1]])

    def test_header_with_a_single_quote_inside_loses_no_row(self):
        frame, _ = read_table(b'5" disk,B\n1,2\n3,4\n')
        np.testing.assert_array_equal(frame.to_numpy(), [[1, 2], [3, 4]])

    def test_line_numbers_are_those_of_the_file(self):
        with pytest.raises(ValueError, match="Expected 2 fields in line 4, saw 3"):
            read_table(b'"a\nx",b\n1,2\n1,2,3\n')


class TestCommas:
    def test_decimal_commas_may_begin_in_any_row(self):
        rows = "".join(f"{i};{i}\n" for i in range(10))
        frame, _ = read_table(f"a;b\n1,5;2,5\n{rows}".encode())
        np.testing.assert_array_equal(frame.iloc[0], [1.5, 2.5])
        frame, _ = read_table(f"a;b\n{rows}1;2,5\n".encode())
        np.testing.assert_array_equal(frame["b"], [*range(10), 2.5])
        frame, _ = read_table(f"a\tb\n{rows}1;0,125\n".replace(";", "\t").encode())
        assert frame["b"].iloc[-1] == 0.125

    def test_thousands_are_no_decimals_beside_tabs(self):
        frame, _ = read_table(b"a\tb\n1,200\t1\n3,400\t2\n")
        assert has_thousands(frame["a"])

    def test_thousands_are_no_row_names(self):
        frame, indexed = read_table(b'a,b\n"1,200",2\n"3,400",4\n')
        assert has_thousands(frame["a"])
        assert not has_row_names(frame, indexed=indexed)

    @pytest.mark.parametrize("cells", [["x", "1,200"], ["1", "2"], ["12,00", "1"]])
    def test_other_columns_have_no_thousands(self, cells):
        assert not has_thousands(pd.Series(cells))


def test_truth_values_may_be_missing():
    frame, _ = read_table(b"a,b\nTrue,1\n,2\nFalse,3\n")
    np.testing.assert_array_equal(frame["a"], [1, np.nan, 0])


def test_question_marks_are_missing():
    frame, _ = read_table(b"a,b\n1,2\n?,3\n")
    np.testing.assert_array_equal(frame["a"], [1, np.nan])


def test_cells_may_be_long(tmp_path):
    frame, _ = read_table(b"a,b\n1," + b"x" * 200_000 + b"\n2,y\n")
    assert len(frame["b"].iloc[0]) == 200_000
    assert csv.field_size_limit() == 131_072  # the csv module is as it was


def test_an_empty_line_of_one_column_is_a_row_if_asked():
    assert len(read_table(b"a\n1\n\n3\n")[0]) == 2
    np.testing.assert_array_equal(
        read_table(b"a\n1\n\n3\n", blank_rows=True)[0]["a"], [1, np.nan, 3]
    )
    assert len(read_table(b"a,b\n1,2\n\n3,4\n", blank_rows=True)[0]) == 2
