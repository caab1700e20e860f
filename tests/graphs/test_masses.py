"""Masses that balance groups."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph


def test_groups_count_the_same(rng):
    groups = rng.choice(["a", "b", "c"], p=[0.7, 0.2, 0.1], size=300)
    mass = otgraph.balanced_mass(groups)
    totals = [mass[groups == each].sum() for each in "abc"]
    np.testing.assert_allclose(totals, 100.0)


@pytest.mark.parametrize("strength", [-0.5, 0.0, 0.5, 1.0, 2.0])
def test_strength_is_the_power_of_the_size(strength):
    mass = otgraph.balanced_mass([0] * 8 + [1] * 2, strength)
    assert mass.mean() == pytest.approx(1.0)
    assert mass[-1] / mass[0] == pytest.approx(4.0**strength)


def test_identical_rows_are_a_group(rng):
    X = rng.normal(size=(6, 2))[[0, 1, 2, 3, 4, 5, 0, 0, 1]]
    expected = otgraph.balanced_mass([0, 1, 2, 3, 4, 5, 0, 0, 1])
    np.testing.assert_array_equal(otgraph.balanced_mass(X), expected)
    np.testing.assert_array_equal(otgraph.balanced_mass(sp.csr_matrix(X)), expected)


def test_every_distinct_point_counts_once(rng):
    """With a mean degree, masses matter up to a factor: the graph is that without the copies."""
    X = rng.normal(size=(120, 3))
    Z = np.vstack([X, X[:40]])
    mass = otgraph.balanced_mass(Z)
    graph = otgraph.quadratic_ot_graph(Z, mean_degree=10, mass=mass, collapse=True)
    once = otgraph.quadratic_ot_graph(X, mean_degree=10)
    factor = graph.mass.sum() / 120
    rest = slice(40, 120)
    difference = graph.weights[rest, rest] / factor - once.weights[rest, rest]
    assert abs(difference).max() < 1e-6


def test_rows_sum_to_the_masses(rng):
    groups = np.repeat([0, 1], [80, 20])
    mass = otgraph.balanced_mass(groups)
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(100, 3)), mass=mass)
    np.testing.assert_allclose(np.asarray(graph.weights.sum(axis=1)).ravel(), mass, rtol=1e-6)


@pytest.mark.parametrize(
    ("groups", "match"),
    [([[[0, 1]]], "one per point"), ([], "one per point"), ([0.0, np.nan], "nan at point 1"),
     (["a", None], "None at point 1")],
)  # fmt: skip
def test_bad_groups(groups, match):
    with pytest.raises(ValueError, match=match):
        otgraph.balanced_mass(groups)


def test_bad_strength():
    with pytest.raises(ValueError, match="`strength` must be a finite number"):
        otgraph.balanced_mass([0, 1], float("nan"))
