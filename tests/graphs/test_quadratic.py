"""Quadratic OT graphs: cases to check by hand, arguments, and what comes back."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import problems
import reference
from otgraph import Graph, quadratic_ot_graph
from otgraph.exceptions import (
    ConvergenceError,
    ConvergenceWarning,
    InfeasibleError,
    MissingPairsWarning,
)

TOL = 1e-9

copies_may_be_apart = pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")


def weights(X, eps, **options):
    return quadratic_ot_graph(X, eps, tol=TOL, **options).weights.toarray()


# By hand -----------------------------------------------------------------------------------


@pytest.mark.parametrize("eps", [1e-3, 1.0, 1e3])
def test_two_points_have_each_other(eps):
    np.testing.assert_allclose(weights([[0.0], [5.0]], eps), [[0, 1], [1, 0]], atol=10 * TOL)


@pytest.mark.parametrize("eps", [1e-3, 1.0, 1e3])
def test_three_points_have_no_choice(eps):
    """Three equations, three unknowns: the costs do not matter."""
    half = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    np.testing.assert_allclose(weights([[0.0], [1.0], [100.0]], eps), half, atol=10 * TOL)


def test_three_masses_have_no_choice():
    """w_12 = (m_1 + m_2 - m_3) / 2, and so on."""
    W = weights([[0.0], [1.0], [9.0]], 1.0, mass=[2.0, 3.0, 4.0])
    np.testing.assert_allclose(W, [[0, 0.5, 1.5], [0.5, 0, 2.5], [1.5, 2.5, 0]], atol=100 * TOL)


@pytest.mark.parametrize(("cost", "kept"), [(0.5, 0.75), (0.25, 0.625), (1.0, 1.0), (7.0, 1.0)])
def test_two_points_with_self_loops(cost, kept):
    """A point keeps (1 + c/eps)/2, at most all."""
    W = weights([[0.0], [np.sqrt(cost)]], 1.0, normalize=False, self_loops=True)
    np.testing.assert_allclose(W, [[kept, 1 - kept], [1 - kept, kept]], atol=10 * TOL)


@pytest.mark.parametrize(("eps", "side"), [(0.5, 1 / 2), (2.0, 1 / 2), (4.0, 5 / 12), (1e9, 1 / 3)])
def test_square(eps, side):
    """Sides cost 1, diagonals 2. A side gets 1/3 + 1/(3 eps), at most one half."""
    W = weights([[0, 0], [1, 0], [1, 1], [0, 1]], eps, normalize=False)
    row = [0.0, side, 1.0 - 2.0 * side, side]
    np.testing.assert_allclose(W, [np.roll(row, i) for i in range(4)], atol=10 * TOL)


def test_two_far_pairs_are_matched():
    graph = quadratic_ot_graph([[0.0], [1.0], [1000.0], [1001.0]], 1e-3)
    expected = np.kron(np.eye(2), [[0, 1], [1, 0]])
    np.testing.assert_allclose(graph.weights.toarray(), expected, atol=1e-5)
    assert graph.n_connected == 2
    np.testing.assert_array_equal(graph.component_labels, [0, 0, 1, 1])


@pytest.mark.parametrize("self_loops", [False, True])
def test_huge_eps_gives_equal_weights(rng, self_loops):
    n = 50
    W = weights(rng.normal(size=(n, 3)), 1e10, self_loops=self_loops)
    expected = np.full((n, n), 1 / n) if self_loops else (1 - np.eye(n)) / (n - 1)
    np.testing.assert_allclose(W, expected, atol=10 * TOL)


def test_regular_polygon():
    """All rows are alike: the row problem sum_j (2u - c_j)_+ = eps is the whole problem."""
    angle = 2 * np.pi * np.arange(30) / 30
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    graph = quadratic_ot_graph(X, 0.7, tol=TOL)
    C = reference.with_diagonal(reference.cost_matrix(X), self_loops=False)
    u = 0.5 * reference.solve_row(C[0], 0.7)
    np.testing.assert_allclose(graph.potentials, u, rtol=10 * TOL)
    assert set(graph.degrees) == {np.count_nonzero(C[0] < 2 * u)}


# What comes back ---------------------------------------------------------------------------


@copies_may_be_apart
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("name", problems.CLOUDS)
def test_optimal(rng, name, self_loops):
    X = problems.CLOUDS[name](rng, 300)
    graph = quadratic_ot_graph(X, 0.5, self_loops=self_loops)
    reference.assert_optimal(graph, reference.cost_matrix(X), 0.5, self_loops=self_loops)


@pytest.mark.parametrize("self_loops", [False, True])
def test_cells_do_not_show(rng, self_loops):
    """Inside, points are sorted by cell; weights, masses and potentials are the caller's."""
    X, mass = problems.clustered(rng, 700), rng.uniform(0.5, 1.5, size=700)
    options = {"mass": mass, "self_loops": self_loops, "tol": TOL}
    plain = quadratic_ot_graph(X, 1.0, **options)
    with_cells = partial(problems.graph_with, problems.CELLS, X, 1.0, **options)
    graph = with_cells()
    reference.assert_optimal(
        graph, reference.cost_matrix(X), 1.0, mass=mass, self_loops=self_loops, tol=TOL
    )
    np.testing.assert_array_equal(graph.mass, mass)
    assert abs(graph.weights - plain.weights).max() <= 100 * TOL
    warm = with_cells(u0=graph.potentials, n_candidates=699)
    assert warm.certificate.n_steps <= 1
    if self_loops:
        assert abs(graph.extend(X, mass=mass) - graph.weights).max() <= 1e-6


