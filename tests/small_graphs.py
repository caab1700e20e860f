"""Small graphs with known spectra."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def ring(n: int) -> sp.csr_matrix:
    i = np.arange(n)
    rows, columns = np.r_[i, i], np.r_[(i + 1) % n, (i - 1) % n]
    return sp.csr_matrix((np.ones(2 * n), (rows, columns)), shape=(n, n))


def chain(n: int) -> sp.csr_matrix:
    return sp.diags([np.ones(n - 1)] * 2, [-1, 1], format="csr")


def random_graph(n: int, rng: np.random.Generator, *, density: float = 0.1) -> sp.csr_matrix:
    """Connected, with weights and sums of very different size."""
    edges = sp.random(n, n, density, random_state=rng, data_rvs=lambda k: rng.gamma(0.3, size=k))
    return (edges + edges.T + 0.1 * ring(n)).tocsr()
