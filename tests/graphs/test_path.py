"""A path of eps is what separate solves would give, for less work."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import problems
import reference
from otgraph import eps_path, quadratic_ot_graph
from otgraph.costs.restricted import PlanRecipe
from otgraph.exceptions import DisconnectedWarning
from otgraph.graphs import transport
from otgraph.graphs.path import EpsPath

EPS = [1.0, 0.1, 10.0, 0.5]  # in no order
ROUNDING = 1e-9  # lighter edges are there or not as rounding will have it


@pytest.fixture
def X(rng):
    return problems.random(rng, 200)


@pytest.mark.parametrize("self_loops", [False, True])
def test_equals_separate_solves(X, self_loops):
    path = eps_path(X, EPS, tol=1e-9, self_loops=self_loops)
    for eps, graph in zip(EPS, path, strict=True):
        alone = quadratic_ot_graph(X, eps, tol=1e-9, self_loops=self_loops)
        assert graph.params == alone.params
        assert graph.certificate.status == "exact"
        assert graph.certificate.eps == eps
        assert abs(graph.weights - alone.weights).max() <= 1e-7


def test_order_is_as_given(X):
    path = eps_path(X, EPS)
    np.testing.assert_array_equal(path.eps, EPS)
    np.testing.assert_array_equal(np.argsort(path.mean_degree), np.argsort(EPS))
    assert [graph.params["eps"] for graph in path] == EPS


def test_costs_fewer_passes_than_separate_solves_and_no_more_steps(X):
    values = np.logspace(1, -1.5, 12)
    path = [graph.certificate for graph in eps_path(X, values)]
    alone = [quadratic_ot_graph(X, eps).certificate for eps in values]
    assert sum(c.n_steps for c in path) <= sum(c.n_steps for c in alone)
    assert sum(c.n_screens for c in path) < 0.5 * sum(c.n_screens for c in alone)


def test_one_pass_over_the_pairs_serves_the_path(X):
    path = eps_path(X, np.logspace(1, -1, 9))
    assert sum(graph.certificate.n_screens for graph in path) <= 3


def test_behaves_as_a_sequence(X):
    path = eps_path(X, EPS)
    assert len(path) == 4
    assert path[2].params["eps"] == 10.0
    assert path[-1].params["eps"] == 0.5
    assert isinstance(path[1:3], EpsPath)
    np.testing.assert_array_equal(path[1:3].eps, [0.1, 10.0])
    with pytest.raises(IndexError):
        path[4]
    assert "4 graphs" in repr(path)
    assert "empty" in repr(path[:0])


def test_table(X):
    path = eps_path(X, EPS)
    table = path.table()
    assert table.dtype.names == (
        "eps", "mean_degree", "min_degree", "max_degree", "n_connected", "status",
        "marginal_error", "duality_gap", "n_steps",
    )  # fmt: skip
    for record, graph in zip(table, path, strict=True):
        assert record["eps"] == graph.params["eps"]
        assert record["mean_degree"] == graph.mean_degree == graph.degrees.mean()
        assert (record["min_degree"], record["max_degree"]) == (
            graph.degrees.min(),
            graph.degrees.max(),
        )
        assert record["n_connected"] == graph.n_connected
        assert record["status"] == "exact"
        assert record["marginal_error"] == graph.certificate.marginal_error
        assert record["n_steps"] == graph.certificate.n_steps
    np.testing.assert_array_equal(path.n_connected, table["n_connected"])


def test_longest_status_fits_the_table(X):
    C = sp.csr_matrix(reference.cost_matrix(X[:50]))
    table = eps_path(C, [1.0], metric="precomputed").table()
    assert table["status"][0] == "exact_on_candidates"


def test_nearest(X):
    path = eps_path(X, EPS)
    wanted = path.mean_degree[3] + 0.1
    assert path.nearest(mean_degree=wanted) is path[3]


def test_single_value_and_repeats(X):
    assert len(eps_path(X, 1.0)) == 1
    twice = eps_path(X, [1.0, 1.0])
    assert abs(twice[0].weights - twice[1].weights).max() <= 1e-5


def test_long_path_to_small_eps_stays_exact(rng):
    """Each solution starts the next: nothing is lost on the way to a matching."""
    path = eps_path(rng.normal(size=(150, 3)), np.logspace(2, -8, 21))
    assert set(path.table()["status"]) == {"exact"}
    edges = [int((graph.weights.data > ROUNDING).sum()) for graph in path]
    assert np.all(np.diff(edges) <= 4)  # no law, but near one


@pytest.mark.parametrize("eps", [[], [[1.0]], [0.0], [1.0, -1.0], [np.nan], [np.inf]])
def test_wrong_eps(X, eps):
    with pytest.raises(ValueError, match="`eps` must be"):
        eps_path(X, eps)


@pytest.mark.parametrize("option", ["mean_degree", "u0"])
def test_options_that_make_no_sense(X, option):
    with pytest.raises(TypeError, match=option):
        eps_path(X, EPS, **{option: 3})


def test_masses_and_candidates(X):
    mass = np.linspace(0.5, 1.5, 200)
    path = eps_path(X, [1.0, 0.2], mass=mass, n_candidates=5, tol=1e-8)
    for graph in path:
        np.testing.assert_allclose(graph.weights.sum(axis=1).A1, mass, rtol=1e-7)


def test_matrices_are_made_when_they_are_asked_for(X, monkeypatch):
    """A table needs none of them, and parts of a path share those that were made."""
    made = []
    assemble = transport.plan_weights

    def watched(*arguments, **keywords):
        made.append(arguments)
        return assemble(*arguments, **keywords)

    monkeypatch.setattr(transport, "plan_weights", watched)
    path = eps_path(X, EPS)
    table = path.table()
    assert not made
    assert path[1:][0] is path[1]
    assert len(made) == 1
    for graph, row in zip(path, table, strict=True):
        found = graph.mean_degree, graph.degrees.max(), graph.n_connected
        assert found == (row["mean_degree"], row["max_degree"], row["n_connected"])
    assert len(made) == len(EPS)


def test_entries_of_plans_are_made_when_they_are_asked_for(X, monkeypatch):
    """Neither degrees nor certificates need them, also with masses and self-loops."""
    made = []
    make = PlanRecipe.made
    monkeypatch.setattr(PlanRecipe, "made", lambda recipe: made.append(recipe) or make(recipe))
    mass = np.linspace(0.5, 1.5, 200)
    for options in ({}, {"mass": mass, "self_loops": True}):
        path = eps_path(X, EPS, **options)
        degrees, errors = path.mean_degree, [g.certificate.marginal_error for g in path._graphs]
        assert not made
        for graph, degree, error in zip(path, degrees, errors, strict=True):
            loops = np.count_nonzero(graph.weights.diagonal())
            assert (graph.weights.nnz - loops) / graph.n == degree
            sums = graph.weights.sum(axis=1).A1
            assert np.abs(sums / graph.mass - 1.0).max() == pytest.approx(error, abs=1e-14)
        assert len(made) == len(EPS)
        made.clear()


def test_minimum_flows_along_a_path_need_entries_at_once(X):
    path = eps_path(X, [0.2, 0.05], min_degree=3)
    for graph in path:
        assert graph.degrees.min() >= 3
        assert graph.certificate.status == "exact"
    alone = quadratic_ot_graph(X, 0.2, min_degree=3)
    assert abs(path[0].weights - alone.weights).max() <= 1e-5


def test_pickle(X):
    path = eps_path(X, EPS)
    again = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(again.table(), path.table())
    assert (again[0].weights != path[0].weights).nnz == 0


def test_duplicates_that_stand_apart_are_reported_at_once():
    X = np.repeat(np.arange(6.0)[:, None] * 10.0, 3, axis=0)
    with pytest.warns(DisconnectedWarning, match="exact duplicates"):
        eps_path(X, [1e-3, 2e-3])
