"""Dense matrices turned into sparse ones, in place."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph.graphs._canonical import csr_from_dense


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9, 1.0])
def test_csr_from_dense(rng, density):
    dense = rng.random((30, 17)) + 0.1
    dense[rng.random(dense.shape) > density] = 0.0
    csr = csr_from_dense(dense.copy())
    np.testing.assert_array_equal(csr.toarray(), dense)
    assert csr.nnz == np.count_nonzero(dense)
    csr.check_format(full_check=True)
