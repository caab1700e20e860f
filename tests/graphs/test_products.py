"""Products on all cores: the same bits as scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph.graphs import products
from otgraph.graphs.products import Threaded, threaded


@pytest.fixture
def matrix():
    return sp.random(9000, 9000, density=2e-3, format="csr", random_state=0)


@pytest.mark.parametrize("shape", [(9000,), (9000, 1), (9000, 7)])
def test_equals_scipy(rng, matrix, shape):
    V = rng.standard_normal(shape)
    np.testing.assert_allclose(Threaded(matrix) @ V, matrix @ V, rtol=1e-13, atol=1e-13)


def test_does_not_depend_on_threads(rng, matrix, monkeypatch):
    V = rng.standard_normal((9000, 3))
    several = Threaded(matrix) @ V
    workers = products.Workers
    monkeypatch.setattr(products, "Workers", lambda n_jobs: workers(1))
    np.testing.assert_array_equal(Threaded(matrix) @ V, several)


def test_parts(rng, matrix, monkeypatch):
    monkeypatch.setattr(products, "FEWEST_ENTRIES", 1)
    some = np.sort(rng.choice(9000, 4000, replace=False))
    part = threaded(matrix)[some][:, some]
    assert isinstance(part, Threaded)
    V = rng.standard_normal((4000, 2))
    np.testing.assert_allclose(part @ V, matrix[some][:, some] @ V, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(part.diagonal(), matrix[some][:, some].diagonal())


@pytest.mark.parametrize("shape", [(9000,), (9000, 3)])
def test_neighbors_are_brought_together_with_the_same_bits(rng, monkeypatch, shape):
    """A ring in random order: its products do not change when it is renumbered along the ring."""
    monkeypatch.setattr(products, "NEAR_BYTES", 1 << 12)
    ring = sp.diags([rng.random(8998), rng.random(8999)], [2, 1], format="csr")
    shuffled = rng.permutation(9000)
    matrix = (ring + ring.T)[shuffled][:, shuffled].tocsr()
    V, operator = rng.standard_normal(shape), Threaded(matrix)
    results = [operator @ V for _ in range(products.MANY_PRODUCTS + 2)]
    far = np.abs(np.subtract(*operator._sorted.nonzero()))
    assert far.mean() < 4.0
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_an_order_in_which_neighbors_are_near_stays(rng, monkeypatch):
    monkeypatch.setattr(products, "NEAR_BYTES", 1 << 12)
    matrix = sp.diags([rng.random(8999), rng.random(8999)], [-1, 1], format="csr")
    operator, V = Threaded(matrix), rng.standard_normal(9000)
    for _ in range(products.MANY_PRODUCTS + 2):
        np.testing.assert_allclose(operator @ V, matrix @ V, rtol=1e-13, atol=1e-13)
    assert operator._sorted is matrix


def test_small_matrices_stay_as_they_are(matrix):
    assert threaded(matrix) is matrix
