"""Searches between two clouds whose potentials are steep, and potentials from coarser levels."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph._kernels import tree as tree_kernels
from otgraph._parallel import Workers
from otgraph.costs import between_points
from otgraph.costs.between import Coarse
from otgraph.costs.clouds import check_clouds, cross_cost
from otgraph.costs.sizes import SearchSizes
from otgraph.costs.tree import BoxTree, tree_order
from otgraph.solvers.scales import start_between
from otgraph.solvers.screening import Screener
from otgraph.solvers.state import Goal

SMALL = SearchSizes(
    most_tree_dimensions=3, fewest_tree_points=50, fewest_cell_points=50, screen_cells=12,
    near_share=0.55, plain_share=1.1, block_rows=64,
)  # fmt: skip


def cost_between(X, Y, **keywords):
    return cross_cost(check_clouds((X, Y), "euclidean"), workers=Workers(2), **keywords)


def moved_clouds(rng, n, m, d):
    """Clouds of three groups with different shares: much of the mass has to travel."""
    centers = 4.0 * rng.normal(size=(3, d))
    X = centers[rng.choice(3, size=n, p=[0.6, 0.3, 0.1])] + rng.normal(size=(n, d))
    Y = centers[rng.choice(3, size=m, p=[0.1, 0.3, 0.6])] + rng.normal(size=(m, d))
    return X, Y


def goal_of(cost):
    n, m = cost.n_left, cost.n_right
    mass = np.concatenate((np.ones(n), np.full(m, n / m)))
    return Goal(eps=1.0, mass=mass, self_loops=False, tol=1e-6, max_iter=200)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_tilts_of_all_nodes_bound_the_reaches(rng, d):
    points = rng.normal(size=(700, d))
    points = points[tree_order(points, Workers(1))]
    steep = rng.normal(size=d)
    noise = 1e-3 * rng.uniform(size=700)
    reach = 3.0 + 2.0 * points @ steep + noise
    tree = BoxTree.around(points, 0, 700)
    largest, tilts = tree.tilted_reaches(points, reach)
    np.testing.assert_allclose(tilts[1], steep, atol=0.05)
    n_leaves, width, level = tree.n_leaves, tree.n_leaves, 1
    while level <= n_leaves:
        for node in range(level, 2 * level):
            first = (node - level) * width
            rows = slice(tree.offsets[first], tree.offsets[first + width])
            above = reach[rows] - 2.0 * points[rows] @ tilts[node]
            assert above.max() <= largest[node]
            assert largest[node] <= above.max() + 1e-9
        width, level = width // 2, 2 * level
    # Of affine reaches nothing is left but the noise; the largest reach of the root says nothing.
    untilted, none = tree.reaches(reach)
    assert none is None
    assert largest[1] < 3.0 + 0.3
    assert untilted[1] > 3.0 + np.abs(steep).max()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_bounds_of_boxes_are_those_of_their_best_points(rng, d):
    """Against many points of the boxes: below all of them, and near the lowest."""
    for _ in range(30):
        corners, other = np.sort(rng.normal(size=(2, d)), 0), np.sort(rng.normal(size=(2, d)), 0)
        s, t = rng.normal(size=(2, d))
        grid = np.linspace(0.0, 1.0, 41)
        bound = tree_kernels._tilted_box_to_box.py_func(
            corners[0], corners[1], s, other[:1], other[1:], t[None], 0
        )
        lowest = 0.0
        for k in range(d):
            x = corners[0, k] + grid * (corners[1, k] - corners[0, k])
            y = other[0, k] + grid * (other[1, k] - other[0, k])
            values = (x[:, None] - y) ** 2 - 2.0 * (s[k] * x[:, None] + t[k] * y)
            lowest += values.min()
        assert bound <= lowest + 1e-9
        # A grid point is within 1/80 of the best one in either direction.
        assert bound >= lowest - 0.05 * d * (1.0 + np.abs(corners).max() + np.abs(other).max()) ** 2


@pytest.mark.parametrize("d", [2, 3, 6])
def test_screens_with_steep_potentials_find_all_pairs(rng, d):
    X, Y = moved_clouds(rng, 300, 200, d)
    found = []
    for sizes in (SMALL, SearchSizes(fewest_tree_points=10**9, fewest_cell_points=10**9)):
        cost = cost_between(X, Y, sizes=sizes)
        gradient = np.random.default_rng(1).normal(size=d)
        sides = np.where(np.arange(500) < 300, 1.0, -1.0)[cost.order]
        upper = sides * (cost.own @ gradient) + 0.2
        pairs = cost.screen(upper).pairs
        i = np.repeat(cost.order, np.diff(pairs.indptr))
        found.append(set(zip(i.tolist(), cost.order[pairs.indices].tolist(), strict=True)))
    assert found[0] == found[1]
    assert 1000 < len(found[0]) < 100_000


def test_slack_gives_about_the_wanted_number_of_pairs(rng):
    X, Y = moved_clouds(rng, 400, 300, 3)
    cost = cost_between(X, Y, sizes=SMALL)
    u, units = np.full(700, 0.01), rng.uniform(0.5, 1.5, 700)
    slack = cost.slack(u, units, 20)
    pairs = cost.screen(u + slack * units).pairs
    assert 2 * pairs.n_pairs / 700 == pytest.approx(20, rel=0.25)  # from 48 of 700 rows
    # More pairs than there are: all of them.
    everything = cost.screen(u + 1.0001 * cost.slack(u, units, 1000) * units).pairs
    assert everything.n_pairs > 0.9 * cost.n_pairs


def test_partners_of_a_cell_lift_as_all_points_do(rng, monkeypatch):
    X, Y = moved_clouds(rng, 4000, 3000, 6)
    cost = cost_between(X, Y, sizes=SMALL)
    thin, rows, factor = cost.thinned(900)
    goal = goal_of(thin)
    start = start_between(Screener(thin), goal, degree=15.0)
    plan = start.state.problem.plan(start.state.u, start.eps)
    coarse = Coarse(start.state.u, start.eps * goal.mass, plan.indptr, plan.indices)
    lifted, units = cost.lifted(rows[thin.order], coarse)
    monkeypatch.setattr(between_points, "FEWEST_CHOSEN", 10**9)
    exact, _ = cost.lifted(rows[thin.order], coarse)
    assert factor == 20
    assert np.all(lifted >= exact - 1e-12)  # fewer partners, higher potentials
    assert np.mean(lifted - exact < 0.5 * units) > 0.9
    assert np.mean(lifted > exact) > 0.0  # it did use fewer


def test_levels_are_alike(rng):
    cost = cost_between(*moved_clouds(rng, 300, 200, 6), sizes=SMALL)
    sizes = [1_000_000]
    while cost._step(sizes[-1], 1500) > 1:
        sizes.append(-(-sizes[-1] // cost._step(sizes[-1], 1500)))
    assert sizes == [1_000_000, 250_000, 62_500, 15_625, 3907, 1303]


def test_approximate_search_looks_where_the_mass_goes(rng):
    """Many pairs that a plan uses lie in cells that are not near each other."""
    X, Y = moved_clouds(rng, 3000, 3000, 6)
    exact = cost_between(X, Y, sizes=SMALL)
    start = start_between(Screener(exact), goal_of(exact), degree=15.0)
    u = start.state.u
    wanted = exact.screen(u).pairs.n_pairs
    approximate = cost_between(X, Y, sizes=SMALL, exact=False)
    found = approximate.screen(u).pairs.n_pairs
    assert np.array_equal(exact.order, approximate.order)
    nearest = cost_between(X, Y, sizes=SMALL, exact=False)
    nearest._partner_cells = lambda reach: nearest._cells.partners(nearest.searched_cells)
    near = nearest.screen(u).pairs.n_pairs
    assert near < 0.65 * wanted
    assert found > 0.8 * wanted
