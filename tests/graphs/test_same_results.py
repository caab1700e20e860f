"""Graphs stored before the package was redesigned come out the same, to rounding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph

STORED = np.load(Path(__file__).parents[1] / "data" / "graphs_before_the_redesign.npz")
# Plans were solved to 1e-11; the condition of the active pairs multiplies that.
ATOL = 1e-8
TIGHT = {"tol": 1e-11}
MASS = STORED["mass"]
CASES = {
    "quadratic_eps": (otgraph.quadratic_ot_graph, {"eps": 0.5, **TIGHT}),
    "quadratic_small": (otgraph.quadratic_ot_graph, {"eps": 0.02, **TIGHT}),
    "quadratic_loops": (otgraph.quadratic_ot_graph, {"eps": 2.0, "self_loops": True, **TIGHT}),
    "quadratic_power1": (otgraph.quadratic_ot_graph, {"eps": 0.3, "power": 1.0, **TIGHT}),
    "quadratic_cosine": (
        otgraph.quadratic_ot_graph,
        {"eps": 0.3, "metric": "cosine", "power": 1.0, **TIGHT},
    ),
    "quadratic_raw": (otgraph.quadratic_ot_graph, {"eps": 3.0, "normalize": False, **TIGHT}),
    "quadratic_mass": (otgraph.quadratic_ot_graph, {"eps": 0.7, "mass": MASS, **TIGHT}),
    "quadratic_city": (otgraph.quadratic_ot_graph, {"eps": 0.7, "metric": "cityblock", **TIGHT}),
    "entropic": (otgraph.entropic_ot_graph, {"eps": 0.3, **TIGHT}),
    "entropic_loops": (otgraph.entropic_ot_graph, {"eps": 0.3, "self_loops": True, **TIGHT}),
    "knn": (otgraph.knn_gaussian_graph, {"n_neighbors": 7}),
    "knn_gaussian": (
        otgraph.knn_gaussian_graph,
        {"n_neighbors": 7, "eps": 0.4, "symmetrize": "average"},
    ),
    "gaussian": (otgraph.gaussian_graph, {"eps": 0.1}),
    "magic": (otgraph.magic_graph, {"n_neighbors": 4}),
}


def stored_weights(name):
    i, j, w = (STORED[f"{name}.{part}"] for part in "ijw")
    return sp.csr_matrix((w, (i, j)), shape=(60, 60)).toarray()


@pytest.mark.parametrize("points", ["X", "Y"])
@pytest.mark.parametrize("name", CASES)
def test_same_graph(name, points):
    build, keywords = CASES[name]
    weights = build(STORED[points], **keywords).weights.toarray()
    np.testing.assert_allclose(weights, stored_weights(f"{name}.{points}"), atol=ATOL)


def test_same_rows_of_new_points():
    graph = otgraph.quadratic_ot_graph(STORED["X"], 0.5, tol=1e-11)
    rows = graph.extend(STORED["Y"][:5, [0, 1, 2, 0]]).toarray()
    np.testing.assert_allclose(rows, STORED["extend"], atol=ATOL)
