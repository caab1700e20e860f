"""Cells are balls around consecutive points; every point is in one."""

from __future__ import annotations

import numpy as np
import pytest

import problems
from otgraph._parallel import Workers
from otgraph.costs.partition import (
    cluster_order,
    consecutive_cells,
    enclosing_cells,
    one_cell,
    spatial_order,
)


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
