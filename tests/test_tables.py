"""The reader of text tables by itself; tests/cli/test_reading.py shows which layouts it detects."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from otgraph._tables import first_word, has_row_names, read_table, table_chunks

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
        (b"\xff\xfe\x00", "not text in UTF-8"),
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
