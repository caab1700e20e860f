"""Nearest points in the cells that each point is nearest to, against a search through all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from otgraph._kernels.near_cells import nearest_in_cells

SIZES = np.array([60, 64, 130, 1, 3, 97])  # chunks of 64 that are whole, cut, or moved back


def cells_of(rng, sizes, d=5):
    """Points of some cells, and where these begin; those nearest to the first come first."""
    centers = 2.0 * rng.normal(size=(len(sizes), d))
    centers = centers[np.argsort(np.square(centers - centers[0]).sum(axis=1))]
    X = np.repeat(centers, sizes, axis=0) + rng.normal(size=(sizes.sum(), d))
    return X, np.concatenate(([0], np.cumsum(sizes))), centers


def searched(X, offsets, centers, n_chosen, n_points, k):
    """Lists of the points of the first cell, and the number of pairs compared."""
    found = np.empty((offsets[1], k), dtype=np.int32)
    center = X[: offsets[1]].mean(axis=0)
    towards = centers - center
    starts, stops = offsets[:-1], offsets[1:]
    n_pairs = nearest_in_cells(
        X, 0, offsets[1], center, starts, stops, towards, n_chosen, n_points, found
    )
    return found, n_pairs


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("n_chosen", [1, 3, 6])
@pytest.mark.parametrize("k", [1, 7, 40])
def test_nearest_points_of_the_nearest_cells(rng, n_chosen, number, k):
    X, offsets, centers = cells_of(rng, SIZES)
    X = X.astype(number)
    found, n_pairs = searched(X, offsets, centers, n_chosen, 0, k)
    distances, to_cells = cdist(X[: SIZES[0]], X), cdist(X[: SIZES[0]], centers)
    np.fill_diagonal(distances, np.inf)
    looked_at = 0
    for r, row in enumerate(distances):
        chosen = np.argsort(to_cells[r])[:n_chosen]
        columns = np.concatenate([np.arange(offsets[c], offsets[c + 1]) for c in chosen])
        nearest = columns[np.argsort(row[columns])][:k]
        nearest = nearest[np.isfinite(row[nearest])]
        assert set(found[r][found[r] >= 0]) == set(nearest)
        assert np.all(found[r, len(nearest) :] == -1)
        looked_at += len(columns)
    assert n_pairs == looked_at


def test_a_row_whose_cells_have_too_few_points_looks_into_all(rng):
    X, offsets, centers = cells_of(rng, np.array([4, 2, 2, 50]))
    found, n_pairs = searched(X, offsets, centers, 1, 9, 5)
    assert n_pairs == 4 * 58
    distances = cdist(X[:4], X)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(np.sort(found), np.sort(np.argsort(distances)[:, :5]))


def test_of_copies_the_first_are_taken():
    X = np.zeros((300, 3))
    found, _ = searched(X, np.array([0, 100, 300]), np.zeros((2, 3)), 2, 0, 4)
    for r, row in enumerate(found):
        assert sorted(row) == [p for p in range(5) if p != r][:4]
