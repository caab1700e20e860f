"""A graph that answers products only gives what the same graph in memory gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import otgraph
from otgraph.methods._graphs import spreading_matrix, transition_matrix

N = 40


@dataclass
class Products:
    """The smallest graph that methods take: see `ProductGraph`."""

    graph: otgraph.Graph

    n = property(lambda self: self.graph.n)
    n_connected = property(lambda self: self.graph.n_connected)
    component_labels = property(lambda self: self.graph.component_labels)
    row_sums = property(lambda self: np.asarray(self.graph.weights.sum(axis=1)).ravel())
    loops = property(lambda self: self.graph.weights.diagonal())

    def product(self, V, scale=None):
        W = self.graph.weights
        if scale is None:
            return W @ V
        return scale[:, None] * (W @ V) + W @ (scale[:, None] * V)


@pytest.fixture
def graph(rng):
    """Rows of different sums, loops, and two points without edges."""
    W = rng.uniform(size=(N, N)) * (rng.uniform(size=(N, N)) < 0.1)
    W = W + W.T
    W[[3, 17]] = W[:, [3, 17]] = 0.0
    return otgraph.Graph.from_weights(W)


def test_transition(graph, rng):
    V = rng.normal(size=(N, 3))
    np.testing.assert_allclose(
        transition_matrix(Products(graph)) @ V, graph.transition() @ V, rtol=1e-13, atol=1e-14
    )


def test_spreading(graph, rng):
    A, B = spreading_matrix(graph, 0.7), spreading_matrix(Products(graph), 0.7)
    np.testing.assert_allclose(B.diagonal(), A.diagonal(), rtol=1e-13)
    V = rng.normal(size=(N, 3))
    np.testing.assert_allclose(B @ V, A @ V, rtol=1e-12, atol=1e-13)


def test_parts_of_parts(graph, rng):
    some, few = np.arange(2, N, 2), np.array([0, 5, 7])
    A, B = spreading_matrix(graph, 1.0), spreading_matrix(Products(graph), 1.0)
    V = rng.normal(size=(len(few), 2))
    np.testing.assert_allclose(
        B[some][:, some][:, few] @ V, A[some][:, some][:, few] @ V, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(B[some][:, some].diagonal(), A.diagonal()[some], rtol=1e-13)


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
def test_labels(graph):
    labels = np.full(N, -1)
    labels[[0, 9, 20]] = [2, 1, 1]
    mine, other = (otgraph.spread_labels(g, labels) for g in (Products(graph), graph))
    np.testing.assert_array_equal(mine.labels, other.labels)
    np.testing.assert_allclose(mine.probabilities, other.probabilities, atol=1e-9)
    np.testing.assert_array_equal(mine.unreachable, other.unreachable)


@pytest.mark.parametrize("t", [2, "auto"])
def test_denoise(graph, rng, t):
    X = rng.normal(size=(N, 4))
    mine, other = (otgraph.denoise(g, X, t) for g in (Products(graph), graph))
    np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)
