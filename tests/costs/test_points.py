"""Euclidean points: what cells and float32 exclude, float64 would have excluded too."""

from __future__ import annotations

import numpy as np
import pytest

import problems
import reference
from otgraph.costs import Cost, cells, exclusion
from otgraph.costs.base import cheapest_of_each
from otgraph.costs.exclusion import NotExcluded
from otgraph.costs.powers import DirectPowers
from otgraph.costs.scaling import EXACT_MEAN_POINTS, scaled_points
from otgraph.costs.sizes import SearchSizes
from otgraph.costs.tree import TreeCost

N = 1200
# Relative width of the band around the threshold in which two float64 computations of the
# same cost may disagree; offsets cost digits when points are centered.
BAND = {"offset": 1e-8, "outlier": 1e-8, "far_apart": 1e-8}


SMALL = {"fewest_cell_points": 100, "plain_columns": 200, "block_rows": 256}
ROUTES = {
    "tree": SearchSizes(fewest_tree_points=100, most_tree_dimensions=1000),
    "cells": SearchSizes(**SMALL, near_share=1.0, plain_share=2.0),
    "cells_or_blocks": SearchSizes(**SMALL),
    "blocks": SearchSizes(**SMALL, near_share=-1.0, plain_share=-1.0),
    "one_block": SearchSizes(block_rows=256),
}


@pytest.fixture(params=ROUTES)
def route(request):
    """The ways that a screen can take, with sizes that lead few points along them."""
    return ROUTES[request.param]


def assert_screened(cost, C, upper, band=1e-12):
    """Every pair below is found, and no other, but for what lies within rounding."""
    found = problems.as_mask(cost.screen(upper[cost.order]).pairs, cost.order)
    width = band * (np.abs(upper)[:, None] + np.abs(upper) + C)
    assert not (reference.pairs_below(C + width, upper) & ~found).any()
    assert not (found & ~reference.pairs_below(C - width, upper)).any()
    return found


def potentials(rng, C, degree):
    """Half the cost of each point's neighbor of that rank, with noise and a few negative ones."""
    u = 0.5 * np.sort(C, axis=1)[:, degree] * rng.uniform(0.5, 1.2, size=len(C))
    u[rng.uniform(size=len(C)) < 0.05] *= -1.0
    return u


@pytest.mark.parametrize("name", problems.CLOUDS)
def test_screen_equals_brute_force(rng, route, name):
    X = problems.CLOUDS[name](rng, N)
    cost, C = problems.cost_of(X, sizes=route), reference.cost_matrix(X)
    for degree in (1, 12, 400):
        assert_screened(cost, C, potentials(rng, C, degree), BAND.get(name, 1e-12))


