"""Blocks number their columns locally and take what they need from the pieces of a vector."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from otgraph.distributed import _blocks, _pairs
from otgraph.distributed._blocks import SEGMENTS, Columns, Vector
from otgraph.distributed._cluster import Kept

FIRST, LAST = 300, 420


@pytest.fixture(params=[500, 3 * SEGMENTS - 7], ids=["short", "long"])
def n(request):
    """Segments of one point, and of three."""
    return request.param


@pytest.fixture
def columns(rng, n):
    return rng.choice(n, size=60).astype(np.int32)


@pytest.fixture
def block(n, columns):
    return Columns.of(n, FIRST, LAST, columns)


def test_local_numbers(block, columns):
    local = block.to_local(columns)
    inside = (columns >= FIRST) & (columns < LAST)
    np.testing.assert_array_equal(local[inside], columns[inside] - FIRST)
    assert local[~inside].min() >= LAST - FIRST
    np.testing.assert_array_equal(block.to_global(local), columns)


@pytest.mark.parametrize("piece_entries", [1, 90, 1 << 20])
@pytest.mark.parametrize("width", [1, 4])
def test_part_of_a_vector(rng, n, block, columns, piece_entries, width):
    here = SimpleNamespace(piece_entries=piece_entries, send=lambda name, values: values)
    values = rng.normal(size=(n, width) if width > 1 else n)
    part = Vector.send(here, values).part(block.segments)
    if piece_entries == 1:
        assert sum(map(len, part.values())) < n  # not all of it
    local = block.take(part)
    np.testing.assert_array_equal(local[: LAST - FIRST], values[FIRST:LAST])
    np.testing.assert_array_equal(local[block.to_local(columns)], values[columns])


@pytest.mark.parametrize(("most", "few"), [(1 << 20, True), (20, False)])
def test_tasks_contain_what_blocks_need_of_a_short_vector(
    rng, n, block, columns, monkeypatch, most, few
):
    monkeypatch.setattr(_blocks, "MOST_CONTAINED", most)
    here = SimpleNamespace(piece_entries=1 << 20, send=lambda name, values: values)
    blocks = _blocks.Blocks(here, [(FIRST, LAST)], [None], [block.need], [None])
    values = rng.normal(size=n)
    (part,) = blocks._parts(values)
    assert isinstance(part, np.ndarray) == few
    local = block.take(part)
    np.testing.assert_array_equal(local[: LAST - FIRST], values[FIRST:LAST])
    np.testing.assert_array_equal(local[block.to_local(columns)], values[columns])


def test_dask_sees_how_large_a_kept_result_is(block):
    values = np.zeros(1000)
    kept = Kept((block, {"one": values}), (values, 3))
    assert 16_000 <= sys.getsizeof(kept) < 17_000


@pytest.mark.parametrize("task", ["below", "merge", "plan"])
def test_blocks_hold_their_entries_once(rng, task):
    """Dask stores and sends a block as it is pickled, and watches the size that it reports."""
    n = 300
    rows, columns = np.nonzero(np.triu(rng.uniform(size=(n, n)) < 0.5, 1))
    found = (rows.astype(np.int32), columns.astype(np.int32), rng.uniform(size=len(rows)))
    kept = _pairs.join_pairs(n, 0, n, [found])
    part = {0: np.full(n, 1.0)}
    made = {
        "below": lambda: _pairs._below(kept.value, part),
        "merge": lambda: _pairs._merge(kept.value, kept.value),
        "plan": lambda: _pairs._plan(kept.value, np.full(n, np.inf), 1.0, part),
    }[task]()
    entry = 4 + 8 + (8 if task == "plan" else 0)
    need = 2 * len(rows) * entry + 40 * n
    assert sys.getsizeof(made) < 1.1 * need
    assert len(pickle.dumps(made)) < 1.1 * need


def test_blocks_give_each_other_what_they_need(rng, n, columns):
    """The parts of a vector, by first row, without those that hold none of the columns."""
    ranges = [(a, min(a + FIRST, n)) for a in range(0, n, FIRST)]
    values = rng.normal(size=n)
    columns = columns[columns < 2 * FIRST]
    block = Columns.of(n, 0, FIRST, columns)
    parts = [values[a:b] for a, b in ranges]
    blocks = _blocks.Blocks(None, ranges, [None], [block.need], [])
    (part,) = blocks.needed(parts)
    assert set(part) == {0, FIRST}
    local = block.take(part)
    np.testing.assert_array_equal(local[block.to_local(columns)], values[columns])


def test_pieces_that_one_worker_has_are_one_task():
    submitted = []

    def submit(name, function, *args):
        submitted.append(name)
        return function(*args).value

    here = SimpleNamespace(submit=submit, held_together=lambda results: [[0, 2], [1]])
    results = [{0: "a", 1: "b"}, {1: "c"}, {1: "d"}]
    pieces = _blocks.pieces_of(here, "entries", results, [set(result) for result in results], 2)
    assert [_blocks.in_order(own) for own in pieces] == [["a"], ["b", "c", "d"]]
    assert len(submitted) == 3
