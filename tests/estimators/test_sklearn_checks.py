"""The official checks of scikit-learn, for every estimator.

Two kinds of check cannot pass, by decision and not by accident; each is declared with its
reason, and must fail, so that the list cannot go stale (``xfail_strict``). The same
estimators pass them all with ``self_loops=True``, where extending a graph to its own points
gives its own rows.
"""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from otgraph.estimators import (
    EntropicOTTransformer,
    GaussianTransformer,
    GraphDenoiser,
    GraphEigenmaps,
    GraphLabelSpreading,
    GraphSpectralClustering,
    KNNGaussianTransformer,
    MAGICTransformer,
    QuadraticOTTransformer,
)

# The checks use tiny data in distant groups: graphs fall apart, and say so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning"),
]

NO_TWIN = (
    "a fitted point handed in again is a new point, at cost zero from its twin, while the "
    "fitted graph has no self-loops"
)
ONE_SIDED = "the fitted graph is symmetrized, rows of new points are not"
MINUS_ONE = "the check takes -1 for a class; here it means unknown"

REFIT_CHECKS = ("check_transformer_general", "check_transformer_data_not_an_array")

WITH_LOOPS = QuadraticOTTransformer(self_loops=True)

DECLARED = [
    (QuadraticOTTransformer(), dict.fromkeys(REFIT_CHECKS, NO_TWIN)),
    (EntropicOTTransformer(), dict.fromkeys(REFIT_CHECKS, NO_TWIN)),
    (GaussianTransformer(), dict.fromkeys(REFIT_CHECKS, NO_TWIN)),
    (KNNGaussianTransformer(n_neighbors=3), dict.fromkeys(REFIT_CHECKS, ONE_SIDED)),
    (MAGICTransformer(n_neighbors=2), dict.fromkeys(REFIT_CHECKS, ONE_SIDED)),
    (GraphEigenmaps(n_components=1), dict.fromkeys(REFIT_CHECKS, NO_TWIN)),
    (GraphDenoiser(), dict.fromkeys(REFIT_CHECKS, NO_TWIN)),
    (GraphLabelSpreading(), {"check_classifiers_classes": MINUS_ONE}),
    (GraphSpectralClustering(), {}),
    (QuadraticOTTransformer(self_loops=True), {}),
    (EntropicOTTransformer(self_loops=True), {}),
    (GaussianTransformer(self_loops=True), {}),
    (GraphEigenmaps(n_components=1, graph=WITH_LOOPS), {}),
    (GraphDenoiser(graph=WITH_LOOPS), {}),
    (GraphLabelSpreading(graph=WITH_LOOPS), {"check_classifiers_classes": MINUS_ONE}),
]


def expected_failures(estimator):
    (failures,) = (failures for known, failures in DECLARED if repr(known) == repr(estimator))
    return failures


@parametrize_with_checks(
    [estimator for estimator, _ in DECLARED],
    expected_failed_checks=expected_failures,
)
def test_sklearn_check(estimator, check):
    check(estimator)
