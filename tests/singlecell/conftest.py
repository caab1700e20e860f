"""Small annotated data; scanpy itself is loaded only by the tests that call it."""

from __future__ import annotations

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

N_CELLS, N_GENES = 90, 60


@pytest.fixture
def adata(rng):
    """Three groups of cells with sparse counts and a representation in five dimensions."""
    group = np.repeat([0, 1, 2], N_CELLS // 3)
    rates = rng.gamma(0.5, 2.0, (3, N_GENES))
    adata = anndata.AnnData(
        sp.csr_matrix(rng.poisson(rates[group]).astype(np.float32)),
        obs=pd.DataFrame(
            {"group": pd.Categorical(np.array(["a", "b/c", "d"])[group])},
            index=[f"cell{i}" for i in range(N_CELLS)],
        ),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(N_GENES)]),
    )
    adata.obsm["X_pca"] = 3.0 * np.eye(3, 5)[group] + rng.standard_normal((N_CELLS, 5))
    return adata