def test_canonical_storage(rng):
    W = quadratic_ot_graph(rng.normal(size=(100, 3)), 1.0, self_loops=True).weights
    assert isinstance(W, sp.csr_matrix)
    assert W.dtype == np.float64
    assert W.indices.dtype == W.indptr.dtype == np.int32
    assert W.has_sorted_indices
    assert W.has_canonical_format
    assert np.all(W.data > 0)
    assert np.all(W.diagonal() > 0)
    assert np.all(np.diff(W.indices[W.indptr[3] : W.indptr[4]]) > 0)


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "cityblock"])
def test_edge_costs_belong_to_the_edges(rng, self_loops, metric):
    """Also where cells reorder the points."""
    X = problems.random(rng, 150)
    options = {"self_loops": self_loops, "metric": metric, "power": 1.5}
    graph = problems.graph_with(problems.CELLS, X, 0.3, **options)
    expected = reference.cost_matrix(X, metric=metric, power=1.5)
    rows = np.repeat(np.arange(150), np.diff(graph.weights.indptr))
    np.testing.assert_allclose(
        graph.edge_costs, expected[rows, graph.weights.indices], rtol=1e-9, atol=1e-14
    )


def test_params_say_what_built_it(rng):
    X = 3.0 * rng.normal(size=(60, 3))
    graph = quadratic_ot_graph(X, 0.5, power=1.5, tol=1e-7, random_state=3)
    expected = {
        "method": "quadratic", "metric": "euclidean", "power": 1.5, "normalize": True,
        "self_loops": False, "tol": 1e-7, "eps": 0.5, "search": "exact", "random_state": 3,
    }  # fmt: skip
    assert expected.items() <= graph.params.items()
    raw = reference.cost_matrix(X, power=1.5, normalize=False)
    assert graph.params["scale"] == pytest.approx(raw.mean(), rel=1e-12)
    assert all(isinstance(v, str | int | float | bool | None) for v in graph.params.values())
    assert graph.certificate.eps == 0.5
    assert isinstance(graph, Graph)
    np.testing.assert_array_equal(graph.mass, 1.0)


def test_params_of_a_mean_degree(rng):
    graph = quadratic_ot_graph(rng.normal(size=(200, 3)), mean_degree=8)
    assert graph.params["mean_degree"] == 8
    assert graph.params["eps"] == graph.certificate.eps > 0


def test_same_eps_from_params_gives_the_same_graph(rng):
    X = rng.normal(size=(200, 3))
    graph = quadratic_ot_graph(X, mean_degree=8)
    again = quadratic_ot_graph(X, graph.params["eps"], min_degree=graph.params["min_degree"])
    assert abs(graph.weights - again.weights).max() <= 1e-5


