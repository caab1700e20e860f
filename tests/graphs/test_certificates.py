"""No certificate is false: cases that once were, and a sample of the soak."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
import reference
from otgraph import eps_path, quadratic_ot_graph
from otgraph.exceptions import ConvergenceError, ConvergenceWarning
from soak.__main__ import FAULTS, judged

SOAK_PROBLEMS = 600  # of 100 000; about ten seconds
SOAK_CHUNKS = 6


def assert_true(graph, X, mass=None, **cost):
    """What the certificate says holds of the graph, checked with dense costs."""
    mass = np.ones(graph.n) if mass is None else mass
    sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    error = np.max(np.abs(sums - mass) / mass)
    certificate = graph.certificate
    assert certificate.marginal_error == pytest.approx(error, abs=1e-9)
    assert certificate.status == "exact"
    assert error <= 1e-6
    assert np.isfinite(certificate.duality_gap)
    C = reference.with_diagonal(reference.cost_matrix(X, **cost), self_loops=False)
    W = reference.plan(C, graph.potentials, certificate.eps)
    noise = 1e-12 * (np.abs(graph.potentials).max() + reference.cost_matrix(X, **cost).max())
    assert np.abs(W - graph.weights.toarray()).max() <= noise / certificate.eps


def once_false(kind):
    """Problems whose graphs said "exact" while row sums were off by factors up to 59 000."""
    if kind == "mild":
        rng = np.random.default_rng(0)
        for _ in range(60):
            X, mass = rng.normal(size=(40, 3)), rng.uniform(0.5, 1.5, size=40)
            yield X, mass, 2.05e-4
    elif kind == "unit":
        yield np.random.default_rng(1470).normal(size=(20, 7)), None, 1.757e-5
    else:
        for seed in (33, 197, 211):
            rng = np.random.default_rng(seed)
            n, d = int(rng.integers(10, 60)), int(rng.integers(1, 8))
            X, eps = rng.normal(size=(n, d)), 10 ** rng.uniform(-5, -1)
            yield X, rng.lognormal(size=n), eps


@pytest.mark.parametrize("kind", ["mild", "unit", "lognormal"])
def test_uneven_masses_at_small_eps(kind):
    for X, mass, eps in once_false(kind):
        assert_true(quadratic_ot_graph(X, eps, mass=mass), X, mass)


@pytest.mark.slow
def test_three_thousand_points_with_lognormal_masses():
    rng = np.random.default_rng(5)
    X, mass = rng.normal(size=(3000, 10)), rng.lognormal(size=3000)
    graph = quadratic_ot_graph(X, 0.0027, mass=mass)
    assert graph.certificate.status == "exact"
    assert graph.certificate.verify(X)


def test_paths_with_uneven_masses():
    rng = np.random.default_rng(8)
    for _ in range(12):
        X, mass = rng.normal(size=(50, 4)), rng.uniform(0.5, 1.5, size=50)
        for graph in eps_path(X, np.geomspace(1e-5, 0.1, 9), mass=mass):
            assert_true(graph, X, mass)


def test_gap_is_finite_wherever_a_status_is_claimed():
    """Small eps with equal masses: the plan tends to a matching, and a feasible one is rare."""
    rng = np.random.default_rng(12)
    for n in (7, 40, 41, 101):
        X = rng.normal(size=(n, 2))
        for graph in eps_path(X, np.geomspace(1e-6, 1.0, 13)):
            assert_true(graph, X)


def test_tiny_eps_with_masses_over_six_orders():
    rng = np.random.default_rng(21)
    for n in (40, 109, 150):
        X, mass = rng.normal(size=(n, 6)), 10 ** rng.uniform(-3, 3, size=n)
        mass[mass.argmax()] = min(mass.max(), 0.9 * (mass.sum() - mass.max()))
        assert quadratic_ot_graph(X, 1e-5, mass=mass).certificate.status == "exact"


@pytest.mark.filterwarnings("ignore:No `eps` was found")
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_mean_degree_with_heavy_tailed_masses(offset):
    """Such draws were refused as infeasible, or missed by factors."""
    reached = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, mass = rng.normal(size=(300, 5)), rng.pareto(1.5, size=300) + offset
        if mass.max() >= mass.sum() - mass.max():
            continue
        graph = quadratic_ot_graph(X, mean_degree=8, mass=mass)
        assert graph.certificate.status == "exact"
        near = abs(graph.mean_degree / 8 - 1) <= 0.021
        reached += near
        if not near:  # a point that holds most of the mass bounds the degree
            values = graph.certificate.eps * np.geomspace(1e-3, 1e3, 25)
            possible = eps_path(X, values, mass=mass, tol=1e-3).mean_degree
            assert graph.mean_degree >= 0.97 * possible.max()
    assert reached >= 9


def test_raise_raises_where_nothing_is_proved(rng):
    X = rng.normal(size=(30, 3))
    with pytest.raises(ConvergenceError, match="steps was reached; raise `max_iter`"):
        quadratic_ot_graph(X, 1e-4, max_iter=2, on_failure="raise")
    with pytest.warns(ConvergenceWarning):
        graph = quadratic_ot_graph(X, 1e-4, max_iter=2)
    assert graph.certificate.reason
    sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    assert graph.certificate.marginal_error == pytest.approx(np.abs(sums - 1.0).max(), abs=1e-9)


def test_a_tolerance_below_rounding_says_so(rng):
    with pytest.warns(ConvergenceWarning, match="below the rounding errors"):
        quadratic_ot_graph(rng.normal(size=(60, 3)), 1e-7, tol=1e-15, mass=rng.lognormal(size=60))


def test_missing_pairs_of_given_candidates_are_unknown(rng):
    C = reference.cost_matrix(rng.normal(size=(30, 2)))
    graph = quadratic_ot_graph(sp.csr_matrix(C), 1.0, metric="precomputed")
    assert graph.certificate.status == "exact_on_candidates"
    assert np.isnan(graph.certificate.missing_pairs)
    assert "missing pairs unknown" in str(graph.certificate)
    assert quadratic_ot_graph(C, 1.0, metric="precomputed").certificate.missing_pairs == 0.0


@pytest.mark.parametrize("chunk", range(SOAK_CHUNKS))
def test_sample_of_the_soak(chunk):
    verdicts = [
        verdict
        for case in range(chunk, SOAK_PROBLEMS, SOAK_CHUNKS)
        for verdict in judged("problems", case)
    ]
    faults = [detail for name, detail in verdicts if any(word in name for word in FAULTS)]
    assert not faults
    assert len(verdicts) >= SOAK_PROBLEMS // SOAK_CHUNKS


# Problems of the soak on which Newton once gave up: two groups at a great distance whose masses
# do not balance, and poor starts.
@pytest.mark.parametrize("case", [1001649, 1002402, 1002597, 1010451, 1012815, 1018237])
def test_far_partners_are_reached(case):
    assert [name for name, _ in judged("problems", case)] == ["exact"]


# Problems of the soak whose active pairs are a forest: Newton creeps to a feasible plan.
@pytest.mark.parametrize(("case", "status"), [(5009549, "exact"), (5003522, "exact_on_candidates")])
def test_feasible_plans_on_forests_are_found(case, status):
    assert [name for name, _ in judged("problems", case)] == [status]


def test_floors_that_given_candidates_cannot_carry_are_left_out():
    """Problem of the soak that was refused, although the plain plan exists."""
    assert "refused wrongly" not in [name for name, _ in judged("problems", 8003938)]


# Problems of the soak where the degree falls while eps rises, so that a bracket ended at a jump
# although another eps was nearer to the goal; one where a trial at a jump was misleading; and one
# whose clusters are so far apart that eps is tiny beside the largest costs.
@pytest.mark.parametrize("case", [7001662, 7002191, 7003675, 7005165, 7005562, 8003154, 9100173])
def test_the_nearest_degree_of_few_points_is_found(case):
    (verdict,) = (name for name, _ in judged("problems", case))
    assert verdict in ("degree reached", "degree nearest")


@pytest.mark.parametrize("part", ["degrees", "large"])
def test_sample_of_the_soak_of_larger_graphs(part):
    for case in range(8 if part == "degrees" else 1):
        for name, detail in judged(part, case):
            assert not any(word in name for word in FAULTS), detail


class TestVerify:
    """`Certificate.verify` finds what is wrong, and nothing else."""

    @pytest.mark.parametrize(
        "options",
        [{}, {"power": 1.0}, {"metric": "cosine", "power": 1.0}, {"metric": "cityblock"},
         {"metric": "seuclidean"}, {"metric": "mahalanobis"}, {"self_loops": True},
         {"normalize": False}],
        ids=str,
    )  # fmt: skip
    def test_passes_what_is_right(self, rng, options):
        X = 50.0 + rng.normal(size=(120, 4))
        graph = quadratic_ot_graph(X, 0.3, **options)
        result = graph.certificate.verify(X)
        assert result, str(result)
        assert result.rows_checked == 120
        assert "verified: 120 rows" in str(result)

    def test_precomputed_and_functions(self, rng):
        C = reference.cost_matrix(rng.normal(size=(60, 2)))
        assert quadratic_ot_graph(C, 0.3, metric="precomputed").certificate.verify(C)
        near = sp.csr_matrix(np.where(C < 1.5, C, 0.0))
        graph = quadratic_ot_graph(near, 0.3, metric="precomputed")
        assert graph.certificate.verify(near)

        def farthest(x, y):
            return np.abs(x - y).max()

        X = rng.normal(size=(40, 3))
        graph = quadratic_ot_graph(X, 0.3, metric=farthest)
        assert graph.certificate.verify(X, metric=farthest)
        with pytest.raises(ValueError, match="`metric` must be the function"):
            graph.certificate.verify(X)

    def test_entropic_graphs(self, rng):
        X = rng.normal(size=(50, 3))
        certificate = otgraph.entropic_ot_graph(X, 0.3).certificate
        assert certificate.verify(X)
        assert not certificate.verify(X**2)

    def test_survives_a_file(self, rng, tmp_path):
        X = rng.normal(size=(50, 3))
        quadratic_ot_graph(X, 0.3).save(tmp_path / "a.otg")
        loaded = otgraph.load_graph(tmp_path / "a.otg")
        assert loaded.certificate.verify(X)
        assert not loaded.certificate.verify(X + 0.1 * X**2)

    def test_samples_rows_of_many_points(self, rng):
        X = rng.normal(size=(6000, 2))
        graph = quadratic_ot_graph(X, mean_degree=8)
        result = graph.certificate.verify(X)
        assert result
        assert result.rows_checked == 1000

    def test_finds_a_missing_edge_a_wrong_weight_and_a_wrong_row(self, rng):
        X = rng.normal(size=(80, 3))
        graph = quadratic_ot_graph(X, 0.5)
        edges = graph.edges()
        for change, word in ((0.0, "no weight"), (1.01, "differ from those that the potentials")):
            weights = graph.weights.tolil()
            i, j = int(edges.i[5]), int(edges.j[5])
            weights[i, j] = weights[j, i] = change * edges.weight[5]
            changed = dataclasses.replace(graph, weights=weights.tocsr())
            changed.weights.eliminate_zeros()
            result = changed.certificate.verify(X)
            assert not result
            assert word in str(result)
            assert "Row sums are off" in str(result)

    def test_needs_its_graph_and_its_points(self, rng):
        X = rng.normal(size=(30, 3))
        graph = quadratic_ot_graph(X, 0.5)
        with pytest.raises(ValueError, match="`X` must have 30 rows"):
            graph.certificate.verify(X[:10])
        alone = dataclasses.replace(graph.certificate, evidence=None)
        with pytest.raises(ValueError, match="does not belong to a graph"):
            alone.verify(X)
