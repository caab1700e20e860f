"""Every face of a construction has the same keywords with the same defaults."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields
from typing import Literal, get_origin, get_type_hints

import numpy as np
import pytest

import otgraph
from otgraph import estimators
from otgraph.cli.options import GraphOptions, PlanOptions, SolverOptions
from otgraph.estimators._transformer import GraphTransformer
from otgraph.graphs.constructions import ALL_OPTIONS, CONSTRUCTIONS
from otgraph.graphs.keywords import merged
from otgraph.graphs.options import (
    WITHIN_ONE_CLOUD,
    AnyKeywords,
    QuadraticKeywords,
    QuadraticOptions,
)
from otgraph.singlecell import pl, pp, tl

ESTIMATORS = {
    each._construction: each
    for each in map(vars(estimators).get, estimators.__all__)
    if issubclass(each, GraphTransformer)
}
# What a call is about, or how it runs: no option of a construction.
OF_THE_CALL = {"X", "eps", "mean_degree", "mass", "u0", "progress", "n_jobs"}
OF_THE_OUTPUT = {"mode", "min_neighbors"}  # what a transformer returns
OF_THE_CLUSTER = {"client", "block_rows", "checkpoint"}


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


# Functions that show the keywords of quadratic graphs, and what else they take.
PASSING_ON = {
    "path": (otgraph.eps_path, set()),
    "dimension": (otgraph.intrinsic_dimension, set()),
    "scales": (otgraph.multiscale_graph, set()),
    "choice": (otgraph.choose_eps, {"labels", "split", "prepare", "mu", "n_folds"}),
    "page": (
        otgraph.plots.explore,
        {"path", "out", "labels", "names", "coordinates", "title", "source"}
        | {"max_points", "max_edges", "layout", "columns", "choice"},
    ),
}


@pytest.mark.parametrize("name", PASSING_ON)
def test_functions_that_pass_keywords_on(name):
    function, also = PASSING_ON[name]
    assert_same(function, QuadraticOptions, also)


def test_plans_between_clouds():
    """They take the keywords of graphs that mean something between clouds, on every face."""
    shared = set(QuadraticOptions.names()) - set(WITHIN_ONE_CLOUD)
    found, expected = defaults_of(otgraph.transport_graph), defaults_of(otgraph.quadratic_ot_graph)
    assert {name: found[name] for name in shared} == {name: expected[name] for name in shared}
    assert set(found) - shared <= (OF_THE_CALL - {"mass", "u0"}) | {"Y", "mass_x", "mass_y"}
    assert set(get_type_hints(PlanOptions)) == shared | {"eps", "mean_degree", "n_jobs"}
    assert PlanOptions().given() == {}


@pytest.mark.parametrize("name", [*PASSING_ON, "neighbors"])
def test_docstrings_name_every_keyword(name):
    """Each has an entry of its own with its meaning, and no `**options` is left."""
    function, options = PASSING_ON.get(name, (pp.neighbors,))[0], QuadraticOptions
    lines = function.__doc__.splitlines()
    for each in fields(options):
        place = lines.index(each.name)
        meaning = each.metadata["meaning"].removesuffix(".")
        assert lines[place + 1].strip().startswith(meaning)
    assert "**options" not in lines
    assert lines.index(options.names()[-1]) < lines.index("Returns")


def test_typed_keywords_are_the_options():
    """Editors complete what the classes define, with the same types."""
    hints = get_type_hints(QuadraticOptions)
    assert get_type_hints(QuadraticKeywords) == {
        name: hints[name] for name in QuadraticOptions.names()
    }
    everything = {name: each.annotation for name, each in merged(ALL_OPTIONS).items()}
    for name in ("eps", "n_neighbors"):  # arguments of their own, which mean more
        del everything[name]
    assert get_type_hints(AnyKeywords) == everything


def test_cells():
    found = defaults_of(pp.neighbors)
    expected = merged(ALL_OPTIONS)
    assert set(expected) <= set(found)
    of_adata = {"adata", "n_pcs", "use_rep", "method", "key_added", "copy", "balance"}
    assert set(found) - set(expected) <= OF_THE_CALL | of_adata
    for name, each in expected.items():
        if name != "eps":
            (first, *others) = each.defaults.values()
            assert found[name] == (first if all(o == first for o in others) else None)


@pytest.mark.parametrize(
    ("group", "classes"),
    [(SolverOptions, {"quadratic": QuadraticOptions}), (GraphOptions, ALL_OPTIONS)],
)
def test_command_line(group, classes):
    """Every keyword is an option of its type; options that are not given leave the default."""
    hints = get_type_hints(group)
    keywords = merged(classes)
    assert set(keywords) <= set(hints)
    assert group().given() == {}
    for name, each in keywords.items():
        if name == "eps":  # a number, or auto
            continue
        part = hints[name].__args__[0]
        if get_origin(each.annotation) is Literal:
            assert part == each.annotation
        elif isinstance(each.default, bool | int | float | str):
            assert part is type(each.default)
    about = GraphOptions.__annotations__["method"].__args__[0].__args__[0]
    assert about == Literal[tuple(CONSTRUCTIONS)]


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("eigenmaps", {"n_components"}),  # scanpy's number of coordinates, not that of a picture
        ("cluster", set()),
        ("metacells", set()),
        ("spread_labels", set()),
        ("denoise", set()),
    ],
)
def test_methods_on_cells(name, own):
    """They take the keywords of the function for arrays, with its defaults."""
    found, expected = defaults_of(getattr(tl, name)), defaults_of(getattr(otgraph, name))
    for keyword in set(expected) - {"graph", "labels", "columns", "out"} - own:
        assert found[keyword] == expected[keyword]


def test_methods_that_build_a_graph_for_cells():
    assert set(merged(ALL_OPTIONS)) <= set(defaults_of(tl.denoise))


@pytest.mark.parametrize(
    ("function", "behind", "own"),
    [
        (pl.graph, otgraph.plots.draw_graph, {"graph", "coordinates", "X", "layout"}),
        (
            otgraph.plots.compare_graphs,
            otgraph.plots.draw_graph,
            {"graph", "X", "ax", "legend", "title"},
        ),
        (pl.degrees, otgraph.plots.plot_degrees, {"graphs"}),
    ],
)
def test_pictures_take_the_keywords_of_those_they_call(function, behind, own):
    found, expected = defaults_of(function), defaults_of(behind)
    for keyword in set(expected) - own:
        assert found[keyword] == expected[keyword]
    assert "keywords" not in found


UNKNOWN = {
    "path": lambda X: otgraph.eps_path(X, [1.0], serach="exact"),
    "choice": lambda X: otgraph.choose_eps(X, serach="exact"),
    "page": lambda X: otgraph.plots.explore(X, serach="exact"),
    "cells": lambda X: pp.build_graph(X, "quadratic", serach="exact"),
}


@pytest.mark.parametrize("call", UNKNOWN.values(), ids=UNKNOWN)
def test_unknown_keywords_are_named_with_those_alike(call):
    match = r"`serach` is not a keyword of .*; it takes .*'tol'.*Did you mean `search`"
    with pytest.raises(TypeError, match=match) as caught:
        call(np.zeros((5, 2)))
    assert caught.value.argument == "serach"


def test_a_path_takes_no_goal():
    with pytest.raises(TypeError, match="`mean_degree` is not a keyword of eps_path"):
        otgraph.eps_path(np.zeros((5, 2)), [1.0], mean_degree=5)


def test_cluster():
    from otgraph.distributed import quadratic_ot_graph

    assert_same(quadratic_ot_graph, QuadraticOptions, OF_THE_CLUSTER)
    with pytest.raises(TypeError, match="is not a keyword of quadratic_ot_graph"):
        quadratic_ot_graph(np.zeros((5, 2)), serach="exact")
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
