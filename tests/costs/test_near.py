"""Searches from queries: cells, tree and blocks against brute force, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import problems
from otgraph._kernels import lists as list_kernels
from otgraph._parallel import Workers
from otgraph.costs import check_input, direct_cost, near
from otgraph.costs.near import NearSearch, all_but, share_above, transport_below
from otgraph.costs.sizes import SearchSizes

N = 900
ROUTES = {
    "tree": SearchSizes(fewest_tree_points=100, most_tree_dimensions=1000),
    "cells": SearchSizes(fewest_cell_points=100, most_tree_dimensions=0),
    "blocks": SearchSizes(most_tree_dimensions=0),
}


@pytest.fixture(params=ROUTES)
def route(request):
    return ROUTES[request.param]


@pytest.fixture(autouse=True)
def few_queries_per_task(monkeypatch):
    monkeypatch.setattr(near, "QUERY_ROWS", 100)


def placed(X):
    X = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0)
    return np.ascontiguousarray(X / max(np.abs(X).max(), 1e-300))


def squares_of(Q, X):
    """Squared distances with the sums of the kernels: in eight lanes, then four for the rest."""
    square = np.square(Q[:, None] - X)
    lanes = np.zeros((8, *square.shape[:2]))
    rest = np.zeros((4, *square.shape[:2]))
    d = X.shape[1]
    n = d - d % 8
    for k in range(n):
        lanes[k % 8] += square[..., k]
    for k in range(n, d):
        rest[k - n if d - n >= 4 and k < n + 4 else 0] += square[..., k]
    halves = lanes[:4] + lanes[4:]
    total = (halves[0] + halves[2]) + (halves[1] + halves[3])
    return total + ((rest[0] + rest[1]) + (rest[2] + rest[3]))


def by_sorting(values, k):
    order = np.array([np.lexsort((np.arange(values.shape[1]), row)) for row in values])[:, :k]
    return order, np.take_along_axis(values, order, axis=1)


@pytest.mark.parametrize("name", problems.CLOUDS)
def test_nearest_points_equal_sorting(rng, route, name):
    X = placed(problems.CLOUDS[name](rng, N))
    squares = squares_of(X, X)
    np.fill_diagonal(squares, np.inf)
    for k in (1, 7, 200):
        indices, found = NearSearch(X, Workers(2), route).nearest(k)
        expected, values = by_sorting(squares, k)
        np.testing.assert_array_equal(indices, expected)
        np.testing.assert_array_equal(found, values)


def test_ties_are_broken_by_index(route):
    X = placed(np.repeat(np.mgrid[:6, :6].reshape(2, -1).T, 9, axis=0).astype(float))
    squares = squares_of(X, X)
    np.fill_diagonal(squares, np.inf)
    indices, _ = NearSearch(X, Workers(1), route).nearest(13)
    np.testing.assert_array_equal(indices, by_sorting(squares, 13)[0])


@pytest.mark.parametrize("n_queries", [3, 500])  # fewer or more than cells
def test_queries_near_and_far(rng, route, n_queries):
    X = placed(problems.CLOUDS["clustered"](rng, N))
    Q = rng.standard_normal((n_queries, X.shape[1])) * np.geomspace(1e-9, 1e60, n_queries)[:, None]
    indices, found = NearSearch(X, Workers(2), route).nearest(5, Q)
    expected, values = by_sorting(squares_of(Q, X), 5)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(found, values)


def test_tight_groups_far_apart(rng, route):
    # Relative to the whole cloud, distances in a group are below the errors of float32.
    X = placed(np.repeat(rng.standard_normal((30, 8)), 30, axis=0))
    X += 1e-9 * rng.standard_normal(X.shape)
    squares = squares_of(X, X)
    np.fill_diagonal(squares, np.inf)
    indices, _ = NearSearch(X, Workers(1), route).nearest(4)
    np.testing.assert_array_equal(indices, by_sorting(squares, 4)[0])


@pytest.mark.parametrize("half_power", [0.5, 1.0, 1.5])
def test_lists_of_transport(rng, route, half_power):
    X, Q = placed(rng.standard_normal((N, 6))), 0.2 * rng.standard_normal((200, 6))
    u, mass = rng.uniform(-0.1, 0.3, N), rng.uniform(0.1, 2.0, 200)
    found = NearSearch(X, Workers(2), route).lists(
        transport_below(mass), u, factor=3.0, half_power=half_power, queries=Q
    )
    values = 3.0 * squares_of(Q, X) ** half_power - u
    for q in range(200):
        some = slice(found.indptr[q], found.indptr[q + 1])
        level = list_kernels.level_of(values[q], N, mass[q])
        assert np.maximum(level - values[q], 0.0).sum() == pytest.approx(mass[q], rel=1e-10)
        needed = np.flatnonzero(values[q] < level * (1 - 1e-9))
        assert np.isin(needed, found.columns[some]).all()
        assert np.all(np.diff(found.columns[some]) > 0)
        np.testing.assert_allclose(found.values[some], values[q, found.columns[some]], rtol=1e-12)


@pytest.mark.parametrize("share", [1e-9, 1e-3])
def test_lists_of_shares(rng, route, share):
    X, eps = placed(rng.standard_normal((N, 4))), 0.01
    found = NearSearch(X, Workers(2), route).lists(share_above(eps, share))
    weights = np.exp(-squares_of(X, X) / eps)
    np.fill_diagonal(weights, 0.0)
    for i in range(N):
        kept = found.columns[found.indptr[i] : found.indptr[i + 1]]
        needed = np.flatnonzero(weights[i] > share * weights[i].sum() * (1 + 1e-9))
        np.testing.assert_array_equal(np.setdiff1d(needed, kept), [])


def test_trimmed_lists_lack_no_more_than_their_share(rng, route):
    X, eps, share = placed(rng.standard_normal((N, 4))), 0.02, 1e-4
    found = NearSearch(X, Workers(2), route).lists(all_but(share, eps, N))
    weights = np.exp(-squares_of(X, X) / eps)
    np.fill_diagonal(weights, 0.0)
    kept = np.zeros((N, N), dtype=bool)
    kept[np.repeat(np.arange(N), np.diff(found.indptr)), found.columns] = True
    lacking = np.sum(weights, axis=1, where=~kept)
    assert np.all(lacking <= share * weights.sum(axis=1))
    assert kept.mean() < 0.5  # and something was left out


def test_the_same_bits_for_any_threads_and_cells(rng):
    X = placed(problems.CLOUDS["clustered"](rng, N))
    results = [
        NearSearch(X, Workers(threads), sizes).nearest(9)
        for threads in (1, 3)
        for sizes in ROUTES.values()
    ]
    for indices, squares in results[1:]:
        np.testing.assert_array_equal(indices, results[0][0])
        np.testing.assert_array_equal(squares, results[0][1])


def test_costs_ask_the_search(rng):
    X = rng.standard_normal((N, 9))
    cost = direct_cost(check_input(X, "euclidean"), power=3.0, workers=Workers(1))
    indices, values = cost.nearest(4)
    C = squares_of(X, X) ** 1.5
    np.fill_diagonal(C, np.inf)
    np.testing.assert_array_equal(indices, by_sorting(C, 4)[0])
    np.testing.assert_allclose(values, by_sorting(C, 4)[1], rtol=1e-12)


@pytest.mark.parametrize("kind", [list_kernels.NEAREST, list_kernels.TRANSPORT, list_kernels.SHARE])
def test_bounds_never_rise(rng, kind):
    values, columns = rng.uniform(size=64), np.arange(64, dtype=np.int32)
    last = np.inf
    for count in range(1, 65):
        part = values[:count].copy()
        _, bound = list_kernels.shorten(kind, 3.0, 2.0, part, columns[:count].copy(), count)
        assert bound <= last + 1e-9
        last = bound