def test_metrics_agree(rng):
    """Points, their dense cost, all pairs as candidates and sparse points: one graph."""
    X = rng.normal(size=(120, 3))
    C = reference.cost_matrix(X, normalize=True)
    W = weights(X, 0.5)
    options = {"metric": "precomputed", "normalize": False}
    np.testing.assert_allclose(weights(C, 0.5, **options), W, atol=1e-7)
    np.testing.assert_allclose(weights(sp.csr_matrix(C), 0.5, **options), W, atol=1e-7)
    np.testing.assert_allclose(weights(sp.csr_matrix(X), 0.5), W, atol=1e-7)
    np.testing.assert_allclose(weights(X, 0.5, metric="sqeuclidean", power=1), W, atol=1e-7)
    np.testing.assert_allclose(weights(X, 0.5, metric=_distance), W, atol=1e-7)


def _distance(a, b):
    return np.sqrt(((a - b) ** 2).sum())


def test_cosine_ignores_lengths(rng):
    X = rng.normal(size=(80, 4))
    scaled = X * rng.uniform(0.1, 10.0, size=(80, 1))
    W = weights(X, 0.5, metric="cosine", power=1)
    np.testing.assert_allclose(weights(scaled, 0.5, metric="cosine", power=1), W, atol=1e-7)


def test_candidates_only(rng):
    """Sparse costs: no other pair is used, and the certificate does not claim more."""
    X = rng.normal(size=(100, 2))
    C = reference.cost_matrix(X)
    keep = np.argsort(C, axis=1)[:, 1:8]
    candidates = sp.lil_matrix((100, 100))
    for i, row in enumerate(keep):
        candidates[i, row] = C[i, row]
    candidates = candidates.maximum(candidates.T).tocsr()
    graph = quadratic_ot_graph(candidates, 5.0, metric="precomputed")
    assert graph.certificate.status == "exact_on_candidates"
    assert graph.certificate.pairs_checked == candidates.nnz // 2
    assert (graph.weights.astype(bool) > candidates.astype(bool)).nnz == 0
    np.testing.assert_allclose(graph.weights.sum(axis=1), 1.0, atol=1e-5)


@copies_may_be_apart
def test_zero_costs_of_candidates_count():
    """An explicit zero is a pair that costs nothing, not a pair that is missing."""
    rows, columns = [0, 1, 2, 3, 1, 2], [1, 0, 3, 2, 2, 1]
    C = sp.csr_matrix(([0.0, 0.0, 0.0, 0.0, 5.0, 5.0], (rows, columns)), shape=(4, 4))
    W = weights(C, 0.1, metric="precomputed")
    np.testing.assert_allclose(W, np.kron(np.eye(2), [[0, 1], [1, 0]]), atol=1e-7)


# Arguments ---------------------------------------------------------------------------------


def test_at_most_one_of_eps_and_mean_degree(rng):
    X = rng.normal(size=(60, 2))
    with pytest.raises(TypeError, match="at most one of `eps` and `mean_degree`"):
        quadratic_ot_graph(X, eps=1.0, mean_degree=5)
    graph = quadratic_ot_graph(X)
    assert graph.params["mean_degree"] == 15
    assert graph.mean_degree == pytest.approx(15, rel=0.021)
    assert quadratic_ot_graph(X[:4]).params["mean_degree"] == 3  # there are no more neighbors


@pytest.mark.parametrize(
    ("option", "error", "match"),
    [
        ({"power": 0}, ValueError, "`power` must be a positive"),
        ({"power": "2"}, TypeError, "`power` must be a positive"),
        ({"tol": -1e-6}, ValueError, "`tol`"),
        ({"tol": np.nan}, ValueError, "`tol`"),
        ({"max_iter": 0}, ValueError, "`max_iter`"),
        ({"max_iter": 2.5}, TypeError, "`max_iter`"),
        ({"on_failure": "ignore"}, ValueError, "`on_failure` must be one of 'warn', 'raise'"),
        ({"search": "fast"}, ValueError, "`search` must be one of"),
        ({"metric": "euclid"}, ValueError, "`metric` must be"),
        ({"metric": 3}, ValueError, "`metric` must be"),
        ({"n_candidates": 0}, ValueError, "`n_candidates`"),
        ({"n_jobs": 0}, ValueError, "`n_jobs`"),
        ({"random_state": -1}, ValueError, "`random_state`"),
        ({"u0": np.zeros(3)}, ValueError, r"`u0` must hold one number per point.*\(3,\)"),
        ({"u0": np.full(20, np.nan)}, ValueError, "`u0` must be finite"),
        ({"mass": np.ones(3)}, ValueError, "`mass` must hold one number per point"),
        ({"mass": np.zeros(20)}, ValueError, "`mass` must be positive"),
        ({"mass": np.full(20, -1.0)}, ValueError, "`mass` must be positive"),
    ],
)
def test_wrong_options_are_named(rng, option, error, match):
    with pytest.raises(error, match=match):
        quadratic_ot_graph(rng.normal(size=(20, 2)), 1.0, **option)


