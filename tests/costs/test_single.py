"""Points in float32 are half as large and give the same pairs and costs."""

from __future__ import annotations

import numpy as np
import pytest

import otgraph
from otgraph._parallel import Workers
from otgraph.costs import as_cost, check_input
from otgraph.costs.scaling import scaled_points
from otgraph.costs.single import SinglePoints
from otgraph.costs.sizes import SearchSizes

CELLS = SearchSizes(most_tree_dimensions=0, fewest_cell_points=100)


def cost_of(X, n_jobs=1, **options):
    X = check_input(X, "euclidean", single=True)
    return as_cost(X, workers=Workers(n_jobs), sizes=CELLS, **options)


def listed(cost, pairs):
    """Pairs in the order of the input, with their costs."""
    rows = np.repeat(np.arange(cost.n), np.diff(pairs.indptr))
    i, j = cost.order[rows], cost.order[pairs.indices]
    order = np.lexsort((j, i))
    return i[order], j[order], pairs.costs[order]


@pytest.mark.parametrize("offset", [0.0, 4096.0])
@pytest.mark.parametrize("exact", [True, False])
def test_same_pairs_as_in_float64(rng, offset, exact):
    X = (rng.normal(size=(1500, 7)) + offset).astype(np.float32)
    single, double = cost_of(X, exact=exact), cost_of(X.astype(np.float64), exact=exact)
    assert isinstance(single.own, SinglePoints)
    assert isinstance(double.own, np.ndarray)
    assert single.scale == pytest.approx(double.scale, rel=1e-12)
    upper = np.full(1500, 0.1)
    found, expected = (
        listed(cost, pairs)
        for cost in (single, double)
        for pairs in [cost.screen(upper).pairs if exact else cost.neighbors(8)]
    )
    np.testing.assert_array_equal(found[:2], expected[:2])
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-11)


def test_costs_are_those_of_the_points(rng):
    X = (1e3 + rng.normal(size=(400, 5))).astype(np.float32)
    cost = cost_of(X)
    i, j, costs = listed(cost, cost.screen(np.full(400, 0.2)).pairs)
    wide = X.astype(np.float64)
    expected = np.square(wide[i] - wide[j]).sum(axis=1) / cost.scale
    np.testing.assert_allclose(costs, expected, rtol=1e-13)
    rows = np.arange(0, 400, 50)
    all_costs = np.square(wide[cost.order[rows], None] - wide[cost.order]).sum(axis=2) / cost.scale
    np.testing.assert_allclose(cost.sample(rows), all_costs, rtol=1e-9, atol=1e-12)
    near = 0.4 - all_costs > 0.0
    near[np.arange(len(rows)), rows] = False
    np.testing.assert_array_equal(cost.count_below(rows, np.full(400, 0.2)), near.sum(axis=1))


def test_does_not_depend_on_threads(rng):
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    upper = np.full(3000, 0.1)
    one, three = (cost_of(X, n_jobs).screen(upper).pairs for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.indices, three.indices)
    np.testing.assert_array_equal(one.costs, three.costs)


@pytest.mark.parametrize("length", [1e-30, 1e30])
def test_other_lengths_are_float64(rng, length):
    X = (length * rng.normal(size=(200, 5))).astype(np.float32)
    assert isinstance(cost_of(X).own, np.ndarray)


def test_identical_points():
    assert cost_of(np.full((300, 5), 3.7, dtype=np.float32)).identical


def test_points_are_copied_once(rng):
    """The only copy is the sorted one, which has the same size."""
    X = rng.normal(size=(300, 5)).astype(np.float32)
    checked = check_input(X, "euclidean", single=True)
    scaled = scaled_points(checked, metric="euclidean", power=2.0, normalize=True)
    assert scaled.points.values is X
    assert cost_of(X).own.values.nbytes == X.nbytes
    assert check_input(X, "cosine", single=True).dtype == np.float64


def test_points_in_a_file(rng, tmp_path):
    X = rng.normal(size=(300, 4)).astype(np.float32)
    np.save(tmp_path / "points.npy", X)
    graph = otgraph.quadratic_ot_graph(np.load(tmp_path / "points.npy", mmap_mode="r"), eps=0.5)
    expected = otgraph.quadratic_ot_graph(X, eps=0.5)
    np.testing.assert_array_equal(graph.weights.toarray(), expected.weights.toarray())
    assert type(graph.points) is np.ndarray
