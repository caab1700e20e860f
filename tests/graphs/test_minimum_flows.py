"""Minimum flows: graphs without lonely points, optimal among all graphs with these flows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import otgraph
import reference
from otgraph import eps_path, quadratic_ot_graph
from otgraph.exceptions import DisconnectedWarning, InfeasibleError
from otgraph.solvers import degree, floors
from otgraph.solvers.floors import FLOOR_SHARE, SMALL_SHARE, Draft
from soak import oracle

MIN_DEGREE = 4


def scattered(rng, n=240, d=3):
    """Two groups far apart, and pairs of outliers that prefer each other."""
    X = rng.normal(size=(n, d))
    X[: n // 3, 0] += 40.0
    for k in range(4):
        X[-2 * k - 1] = X[-2 * k - 2] = 15.0 + 12.0 * rng.normal(size=d)
        X[-2 * k - 1] += 0.1
    return X


@pytest.fixture
def X(rng):
    return scattered(rng)


def sizes_of(graph):
    return np.bincount(graph.component_labels)


def assert_optimal(graph, X, mass=None, **cost):
    """Karush–Kuhn–Tucker conditions with dense costs; they are sufficient, the problem is convex.

    pi >= l, pi 1 = m, and u_i + u_j - c_ij - eps pi_ij <= 0 with equality where pi_ij > l_ij.
    """
    mass = np.ones(graph.n) if mass is None else mass
    W, L, u = graph.weights.toarray(), graph.floors.toarray(), graph.potentials
    C = reference.cost_matrix(X, **cost)
    np.fill_diagonal(C, np.inf)
    assert np.array_equal(W, W.T)
    assert np.array_equal(L, L.T)
    assert np.all(W >= L)
    assert W.sum(axis=1) == pytest.approx(mass, rel=1e-6)
    slope = u[:, None] + u - C - graph.eps * W
    assert slope.max() <= 1e-9
    assert np.abs(slope[W > L]).max() <= 1e-9
    assert np.all(L.sum(axis=1) <= FLOOR_SHARE * mass * (1 + 1e-12))
    assert graph.certificate.verify(X, metric=cost.get("metric"))


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("options", [
    {"eps": 0.003, "min_degree": MIN_DEGREE},
    {"mean_degree": 8},
    {"mean_degree": 8, "connect": True},
    {"mean_degree": 8, "self_loops": True, "connect": True},
    {"mean_degree": 8, "power": 1.0, "connect": True},
    {"mean_degree": 8, "metric": "cosine", "power": 1.0, "connect": True},
    {"mean_degree": 8, "metric": "cityblock", "connect": True},
    {"eps": 0.003, "connect": True},
], ids=str)  # fmt: skip
def test_no_point_is_lonely(X, options):
    graph = quadratic_ot_graph(X, **options)
    assert graph.certificate.status == "exact"
    assert graph.degrees.min() >= graph.params["min_degree"]
    small = sizes_of(graph) < SMALL_SHARE * graph.n
    assert not small.any()
    assert graph.n_connected == 1 or not options.get("connect")
    assert graph.certificate.verify(X)
    if "mean_degree" in options:
        assert graph.mean_degree == pytest.approx(8, rel=0.03)


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
@pytest.mark.parametrize("mass", ["ones", "lognormal", "pareto"])
def test_optimal_subject_to_the_flows(rng, X, mass):
    m = {"ones": np.ones(len(X)), "lognormal": rng.lognormal(size=len(X)),
         "pareto": 1.0 + rng.pareto(1.5, size=len(X))}[mass]  # fmt: skip
    graph = quadratic_ot_graph(X, 0.005, min_degree=MIN_DEGREE, connect=True, mass=m)
    assert graph.certificate.n_floors == graph.floors.nnz // 2 > 10
    assert_optimal(graph, X, m)


def test_independent_solver_finds_the_same_plan(rng):
    X = scattered(rng, 60)
    graph = quadratic_ot_graph(X, 0.01, min_degree=3, connect=True)
    L = graph.floors.toarray()
    C = reference.cost_matrix(X)
    np.fill_diagonal(C, np.inf)
    rest = oracle.solve(C + graph.eps * L, graph.eps, 1.0 - L.sum(axis=1))
    assert rest.error < 1e-8
    assert graph.weights.toarray() == pytest.approx(rest.plan + L, abs=1e-6)


def test_the_certificate_tells_of_the_flows(X):
    certificate = quadratic_ot_graph(X, 0.003, min_degree=4, connect=True).certificate
    assert 0.0 < certificate.floor_share < FLOOR_SHARE
    assert f"subject to {certificate.n_floors:,} minimum flows" in str(certificate)
    assert certificate.duality_gap < 1e-6


def test_nothing_changes_if_nothing_is_missing(rng):
    """A graph without lonely points comes out bit for bit as without the wish."""
    X = rng.normal(size=(300, 2))
    plain = quadratic_ot_graph(X, 0.5)
    wished = quadratic_ot_graph(X, 0.5, min_degree=int(plain.degrees.min()), connect=True)
    assert wished.floors is None
    assert wished.certificate.n_floors == 0
    assert (wished.weights != plain.weights).nnz == 0
    assert np.array_equal(wished.potentials, plain.potentials)


@pytest.fixture
def noisy():
    """Points of which many are lonely, too many for the search that takes all digits at once."""
    return otgraph.datasets.noisy_manifold(3000, dim=20, intrinsic_dim=3).X


def test_lonely_for_sure_needs_no_plain_solution_first(noisy, monkeypatch):
    rough = []
    with_floors = degree.with_floors

    def watched(*arguments, **options):
        rough.append(options["rough"])
        return with_floors(*arguments, **options)

    monkeypatch.setattr(degree, "with_floors", watched)
    graph = quadratic_ot_graph(noisy, min_degree=7)
    assert any(rough)
    assert graph.degrees.min() >= 7
    assert_optimal(graph, noisy)
    monkeypatch.setattr(degree, "surely_lonely", lambda *_: False)
    careful = quadratic_ot_graph(noisy, min_degree=7)
    assert not rough[-1]
    assert abs(graph.floors - careful.floors).sum() <= 0.02 * careful.floors.sum()


def test_a_degree_that_floors_miss_is_refused_before_all_points_are_solved(noisy, monkeypatch):
    asked = []
    with_floors = degree.with_floors

    def watched(*arguments, **options):
        found = with_floors(*arguments, **options)
        asked.append(found)
        return found

    monkeypatch.setattr(degree, "with_floors", watched)
    surprised = lambda _, state, __: state.mean_degree  # noqa: E731
    monkeypatch.setattr(degree, "expected_degree", surprised)
    graph = quadratic_ot_graph(noisy, min_degree=9)
    drafts = [found for found in asked if isinstance(found, Draft)]
    assert drafts
    assert all(abs(np.log(draft.mean_degree / 15.0)) > degree.DEGREE_TOL for draft in drafts)
    assert graph.mean_degree == pytest.approx(15.0, rel=0.03)
    assert_optimal(graph, noisy)


def test_the_degree_is_expected_before_anything_is_solved_for_floors(noisy, monkeypatch):
    expect, nearby = degree.expected_degree, floors._WithFloors.nearby
    done = []

    def expected(*arguments):
        done.append(expect(*arguments))
        return done[-1]

    def solved(*arguments):
        done.append("solved")
        return nearby(*arguments)

    monkeypatch.setattr(degree, "expected_degree", expected)
    monkeypatch.setattr(floors._WithFloors, "nearby", solved)
    graph = quadratic_ot_graph(noisy, min_degree=8)
    first = done.index("solved")
    assert first > 1  # another eps was taken before
    assert done[first - 1] == pytest.approx(graph.mean_degree, rel=0.02)


def test_almost_lonely_is_not_for_sure(noisy):
    plain = quadratic_ot_graph(noisy, min_degree=0)
    few = int(plain.degrees.min())
    graph = quadratic_ot_graph(noisy, min_degree=few)
    assert graph.floors is None
    assert np.array_equal(graph.weights.data, plain.weights.data)


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
def test_defaults(X):
    """A number for eps gives the plain plan; where the library chooses eps, it cares."""
    assert quadratic_ot_graph(X, 0.003).params["min_degree"] == 0
    assert quadratic_ot_graph(X, 0.003).floors is None
    assert quadratic_ot_graph(X).params["min_degree"] == 4
    assert quadratic_ot_graph(X, mean_degree=5).params["min_degree"] == 2
    assert quadratic_ot_graph(X, mean_degree=5, min_degree=0).floors is None


def test_components_are_reported_if_nobody_decided(X):
    with pytest.warns(DisconnectedWarning, match="connected components"):
        quadratic_ot_graph(X, 0.003)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert quadratic_ot_graph(X, 0.003, connect=False).n_connected > 1
        assert quadratic_ot_graph(X, 0.003, connect=True).n_connected == 1


def test_large_components_stay_apart(X):
    graph = quadratic_ot_graph(X, connect=False)
    assert graph.n_connected == 2
    assert sizes_of(graph).min() > 0.2 * graph.n


def test_fragments_do_not_become_a_component_by_joining_each_other():
    """Twenty scattered points are in fragments; together they have more than 3 % of the points."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    X[:100] += (9, 3)
    X[:20] += rng.normal(scale=3, size=(20, 2))
    plain = quadratic_ot_graph(X, mean_degree=6, min_degree=0, connect=False)
    sizes = sizes_of(plain)
    large = np.flatnonzero(sizes >= SMALL_SHARE * plain.n)
    assert len(large) < len(sizes)
    graph = quadratic_ot_graph(X, mean_degree=6, connect=False)
    core = np.isin(plain.component_labels, large)
    assert set(graph.component_labels) == set(graph.component_labels[core])