@pytest.mark.parametrize(
    ("degree", "error"),
    [
        (0, ValueError),
        (-3, ValueError),
        (np.nan, ValueError),
        ("many", TypeError),
        (20, ValueError),
        (1e9, ValueError),
    ],
)
def test_wrong_mean_degree(rng, degree, error):
    with pytest.raises(error, match="`mean_degree` must be"):
        quadratic_ot_graph(rng.normal(size=(20, 2)), mean_degree=degree)


def test_heavy_point_without_self_loops(rng):
    mass = np.ones(10)
    mass[4] = 9.5
    X = rng.normal(size=(10, 2))
    with pytest.raises(InfeasibleError, match=r"point 4 \(9.5\).*self_loops=True"):
        quadratic_ot_graph(X, 1.0, mass=mass)
    graph = quadratic_ot_graph(X, 1.0, mass=mass, self_loops=True)
    np.testing.assert_allclose(graph.weights.sum(axis=1).A1, mass, rtol=1e-5)


def test_point_as_heavy_as_all_others(rng):
    """The border: all give everything to the one."""
    mass = np.ones(10)
    mass[4] = 9.0
    W = quadratic_ot_graph(rng.normal(size=(10, 2)), 1.0, mass=mass).weights.toarray()
    expected = np.zeros((10, 10))
    expected[4] = expected[:, 4] = 1.0
    expected[4, 4] = 0.0
    np.testing.assert_allclose(W, expected, atol=1e-4)


def test_too_many_candidates_are_clipped_with_a_word(rng):
    X = rng.normal(size=(20, 2))
    with pytest.warns(UserWarning, match="`n_candidates`=50 .* using 19"):
        graph = quadratic_ot_graph(X, 1.0, n_candidates=50)
    assert abs(graph.weights - quadratic_ot_graph(X, 1.0).weights).max() <= 1e-5


@pytest.mark.parametrize("k", [1, 3, 60])
def test_number_of_candidates_does_not_matter(rng, k):
    X = rng.normal(size=(200, 5))
    np.testing.assert_allclose(weights(X, 1.0, n_candidates=k), weights(X, 1.0), atol=1e-7)


def test_warm_start_gives_the_same_graph_sooner(rng):
    X = rng.normal(size=(300, 3))
    cold = quadratic_ot_graph(X, 1.0, tol=TOL)
    warm = quadratic_ot_graph(X, 1.0, tol=TOL, u0=cold.potentials)
    assert warm.certificate.status == "exact"
    assert warm.certificate.n_steps < cold.certificate.n_steps
    assert abs(warm.weights - cold.weights).max() <= 100 * TOL


@pytest.mark.parametrize("u0", [0.0, 50.0, -50.0])
def test_any_start_gives_the_same_graph(rng, u0):
    X = rng.normal(size=(150, 3))
    np.testing.assert_allclose(
        weights(X, 1.0, u0=np.full(150, u0)), weights(X, 1.0), atol=100 * TOL
    )


def test_stopping_short_is_said(rng):
    X = rng.normal(size=(200, 3))
    with pytest.warns(ConvergenceWarning, match=r"row sums are off by .*1 Newton steps.*max_iter"):
        graph = quadratic_ot_graph(X, 0.1, max_iter=1)
    certificate = graph.certificate
    assert certificate.status == "not_converged"
    assert certificate.n_steps == 1
    row_sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    assert certificate.marginal_error == pytest.approx(np.abs(row_sums - 1.0).max(), rel=1e-6)
    assert certificate.marginal_error > 1e-6
    assert np.all(np.isfinite(graph.potentials))
    with pytest.raises(ConvergenceError, match="row sums are off"):
        quadratic_ot_graph(X, 0.1, max_iter=1, on_failure="raise")


