"""Estimators among those of scikit-learn, and what they are good for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import SpectralClustering
from sklearn.datasets import load_digits, make_moons
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import otgraph
from otgraph.estimators import (
    GraphDenoiser,
    GraphEigenmaps,
    GraphLabelSpreading,
    KNNGaussianTransformer,
    QuadraticOTTransformer,
)


@pytest.fixture
def moons():
    return make_moons(160, noise=0.08, random_state=0)


class TestTools:
    def test_spectral_clustering(self, moons):
        X, y = moons
        clustering = SpectralClustering(2, affinity="precomputed", random_state=0)
        labels = make_pipeline(QuadraticOTTransformer(0.5), clustering).fit_predict(X)
        assert adjusted_rand_score(y, labels) > 0.95

    def test_grid_search_over_eps(self, moons):
        X, y = moons
        spreading = GraphLabelSpreading(graph=QuadraticOTTransformer())
        search = GridSearchCV(spreading, {"graph__eps": [0.3, 3.0], "mu": [0.1, 1.0]}, cv=3)
        search.fit(X, y)
        assert search.best_score_ > 0.97
        assert search.best_estimator_.graph_.params["eps"] == search.best_params_["graph__eps"]

    def test_grid_search_in_a_pipeline(self, moons):
        X, y = moons
        pipeline = make_pipeline(
            StandardScaler(),
            GraphEigenmaps(3, graph=QuadraticOTTransformer(self_loops=True)),
            LogisticRegression(),
        )
        search = GridSearchCV(pipeline, {"grapheigenmaps__graph__eps": [1.0, 5.0]}, cv=3)
        assert search.fit(X, y).best_score_ > 0.9

    def test_cross_validation_of_a_precomputed_graph(self, moons):
        """The pairwise tag makes scikit-learn cut rows and columns."""
        X, y = moons
        W = otgraph.gaussian_graph(X, 0.05, self_loops=True).weights
        scores = cross_val_score(GraphLabelSpreading(graph="precomputed"), W, y, cv=3)
        assert scores.mean() > 0.95

    def test_denoiser_before_a_classifier(self, moons):
        X, y = moons
        rng = np.random.default_rng(0)
        X = np.c_[X, rng.standard_normal((len(X), 3)) * 0.1]
        pipeline = make_pipeline(
            GraphDenoiser(1, graph=QuadraticOTTransformer(1.0)),
            HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5, random_state=0),
        )
        assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85

    @pytest.mark.parametrize("estimator", [GraphEigenmaps(2), GraphDenoiser(1)])
    def test_set_output(self, moons, estimator):
        X = pd.DataFrame(moons[0], columns=["east", "north"])
        out = estimator.set_output(transform="pandas").fit_transform(X)
        assert list(out.columns) == list(estimator.get_feature_names_out())
        assert len(out) == len(X)


class TestThreeGaussians:
    """Groups of width 0.3, 0.6 and 1 in 250 dimensions: nearest neighbors meet the tightest."""

    @pytest.fixture
    def sample(self):
        return otgraph.datasets.gaussian_mixture()

    def score(self, transformer, sample):
        clustering = SpectralClustering(3, affinity="precomputed", random_state=0)
        labels = make_pipeline(transformer, clustering).fit_predict(sample.X)
        return normalized_mutual_info_score(sample.labels, labels)

    def test_quadratic_transport_finds_them(self, sample):
        assert self.score(QuadraticOTTransformer(3.16), sample) > 0.85

    @pytest.mark.filterwarnings("ignore:Graph is not fully connected")
    @pytest.mark.parametrize("k", [5, 20, 50, pytest.param(80, marks=pytest.mark.slow), 100])
    def test_nearest_neighbors_do_not(self, sample, k):
        assert self.score(KNNGaussianTransformer(k), sample) < 0.3


class TestDigits:
    """Two labels of every digit; the experiment `digits` makes the whole table."""

    EPS, MU = 0.5, 0.01

    @pytest.fixture
    def digits(self):
        return load_digits(return_X_y=True)

    def labels(self, y, seed):
        return np.where(otgraph.datasets.label_mask(y, 0.01, random_state=seed), y, -1)

    @pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
    def test_few_labels_suffice(self, digits):
        X, y = digits
        graph = otgraph.quadratic_ot_graph(X, self.EPS)
        found = []
        for seed in range(5):
            known = self.labels(y, seed)
            right = otgraph.spread_labels(graph, known, self.MU).labels == y
            found.append(right[known < 0].mean())
        assert np.mean(found) > 0.9

    @pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
    def test_new_digits_are_labeled_as_well_as_those_of_the_fit(self, digits):
        X, y = digits
        spreading = GraphLabelSpreading(self.MU, graph=QuadraticOTTransformer(self.EPS))
        predicted, together = [], []
        for seed in range(3):
            known = self.labels(y, seed)
            new = (np.random.default_rng(seed).random(len(y)) < 0.2) & (known < 0)
            right = spreading.fit(X[~new], known[~new]).predict(X[new]) == y[new]
            predicted.append(right.mean())
            together.append((spreading.fit(X, known).transduction_ == y)[new].mean())
        assert abs(np.mean(predicted) - np.mean(together)) < 0.02
