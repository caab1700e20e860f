"""Connected components against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from otgraph._kernels.components import component_labels


def symmetric(rng, n, density):
    half = sp.csr_matrix(np.where(rng.random((n, n)) < density, 1.0, 0.0))
    return (half + half.T).tocsr()


@pytest.mark.parametrize("density", [0.0, 0.002, 0.005, 0.02, 0.5])
@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_the_labels_of_scipy(rng, n, density):
    W = symmetric(rng, n, density)
    labels = component_labels(W.indptr, W.indices)
    assert np.array_equal(labels, connected_components(W, directed=False)[1])


def test_a_long_path_in_any_order(rng):
    """Chains of parents are as long as they can be."""
    place = rng.permutation(2000)
    ends = np.r_[place[:-1], place[1:]], np.r_[place[1:], place[:-1]]
    W = sp.csr_matrix((np.ones(len(ends[0])), ends))
    assert not component_labels(W.indptr, W.indices).any()


def test_loops_join_nothing():
    W = sp.identity(3, format="csr")
    assert component_labels(W.indptr, W.indices).tolist() == [0, 1, 2]