@pytest.mark.parametrize("degree", [3, 5, 10, 30])
def test_mean_degree_counts_the_flows(X, degree):
    graph = quadratic_ot_graph(X, mean_degree=degree, connect=True)
    assert graph.mean_degree == pytest.approx(degree, rel=0.05)


def test_more_neighbors_than_the_mean_is_refused(X):
    with pytest.raises(ValueError, match="`min_degree` must be at most `mean_degree`=5, got 6"):
        quadratic_ot_graph(X, mean_degree=5, min_degree=6)
    for wrong, error in ((-1, ValueError), (2.5, TypeError)):
        with pytest.raises(error, match="min_degree"):
            quadratic_ot_graph(X, min_degree=wrong)


def test_path(X):
    path = eps_path(X, [0.001, 0.01, 0.1], min_degree=3, connect=True)
    assert list(path.n_connected) == [1, 1, 1]
    for graph in path:
        assert graph.degrees.min() >= 3
        alone = quadratic_ot_graph(X, graph.eps, min_degree=3, connect=True)
        assert abs(graph.weights - alone.weights).max() < 1e-6


def test_points_that_nobody_can_reach(rng):
    """Candidates that fall apart cannot be connected; too few cannot give enough neighbors."""
    C = reference.cost_matrix(rng.normal(size=(20, 2)))
    C[:10, 10:] = C[10:, :10] = 0.0
    candidates = sp.csr_matrix(C)
    with pytest.raises(InfeasibleError, match="`connect=True` cannot be met"):
        quadratic_ot_graph(candidates, 0.1, metric="precomputed", connect=True)
    with pytest.raises(InfeasibleError, match="`min_degree`=12 cannot be met: 20 point"):
        quadratic_ot_graph(candidates, 0.1, metric="precomputed", min_degree=12)
    graph = quadratic_ot_graph(candidates, 0.01, metric="precomputed", min_degree=3, connect=False)
    assert graph.degrees.min() == 3
    assert graph.n_connected == 2


