"""The graph object: canonical weights and what is derived from them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from otgraph.graphs import Graph

# Points 0, 1, 2 form a path, 3 and 4 an edge, 5 has a self-loop only, 6 nothing at all.
WEIGHTS = np.zeros((7, 7))
for a, b, w in [(0, 1, 2.0), (1, 2, 0.5), (3, 4, 1.0), (5, 5, 3.0), (0, 0, 1.0)]:
    WEIGHTS[a, b] = WEIGHTS[b, a] = w


@pytest.fixture
def graph() -> Graph:
    return Graph.from_weights(WEIGHTS)


def random_weights(seed: int, n: int = 12) -> sp.csr_matrix:
    half = sp.random(n, n, 0.2, random_state=seed, format="csr")
    return sp.csr_matrix(half + half.T)


def test_degrees_do_not_count_the_point_itself(graph):
    assert graph.degrees.tolist() == [1, 2, 1, 1, 1, 0, 0]
    assert graph.degrees.dtype == np.int32
    assert graph.mean_degree == pytest.approx(6 / 7)
    assert graph.n == 7


def test_components(graph):
    assert graph.n_connected == 4
    assert graph.component_labels.tolist() == [0, 0, 0, 1, 1, 2, 3]


def test_transition_by_hand(graph):
    expected = np.zeros((7, 7))
    expected[0, :2] = 1 / 3, 2 / 3
    expected[1, [0, 2]] = 0.8, 0.2
    expected[2, 1] = expected[3, 4] = expected[4, 3] = expected[5, 5] = 1.0
    expected[6, 6] = 1.0  # the isolated point stays where it is
    np.testing.assert_allclose(graph.transition().toarray(), expected, rtol=1e-15)


@given(st.integers(0, 10_000))
def test_transition_rows_sum_to_one(seed):
    transition = Graph.from_weights(random_weights(seed)).transition()
    assert transition.format == "csr"
    assert transition.data.min(initial=1.0) > 0.0
    np.testing.assert_allclose(transition.sum(axis=1), 1.0, rtol=1e-14)


@given(st.integers(0, 10_000), st.booleans())
def test_laplacian_against_scipy(seed, normalized):
    weights = random_weights(seed)
    weights.setdiag(0.0)  # scipy's normalized Laplacian treats self-loops in its own way
    graph = Graph.from_weights(weights)
    expected = csgraph.laplacian(weights, normed=normalized).toarray()
    np.testing.assert_allclose(
        graph.laplacian(normalized=normalized).toarray(), expected, atol=1e-14
    )


@pytest.mark.parametrize("normalized", [False, True])
def test_laplacian_has_one_zero_eigenvalue_per_component(graph, normalized):
    laplacian = graph.laplacian(normalized=normalized)
    assert laplacian.format == "csr"
    eigenvalues = np.linalg.eigvalsh(laplacian.toarray())
    assert np.count_nonzero(np.abs(eigenvalues) < 1e-12) == graph.n_connected
    assert eigenvalues.min() > -1e-12


def test_normalized_laplacian_with_self_loops(graph):
    sums = np.array([3.0, 2.5, 0.5, 1.0, 1.0, 3.0, 1.0])
    expected = np.diag([1.0] * 6 + [0.0]) - WEIGHTS / np.sqrt(np.outer(sums, sums))
    np.testing.assert_allclose(graph.laplacian(normalized=True).toarray(), expected, atol=1e-15)


def test_derived_matrices_share_nothing_with_the_weights(graph):
    before = graph.weights.toarray()
    for derived in (graph.transition(), graph.laplacian(), graph.laplacian(normalized=True)):
        derived.data[:] = -7.0
        derived.indices[:] = 0
    np.testing.assert_array_equal(graph.weights.toarray(), before)


def test_edges_once_without_loops(graph):
    i, j, weight = graph.edges()
    assert list(zip(i, j, weight, strict=True)) == [(0, 1, 2.0), (1, 2, 0.5), (3, 4, 1.0)]
    assert graph.edges().weight is not graph.weights.data


def test_repr(graph):
    assert repr(graph) == "Graph(n=7, edges=3, mean_degree=0.8571, method='weights')"


def test_is_frozen(graph):
    with pytest.raises(AttributeError):
        graph.weights = None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_equal(graph, copied):
    labels = graph.component_labels  # cached values travel too
    twin = copied(graph)
    assert (twin.weights != graph.weights).nnz == 0
    assert twin.params == graph.params
    np.testing.assert_array_equal(twin.component_labels, labels)


class TestFromWeights:
    def test_canonical_form(self):
        # unsorted, a duplicate, an explicit zero, 64-bit indices, float32
        data = np.array([1.0, 2.0, 3.0, 5.0, 0.0], dtype=np.float32)
        indices = np.array([1, 0, 1, 0, 1], dtype=np.int64)
        weights = sp.csr_array((data, indices, np.array([0, 3, 5], dtype=np.int64)), shape=(2, 2))
        weights.data[3] = 4.0
        kept = (weights.data.copy(), weights.indices.copy(), weights.indptr.copy())
        result = Graph.from_weights(weights).weights
        assert isinstance(result, sp.csr_matrix)
        np.testing.assert_array_equal(result.toarray(), [[2.0, 4.0], [4.0, 0.0]])
        assert result.dtype == np.float64
        assert result.indices.dtype == result.indptr.dtype == np.int32
        assert result.nnz == 3
        assert result.has_canonical_format
        for old, new in zip(kept, (weights.data, weights.indices, weights.indptr), strict=True):
            np.testing.assert_array_equal(old, new)

    def test_rounding_is_averaged_away_exactly(self, rng):
        dense = rng.random((20, 20))
        dense = (dense + dense.T) * (1 + 1e-12 * rng.standard_normal((20, 20)))
        weights = Graph.from_weights(dense).weights
        assert (weights != weights.T).nnz == 0
        np.testing.assert_allclose(weights.toarray(), dense, rtol=1e-11)

    @pytest.mark.parametrize("kind", [sp.csc_matrix, sp.coo_array, sp.lil_matrix, np.asarray])
    def test_any_matrix(self, kind):
        assert (Graph.from_weights(kind(WEIGHTS)).weights != sp.csr_matrix(WEIGHTS)).nnz == 0

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([[0.0, 1.0], [2.0, 0.0]], r"symmetric, but \|W - W.T\| reaches 1"),
            ([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]], r"square matrix.*got shape \(2, 3\)"),
            ([[0.0, -1.0], [-1.0, 0.0]], "finite and >= 0, got 2 other"),
            ([[0.0, np.nan], [np.nan, 0.0]], "finite and >= 0, got 2 other"),
            ([[np.inf, 1.0], [1.0, 0.0]], "finite and >= 0, got 1 other"),
            (np.zeros((0, 0)), "at least one row"),
        ],
    )
    def test_refused(self, weights, message):
        with pytest.raises(ValueError, match=message):
            Graph.from_weights(weights)

    def test_malformed_csr_is_refused_before_it_is_read(self):
        weights = sp.csr_matrix(WEIGHTS)
        weights.indices[2] = 10**6
        with pytest.raises(ValueError, match="column indices outside"):
            Graph.from_weights(weights)

    def test_params_become_plain(self):
        params = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": None, "e": "x"}
        plain = Graph.from_weights(WEIGHTS, params=params).params
        assert plain == {"a": 0.5, "b": 3, "c": True, "d": None, "e": "x"}
        assert [type(v) for v in plain.values()] == [float, int, bool, type(None), str]

    def test_params_must_be_plain(self):
        with pytest.raises(TypeError, match=r"params\['a'\]"):
            Graph.from_weights(WEIGHTS, params={"a": [1, 2]})