def test_tighter_tolerance_is_met(rng):
    for tol in (1e-3, 1e-6, 1e-10):
        graph = quadratic_ot_graph(rng.normal(size=(200, 3)), 1.0, tol=tol)
        assert graph.certificate.marginal_error <= tol


@pytest.mark.parametrize("name", ["random", "clustered", "line", "many_dimensions", "far_apart"])
@pytest.mark.parametrize("degree", [6, 15.5])
def test_mean_degree_is_met_within_five_percent(rng, name, degree):
    graph = quadratic_ot_graph(problems.CLOUDS[name](rng, 600), mean_degree=degree)
    assert graph.mean_degree == pytest.approx(degree, rel=0.05)
    assert graph.certificate.status == "exact"


def test_mean_degree_with_self_loops_and_masses(rng):
    X, mass = rng.normal(size=(400, 3)), rng.uniform(0.5, 2.0, size=400)
    graph = quadratic_ot_graph(X, mean_degree=10, self_loops=True, mass=mass)
    assert graph.mean_degree == pytest.approx(10, rel=0.05)
    assert np.all(graph.weights.diagonal() >= 0)


def test_impossible_degree_is_said():
    """Vertices of a simplex: every pair costs the same, so that all or nothing is used."""
    with pytest.warns(ConvergenceWarning, match=r"No `eps` was found.*`mean_degree`=3"):
        graph = quadratic_ot_graph(np.eye(12), mean_degree=3)
    assert graph.certificate.status == "exact"
    assert graph.mean_degree == 11


def test_search_is_recorded(rng):
    X = rng.normal(size=(300, 3))
    assert quadratic_ot_graph(X, 1.0).params["search"] == "exact"
    assert quadratic_ot_graph(X, 1.0, search="exact").params["search"] == "exact"
    small = quadratic_ot_graph(X, 1.0, search="approximate")
    assert small.params["search"] == "exact"  # all pairs cost no more than near ones
    assert small.certificate.pairs_checked == 300 * 299 // 2


def test_approximate_search_says_what_it_may_lack(rng):
    X = problems.many_dimensions(rng, 900)
    build = partial(problems.graph_with, problems.FEW_CELLS, X, 1.0)
    with pytest.warns(MissingPairsWarning, match=r"pairs missing \(\d+ % of the edges"):
        graph = build(search="approximate", max_missing=10.0)
    certificate, C = graph.certificate, reference.cost_matrix(X)
    assert graph.params["search"] == "approximate"
    assert certificate.status == "exact_on_candidates"
    assert 0 < certificate.pairs_checked < 900 * 899 // 2
    assert certificate.marginal_error <= 1e-6
    lacking = reference.pairs_below(C, graph.potentials) & ~(graph.weights.toarray() > 0)
    assert lacking.any()
    # 256 of 900 rows are looked at.
    assert certificate.missing_pairs == pytest.approx(lacking.sum() / 2, rel=0.3)
    assert certificate.missing_pairs_bound > certificate.missing_pairs
    exact = build(search="exact")
    assert exact.certificate.missing_pairs == 0
    widened = build(search="approximate")  # at most 5 % by default
    assert widened.certificate.missing_share <= 0.05


def test_progress_writes_bars_and_changes_nothing(rng, capsys):
    X = rng.normal(size=(100, 3))
    quiet = quadratic_ot_graph(X, 1.0)
    assert capsys.readouterr() == ("", "")
    loud = quadratic_ot_graph(X, 1.0, progress=True)
    assert "screen" in capsys.readouterr().err
    assert (quiet.weights != loud.weights).nnz == 0


def test_logging(rng, caplog):
    with caplog.at_level("DEBUG", logger="otgraph"):
        quadratic_ot_graph(rng.normal(size=(50, 2)), 1.0)
    assert any("marginal error" in record.getMessage() for record in caplog.records)
