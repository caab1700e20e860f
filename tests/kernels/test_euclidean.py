"""Blocks of float32 products: nothing that float64 wants is lost."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from otgraph._kernels import euclidean as kernels


def squared_distances(X, i, neighbors):
    """Squared distances from point i, as kernels compute them."""
    neighbors = np.array([neighbors], dtype=np.int32)
    rows, columns = np.empty((2, neighbors.size), dtype=np.int32)
    found = np.empty(neighbors.size)
    kernels.costs_of(X, i, neighbors, 1.0, 1.0, rows, columns, found)
    return found


@pytest.mark.parametrize("number", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 3, 4, 7, 8, 13, 16, 50])
def test_squared_distance_is_symmetric_and_the_same_for_any_layout(rng, d, number):
    X = rng.normal(size=(20, 2 * d)).astype(number)
    strided, X = X[:, ::2], np.ascontiguousarray(X[:, ::2])
    for i in range(19):
        (square,) = squared_distances(X, i, [19])
        assert [square] == squared_distances(X, 19, [i])
        assert [square] == squared_distances(strided, i, [19])
        difference = X[i].astype(np.float64) - X[19]
        assert square == pytest.approx(difference @ difference, rel=1e-14)


@pytest.mark.parametrize("half_power", [0.25, 0.5, 1.0, 1.5])
def test_power(half_power):
    assert kernels.power(4.0, 3.0, half_power) == pytest.approx(3.0 * 4.0**half_power, rel=1e-15)


def test_gather(rng):
    X, center, rows = rng.normal(size=(9, 4)), rng.normal(size=4), np.array([8, 0, 3])
    out, squares = np.zeros((3, 5), np.float32), np.empty(3)
    kernels.gather(X, rows, center, 2.0, out, squares)
    np.testing.assert_array_equal(out[:, :4], (2.0 * (X[rows] - center)).astype(np.float32))
    np.testing.assert_allclose(squares, ((X[rows] - center) ** 2).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("k", [1, 5, 199, 300])
def test_nearest(rng, k):
    """The k largest of a row without its own point, -1 where there are fewer."""
    product = rng.normal(size=(7, 200)).astype(np.float32)
    product[:, 10] = product[:, 11]  # a tie
    columns = np.sort(rng.permutation(250)[:200]).astype(np.int32)
    first, out = 20, np.empty((7, k), dtype=np.int32)
    beyond = np.empty(7, dtype=np.float32)
    everything = np.full(7, -np.inf, dtype=np.float32)
    kernels.nearest(product, first, columns, k, everything, out, beyond)
    for r in range(7):
        values = np.where(columns == first + r, -np.inf, product[r])
        wanted = np.sort(values[np.isfinite(values)])[::-1][:k]
        found = out[r][out[r] >= 0]
        assert len(set(found)) == len(found) == len(wanted)
        assert first + r not in found
        position = np.searchsorted(columns, found)
        np.testing.assert_array_equal(np.sort(product[r, position])[::-1], wanted)
        values[position] = -np.inf
        assert beyond[r] >= values.max()
        assert beyond[r] <= wanted[-1] or k > 199


@pytest.mark.parametrize("k", [3, 60])
def test_nearest_above_a_floor(rng, k):
    """Only products above the floor are found, and no other one is above it."""
    product = rng.normal(size=(3, 200)).astype(np.float32)
    floor = np.array([-np.inf, 0.5, 9.0], dtype=np.float32)
    out, beyond = np.empty((3, k), dtype=np.int32), np.empty(3, dtype=np.float32)
    columns = np.arange(200, dtype=np.int32)
    kernels.nearest(product, 200, columns, k, floor, out, beyond)
    for r in range(3):
        above = np.sort(product[r][product[r] > floor[r]])[::-1]
        found = out[r][out[r] >= 0]
        np.testing.assert_array_equal(np.sort(product[r, found])[::-1], above[:k])
        assert beyond[r] >= np.append(above[k:], floor[r]).max()


@pytest.mark.parametrize("step", [1, 3, 7])
@pytest.mark.parametrize("rank", [1, 4, 9])
def test_near_in_sample(rng, step, rank):
    """Ranks among every so many points, without the point of the row itself."""
    X, first = rng.normal(size=(150, 4)), 20
    rows, sample, lifts = X[first:60], X[::step], rng.uniform(size=len(X[::step]))
    squares = np.square(X).sum(axis=1)
    near, needed = np.empty((2, len(rows)))
    kernels.near_in_sample(
        2.0 * rows @ sample.T - squares[::step], squares[first:60], first, step, lifts, rank, near,
        needed,
    )  # fmt: skip
    C = cdist(rows, sample, "sqeuclidean")
    C[np.arange(first, 60)[:, None] == step * np.arange(len(sample))] = np.inf
    np.testing.assert_allclose(near, np.sort(C, axis=1)[:, rank - 1], rtol=1e-12)
    C -= np.minimum(lifts, 0.5 * near[:, None])
    np.testing.assert_allclose(needed, np.sort(C, axis=1)[:, rank - 1], rtol=1e-10)


def test_costs_of_skips_what_is_not_there(rng):
    X = rng.normal(size=(6, 3))
    neighbors = np.array([[1, 5], [0, -1]], dtype=np.int32)
    i, j, c = np.empty(4, np.int32), np.empty(4, np.int32), np.empty(4)
    assert kernels.costs_of(X, 0, neighbors, 2.0, 1.0, i, j, c) == 3
    assert list(zip(i[:3], j[:3], strict=True)) == [(0, 1), (0, 5), (1, 0)]
    np.testing.assert_allclose(c[:3], 2 * ((X[i[:3]] - X[j[:3]]) ** 2).sum(axis=1), rtol=1e-14)


def test_assign(rng):
    product = rng.normal(size=(40, 200)).astype(np.float32)
    product[:, 150] = product[:, 3] = 9.0  # the first of equals
    product[::2, 3] = 0.0
    out = np.empty(40, dtype=np.int64)
    kernels.assign(product, out)
    np.testing.assert_array_equal(out, product.argmax(axis=1))


@pytest.mark.parametrize("n_visited", [1, 3, 100])
def test_assign_in_groups(rng, n_visited):
    """The largest product among those of the groups that are largest in the first product."""
    rows, table = (rng.normal(size=(n, 5)).astype(np.float32) for n in (60, 90))
    bounds = np.array([0, 1, 30, 64, 70, 90])
    coarse = rng.normal(size=(60, 5)).astype(np.float32)
    coarse[7] = np.nan
    out = np.empty(60, dtype=np.int64)
    kernels.assign_in_groups(rows, coarse, bounds, table, n_visited, out)
    product = rows @ table.T
    for r in np.delete(np.arange(60), 7):
        visited = np.argsort(coarse[r])[::-1][:n_visited]
        group = np.searchsorted(bounds, np.arange(90), side="right") - 1
        allowed = np.flatnonzero(np.isin(group, visited))
        assert out[r] == allowed[product[r, allowed].argmax()]
    assert out[7] == 0  # no group, and the first row of all
