"""Each transformer gives the graph of its function."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import pairwise_distances

import otgraph
from otgraph.estimators import (
    EntropicOTTransformer,
    GaussianTransformer,
    KNNGaussianTransformer,
    MAGICTransformer,
    QuadraticOTTransformer,
)

TRANSFORMERS = [
    (QuadraticOTTransformer(0.7), otgraph.quadratic_ot_graph, {"eps": 0.7}),
    (QuadraticOTTransformer(mean_degree=6), otgraph.quadratic_ot_graph, {"mean_degree": 6}),
    (EntropicOTTransformer(0.7), otgraph.entropic_ot_graph, {"eps": 0.7}),
    (KNNGaussianTransformer(4, 0.5), otgraph.knn_gaussian_graph, {"n_neighbors": 4, "eps": 0.5}),
    (GaussianTransformer(0.7), otgraph.gaussian_graph, {"eps": 0.7}),
    (MAGICTransformer(3), otgraph.magic_graph, {"n_neighbors": 3}),
]
EACH = pytest.mark.parametrize(
    ("transformer", "function", "options"),
    TRANSFORMERS,
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)


@pytest.fixture
def X(rng):
    return rng.standard_normal((60, 4))


@pytest.fixture
def X_new(rng):
    return rng.standard_normal((7, 4))


def assert_equal(A, B):
    assert A.shape == B.shape
    assert abs(A - B).max() == 0


@EACH
class TestEach:
    def test_equals_the_function(self, transformer, function, options, X, X_new):
        graph = function(X, **options)
        fitted = clone(transformer)
        assert_equal(fitted.fit_transform(X), graph.weights)
        assert_equal(fitted.transform(X_new), graph.extend(X_new))
        assert fitted.graph_.params == graph.params

    def test_sparse_container_follows_the_setting(self, transformer, function, options, X, X_new):
        fitted = clone(transformer).fit(X)
        assert sp.isspmatrix_csr(fitted.transform(X_new))
        assert sp.isspmatrix_csr(fitted.fit_transform(X))
        if "sparse_interface" in sklearn.get_config():
            with sklearn.config_context(sparse_interface="sparray"):
                assert isinstance(fitted.transform(X_new), sp.csr_array)
                weights = fitted.fit_transform(X)
            assert isinstance(weights, sp.csr_array)
            assert weights.indices.dtype == weights.indptr.dtype == np.int32

    def test_pickle_and_clone(self, transformer, function, options, X, X_new):
        fitted = clone(transformer).fit(X)
        loaded = pickle.loads(pickle.dumps(fitted))
        assert_equal(loaded.transform(X_new), fitted.transform(X_new))
        assert not hasattr(clone(fitted), "graph_")
        assert clone(fitted).get_params() == fitted.get_params()

    def test_names_of_the_columns(self, transformer, function, options, X):
        names = clone(transformer).fit(X).get_feature_names_out()
        assert names.shape == (60,)
        assert names[3] == f"{type(transformer).__name__.lower()}3"

    def test_data_frames_cannot_hold_a_graph(self, transformer, function, options, X):
        """scikit-learn's own neighbor transformers refuse in the same way."""
        with pytest.raises(ValueError, match="sparse"):
            clone(transformer).set_output(transform="pandas").fit_transform(X)

    def test_result_may_be_changed(self, transformer, function, options, X):
        fitted = clone(transformer)
        weights = fitted.fit_transform(X)
        before = fitted.graph_.weights.copy()
        weights.data[:] = 0.0
        assert_equal(fitted.graph_.weights, before)

    def test_other_features(self, transformer, function, options, X):
        with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
            clone(transformer).fit(X).transform(X[:, :3])

    def test_not_fitted(self, transformer, function, options, X):
        with pytest.raises(NotFittedError):
            clone(transformer).transform(X)

    def test_bad_numbers_are_counted(self, transformer, function, options, X):
        X[5, 1] = np.nan
        with pytest.raises(ValueError, match=r"contains NaN: 1 value\(s\).* row 5"):
            clone(transformer).fit(X)


class TestQuadratic:
    def test_default_degree(self, X):
        assert QuadraticOTTransformer().fit(X).graph_.params["mean_degree"] == 15

    def test_both_eps_and_degree(self, X):
        with pytest.raises(TypeError, match="at most one of `eps` and `mean_degree`"):
            QuadraticOTTransformer(1.0, mean_degree=5).fit(X)

    @pytest.mark.parametrize("eps", [-1.0, 0, np.nan, np.inf])
    def test_bad_eps_is_told_by_fit(self, X, eps):
        transformer = QuadraticOTTransformer(eps)
        with pytest.raises(ValueError, match="`eps` must be a positive"):
            transformer.fit(X)

    def test_failed_fit_leaves_what_was_there(self, X):
        transformer = QuadraticOTTransformer().fit(X)
        graph = transformer.graph_
        with pytest.raises(ValueError, match="NaN"):
            transformer.fit(np.full((60, 4), np.nan))
        assert transformer.graph_ is graph

    def test_masses(self, X, rng):
        mass = rng.uniform(0.5, 2.0, 60)
        weights = QuadraticOTTransformer().fit_transform(X, mass=mass)
        np.testing.assert_allclose(np.asarray(weights.sum(axis=1)).ravel(), mass, rtol=1e-5)

    def test_own_rows_with_self_loops(self, X):
        transformer = QuadraticOTTransformer(self_loops=True, min_degree=0, tol=1e-10)
        weights = transformer.fit_transform(X)
        np.testing.assert_allclose(transformer.transform(X).toarray(), weights.toarray(), atol=1e-8)

    def test_counts_its_steps(self, X):
        assert QuadraticOTTransformer().fit(X).n_iter_ >= 1


class TestMetric:
    def test_precomputed(self, X, X_new):
        pairwise = QuadraticOTTransformer(metric="precomputed")
        costs = pairwise_distances(X) ** 2
        direct = QuadraticOTTransformer()
        np.testing.assert_allclose(
            pairwise.fit_transform(costs).toarray(), direct.fit_transform(X).toarray(), atol=1e-6
        )
        np.testing.assert_allclose(
            pairwise.transform(pairwise_distances(X_new, X) ** 2).toarray(),
            direct.transform(X_new).toarray(),
            atol=1e-5,
        )

    def test_pairwise_tag(self):
        for transformer in (QuadraticOTTransformer, GaussianTransformer):
            tags = transformer(metric="precomputed").__sklearn_tags__().input_tags
            assert tags.pairwise
            assert tags.positive_only
            assert not transformer().__sklearn_tags__().input_tags.pairwise

    def test_function(self, X, X_new):
        transformer = KNNGaussianTransformer(3, metric=chebyshev).fit(X)
        named = KNNGaussianTransformer(3, metric="chebyshev").fit(X)
        assert_equal(transformer.transform(X_new), named.transform(X_new))

    def test_sparse_points(self, X, X_new):
        X, X_new = np.maximum(X, 0.0), np.maximum(X_new, 0.0)
        sparse = QuadraticOTTransformer().fit(sp.csr_matrix(X))
        dense = QuadraticOTTransformer().fit(X)
        np.testing.assert_allclose(
            sparse.transform(sp.csr_matrix(X_new)).toarray(),
            dense.transform(X_new).toarray(),
            atol=1e-5,
        )


def chebyshev(a, b):
    return np.abs(a - b).max()
