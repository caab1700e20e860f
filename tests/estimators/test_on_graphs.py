"""Eigenmaps, label spreading and denoising as estimators, on graphs from every source."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import otgraph
from otgraph.estimators import (
    GaussianTransformer,
    GraphDenoiser,
    GraphEigenmaps,
    GraphLabelSpreading,
    GraphSpectralClustering,
    KNNGaussianTransformer,
    QuadraticOTTransformer,
)
from otgraph.exceptions import DisconnectedWarning
from small_graphs import ring

EPS = 2.0


@pytest.fixture
def spiral():
    return otgraph.datasets.noisy_spiral(240, dim=10, noise=0.5)


@pytest.fixture
def X(spiral):
    return spiral.X[::2]


@pytest.fixture
def X_new(spiral):
    return spiral.X[1::2]


@pytest.fixture
def y(X):
    y = np.full(len(X), -1)
    y[::20] = np.arange(6) // 2
    return y


@pytest.fixture
def graph(X):
    return otgraph.quadratic_ot_graph(X, EPS)


ESTIMATORS = [GraphEigenmaps(3), GraphLabelSpreading(), GraphDenoiser(t=2)]
EACH = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


def outputs(estimator, X, X_new, y=None):
    """What it says of the fitted and of new points."""
    estimator = clone(estimator)
    if isinstance(estimator, GraphLabelSpreading):
        estimator.fit(X, y)
        return estimator.label_distributions_, estimator.predict_proba(X_new)
    return estimator.fit_transform(X, y), estimator.transform(X_new)


@EACH
class TestSources:
    def test_all_give_the_same(self, estimator, X, X_new, y, graph):
        expected = outputs(clone(estimator).set_params(graph=graph), X, X_new, y)
        transformer = QuadraticOTTransformer(EPS)
        sources = [
            (transformer, X, X_new, y),
            (make_pipeline(transformer), X, X_new, y),
            ("precomputed", graph.weights, graph.extend(X_new), y),
            ("precomputed", graph.weights.toarray(), graph.extend(X_new).toarray(), y),
        ]
        for source, A, A_new, target in sources:
            target = X if source == "precomputed" and estimator is ESTIMATORS[2] else target
            found = outputs(clone(estimator).set_params(graph=source), A, A_new, target)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, atol=1e-8)

    def test_pipeline_equals_one_piece(self, estimator, X, X_new, y):
        transformer = QuadraticOTTransformer(EPS)
        one = outputs(clone(estimator).set_params(graph=transformer), X, X_new, y)
        pipeline = make_pipeline(transformer, clone(estimator).set_params(graph="precomputed"))
        if isinstance(estimator, GraphLabelSpreading):
            two = (one[0], pipeline.fit(X, y).predict_proba(X_new))
        else:
            two = (pipeline.fit_transform(X, X), pipeline.transform(X_new))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-8)

    def test_default_is_quadratic_transport(self, estimator, X, X_new, y):
        expected = outputs(clone(estimator).set_params(graph=QuadraticOTTransformer()), X, X_new, y)
        for a, b in zip(outputs(estimator, X, X_new, y), expected, strict=True):
            np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("transformer", [KNNGaussianTransformer(8), GaussianTransformer(0.1)])
    def test_other_transformers(self, estimator, transformer, X, X_new, y):
        found = outputs(clone(estimator).set_params(graph=transformer), X, X_new, y)
        assert all(np.isfinite(a).all() for a in found)

    def test_the_given_transformer_stays_unfitted(self, estimator, X, y):
        transformer = QuadraticOTTransformer(EPS)
        clone(estimator).set_params(graph=transformer).fit(X, y)
        fitted = clone(estimator).set_params(graph=transformer)
        assert not hasattr(transformer, "graph_")
        assert not hasattr(fitted, "transformer_")

    def test_nested_parameters(self, estimator, X, y):
        fitted = clone(estimator).set_params(graph=QuadraticOTTransformer())
        fitted.set_params(graph__eps=5.0).fit(X, y)
        assert fitted.graph_.params["eps"] == 5.0

    def test_pickle(self, estimator, X, X_new, y, graph):
        for source in (QuadraticOTTransformer(EPS), graph):
            fitted = clone(estimator).set_params(graph=source).fit(X, y)
            loaded = pickle.loads(pickle.dumps(fitted))
            method = "predict_proba" if hasattr(fitted, "predict_proba") else "transform"
            np.testing.assert_array_equal(
                getattr(loaded, method)(X_new), getattr(fitted, method)(X_new)
            )

    def test_pairwise_tag(self, estimator):
        assert not estimator.__sklearn_tags__().input_tags.pairwise
        precomputed = clone(estimator).set_params(graph="precomputed")
        assert precomputed.__sklearn_tags__().input_tags.pairwise


@EACH
class TestFaults:
    def test_wrong_graph(self, estimator, X, y):
        with pytest.raises(TypeError, match=r"`graph` must be a transformer.*got 'knn'"):
            clone(estimator).set_params(graph="knn").fit(X, y)

    def test_what_gives_no_weights_of_all_pairs(self, estimator, X, y):
        with pytest.raises(ValueError, match=r"`graph` must be .* all pairs.*got StandardScaler"):
            clone(estimator).set_params(graph=StandardScaler()).fit(X, y)

    def test_points_as_precomputed(self, estimator, X, y):
        with pytest.raises(ValueError, match=r"`X` must hold the weights .* and 10 columns"):
            clone(estimator).set_params(graph="precomputed").fit(np.abs(X), y)

    def test_graph_of_other_points(self, estimator, X, y, graph):
        with pytest.raises(ValueError, match="a row for each of the 120 points of `graph`, got 50"):
            clone(estimator).set_params(graph=graph).fit(X[:50], y[:50])

    def test_graph_that_has_no_points(self, estimator, X, y, graph):
        fitted = clone(estimator).set_params(graph=otgraph.Graph.from_weights(graph.weights))
        fitted.fit(X, y)
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        with pytest.raises(ValueError, match="can be extended"):
            method(X)

    def test_precomputed_but_not_symmetric(self, estimator, rng):
        with pytest.raises(ValueError, match="must be symmetric"):
            clone(estimator).set_params(graph="precomputed").fit(rng.random((9, 9)), np.arange(9))

    def test_other_features(self, estimator, X, y):
        fitted = clone(estimator).fit(X, y)
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        with pytest.raises(ValueError, match=r"X has 9 features, but .* is expecting 10"):
            method(X[:, :9])

    def test_failed_fit_leaves_what_was_there(self, estimator, X, X_new, y, graph):
        fitted = clone(estimator).fit(X, y)
        method = fitted.predict if hasattr(fitted, "predict") else fitted.transform
        before = method(X_new)
        with pytest.raises(ValueError, match="NaN"):
            fitted.fit(np.full_like(X, np.nan), y)
        np.testing.assert_array_equal(method(X_new), before)

    def test_failed_first_fit_is_no_fit(self, estimator, X, y):
        broken = clone(estimator)
        with pytest.raises(ValueError, match="NaN"):
            broken.fit(np.full_like(X, np.nan), y)
        with pytest.raises(NotFittedError):
            getattr(broken, "predict" if hasattr(broken, "predict") else "transform")(X)

    def test_not_fitted(self, estimator, X):
        method = estimator.predict if hasattr(estimator, "predict") else estimator.transform
        with pytest.raises(NotFittedError):
            method(X)


class TestEigenmaps:
    def test_equals_the_function(self, X, X_new, graph):
        estimator = GraphEigenmaps(4, graph=graph).fit(X)
        embedding = otgraph.eigenmaps(graph, 4)
        np.testing.assert_array_equal(estimator.embedding_, embedding.coordinates)
        np.testing.assert_array_equal(estimator.eigenvalues_, embedding.eigenvalues)
        np.testing.assert_array_equal(
            estimator.transform(X_new), embedding.extend(graph.extend(X_new))
        )

    def test_own_points_with_self_loops(self, X):
        graph = QuadraticOTTransformer(EPS, self_loops=True, tol=1e-10)
        estimator = GraphEigenmaps(4, graph=graph)
        np.testing.assert_allclose(estimator.fit_transform(X), estimator.transform(X), atol=1e-6)

    def test_new_points_lie_near_the_curve_of_the_old(self, spiral):
        """Embedded circle: new points fall on it, next to their neighbors along the spiral."""
        estimator = GraphEigenmaps(2, graph=QuadraticOTTransformer(3.0))
        old = estimator.fit_transform(spiral.X[::2])
        new = estimator.transform(spiral.X[1::2])
        assert np.median(np.linalg.norm(new - old, axis=1)) < 0.3

    def test_names(self, X):
        names = GraphEigenmaps(2).fit(X).get_feature_names_out()
        assert names.tolist() == ["grapheigenmaps0", "grapheigenmaps1"]

    def test_components_are_said(self):
        W = sp.block_diag([ring(5), ring(6)], format="csr")
        with pytest.warns(DisconnectedWarning):
            GraphEigenmaps(2, graph="precomputed").fit(W)


class TestLabelSpreading:
    def test_equals_the_function(self, X, X_new, y, graph):
        estimator = GraphLabelSpreading(0.3, graph=graph).fit(X, y)
        spread = otgraph.spread_labels(graph, y, 0.3)
        np.testing.assert_array_equal(estimator.transduction_, spread.labels)
        np.testing.assert_array_equal(estimator.label_distributions_, spread.probabilities)
        new = spread.extend(graph.extend(X_new))
        np.testing.assert_array_equal(estimator.predict(X_new), new.labels)
        assert estimator.n_iter_ == spread.n_iter

    def test_strings(self, X, X_new, y):
        names = np.array(["a", "b", "c", -1], dtype=object)[y]
        estimator = GraphLabelSpreading().fit(X, names)
        assert estimator.classes_.tolist() == ["a", "b", "c"]
        assert set(estimator.predict(X_new)) == {"a", "b", "c"}

    def test_minus_one_is_no_class(self, X, y):
        estimator = GraphLabelSpreading().fit(X, y)
        assert estimator.classes_.tolist() == [0, 1, 2]
        assert estimator.predict_proba(X).shape == (120, 3)

    @pytest.mark.parametrize(
        ("labels", "match"),
        [
            (np.full(120, -1), "at least one known label"),
            (np.array(["a", "-1"] * 60), "strings and some are '-1'"),
            (np.array([0.0, np.nan] * 60), "NaN"),
            (np.arange(119), "inconsistent numbers of samples"),
        ],
    )
    def test_bad_labels(self, X, labels, match):
        with pytest.raises(ValueError, match=match):
            GraphLabelSpreading().fit(X, labels)

    def test_column_of_labels(self, X, y):
        with pytest.warns(DataConversionWarning):
            estimator = GraphLabelSpreading().fit(X, y[:, None])
        assert estimator.transduction_.shape == (120,)

    def test_unreachable_points(self):
        W = sp.block_diag([ring(5), ring(4)], format="csr")
        estimator = GraphLabelSpreading(graph="precomputed")
        with pytest.warns(DisconnectedWarning, match="No label reaches 4 of 9"):
            estimator.fit(W, [0, -1, 1, -1, -1, -1, -1, -1, -1])
        assert estimator.unreachable_.sum() == 4
        assert estimator.transduction_[-1] == -1
        with pytest.warns(DisconnectedWarning, match="1 of 1 new"):
            np.testing.assert_array_equal(estimator.predict_proba(W[[8]]), [[0.5, 0.5]])

    def test_far_away_point_has_probabilities(self, X, y):
        """Where a Gaussian kernel underflows, transport still finds the nearest points."""
        probabilities = GraphLabelSpreading().fit(X, y).predict_proba(X[:1] + 1e6)
        np.testing.assert_allclose(probabilities.sum(), 1.0)


class TestDenoiser:
    def test_equals_the_function(self, X, X_new, graph):
        estimator = GraphDenoiser(t=3, graph=graph)
        np.testing.assert_allclose(
            estimator.fit_transform(X), otgraph.denoise(graph, X, 3), rtol=1e-12
        )
        rows = graph.extend(X_new)
        np.testing.assert_allclose(
            estimator.transform(X_new), rows @ otgraph.denoise(graph, X, 2), atol=1e-6
        )

    def test_graph_on_principal_components(self, X, X_new):
        estimator = GraphDenoiser(graph=make_pipeline(PCA(3), QuadraticOTTransformer(EPS)))
        graph = otgraph.quadratic_ot_graph(PCA(3).fit_transform(X), EPS)
        np.testing.assert_allclose(estimator.fit_transform(X), otgraph.denoise(graph, X), atol=1e-6)
        assert estimator.transform(X_new).shape == X_new.shape

    def test_automatic_time(self, X, graph):
        estimator = GraphDenoiser("auto", graph=graph)
        smooth = estimator.fit_transform(X)
        np.testing.assert_allclose(smooth, otgraph.denoise(graph, X, "auto"), rtol=1e-12)
        assert estimator.t_ == otgraph.methods.diffusion_time(graph, X)

    def test_columns_and_their_names(self, X, X_new, graph):
        estimator = GraphDenoiser(graph=graph, columns=[4, 1])
        np.testing.assert_allclose(
            estimator.fit_transform(X), otgraph.denoise(graph, X, columns=[4, 1]), rtol=1e-12
        )
        assert estimator.transform(X_new).shape == (120, 2)
        assert estimator.get_feature_names_out().tolist() == ["x4", "x1"]
        precomputed = GraphDenoiser(graph="precomputed", columns=[4, 1]).fit(graph.weights, X)
        assert precomputed.get_feature_names_out().tolist() == ["graphdenoiser4", "graphdenoiser1"]

    def test_rescaled(self, X, X_new, graph):
        X, X_new = np.abs(X), np.abs(X_new)
        graph = otgraph.quadratic_ot_graph(X, EPS, self_loops=True, tol=1e-10)
        estimator = GraphDenoiser(graph=graph, rescale=True)
        np.testing.assert_allclose(
            estimator.fit_transform(X), otgraph.denoise(graph, X, rescale=True), rtol=1e-12
        )
        np.testing.assert_allclose(estimator.transform(X), estimator.fit_transform(X), atol=1e-6)

    def test_sparse_counts(self, X, graph):
        counts = sp.csr_matrix(np.round(np.maximum(X, 0.0) * 5))
        estimator = GraphDenoiser(graph=graph)
        np.testing.assert_allclose(
            estimator.fit_transform(counts), otgraph.denoise(graph, counts), rtol=1e-12
        )

    def test_points_without_neighbors_stay(self, X):
        estimator = GraphDenoiser(graph=GaussianTransformer(0.5)).fit(X)
        far = X[:2] + 1e4
        with pytest.warns(UserWarning, match=r"2 new point\(s\) .* stay as they are"):
            np.testing.assert_array_equal(estimator.transform(far), far)

    def test_precomputed_needs_features(self, graph):
        with pytest.raises(ValueError, match="`y` must hold the features to denoise"):
            GraphDenoiser(graph="precomputed").fit(graph.weights)

    @pytest.mark.parametrize(
        ("t", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), ("often", TypeError)]
    )
    def test_bad_t(self, X, t, error):
        with pytest.raises(error, match="`t` must be"):
            GraphDenoiser(t).fit(X)


class TestSpectralClustering:
    def test_same_as_the_function(self, X, graph):
        estimator = GraphSpectralClustering(3, graph=graph).fit(X)
        found = otgraph.cluster(graph, 3)
        np.testing.assert_array_equal(estimator.labels_, found.labels)
        np.testing.assert_array_equal(estimator.eigenvalues_, found.eigenvalues)
        assert estimator.n_clusters_ == 3
        assert estimator.graph_ is graph

    def test_all_sources_give_the_same(self, X, graph):
        expected = otgraph.cluster(graph, 3).labels
        for source, A in ((QuadraticOTTransformer(EPS), X), ("precomputed", graph.weights)):
            labels = GraphSpectralClustering(3, graph=source).fit_predict(A)
            np.testing.assert_array_equal(labels, expected)

    def test_number_by_the_gap(self, X, graph):
        estimator = GraphSpectralClustering(graph=graph, max_clusters=4).fit(X)
        assert estimator.n_clusters_ == otgraph.cluster(graph, max_clusters=4).n_clusters

    def test_failed_fit_leaves_the_estimator_as_it_was(self, X, graph):
        estimator = GraphSpectralClustering(3, graph=graph).fit(X)
        before = estimator.labels_
        with pytest.raises(ValueError, match="`n_clusters` must be at most"):
            estimator.set_params(n_clusters=10**6).fit(X)
        assert estimator.labels_ is before
