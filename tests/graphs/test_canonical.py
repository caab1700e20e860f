"""Dense matrices turned into sparse ones, in place."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
from otgraph.graphs import transport
from otgraph.graphs._canonical import csr_from_dense, index_type, without_loops


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9, 1.0])
def test_csr_from_dense(rng, density):
    dense = rng.random((30, 17)) + 0.1
    dense[rng.random(dense.shape) > density] = 0.0
    csr = csr_from_dense(dense.copy())
    np.testing.assert_array_equal(csr.toarray(), dense)
    assert csr.nnz == np.count_nonzero(dense)
    csr.check_format(full_check=True)


def test_indices_of_more_than_two_billion_entries(rng, monkeypatch):
    """Both index arrays are 64-bit then, as scipy wants them, and the numbers are the same."""
    X = rng.normal(size=(80, 2))
    expected = otgraph.quadratic_ot_graph(X, eps=0.5).weights
    monkeypatch.setattr(transport, "index_type", lambda largest: np.int64)
    weights = otgraph.quadratic_ot_graph(X, eps=0.5).weights
    assert weights.indices.dtype == weights.indptr.dtype == np.int64
    assert expected.indices.dtype == expected.indptr.dtype == np.int32
    np.testing.assert_array_equal((weights @ weights).toarray(), (expected @ expected).toarray())
    assert index_type(2**31 - 1) is np.int32
    assert index_type(2**31) is np.int64


def test_without_loops_loses_nothing_else(rng):
    """Where a few of many loops are missing, setdiag of scipy 1.13 and 1.14 does."""
    full = np.where(rng.random((40, 40)) < 0.9, 1.0, 0.0)
    np.fill_diagonal(full, 1.0)
    full[7, 7] = 0.0
    expected = full * (1.0 - np.eye(40))
    hollow = without_loops(sp.csr_matrix(full))
    np.testing.assert_array_equal(hollow.toarray(), expected)
    assert hollow.nnz == expected.sum()