@pytest.mark.parametrize("p", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", ["random", "clustered", "outlier", "heavy_tails"])
def test_screen_of_other_powers(rng, route, name, p):
    X = problems.CLOUDS[name](rng, N)
    cost, C = problems.cost_of(X, power=p, sizes=route), reference.cost_matrix(X, power=p)
    for degree in (1, 25):
        assert_screened(cost, C, potentials(rng, C, degree), BAND.get(name, 1e-12))


@pytest.mark.parametrize("metric", ["cosine", "sqeuclidean"])
def test_screen_of_other_metrics(rng, route, metric):
    X = problems.random(rng, N) + 1.0
    cost, C = (
        problems.cost_of(X, metric=metric, power=1.0, sizes=route),
        reference.cost_matrix(X, metric=metric, power=1),
    )
    # 1 - cos computed directly loses digits that the chord of unit vectors keeps.
    assert_screened(cost, C, potentials(rng, C, 15), 1e-10)


@pytest.mark.parametrize("n_features", [1, 3, 100, 800])
def test_no_pair_is_lost_at_the_threshold(rng, route, n_features):
    """Potentials that put chosen pairs just above or just below their cost.

    Clusters lie far from the center of all points, so that float32 knows the distances
    within a cluster to a few digits at best. Centering such points is exact.
    """
    centers = 1e3 * rng.normal(size=(4, n_features))
    X = centers[rng.integers(4, size=N // 2)] + rng.normal(size=(N // 2, n_features))
    X = np.round(X * 2**20) / 2**20
    X = np.vstack([X, -X])
    cost, C = problems.cost_of(X, sizes=route), reference.cost_matrix(X)
    for _ in range(4):
        i, j = _near_pairs(rng, C)
        above = rng.choice([-1.0, 1.0], size=len(i))
        found = assert_screened(cost, C, _at_threshold(rng, C, i, j, 1e-9 * above))
        np.testing.assert_array_equal(found[i, j], above > 0)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_no_cell_is_lost_at_the_threshold(rng, scale):
    """On a line the bound of a cell is attained by its outermost point."""
    X = rng.normal(size=(N, 1))
    X[: N // 2] = scale * X[: N // 2] + 7.0
    cost, C = problems.cost_of(X, sizes=ROUTES["cells"]), reference.cost_matrix(X)
    for _ in range(20):
        i, j = rng.permutation(N)[:120].reshape(2, -1)
        found = assert_screened(cost, C, _at_threshold(rng, C, i, j, 1e-9))
        assert found[i, j].all()


def _near_pairs(rng, C):
    """Disjoint pairs, mostly of near points."""
    left, order, chosen = np.ones(len(C), dtype=bool), rng.permutation(len(C)), []
    for i in order[:200]:
        if left[i]:
            left[i] = False
            j = int(np.argmin(np.where(left, C[i], np.inf)))
            left[j] = False
            chosen.append((i, j))
    return np.array(chosen).T


def _at_threshold(rng, C, i, j, relative):
    """Potentials with u_i + u_j = C_ij (1 + relative) for these pairs, and no others near."""
    upper = np.full(len(C), -C.max())
    share = rng.uniform(0.1, 0.9, size=len(i))
    upper[i] = share * C[i, j] * (1.0 + relative)
    upper[j] = (1.0 - share) * C[i, j] * (1.0 + relative)
    return upper


def test_negative_potentials_screen_nothing(rng, route):
    cost = problems.cost_of(problems.duplicates(rng, N), sizes=route)
    for level in (-1.0, -1e-9, 0.0):
        assert not problems.as_mask(cost.screen(np.full(N, level)).pairs).any()


def test_duplicates_cost_exactly_nothing(rng, route):
    X = problems.duplicates(rng, N)
    cost = problems.cost_of(X, sizes=route)
    pairs = cost.screen(np.full(N, 1e-12)).pairs
    equal = (X[:, None] == X[None]).all(axis=-1)
    np.fill_diagonal(equal, False)
    np.testing.assert_array_equal(problems.as_mask(pairs, cost.order), equal)
    assert np.all(pairs.costs == 0.0)


@pytest.mark.parametrize("n", [40, 300])
@pytest.mark.parametrize("name", ["random", "clustered", "line", "grid", "duplicates"])
def test_neighbors_of_few_points_are_the_nearest(rng, name, n):
    """Up to what float32 can tell apart."""
    X, k = problems.CLOUDS[name](rng, n), 10
    cost, C = problems.cost_of(X), reference.cost_matrix(X)
    np.fill_diagonal(C, np.inf)
    pairs = cost.neighbors(k)
    kth = np.sort(C, axis=1)[:, k - 1]
    norms = np.square(X - X.mean(axis=0)).sum(axis=1).max() / np.square(X).mean()
    for i in range(len(X)):
        row = np.sort(pairs.costs[pairs.indptr[i] : pairs.indptr[i + 1]])
        assert len(row) >= k
        assert row[k - 1] <= kth[i] + 1e-6 * norms
    # No pair below the reach of either end is missing.
    found = problems.as_mask(pairs)
    assert not (C[~found] < np.maximum.outer(pairs.reach, pairs.reach)[~found]).any()


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("name", problems.CLOUDS)
def test_first_search_without_cells_is_a_screen(rng, name, power):
    """No pair is missing below the bound, and there are about as many pairs as wanted."""
    X = problems.CLOUDS[name](rng, N)
    cost, C = problems.cost_of(X, power=power), reference.cost_matrix(X, power=power)
    assert cost.compares_all
    np.fill_diagonal(C, np.inf)
    pairs, k = cost.neighbors(30), 30
    found = problems.as_mask(pairs)
    bound, width = 0.5 * (pairs.reach[:, None] + pairs.reach), BAND.get(name, 1e-9)
    assert found[bound * (1.0 - width) - 1e-300 > C].all()
    if name != "far_apart":  # the search goes beyond the bound by the noise of products
        wide = 1e-3 if name in BAND else 1e-6
        assert not found[bound * (1.0 + wide) + 1e-300 < C].any()
    if name != "grid":  # it has ties, which are left out
        assert 0.8 * k < 2.0 * pairs.n_pairs / N < 2.2 * k
    assert (np.diff(pairs.indptr) > 0).mean() > 0.9


def test_first_search_finds_all_copies(rng):
    """Copies of a point are partners of each other at any eps."""
    X = np.repeat(rng.normal(size=(12, 6)), N // 12, axis=0)
    found = problems.as_mask(problems.cost_of(X).neighbors(10))
    same = np.repeat(np.arange(12), N // 12)
    assert found[(same[:, None] == same) & ~np.eye(N, dtype=bool)].all()


@pytest.mark.parametrize("k", [1, 6, N - 1])
@pytest.mark.parametrize("name", ["random", "clustered", "duplicates", "far_apart", "grid"])
def test_partners_bounded_by_a_sample_are_the_nearest(rng, name, k):
    X = problems.CLOUDS[name](rng, N)
    cost, C = problems.cost_of(X), reference.cost_matrix(X)
    np.fill_diagonal(C, np.inf)
    rows = np.sort(rng.permutation(N)[:700])
    i, j, costs = cost.nearest_pairs(rows, k)
    np.testing.assert_array_equal(i, np.repeat(rows, k))
    assert (i != j).all()
    wanted = np.sort(C[rows], axis=1)[:, :k]
    np.testing.assert_allclose(costs.reshape(-1, k), wanted, rtol=1e-6, atol=1e-14)


def test_first_search_for_nearly_all_pairs_finds_all(rng):
    cost = problems.cost_of(problems.random(rng, N))
    assert cost.neighbors(N - 100).n_pairs == cost.n_pairs


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("name", ["random", "clustered", "grid", "duplicates", "copies", "far"])
def test_first_search_of_a_tree_is_a_screen(rng, name, power):
    """No pair is missing below the bound, and there are about as many pairs as wanted."""
    X = rng.normal(size=(700, 3))
    if name == "copies":
        X = np.repeat(X[:70], 10, axis=0)
    elif name == "far":
        X[:5] *= 1000.0
    elif name != "random":
        X = problems.CLOUDS[name](rng, 700)[:, :3]
    cost = problems.cost_of(X, sizes=SearchSizes(fewest_tree_points=100), power=power)
    assert isinstance(cost, TreeCost)
    C = reference.cost_matrix(X, power=power)[np.ix_(cost.order, cost.order)]
    np.fill_diagonal(C, np.inf)
    pairs, k = cost.neighbors(30), 30
    found = problems.as_mask(pairs)
    bound = 0.5 * (pairs.reach[:, None] + pairs.reach)
    np.testing.assert_array_equal(found[bound * (1.0 - 1e-9) > C], True)
    np.testing.assert_array_equal(found[bound * (1.0 + 1e-9) < C], False)
    if name in ("random", "clustered"):  # others have ties
        assert 0.7 * k < 2.0 * pairs.n_pairs / len(X) < 1.3 * k
    if name == "far":  # each has a few partners
        assert np.diff(pairs.indptr).min() >= 2


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_costs_of_the_neighbors_of_far_points(rng, power):
    X = rng.standard_t(1.5, size=(700, 3))
    X[:20] = X[20]
    cost = problems.cost_of(X, sizes=SearchSizes(fewest_tree_points=100), power=power)
    C = reference.cost_matrix(X, power=power)[np.ix_(cost.order, cost.order)]
    rows = np.arange(0, 700, 3)
    expected = np.sort(C[rows], axis=1)[:, 10]  # after the point itself
    np.testing.assert_allclose(cost._neighbor_costs(10, rows), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", problems.CLOUDS)
def test_neighbors_are_k_other_points(rng, route, name):
    cost = problems.cost_of(problems.CLOUDS[name](rng, N), sizes=route)
    pairs = cost.neighbors(10)
    problems.as_mask(pairs)  # well-formed
    counts = np.diff(pairs.indptr)
    # Searches that are screens give about as many, but for ties: copies of a point, or a grid.
    is_screen = route in (ROUTES["tree"], ROUTES["one_block"])
    assert counts.mean() >= 5 if is_screen else counts.min() >= 10


def test_neighbors_from_near_cells_are_mostly_the_nearest(rng):
    X = problems.random(rng, N)
    cost, C = problems.cost_of(X, sizes=problems.CELLS), reference.cost_matrix(X)
    np.fill_diagonal(C, np.inf)
    nearest = np.argsort(C, axis=1)[:, :10]
    found = problems.as_mask(cost.neighbors(10), cost.order)
    assert np.take_along_axis(found, nearest, 1).mean() > 0.9


def test_approximate_screen_finds_part_and_says_so(rng):
    X = problems.many_dimensions(rng, N)
    C = reference.cost_matrix(X)
    upper = potentials(rng, C, 15)
    true = reference.pairs_below(C, upper)
    sizes = SearchSizes(fewest_cell_points=100, screen_cells=2)
    cost = problems.cost_of(X, exact=False, sizes=sizes)
    n_found = [0]
    while not cost.decide(upper[cost.order]):
        screen = cost.screen(upper[cost.order])
        assert not screen.complete
        assert 0 < screen.pairs_checked <= cost.n_pairs
        found = problems.as_mask(screen.pairs, cost.order)
        assert not (found & ~true).any()
        n_found.append(found.sum())
        assert cost.widen()
    assert np.all(np.diff([*n_found, true.sum()]) > 0)  # looking further finds more
    assert len(n_found) > 2
    assert not cost.widen()  # there is nothing further
    screen = cost.screen(upper[cost.order])
    assert screen.complete
    np.testing.assert_array_equal(problems.as_mask(screen.pairs, cost.order), true)


def test_with_many_cells_points_choose_theirs(rng):
    """More pairs are found than in fewer cells that all points of a cell look into."""
    X = problems.many_dimensions(rng, N)
    C = reference.cost_matrix(X)
    upper = potentials(rng, C, 15)
    true, found, checked = reference.pairs_below(C, upper), {}, {}
    for n_cells, many in ((6, 10**6), (6, 1), (18, 10**6)):
        sizes = SearchSizes(fewest_cell_points=100, screen_cells=n_cells, many_cells=many)
        cost = problems.cost_of(X, exact=False, sizes=sizes)
        screen = cost.screen(upper[cost.order])
        found[n_cells, many] = problems.as_mask(screen.pairs, cost.order)
        checked[n_cells, many] = screen.pairs_checked
        if cost.chooses:
            assert cost.widen()
            assert not cost.chooses  # a point may have partners in cells that it did not choose
    few, chosen, all_of_these = found.values()
    assert not (chosen & ~all_of_these).any()
    assert not (all_of_these & ~true).any()
    assert few.sum() < chosen.sum() < all_of_these.sum()
    assert checked[6, 1] < checked[18, 10**6]


def test_search_auto_decides_by_what_exact_would_cost(rng):
    upper = np.full(N, 0.05)
    X = problems.clustered(rng, N)
    cost = problems.cost_of(X, exact=None, sizes=problems.CELLS)
    assert cost.decide(upper) is cost.exact is True
    assert cost.screen(upper).complete
    sizes = SearchSizes(fewest_cell_points=100, screen_cells=2, auto_pairs_per_point=1)
    cost = problems.cost_of(X, exact=None, sizes=sizes)
    assert cost.decide(upper) is cost.exact is False
    assert not cost.screen(upper).complete


@pytest.mark.parametrize("p", [1.0, 2.0])
@pytest.mark.parametrize("scale", [1e154, 1e-160, 2.0**300, 1e20])
def test_scale_of_the_points_does_not_matter(rng, scale, p):
    X = problems.random(rng, 300)
    plain, scaled = problems.cost_of(X, power=p), problems.cost_of(scale * X, power=p)
    upper = np.full(300, 0.1)
    a, b = plain.screen(upper).pairs, scaled.screen(upper).pairs
    np.testing.assert_array_equal(a.indices, b.indices)
    np.testing.assert_allclose(a.costs, b.costs, rtol=1e-13)


def test_sampled_mean_of_many_points(rng):
    """Beyond a limit the mean of a power is estimated: to a fraction of a percent."""
    X = problems.random(rng, EXACT_MEAN_POINTS + 1)
    options = {"metric": "euclidean", "power": 1.0, "normalize": True}
    exact = scaled_points(X, **options, sample_mean=False).scale
    sampled = [scaled_points(X, **options).scale for _ in range(2)]
    assert sampled[0] == pytest.approx(exact, rel=2e-3)
    assert sampled[0] != exact
    assert sampled[0] == sampled[1]


def test_narrow_clusters_far_apart_have_products_of_their_own(rng):
    """Relative to a common center float32 could not tell their points apart."""
    centers = rng.normal(size=(12, 6))
    X = np.repeat(centers, 40, axis=0) + 1e-5 * rng.normal(size=(480, 6))
    cost, C = problems.cost_of(X, sizes=ROUTES["cells"]), reference.cost_matrix(X)
    upper = 0.5 * np.sort(C, axis=1)[:, 5]
    way = NotExcluded(cost.own, cost._cells, cost._reach(upper[cost.order]), None)
    assert way.shells((0, cost._cells.n_cells)).alone.any()
    found = assert_screened(cost, C, upper, band=1e-7)
    assert found.sum() > len(X)


def test_few_points_need_the_shells_of_near_cells_only(rng, monkeypatch):
    monkeypatch.setattr(exclusion, "BATCH_CELLS", 4)
    X = problems.clustered(rng, N)
    cost, C = problems.cost_of(X, sizes=ROUTES["cells"]), reference.cost_matrix(X)
    upper, made, make = 0.5 * np.sort(C, axis=1)[:, 12], [], NotExcluded.shells
    monkeypatch.setattr(NotExcluded, "shells", lambda way, b: made.append(b) or make(way, b))
    rows = np.sort(rng.permutation(N)[:5])  # in the order of the cost
    found = problems.as_mask(cost.screen(upper[cost.order], rows=rows).pairs, cost.order)
    own = cost.order[rows]
    np.testing.assert_array_equal(found[own], reference.pairs_below(C, upper)[own])
    assert found[own].any()
    assert 0 < len(made) < cost._cells.n_cells / 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("count", [1, N // 4])
def test_nearest_points_are_those_of_a_screen(rng, dtype, power, count):
    X = problems.clustered(rng, N).astype(dtype)
    cost = problems.cost_of(X, power=power, sizes=ROUTES["cells"])
    rows = np.sort(rng.choice(N, size=count, replace=False))
    found = cost.nearest_pairs(rows, 3)
    for mine, others in zip(found, DirectPowers.nearest_pairs(cost, rows, 3), strict=True):
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize("name", ["clustered", "grid", "duplicates"])
def test_shortest_pairs_of_groups_are_those_of_all_pairs(rng, name, power, dtype):
    """With all ties in order: the pairs must not depend on cells."""
    X = problems.CLOUDS[name](rng, N).astype(dtype)
    cost = problems.cost_of(X, power=power, sizes=ROUTES["cells"])
    labels = rng.integers(0, 5, size=N)
    labels[: N // 2] = 0  # so that all points of some cells have the same label
    rows = np.sort(rng.choice(N, size=N // 4, replace=False))
    i, j = (ends.ravel() for ends in np.meshgrid(rows, np.arange(N), indexing="ij"))
    costs = cost.listed(i, j)
    apart = labels[i] != labels[j]
    pairs = (ends[apart] for ends in (labels[i], i, j, costs))
    found = cost.shortest_of_groups(rows, labels, 4)
    for mine, expected in zip(found, cheapest_of_each(*pairs, 4), strict=True):
        np.testing.assert_array_equal(mine, expected)
    groups = (labels[rows] + 1) % 5
    inside = groups[np.searchsorted(rows, i)] == labels[j]
    pairs = (ends[inside] for ends in (i, i, j, costs))
    near = cost.nearest_inside(rows, groups, labels)
    np.testing.assert_array_equal(near, cheapest_of_each(*pairs, 1)[1])


def test_more_cells_are_searched_where_near_ones_miss_neighbors(rng, monkeypatch):
    X = rng.normal(size=(4000, 8))
    sizes = SearchSizes(fewest_cell_points=20, neighbor_cells=2)

    def near_cells(large_part):
        monkeypatch.setattr(cells, "LARGE_PART", large_part)
        return problems.cost_of(X, exact=True, sizes=sizes)._near_cells(10)

    assert near_cells(0.0) is None
    near, n_chosen = near_cells(1.0)
    assert n_chosen in {2 * cells.NEIGHBOR_GROWTH**k for k in range(1, 7)}
    assert min(map(len, near)) == cells.MORE_CELLS * n_chosen
    cost = problems.cost_of(X, exact=True, sizes=sizes)
    assert cost._recall(cost._owners_of_nearest(10), near, n_chosen) >= cells.MIN_RECALL


@pytest.mark.parametrize("inside", [False, True])
def test_partners_of_blocks_of_columns_are_those_of_all(rng, route, inside):
    cost = problems.cost_of(problems.clustered(rng, N), sizes=route)
    labels = rng.integers(0, 3, size=N)
    rows = np.sort(rng.choice(N, size=150, replace=False))
    blocks = cost._partners(rows, labels[rows], labels, 5, inside=inside)
    whole = Cost._partners(cost, rows, labels[rows], labels, 5, inside=inside)
    for one, other in zip(blocks, whole, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("d", [2, 50])
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_products_of_few_points_find_what_a_screen_finds(rng, d, spread):
    """Also where clusters are far apart, so that digits of the products cancel."""
    X = rng.normal(size=(120, d)) + spread * (np.arange(120) % 3 == 0)[:, None]
    cost, fresh = problems.cost_of(X), problems.cost_of(X)
    near = cost.neighbors(12)
    upper = 0.6 * np.sort(cost.sample(np.arange(120)), axis=1)[:, 20] * rng.random(120)
    upper[7] = np.inf
    rows = np.arange(1, 120, 6)
    found, expected = cost.screen(upper, rows=rows), fresh.screen(upper, rows=rows)
    assert found.complete
    assert found.pairs_checked == expected.pairs_checked
    for values in ("indptr", "indices", "costs"):
        np.testing.assert_array_equal(getattr(found.pairs, values), getattr(expected.pairs, values))
    cost.forget_points()
    assert cost._few is None
    assert near.n_pairs >= 60 * 12
