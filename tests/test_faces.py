"""Every face of a construction has the same keywords with the same defaults."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest

import otgraph
from otgraph import estimators
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.options import QuadraticOptions

ESTIMATORS = {
    "quadratic": estimators.QuadraticOTTransformer,
    "entropic": estimators.EntropicOTTransformer,
    "knn": estimators.KNNGaussianTransformer,
    "gaussian": estimators.GaussianTransformer,
    "magic": estimators.MAGICTransformer,
}
# What a call is about, or how it runs: no option of a construction.
OF_THE_CALL = {"X", "eps", "mean_degree", "mass", "u0", "progress", "n_jobs"}
OF_THE_OUTPUT = {"mode", "min_neighbors"}  # what a transformer returns
OF_THE_CLUSTER = {"client", "block_rows"}


def defaults_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in ("self", "X")}


def options_of(options):
    assert all(each.default is not MISSING for each in fields(options))
    return {each.name: each.default for each in fields(options)}


def assert_same(function, options, also=frozenset()):
    """Options are keywords with the same defaults, and there are no others but those of a call."""
    found, expected = defaults_of(function), options_of(options)
    assert {name: found.get(name, "missing") for name in expected} == expected
    assert set(found) - set(expected) <= OF_THE_CALL | also


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_function(name):
    assert_same(CONSTRUCTIONS[name].build, CONSTRUCTIONS[name].options)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_estimator(name):
    assert_same(ESTIMATORS[name].__init__, CONSTRUCTIONS[name].options, OF_THE_OUTPUT)
    function = defaults_of(CONSTRUCTIONS[name].build)
    for keyword, default in defaults_of(ESTIMATORS[name].__init__).items():
        if keyword not in OF_THE_OUTPUT and function[keyword] is not inspect.Parameter.empty:
            assert default == function[keyword]


def test_path():
    assert_same(otgraph.eps_path, QuadraticOptions)


def test_cluster():
    from otgraph.distributed import quadratic_ot_graph

    assert_same(quadratic_ot_graph, QuadraticOptions, OF_THE_CLUSTER)
    local = defaults_of(otgraph.quadratic_ot_graph)
    there = defaults_of(quadratic_ot_graph)
    assert {name: there[name] for name in local} == local


def test_every_estimator_has_its_construction():
    assert set(ESTIMATORS) == set(CONSTRUCTIONS)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_meaning_of_every_keyword(name):
    for each in fields(CONSTRUCTIONS[name].options):
        assert each.metadata["meaning"].endswith(".")


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_a_graph_names_its_construction_and_keywords(name, rng):
    construction = CONSTRUCTIONS[name]
    extra = {"eps": 0.5} if name == "entropic" else {}
    graph = construction.build(rng.normal(size=(40, 3)), **extra)
    assert graph.params["method"] == name
    assert set(construction.options.names()) <= set(graph.params)


@pytest.mark.parametrize(
    ("function", "estimator"),
    [
        (otgraph.cluster, otgraph.estimators.GraphSpectralClustering),
        (otgraph.eigenmaps, otgraph.estimators.GraphEigenmaps),
        (otgraph.spread_labels, otgraph.estimators.GraphLabelSpreading),
    ],
)
def test_methods_and_their_estimators_have_the_same_defaults(function, estimator):
    expected = defaults_of(function) | {"graph": None}
    expected.pop("labels", None)  # `fit` takes them
    assert defaults_of(estimator.__init__) == expected
