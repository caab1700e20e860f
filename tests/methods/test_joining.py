"""Groups of near points, and the graph between them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph


def greedy(weights, wanted):
    """The definition: the pair with the largest ratio is joined, one at a time."""
    groups = [{i} for i in range(len(weights))]
    mass = weights.sum(axis=1)
    while len(groups) > wanted:
        best = None
        for a, left in enumerate(groups):
            for b in range(a):
                i, j = sorted(left), sorted(groups[b])
                ratio = weights[np.ix_(i, j)].sum() / (mass[i].sum() * mass[j].sum())
                if best is None or ratio > best[0]:
                    best = ratio, a, b
        _, a, b = best
        groups[b] |= groups.pop(a)
    return {frozenset(group) for group in groups}


@pytest.mark.parametrize("wanted", [20, 9, 2])
def test_groups_belong_to_the_hierarchy_of_the_definition(rng, wanted):
    """Joined in rounds they need not be those of one height, but all are in one hierarchy."""
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(40, 3)), mean_degree=8, connect=True)
    found = otgraph.metacells(graph, wanted)
    groups = {frozenset(np.flatnonzero(found.labels == k).tolist()) for k in range(wanted)}
    dense = graph.weights.toarray()
    hierarchy = set().union(*(greedy(dense, k) for k in range(1, 41)))
    assert groups <= hierarchy


def test_graph_is_the_sum_over_groups(rng):
    graph = otgraph.quadratic_ot_graph(rng.normal(size=(500, 4)), self_loops=True, eps=0.3)
    found = otgraph.metacells(graph, 60)
    member = sp.csr_matrix((np.ones(500), (found.labels, np.arange(500))))
    expected = (member @ graph.weights @ member.T).toarray()
    weights = found.graph.weights
    np.testing.assert_allclose(weights.toarray(), expected, rtol=1e-12)
    assert (weights != weights.T).nnz == 0
    np.testing.assert_allclose(weights.sum(axis=1).A1, found.sizes, rtol=1e-5)
    assert found.sizes.min() >= 1
    assert found.sizes.max() <= 5 * 500 / 60  # they grow evenly


def test_means(rng):
    X = rng.normal(size=(100, 3))
    found = otgraph.metacells(otgraph.quadratic_ot_graph(X), 10)
    means = np.array([X[found.labels == k].mean(axis=0) for k in range(10)])
    np.testing.assert_allclose(found.means(X), means)
    np.testing.assert_allclose(found.means(sp.csr_matrix(X)), means)
    with pytest.raises(ValueError, match="`values` must have 100 rows"):
        found.means(X[:7])


def test_groups_do_not_leave_their_component(rng):
    X = rng.normal(size=(60, 2)) + np.repeat([[0.0], [99.0]], 30, axis=0)
    graph = otgraph.quadratic_ot_graph(X, mean_degree=5, connect=False)
    labels = otgraph.metacells(graph, graph.n_connected).labels
    assert {*labels[:30]}.isdisjoint(labels[30:])
    with pytest.raises(ValueError, match="`n_metacells` must be at least the number of components"):
        otgraph.metacells(graph, 1)
    with pytest.raises(ValueError, match="`n_metacells`"):
        otgraph.metacells(graph, 61)


def test_ties_and_all_points(rng):
    ring = sp.csr_matrix(np.roll(np.eye(12), 1, axis=0) + np.roll(np.eye(12), -1, axis=0))
    found = otgraph.metacells(ring, 5)
    assert len(np.unique(found.labels)) == 5
    alone = otgraph.metacells(ring, 12)
    np.testing.assert_array_equal(alone.labels, np.arange(12))
    assert (alone.graph.weights != ring).nnz == 0