def test_masses_without_room_for_flows(rng):
    """One point as heavy as all others together: only a star carries the masses."""
    X = rng.normal(size=(30, 2))
    mass = np.ones(30)
    mass[0] = 29.0
    with pytest.raises(InfeasibleError, match="no room for minimum flows"):
        quadratic_ot_graph(X, 0.1, mass=mass, min_degree=2)
    mass[0] = 28.0  # leaves little room
    graph = quadratic_ot_graph(X, 0.1, mass=mass, min_degree=2)
    assert graph.degrees.min() == 2
    assert_optimal(graph, X, mass)


def test_precomputed_costs_give_the_same_graph(X):
    C = reference.cost_matrix(X, normalize=False)
    graph = quadratic_ot_graph(X, 0.005, min_degree=3, connect=True)
    same = quadratic_ot_graph(C, 0.005, metric="precomputed", min_degree=3, connect=True)
    assert abs(graph.weights - same.weights).max() < 1e-6


def test_files_keep_the_flows(X, tmp_path):
    graph = quadratic_ot_graph(X, 0.003, min_degree=3, connect=True)
    graph.save(tmp_path / "graph.otg")
    loaded = otgraph.load_graph(tmp_path / "graph.otg")
    assert (loaded.floors != graph.floors).nnz == 0
    assert loaded.certificate == graph.certificate
    assert loaded.certificate.verify(X)


def test_a_wrong_flow_is_found(X):
    graph = quadratic_ot_graph(X, 0.003, min_degree=3, connect=True)
    graph.floors.data *= 0.5
    assert not graph.certificate.verify(X)


def test_costs_of_the_edges(X):
    graph = quadratic_ot_graph(X, 0.003, min_degree=3, connect=True)
    C = reference.cost_matrix(X)
    rows, columns = graph.weights.nonzero()
    assert graph.edge_costs == pytest.approx(C[rows, columns], abs=1e-12)


def test_extended_rows_sum_to_one(X):
    graph = quadratic_ot_graph(X, connect=True)
    rows = graph.extend(X[:7] + 0.01)
    assert np.asarray(rows.sum(axis=1)).ravel() == pytest.approx(np.ones(7))


@pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")
def test_the_number_of_threads_does_not_matter(X):
    one, two = (quadratic_ot_graph(X, n_jobs=n) for n in (1, 2))
    assert (one.weights != two.weights).nnz == 0


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_tiny_graphs(rng, n):
    graph = quadratic_ot_graph(rng.normal(size=(n, 2)), 0.001, min_degree=50, connect=True)
    assert graph.degrees.min() == n - 1
    assert graph.n_connected == 1


def test_copies(rng):
    """Groups of identical points are joined like all others."""
    X = np.repeat(rng.normal(size=(12, 2)), 5, axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedWarning)
        graph = quadratic_ot_graph(X, 1e-3, connect=True)
    assert graph.n_connected == 1
    assert connected_components(graph.weights)[0] == 1
