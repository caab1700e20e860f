"""Real cells, where the data are at hand: 500 cells of an EMT time course, 500 genes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import reference
from otgraph import quadratic_ot_graph

DATA = Path(__file__).parents[3] / "shared" / "data" / "emt_subset.csv"

pytestmark = [
    pytest.mark.skipif(not DATA.exists(), reason="the table of cells is not here"),
    # Some cells come twice.
    pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning"),
]


@pytest.fixture(scope="module")
def cells():
    X = np.loadtxt(DATA, delimiter=",", skiprows=1)
    left, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return X, left[:, :30] * singular[:30]


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("eps", [0.05, 0.5, 5.0])
def test_cells(cells, eps, self_loops):
    for X in cells:  # genes, and principal components
        graph = quadratic_ot_graph(X, eps, self_loops=self_loops)
        reference.assert_optimal(graph, reference.cost_matrix(X), eps, self_loops=self_loops)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_mean_degree_of_cells(cells, metric):
    graph = quadratic_ot_graph(cells[0], mean_degree=15, metric=metric)
    assert graph.certificate.status == "exact"
    assert graph.mean_degree == pytest.approx(15, rel=0.05)
