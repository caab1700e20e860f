"""Points that are left behind and solved by themselves."""

from __future__ import annotations

import numpy as np
import pytest

from otgraph import quadratic_ot_graph
from otgraph.solvers import rounds
from otgraph.solvers.newton import nearly_met


@pytest.fixture
def clusters():
    """Clusters of uneven width with some far points, enough for cells."""
    rng = np.random.default_rng(0)
    centers, widths = rng.normal(size=(8, 10)), np.exp(rng.uniform(-3.0, -0.5, size=8))
    labels = rng.integers(8, size=9000)
    X = centers[labels] + widths[labels, None] * rng.normal(size=(9000, 10))
    X[:50] *= 10.0
    return X


def test_the_graph_is_the_same_within_the_tolerance(clusters, monkeypatch):
    usual = quadratic_ot_graph(clusters, mean_degree=10)
    monkeypatch.setattr(rounds, "MANY_POINTS", 100)
    left = quadratic_ot_graph(clusters, mean_degree=10)
    assert left.certificate.status == usual.certificate.status == "exact"
    at_eps = quadratic_ot_graph(clusters, usual.certificate.eps, min_degree=0)
    monkeypatch.setattr(rounds, "MANY_POINTS", 10**9)
    again = quadratic_ot_graph(clusters, usual.certificate.eps, min_degree=0)
    assert abs(at_eps.weights - again.weights).max() < 1e-6


def test_rows_are_left_only_if_they_misplace_little():
    target = np.ones(1000)
    sums = target.copy()
    sums[:5] = 1.1
    assert nearly_met(sums, target, 0.05, 10)
    assert not nearly_met(sums, target, 0.05, 4)
    sums[0] = 10.0
    assert not nearly_met(sums, target, 0.05, 10)
