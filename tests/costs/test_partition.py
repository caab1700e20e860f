"""Cells are balls around consecutive points; every point is in one."""

from __future__ import annotations

import numpy as np
import pytest

import problems
from otgraph._parallel import Workers
from otgraph.costs import partition
from otgraph.costs.partition import (
    cell_centers,
    cluster_order,
    consecutive_cells,
    enclosing_cells,
    halves,
    leaf_order,
    nearest_center,
    one_cell,
    spatial_order,
)
from otgraph.costs.points import cell_count


@pytest.mark.parametrize("cloud", problems.CLOUDS.values(), ids=problems.CLOUDS)
def test_cells_enclose_their_points(rng, cloud):
    X = cloud(rng, 500)
    order, offsets = cluster_order(X, 20, 0, Workers(1))
    np.testing.assert_array_equal(np.sort(order), np.arange(500))
    cells = enclosing_cells(X[order], offsets)
    assert np.all(np.diff(offsets) > 0)
    assert (offsets[0], offsets[-1]) == (0, 500)
    assert len(cells.owner) == 500
    distance = np.sqrt(np.square(X[order] - cells.centers[cells.owner]).sum(axis=1))
    assert np.all(distance <= cells.radii[cells.owner])


def test_consecutive_cells(rng):
    X = rng.normal(size=(10, 2))
    cells = consecutive_cells(X, 4)
    np.testing.assert_array_equal(cells.offsets, [0, 4, 8, 10])
    np.testing.assert_allclose(cells.centers[2], X[8:].mean(axis=0))


def test_one_cell_encloses_all_points(rng):
    X = rng.normal(size=(10, 2))
    squares = np.square(X).sum(axis=1)
    cells = one_cell(X.shape, float(squares.max()))
    assert cells.n_cells == 1
    np.testing.assert_array_equal(cells.offsets, [0, 10])
    assert np.all(np.sqrt(np.square(X - cells.centers).sum(axis=1)) <= cells.radii)


