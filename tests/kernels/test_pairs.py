"""Lists of pairs become symmetric, sorted rows; blocks give up exactly the pairs below."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph._kernels import pairs as kernels
from otgraph._parallel import Workers
from otgraph.costs.pairs import symmetric_pairs


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
