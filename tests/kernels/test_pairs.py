"""Lists of pairs become symmetric, sorted rows; blocks give up exactly the pairs below."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import problems
import reference
from otgraph._kernels import pairs as kernels
from otgraph._parallel import Workers
from otgraph.costs import pairs as pair_lists
from otgraph.costs.pairs import FoundPairs, FoundRows, Pairs, symmetric_pairs


@pytest.mark.parametrize("n", [6, 80])  # 80: rows long enough for the general sort
def test_symmetric_pairs(rng, n):
    """In any order, any direction, any number of times: each pair is stored once per row."""
    C = reference.cost_matrix(rng.normal(size=(n, 2)))
    i, j = rng.integers(n, size=(2, n * n)).astype(np.int32)
    i, j = i[i != j], j[i != j]
    chunks = [(i[a : a + 7], j[a : a + 7], C[i, j][a : a + 7]) for a in range(0, len(i), 7)]
    pairs = symmetric_pairs(n, chunks, Workers(1))
    wanted = np.zeros((n, n), dtype=bool)
    wanted[i, j] = wanted[j, i] = True
    np.testing.assert_array_equal(problems.as_mask(pairs), wanted)
    rows = np.repeat(np.arange(n), np.diff(pairs.indptr))
    np.testing.assert_array_equal(pairs.costs, C[rows, pairs.indices])


def test_rows_are_sorted_by_column(rng):
    """Columns of all words and groups of bits; of a repeated one the smaller cost is kept."""
    n_columns, lengths = 20_000, [0, 1, 700, 64, 3]
    rows = [rng.integers(n_columns, size=length) for length in lengths]
    rows[3] = np.arange(64)[::-1] + n_columns - 64
    rows[4] = np.array([4096, 63, 4096])
    indices, costs = np.concatenate(rows).astype(np.int32), rng.random(sum(lengths))
    indptr, counts = np.concatenate(([0], np.cumsum(lengths))), np.empty(5, dtype=np.int64)
    given = [(indices[a:b].copy(), costs[a:b].copy()) for a, b in pairwise(indptr)]
    kernels.sort_rows(indptr, indices, costs, n_columns, 0, 2, counts)
    kernels.sort_rows(indptr, indices, costs, n_columns, 2, 5, counts)
    for first, count, (columns, values) in zip(indptr[:-1], counts, given, strict=True):
        found = slice(first, first + count)
        np.testing.assert_array_equal(indices[found], np.unique(columns))
        least = [values[columns == j].min() for j in np.unique(columns)]
        np.testing.assert_array_equal(costs[found], least)


def some_pairs(rng, n, count):
    i, j = np.triu_indices(n, 1)
    chosen = rng.choice(len(i), count, replace=False)
    i, j = i[chosen].astype(np.int32), j[chosen].astype(np.int32)
    return symmetric_pairs(n, [(i, j, (100.0 * i + j))], Workers(1))


def test_few_pairs_are_added_in_place(rng):
    pairs, few = some_pairs(rng, 60, 800), some_pairs(rng, 60, 20)
    expected = pairs.merged(few, Workers(1))
    grown = pairs.grown(few, Workers(1))
    assert grown is pairs
    for name in ("indptr", "indices", "costs"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(expected, name))


def test_others_are_added_to_a_copy_of_pairs_that_are_kept(rng):
    pairs, few = some_pairs(rng, 60, 800), some_pairs(rng, 60, 20)
    before = [values.copy() for values in (pairs.indptr, pairs.indices, pairs.costs)]
    pairs.keep()
    raised = replace(few, costs=few.costs + 1.0)
    grown = pairs.overlaid(pairs.grown(raised, Workers(1)), Workers(1))
    assert grown.n_pairs > pairs.n_pairs
    for values, known in zip((pairs.indptr, pairs.indices, pairs.costs), before, strict=True):
        np.testing.assert_array_equal(values, known)


@pytest.mark.parametrize("count", [20, 60])
def test_parts_of_rows_are_moved_at_the_same_time(rng, monkeypatch, count):
    monkeypatch.setattr(pair_lists, "SORT_BLOCK_ROWS", 5)
    monkeypatch.setattr(pair_lists, "ROOM", 1.2)
    # With 60 others, parts of few pairs are moved over more than the next one has.
    pairs, few = some_pairs(rng, 60, 800 if count == 20 else 100), some_pairs(rng, 60, count)
    pairs = pairs if count == 20 else Pairs(pairs.indptr, *_with_space(pairs, 400))
    expected, twice = pairs.merged(few, Workers(1)), np.empty(len(pairs.room[0]))
    twice[: len(pairs.costs)] = 2.0 * pairs.costs
    others = replace(few, costs=2.0 * few.costs)
    grown = pairs.grown(few, Workers(2), (twice, others))
    assert grown is pairs
    np.testing.assert_array_equal(grown.indices, expected.indices)
    np.testing.assert_array_equal(grown.costs, expected.costs)
    np.testing.assert_array_equal(twice[: len(grown.costs)], 2.0 * expected.costs)


def _with_space(pairs, count):
    columns, costs = np.empty(count, np.int32), np.empty(count)
    used = slice(len(pairs.indices))
    columns[used], costs[used] = pairs.indices, pairs.costs
    return columns[used], costs[used], (columns, costs)


def test_pairs_without_room_are_copied(rng):
    few, pairs = some_pairs(rng, 60, 20), some_pairs(rng, 60, 800)
    tight = Pairs(few.indptr, few.indices.copy(), few.costs.copy())
    for short in (few, tight):
        before, grown = short.indices.copy(), short.grown(pairs, Workers(1))
        assert grown is not short
        np.testing.assert_array_equal(short.indices, before)
        np.testing.assert_array_equal(grown.indptr, pairs.merged(few, Workers(1)).indptr)


def test_pairs_are_raised_in_place_and_lowered_again(rng):
    pairs, few = some_pairs(rng, 60, 800), some_pairs(rng, 60, 20)
    raised = replace(few, costs=few.costs + 7.0)
    expected, plain = raised.merged(pairs, Workers(1)), pairs.merged(few, Workers(1))
    overlaid = pairs.overlaid(raised, Workers(1))
    assert overlaid is pairs
    np.testing.assert_array_equal(overlaid.indices, expected.indices)
    np.testing.assert_array_equal(overlaid.costs, expected.costs)
    pairs.restore(lambda: few)
    np.testing.assert_array_equal(pairs.costs, plain.costs)


def test_an_evaluation_knows_pairs_that_were_added(rng):
    pairs, few = some_pairs(rng, 60, 800), some_pairs(rng, 60, 20)
    u, diagonal = np.full(60, 3000.0), np.full(60, np.inf)
    problem = pairs.restricted(diagonal, Workers(1))
    before = problem.hessian(u).n_active
    expected = pairs.merged(few, Workers(1)).restricted(diagonal, Workers(1))
    pairs.grown(few, Workers(1))
    assert problem.hessian(u).n_active == expected.hessian(u).n_active > before
    np.testing.assert_array_equal(problem.evaluate(u).row_sums, expected.evaluate(u).row_sums)


def test_many_found_pairs_are_moved_to_long_arrays(rng, monkeypatch):
    chunks = [
        (*rng.integers(50, size=(2, size)).astype(np.int32), rng.normal(size=size))
        for size in (3, 5, 40, 2, 7)
    ]
    monkeypatch.setattr(pair_lists, "FEW_PAIRS", 4)
    monkeypatch.setattr(pair_lists, "LONG_PAIRS", 8)
    found = FoundPairs()
    found.add(chunks[:2])
    found.add(chunks[2:])
    taken = found.taken()
    assert not found.chunks
    assert taken[3][0].base is not None  # a part of a long array
    for chunk, expected in zip(taken, chunks, strict=True):
        for values, wanted in zip(chunk, expected, strict=True):
            np.testing.assert_array_equal(values, wanted)


def test_found_rows_outgrow_their_room_and_give_buffers_back(rng, monkeypatch):
    monkeypatch.setattr(pair_lists, "ROW_ROOM", 1)
    counts, freed = rng.integers(6, size=40), []
    found = FoundRows(40, freed.append)
    rows = [np.sort(rng.choice(40, count, replace=False)) for count in counts]
    for first in range(0, 40, 8):
        buffers = np.empty(50, np.int32), np.empty(50, np.int32), np.empty(50)
        here = slice(first, first + 8)
        count = counts[here].sum()
        buffers[0][:count] = np.repeat(np.arange(first, first + 8), counts[here])
        buffers[1][:count] = np.concatenate(rows[here])
        buffers[2][:count] = buffers[0][:count] + 0.01 * buffers[1][:count]
        found.add([tuple(values[:count] for values in buffers)])
        assert all(x is y for x, y in zip(freed[-1], buffers, strict=True))
        for values in buffers:
            values[:] = -1  # used again
    pairs = found.joined()
    np.testing.assert_array_equal(np.diff(pairs.indptr), counts)
    np.testing.assert_array_equal(pairs.indices, np.concatenate(rows))
    i = np.repeat(np.arange(40), counts)
    np.testing.assert_array_equal(pairs.costs, i + 0.01 * pairs.indices)


def test_no_pairs_at_all():
    pairs = symmetric_pairs(3, [], Workers(1))
    assert not problems.as_mask(pairs).any()
    assert pairs.n == 3


def test_pairs_below(rng):
    n = 30
    C = reference.cost_matrix(rng.normal(size=(n, 2)))
    i, j = np.triu_indices(n, 1)
    chunk = (i.astype(np.int32), j.astype(np.int32), C[i, j])
    pairs = symmetric_pairs(n, [chunk], Workers(1))
    upper = rng.normal(0.2, 0.3, size=n)
    below = problems.as_mask(pairs.below(upper, Workers(1)))
    np.testing.assert_array_equal(below, reference.pairs_below(C, upper))


def test_collect_block_stops_before_its_buffer_is_full(rng):
    n = 50
    C = reference.cost_matrix(rng.normal(size=(n, 2)))
    upper = rng.normal(0.3, 0.2, size=n)
    i, j, c = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n)
    found, row, calls = np.zeros((n, n), dtype=bool), 0, 0
    while row < n:
        row, count = kernels.collect_block(C, 0, 0, upper, i, j, c, row)
        found[i[:count], j[:count]] = True
        np.testing.assert_array_equal(c[:count], C[i[:count], j[:count]])
        calls += 1
    assert calls > 1
    np.testing.assert_array_equal(found, np.triu(reference.pairs_below(C, upper)))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_one_list_is_sorted_like_several(rng, n):
    """In one call, also with repeated pairs, of which the smaller cost is kept."""
    i, j = rng.integers(n, size=(2, 90)).astype(np.int32)
    chunk = tuple(values[i != j] for values in (i, j, rng.random(90)))
    together = symmetric_pairs(n, [chunk], Workers(1))
    halves = [tuple(values[a:b] for values in chunk) for a, b in ((0, 30), (30, None))]
    apart = symmetric_pairs(n, halves, Workers(1))
    for values in ("indptr", "indices", "costs"):
        np.testing.assert_array_equal(getattr(together, values), getattr(apart, values))