def test_cells_do_not_depend_on_threads(rng):
    X = problems.clustered(rng, 5000)
    one, two = (cluster_order(X, 100, 0, Workers(n_jobs)) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    np.testing.assert_array_equal(one[1], two[1])


def test_seed_changes_cells(rng):
    X = problems.random(rng, 500)
    order, _ = cluster_order(X, 20, 0, Workers(1))
    other, _ = cluster_order(X, 20, 1, Workers(1))
    assert not np.array_equal(order, other)


def test_consecutive_centers_are_near(rng):
    centers = rng.normal(size=(400, 3)).astype(np.float32)
    order = spatial_order(centers)
    np.testing.assert_array_equal(np.sort(order), np.arange(400))

    def step(places):
        return np.linalg.norm(np.diff(centers[places], axis=0), axis=1).mean()

    # Cubes of eight of 400 points have a seventh of the width of all; the drawn order has none.
    assert step(order) < 0.5 * step(np.arange(400))


def test_centers_that_coincide():
    np.testing.assert_array_equal(spatial_order(np.zeros((50, 2), np.float32)), np.arange(50))


def test_blocks_of_whole_cells(rng):
    cells = consecutive_cells(rng.normal(size=(100, 2)), 7)
    blocks = cells.blocks(20)
    assert [first for first, _ in blocks[1:]] == [last for _, last in blocks[:-1]]
    assert (blocks[0][0], blocks[-1][1]) == (0, cells.n_cells)
    sizes = [cells.offsets[b] - cells.offsets[a] for a, b in blocks]
    assert min(sizes[:-1]) >= 20
    assert cells.blocks(1000) == [(0, cells.n_cells)]


def test_cells_stop_growing():
    """An approximate search looks into a fixed number of cells, and must stay linear in n."""
    assert cell_count(10**6) == 3000
    assert [round(n / cell_count(n)) for n in (10**6, 10**7, 10**8)] == [333, 334, 334]


class TestManyCenters:
    """Points are compared with groups of centers, then with the centers of the nearest groups."""

    @pytest.fixture
    def few_are_many(self, monkeypatch):
        monkeypatch.setattr(partition, "MANY_CENTERS", 100)
        monkeypatch.setattr(partition, "GROUP_CENTERS", 16)

    @pytest.fixture
    def X(self, rng):
        return rng.normal(size=(3 * partition.ASSIGN_ROWS, 5))

    def test_nearly_all_get_their_nearest_center(self, few_are_many, X, monkeypatch):
        centers = cell_centers(X, 400, 0, Workers(1))
        squares = np.square(X[:, None] - centers[None]).sum(axis=2)
        found = nearest_center(X, centers, Workers(2))
        assert np.mean(found == squares.argmin(axis=1)) > 0.9  # 8 of 32 groups
        distance = np.sqrt(np.take_along_axis(squares, found[:, None], 1)[:, 0])
        assert distance.mean() < 1.02 * np.sqrt(squares.min(axis=1)).mean()
        monkeypatch.setattr(partition, "VISITED_GROUPS", 100)
        np.testing.assert_array_equal(
            nearest_center(X, centers, Workers(1)), squares.argmin(axis=1)
        )

    def test_cells_are_as_compact_as_before(self, X, request):
        def radius():
            order, offsets = cluster_order(X, 400, 0, Workers(1))
            return enclosing_cells(X[order], offsets).radii.mean()

        before = radius()
        request.getfixturevalue("few_are_many")
        assert radius() < 1.05 * before

    def test_threads_and_blocks_do_not_matter(self, few_are_many, X):
        one, two = (cell_centers(X, 400, 0, Workers(threads)) for threads in (1, 2))
        np.testing.assert_array_equal(one, two)
        whole = nearest_center(X, one, Workers(2))
        part = nearest_center(X[partition.ASSIGN_ROWS :], one, Workers(1))
        np.testing.assert_array_equal(whole[partition.ASSIGN_ROWS :], part)

    def test_points_that_are_no_numbers_get_some_center(self, few_are_many, X):
        centers = cell_centers(X, 400, 0, Workers(1))
        found = nearest_center(np.full((3, 5), np.nan), centers, Workers(1))
        assert np.all((found >= 0) & (found < 400))


def test_groups_are_those_of_the_spatial_order():
    np.testing.assert_array_equal(halves(10, 3), [0, 2, 5, 7, 10])
    np.testing.assert_array_equal(halves(3, 3), [0, 3])


@pytest.mark.parametrize("split", [None, 90])
@pytest.mark.parametrize("n_points", [1, 400])
@pytest.mark.parametrize("n_full", [0, 5, 150, 300])  # cells of 30 points, the others have 3
def test_nearest_cells_are_those_of_all(rng, split, n_points, n_full):
    """Cells that are excluded for a whole block are none of the nearest.

    Nor are they kept in memory: 30,000 cells, all sorted for each, are 7 GB.
    """
    centers = rng.normal(size=(300, 2)).cumsum(axis=0)  # consecutive ones are near each other
    centers[120] += 1e6
    sizes = np.where(rng.permutation(300) < n_full, 30, 3)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    cells = partition.Partition(offsets, centers, np.ones(300), split)
    squares = np.square(centers[:, None] - centers[None]).sum(axis=2)
    for b, near in enumerate(cells.nearest(5, n_points)):
        first, last = cells.others(b)
        wanted = first + np.argsort(squares[b, first:last], kind="stable")
        points = np.cumsum(sizes[wanted])
        count = max(5, 1 + np.count_nonzero(points < n_points))
        np.testing.assert_array_equal(near, wanted[:count])
        assert near.base is None


def test_nearest_cells_with_lift(rng):
    centers, lift = rng.normal(size=(300, 2)), rng.normal(size=300)
    cells = partition.Partition(np.arange(301), centers, np.ones(300), 100)
    squares = np.square(centers[:, None] - centers[None]).sum(axis=2) - lift
    for b, near in enumerate(cells._nearest(4, 1, lift)):
        first, last = cells.others(b)
        np.testing.assert_array_equal(near, first + np.argsort(squares[b, first:last])[:4])


@pytest.mark.parametrize("cloud", problems.CLOUDS.values(), ids=problems.CLOUDS)
def test_leaves_of_parts_are_those_of_a_tree(rng, monkeypatch, cloud):
    """As compact as without threads, and the same for any number of them."""
    X = cloud(rng, 1024)[:, :3]

    def spread(order):
        return np.ptp(X[order].reshape(64, 16, -1), axis=1).sum()

    whole = leaf_order(X, Workers(1), 16)
    monkeypatch.setattr(partition, "FEWEST_DIVIDED", 100)
    order = leaf_order(X, Workers(1), 16)
    np.testing.assert_array_equal(np.sort(order), np.arange(1024))
    np.testing.assert_array_equal(leaf_order(X, Workers(2), 16), order)
    assert spread(order) <= 1.1 * spread(whole)
