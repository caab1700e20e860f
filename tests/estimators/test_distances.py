"""Transformers that return distances, in scikit-learn's estimators that want them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import EfficiencyWarning
from sklearn.manifold import TSNE, Isomap
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer
from sklearn.pipeline import make_pipeline

import otgraph
from otgraph.estimators import (
    EntropicOTTransformer,
    GaussianTransformer,
    GraphLabelSpreading,
    KNNGaussianTransformer,
    MAGICTransformer,
    QuadraticOTTransformer,
)

TRANSFORMERS = [
    QuadraticOTTransformer(mean_degree=6),
    EntropicOTTransformer(0.5),
    KNNGaussianTransformer(4, 0.3),
    GaussianTransformer(0.5),
    MAGICTransformer(4),
]


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=lambda each: type(each).__name__)
def test_distances_along_the_same_edges(rng, transformer):
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(9, 3))
    weights, rows = transformer.fit_transform(X), transformer.transform(new)
    transformer.set_params(mode="distance")
    D, E = transformer.fit_transform(X), transformer.transform(new)
    np.testing.assert_array_equal(
        D.toarray() > 0.0, weights.toarray() - np.diag(weights.diagonal()) > 0
    )
    np.testing.assert_array_equal(E.toarray() > 0.0, rows.toarray() > 0.0)
    for found, points in ((D, X), (E, new)):
        coo = found.tocoo()
        expected = pairwise_distances(points, X)[coo.row, coo.col]
        np.testing.assert_allclose(coo.data, expected, atol=1e-9)
        assert all((np.diff(row.data) >= 0.0).all() for row in found)
    assert (D.indices[D.indptr[:-1]] == np.arange(50)).all()  # a point is its own neighbor


def test_rows_are_filled_with_the_nearest(rng):
    X, new = np.exp(rng.normal(size=(60, 2))), np.exp(rng.normal(size=(20, 2)))
    plain = QuadraticOTTransformer(mean_degree=5, mode="distance").fit(X)
    filled = QuadraticOTTransformer(mean_degree=5, mode="distance", min_neighbors=6).fit(X)
    rows, more = plain.transform(new), filled.transform(new)
    assert np.diff(rows.indptr).min() < 6
    D = pairwise_distances(new, X)
    for i in range(len(new)):
        own = set(rows[i].indices)
        order = sorted(range(60), key=lambda j: (j not in own, D[i, j]))
        assert set(more[i].indices) == set(order[: max(6, len(own))])
    assert np.diff(filled.fit_transform(X).indptr).min() == 7  # and the point itself


def test_nearest_neighbor_classifier_on_digits():
    """Similarities are refused or give wrong neighbors; distances are as good as scikit-learn's."""
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, 700), slice(700, 1400)

    def accuracy(transformer):
        classifier = KNeighborsClassifier(3, metric="precomputed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EfficiencyWarning)  # similarities are not sorted
            classifier.fit(transformer.fit_transform(X[train]), y[train])
            return classifier.score(transformer.transform(X[test]), y[test])

    theirs = accuracy(KNeighborsTransformer(n_neighbors=15))
    distances = accuracy(QuadraticOTTransformer(mode="distance", min_neighbors=3))
    assert accuracy(QuadraticOTTransformer()) < theirs - 0.03
    assert distances > theirs - 0.005


def test_pipeline_with_a_classifier_and_five_neighbors():
    """No row is too short, and none is sorted again: that would be a warning, hence an error."""
    X, y = load_digits(return_X_y=True)
    pipeline = make_pipeline(
        QuadraticOTTransformer(mode="distance", min_neighbors=5),
        KNeighborsClassifier(5, metric="precomputed"),
    ).fit(X[:500], y[:500])
    plain = KNeighborsClassifier(5).fit(X[:500], y[:500])
    new = X[500:800], y[500:800]
    assert pipeline.score(*new) > plain.score(*new) - 0.02


def test_dbscan_finds_both_moons():
    X, y = make_moons(200, noise=0.04, random_state=0)
    distances = QuadraticOTTransformer(mode="distance").fit_transform(X)
    assert adjusted_rand_score(y, DBSCAN(eps=0.2, metric="precomputed").fit_predict(distances)) == 1


def test_tsne_and_isomap_get_enough_neighbors():
    X, _ = load_digits(return_X_y=True)
    distances = QuadraticOTTransformer(mode="distance", min_neighbors=31).fit_transform(X[:150])
    tsne = TSNE(perplexity=10, metric="precomputed", init="random", max_iter=250, random_state=0)
    assert np.isfinite(tsne.fit_transform(distances)).all()
    isomap = Isomap(n_neighbors=12, metric="precomputed")
    assert np.isfinite(isomap.fit_transform(distances)).all()


def test_to_knn_as_matrix_goes_into_tsne():
    X, _ = load_digits(return_X_y=True)
    knn = otgraph.quadratic_ot_graph(X[:150]).to_knn(32, include_self=True).matrix()
    tsne = TSNE(perplexity=10, metric="precomputed", init="random", max_iter=250, random_state=0)
    assert np.isfinite(tsne.fit_transform(knn)).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mode": "distances"}, "`mode` must be"),
        ({"mode": "distance", "min_neighbors": -1}, "`min_neighbors` must be"),
        ({"min_neighbors": 5}, "`min_neighbors` must be 0 with mode='affinity'"),
    ],
)
def test_wrong_parameters(rng, params, message):
    with pytest.raises(ValueError, match=message):
        QuadraticOTTransformer(**params).fit(rng.normal(size=(20, 2)))


def test_methods_refuse_a_transformer_of_distances(rng):
    X = rng.normal(size=(20, 2))
    distances = QuadraticOTTransformer(mode="distance")
    for graph in (distances, make_pipeline(distances)):
        with pytest.raises(ValueError, match="must give weights"):
            GraphLabelSpreading(graph=graph).fit(X, np.arange(20) % 2)


class TestScore:
    def test_unknown_labels_do_not_count(self, rng):
        X, y = make_moons(200, noise=0.05, random_state=0)
        few = np.where(rng.random(200) < 0.2, y, -1)
        search = GridSearchCV(
            GraphLabelSpreading(graph=QuadraticOTTransformer()), {"graph__eps": [0.3, 1.0]}, cv=3
        ).fit(X, few)
        assert search.best_score_ > 0.9

    def test_is_the_accuracy_on_known_labels(self, rng):
        X, y = make_moons(120, noise=0.3, random_state=0)
        spreading = GraphLabelSpreading().fit(X, y)
        new, truth = make_moons(60, noise=0.3, random_state=1)
        weight = rng.random(60)
        known = np.arange(60) % 3 > 0
        right = spreading.predict(new)[known] == truth[known]
        partly = np.where(known, truth, -1)
        assert spreading.score(new, partly) == right.mean() < 1.0
        assert spreading.score(new, partly, weight) == np.average(right, weights=weight[known])

    def test_words_and_points_that_no_label_reaches(self):
        X = np.array([[0.0], [0.1], [0.2], [50.0], [50.1], [50.2]])
        graph = KNNGaussianTransformer(1, 0.1, normalize=False)
        y = np.array(["a", -1, "b", -1, -1, -1], dtype=object)
        with pytest.warns(otgraph.exceptions.DisconnectedWarning):
            spreading = GraphLabelSpreading(graph=graph).fit(X, y)
        truth = np.array(["a", -1, "b", "b", None, -1], dtype=object)
        with pytest.warns(otgraph.exceptions.DisconnectedWarning):
            assert spreading.score(X, truth) == pytest.approx(2 / 3)
