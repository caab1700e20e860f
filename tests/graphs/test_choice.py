"""eps='auto': the choice by prediction, and what happens where it cannot be trusted."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
from otgraph import datasets
from otgraph.graphs import choice as module
from otgraph.graphs.choice import Doubt, EpsChoice, choose_by_prediction, lowest_point
from otgraph.graphs.options import DEFAULT_MEAN_DEGREE, QuadraticOptions
from otgraph.graphs.splits import count_halves, feature_halves

# Graphs of small eps fall apart, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:The graph has")


@pytest.fixture(scope="module")
def manifold():
    return datasets.noisy_manifold(400, intrinsic_dim=2)


def error_of(graph, sample):
    clean = sample.clean @ sample.basis.T
    return float(np.sqrt(np.mean((graph.transition() @ sample.X - clean) ** 2)))


def test_choice_is_near_the_best_of_the_truth(manifold):
    graph = otgraph.quadratic_ot_graph(manifold.X, "auto")
    path = otgraph.eps_path(manifold.X, np.logspace(-1.5, 1.5, 13))
    errors = [error_of(each, manifold) for each in path]
    assert error_of(graph, manifold) <= 1.1 * min(errors)
    by_degree = otgraph.quadratic_ot_graph(manifold.X)
    assert error_of(graph, manifold) < 0.9 * error_of(by_degree, manifold)


def test_spiral_has_its_best_eigenvectors():
    spiral = datasets.noisy_spiral()
    truth = otgraph.eigenmaps(
        otgraph.knn_gaussian_graph(spiral.clean, n_neighbors=10, eps=0.025), 10
    ).coordinates

    def angle(graph):
        return otgraph.subspace_angle(otgraph.eigenmaps(graph, 10).coordinates, truth)

    best = min(angle(graph) for graph in otgraph.eps_path(spiral.X, np.logspace(0, 1.5, 7)))
    assert angle(otgraph.quadratic_ot_graph(spiral.X, "auto")) <= 1.1 * best


def test_graph_is_that_of_the_chosen_eps_and_keeps_the_curve(manifold, tmp_path):
    graph = otgraph.quadratic_ot_graph(manifold.X, "auto")
    chosen = otgraph.choose_eps(manifold.X)
    assert graph.params["eps"] == chosen.eps
    expected = otgraph.quadratic_ot_graph(manifold.X, chosen.eps)
    assert (graph.weights != expected.weights).nnz == 0
    graph.save(tmp_path / "g.otg")
    kept = EpsChoice.from_params(otgraph.load_graph(tmp_path / "g.otg").params)
    for name, value in vars(chosen).items():
        np.testing.assert_array_equal(getattr(kept, name), value)
    assert graph.params["chosen_by"] == kept.kind == "features"
    with pytest.raises(ValueError, match="hold no choice of eps"):
        EpsChoice.from_params(expected.params)


def test_score_by_hand():
    """Three values, computed again from public functions."""
    X = datasets.noisy_manifold(100, dim=10, intrinsic_dim=2).X
    values = [0.1, 1.0, 10.0]
    found = otgraph.choose_eps(X, eps=values, random_state=3)
    (a, b), _ = feature_halves(X, QuadraticOptions(), np.random.default_rng(3))
    scores = []
    for eps in values:
        errors = []
        for own, other in ((a, b), (b, a)):
            P = otgraph.quadratic_ot_graph(own.points, eps).transition()
            residual = other.features - P @ other.features
            errors.append((residual**2).sum() / (other.features**2).sum())
        scores.append(np.mean(errors))
    np.testing.assert_allclose(found.scores, scores, rtol=1e-6)
    assert found.eps == pytest.approx(lowest_point(np.array(values), np.array(scores)), rel=1e-4)


def test_halves_keep_all_distances(rng):
    X = rng.normal(size=(30, 7)) * np.arange(1, 8)
    (a, b), _ = feature_halves(X, QuadraticOptions(), rng)
    assert {a.points.shape[1], b.points.shape[1]} == {3, 4}
    together = np.hstack([a.points, b.points])
    np.testing.assert_allclose(
        np.linalg.norm(together[0] - together, axis=1), np.linalg.norm(X[0] - X, axis=1)
    )


def test_halves_of_other_metrics_and_large_sparse_points_are_columns(rng):
    X = rng.normal(size=(30, 6))
    for points, metric in ((X, "manhattan"), (sp.csr_matrix(X), "euclidean")):
        options = QuadraticOptions(metric=metric)
        (a, b), _ = feature_halves(points, options, rng, dense_entries=100)
        halves = [h.toarray() if sp.issparse(h) else h for h in (a.points, b.points)]
        np.testing.assert_allclose(np.sort(np.hstack(halves), axis=1), np.sort(X, axis=1))


def test_signal_of_one_feature_is_in_both_halves(rng):
    X = np.zeros((40, 8))
    X[:, 2] = rng.normal(size=40)
    (a, b), _ = feature_halves(X, QuadraticOptions(), rng)
    assert a.features.std() > 0.1 * X.std()
    assert b.features.std() > 0.1 * X.std()


def test_sparse_points_choose_as_dense_ones(manifold):
    X = np.where(manifold.X > 0.05, manifold.X, 0.0)
    sparse = otgraph.quadratic_ot_graph(sp.csr_matrix(X), "auto")
    assert sparse.params["eps"] == pytest.approx(otgraph.choose_eps(X).eps, rel=1e-9)


def test_halves_of_counts_sum_to_the_counts(rng):
    counts = rng.poisson(3.0, (50, 8)).astype(float)
    a, b = count_halves(counts, None, rng)
    np.testing.assert_array_equal(a.points + b.points, counts)
    assert abs(a.points.sum() / counts.sum() - 0.5) < 0.1
    # Halves of Poisson counts are independent.
    assert abs(np.corrcoef(a.features.ravel(), b.features.ravel())[0, 1]) < 0.2


def test_projection_keeps_squares(rng):
    X = rng.normal(size=(40, 2000))
    (a, _), _ = feature_halves(X, QuadraticOptions(), rng)
    assert a.features.shape == (40, 256)
    centered = a.points - a.points.mean(axis=0)
    assert np.sum(a.features**2) == pytest.approx(np.sum(centered**2), rel=0.1)


@pytest.mark.parametrize("options", [{"metric": "cosine"}, {"metric": "manhattan", "power": 1},
                                     {"self_loops": True}, {"power": 1.5}])  # fmt: skip
def test_other_costs(manifold, options):
    graph = otgraph.quadratic_ot_graph(manifold.X + 1.0, "auto", **options)
    assert EpsChoice.from_params(graph.params).trusted
    assert graph.certificate.status == "exact"


def test_costs_without_units(manifold):
    """Costs that are not normalized have another eps for the same graph."""
    chosen = otgraph.choose_eps(manifold.X)
    raw = otgraph.choose_eps(7.0 * manifold.X, normalize=False)
    scale = otgraph.quadratic_ot_graph(7.0 * manifold.X, 1.0).params["scale"]
    assert raw.eps == pytest.approx(chosen.eps * scale, rel=1e-6)


def test_threads_and_repetition_change_nothing(manifold):
    first, second = (otgraph.choose_eps(manifold.X, n_jobs=n) for n in (1, 2))
    assert first.eps == second.eps
    np.testing.assert_array_equal(first.scores, second.scores)


UNTRUSTED = {
    "one feature": (lambda rng: rng.normal(size=(60, 1)), {}, "one feature has no two halves"),
    "circle": (lambda rng: datasets.circle(300).X, {}, "no graph predicts better than a constant"),
    "torus": (lambda rng: datasets.flat_torus(500).X, {}, "does not tell where a point is"),
    "noise": (lambda rng: rng.normal(size=(200, 30)), {}, "better than a constant"),
    "few": (lambda rng: rng.normal(size=(16, 30)), {}, "16 points are too few"),
    "costs": (lambda rng: np.abs(np.subtract.outer(*2 * [np.arange(40.0)])),
              {"metric": "precomputed"}, "costs have no features"),
    "function": (lambda rng: rng.normal(size=(40, 3)),
                 {"metric": lambda a, b: np.abs(a - b).sum()}, "needs all features at once"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNTRUSTED)
def test_untrusted_choice_falls_back_and_says_why(case, rng):
    make, options, reason = UNTRUSTED[case]
    X = make(rng)
    with pytest.warns(UserWarning, match=reason) as caught:
        graph = otgraph.quadratic_ot_graph(X, "auto", **options)
    assert caught[0].filename == __file__
    assert "mean degree of 15" in str(caught[0].message)
    expected = otgraph.quadratic_ot_graph(X, **options)
    assert (graph.weights != expected.weights).nnz == 0
    assert graph.params["mean_degree"] == min(DEFAULT_MEAN_DEGREE, len(X) - 1)


@pytest.mark.filterwarnings("ignore:All points of `X` are identical", "ignore:No `eps` was found")
def test_identical_points_are_no_signal():
    with pytest.warns(UserWarning, match="better than a constant"):
        otgraph.quadratic_ot_graph(np.ones((30, 4)), "auto")


def test_end_of_the_grid_is_told_and_used(manifold):
    found = otgraph.choose_eps(manifold.X, eps=[0.01, 0.03, 0.1])
    assert (found.doubt, found.eps) == (Doubt.AT_THE_END, 0.1)
    assert not found.trusted
    assert "others may be better" in repr(found)


def test_largest_eps_is_used_with_a_warning(manifold, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 0)
    with pytest.warns(UserWarning, match=r"`eps='auto'` chose 1, but the best value is the last"):
        graph = otgraph.quadratic_ot_graph(manifold.X, "auto")
    assert graph.params["eps"] == 1.0


def chosen_on_sample(X, all_points, *, random_state=0, **options):
    """The choice for X where all of up to so many points would be used."""
    chosen = QuadraticOptions(random_state=random_state)
    return choose_by_prediction(
        len(X), lambda rows: X[rows], chosen, all_points=all_points, **options
    )


def test_sample_of_many_points():
    X = datasets.noisy_manifold(1200, intrinsic_dim=1, dim=20).X
    everything = otgraph.choose_eps(X)
    assert (everything.n_points, everything.growth) == (1200, 1.0)
    some = chosen_on_sample(X, 400)
    assert some.n_points == 400
    assert 1.0 < some.growth <= 3.0**0.5
    assert abs(np.log(some.eps / everything.eps)) < abs(
        np.log(some.eps / some.growth / everything.eps)
    )
    assert 0.5 < some.eps / everything.eps < 2.0


def test_given_values_are_tried_on_all_points(manifold):
    found = chosen_on_sample(manifold.X, 100, eps=[0.3, 3.0, 30.0])
    assert (found.n_points, found.growth, list(found.grid)) == (400, 1.0, [0.3, 3.0, 30.0])


def test_heavy_point_in_a_sample(manifold):
    """A mass that the others can take together may be too heavy for those of a sample."""
    mass = np.ones(400)
    mass[7] = 390.0
    for seed in range(3):  # the point is in some of the samples
        assert chosen_on_sample(manifold.X, 200, mass=mass, random_state=seed).eps > 0


def test_growth_is_that_of_the_theory():
    assert module._growth(1.0, 4.0**0.4, 10.0) == pytest.approx(10.0**0.4)
    assert module._growth(2.0, 1.0, 10.0) == 1.0
    assert module._growth(1.0, 100.0, 9.0) == pytest.approx(3.0)


def test_lowest_point_of_a_parabola():
    grid = np.logspace(-1, 1, 5)
    for values in (grid, np.array([0.1, 1.0, 2.0, 30.0])):
        scores = (np.log10(values) - 0.2) ** 2
        assert lowest_point(values, scores) == pytest.approx(10**0.2)
    assert lowest_point(grid, grid) == grid[0]
    assert lowest_point(grid, np.zeros(5)) == grid[0]


def test_masses_are_those_of_the_points(manifold, rng):
    mass = rng.uniform(0.5, 2.0, len(manifold))
    graph = otgraph.quadratic_ot_graph(manifold.X, "auto", mass=mass)
    np.testing.assert_allclose(graph.weights.sum(axis=1).A1, mass, rtol=1e-5)


def test_both_goals_are_refused(manifold):
    with pytest.raises(TypeError, match="at most one of `eps` and `mean_degree`"):
        otgraph.quadratic_ot_graph(manifold.X, "auto", mean_degree=10)
    with pytest.raises(TypeError, match="`eps` must be a positive number, got 'automatic'"):
        otgraph.quadratic_ot_graph(manifold.X, "automatic")


def test_trials_leave_no_warnings(manifold):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = otgraph.choose_eps(manifold.X, max_iter=2)  # no trial converges
    assert choice.eps > 0.0


def test_estimator_and_record(manifold):
    from otgraph.estimators import QuadraticOTTransformer

    fitted = QuadraticOTTransformer(eps="auto").fit(manifold.X)
    assert fitted.graph_.params["eps"] == otgraph.choose_eps(manifold.X).eps
    assert json.loads(fitted.graph_.params["choice"])["kind"] == "features"
