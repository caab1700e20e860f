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


def test_small_matrices_stay_as_they_are(matrix):
    assert threaded(matrix) is matrix
