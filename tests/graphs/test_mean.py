"""Means of plans: what is proved, what is kept, what comes back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
from otgraph.graphs.mean import checked_shares, mean_certificate
from otgraph.graphs.multiscale import scales

EPS = [0.1, 0.5, 2.0]


@pytest.fixture
def X(rng):
    return rng.normal(size=(150, 3))


@pytest.fixture
def path(X):
    return otgraph.eps_path(X, EPS, connect=False)


@pytest.mark.parametrize("shares", [None, [1, 2, 5]])
def test_the_mean_of_the_plans(path, shares):
    mean = path.mean(shares)
    share = np.full(3, 1 / 3) if shares is None else np.array(shares) / 8
    expected = sum(w * graph.weights for w, graph in zip(share, path, strict=True))
    assert abs(mean.weights - expected).max() < 1e-15
    assert (mean.weights != mean.weights.T).nnz == 0
    np.testing.assert_allclose(mean.weights.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(mean.shares, share)
    np.testing.assert_array_equal(mean.eps, EPS)


def test_the_order_of_a_path_does_not_matter(X, path):
    backward = otgraph.eps_path(X, EPS[::-1], connect=False).mean([5, 2, 1])
    forward = path.mean([1, 2, 5])
    np.testing.assert_array_equal(backward.eps, forward.eps)
    np.testing.assert_allclose(backward.shares, forward.shares)
    assert abs(backward.weights - forward.weights).max() < 1e-15


def test_parts_come_back(path):
    mean = path.mean()
    for k, graph in enumerate(path):
        part = mean.part(k)
        assert abs(part.weights - graph.weights).max() < 1e-12
        assert part.weights.nnz == graph.weights.nnz
        np.testing.assert_array_equal(part.edge_costs, graph.edge_costs)
        np.testing.assert_array_equal(part.potentials, graph.potentials)
        assert part.certificate == graph.certificate
    assert mean.part(-1).eps == 2.0
    with pytest.raises(IndexError):
        mean.part(3)


def test_edges_by_the_eps_at_which_they_appear(path):
    mean = path.mean()
    found = mean.weights.copy()
    found.data = mean.edge_eps
    for i, j, eps in zip(*sp.find(found), strict=True):
        assert eps == min(graph.eps for graph in path if graph.weights[i, j] > 0)


def test_costs_of_edges_and_distances(X, path):
    mean = path.mean()
    rows, columns = mean.weights.nonzero()
    costs = ((X[rows] - X[columns]) ** 2).sum(axis=1) / mean.params["scale"]
    np.testing.assert_allclose(mean.edge_costs, costs)
    near = mean.distances()
    np.testing.assert_allclose(near.max(), np.sqrt((costs * mean.params["scale"]).max()))


def test_copies_at_cost_zero_keep_their_edges(rng):
    X = np.repeat(rng.normal(size=(40, 2)), 2, axis=0)
    mean = otgraph.multiscale_graph(X, [0.5, 2.0], connect=False)
    assert np.count_nonzero(mean.edge_costs == 0.0) == 80
    assert mean.certificate.verify(X)


def test_the_certificate_is_that_of_the_weakest_part(path):
    mean = path.mean()
    parts = [graph.certificate for graph in path]
    assert mean.certificate.status == "exact"
    assert mean.certificate.duality_gap == max(part.duality_gap for part in parts)
    assert mean.certificate.n_steps == sum(part.n_steps for part in parts)
    error = np.abs(np.asarray(mean.weights.sum(axis=1)).ravel() - 1.0).max()
    assert mean.certificate.marginal_error == pytest.approx(error)
    weak = [*parts[:2], replace(parts[2], status=otgraph.Status.EXACT_ON_CANDIDATES)]
    assert mean_certificate(weak, [0.2, 0.3, 0.5], mean.weights, mean.mass).status == (
        "exact_on_candidates"
    )
    failed = replace(
        parts[0], status=otgraph.Status.NOT_CONVERGED, reason=otgraph.Reason.OUT_OF_STEPS
    )
    found = mean_certificate([failed, *weak[1:]], [0.2, 0.3, 0.5], mean.weights, mean.mass)
    assert (found.status, found.reason) == ("not_converged", otgraph.Reason.OUT_OF_STEPS)
    assert "the mean of 3 plans" in str(mean.certificate)


def test_the_joint_gap_is_at_most_the_largest(path):
    """Values and dual values of the joint problem from the plans, with independent code."""
    mean = path.mean([1, 2, 5])
    primal = dual = 0.0
    for share, graph in zip(mean.shares, path, strict=True):
        squares = float((graph.weights.data**2).sum())
        primal += share * (float(graph.edge_costs @ graph.weights.data) + graph.eps / 2 * squares)
        dual += share * (2.0 * graph.potentials.sum() - graph.eps / 2 * squares)
    assert (primal - dual) / primal <= mean.certificate.duality_gap + 1e-9


def test_no_plan_of_one_eps_is_the_mean(X, path):
    """The mean is near the mean of the true plans, but it solves no single problem."""
    mean, single = path.mean(), otgraph.quadratic_ot_graph(X, 0.5, connect=False)
    assert abs(mean.weights - single.weights).max() > 0.01


def test_verification(X, path):
    mean = path.mean()
    assert mean.certificate.verify(X)
    found = mean.certificate.verify(X + 0.01 * X**2)
    assert not found
    assert "eps 0.1: " in str(found)
    mean.weights.data[3] *= 1.1
    assert any("not the mean of the parts" in each for each in mean.certificate.verify(X).problems)


def test_new_points_get_the_mean_of_the_parts_rows(X, path):
    mean, new = path.mean([1, 2, 5]), X[:9] + 0.1
    expected = sum(w * g.extend(new) for w, g in zip(mean.shares, path, strict=True))
    assert abs(mean.extend(new) - expected).max() < 1e-15
    np.testing.assert_allclose(mean.extend(new, mass=2.0).sum(axis=1), 2.0)


def test_files(X, tmp_path):
    graph = otgraph.multiscale_graph(X, mean_degree=[5, 9], min_degree=6)
    narrow, wide = graph.floors
    assert narrow is None
    assert wide is not None
    assert graph.degrees.min() >= 6
    graph.save(tmp_path / "mean.otg")
    loaded = otgraph.load_graph(tmp_path / "mean.otg")
    assert isinstance(loaded, otgraph.MultiscaleGraph)
    assert (loaded.weights != graph.weights).nnz == 0
    assert loaded.certificate == graph.certificate
    np.testing.assert_array_equal(loaded.edge_eps, graph.edge_eps)
    assert loaded.certificate.verify(X)
    assert abs(loaded.extend(X[:3]) - graph.extend(X[:3])).max() == 0.0


def test_scales_are_halves_down_to_about_four():
    np.testing.assert_array_equal(scales(15.0), [15.0, 7.5, 3.75])
    np.testing.assert_array_equal(scales(64.0), [64.0, 32.0, 16.0, 8.0, 4.0])
    np.testing.assert_array_equal(scales(2.0), [2.0])


def test_a_number_is_the_degree_of_the_widest_plan(X):
    graph = otgraph.multiscale_graph(X, mean_degree=24)
    degrees = [graph.part(k).mean_degree for k in range(graph.n_parts)]
    np.testing.assert_allclose(degrees, [3.0, 6.0, 12.0, 24.0], rtol=0.05)
    assert graph.mean_degree <= 1.1 * degrees[-1]
    assert graph.params["mean_degree"] == "3, 6, 12, 24"


def test_same_plans_as_one_at_a_time(X):
    graph = otgraph.multiscale_graph(X, mean_degree=[6, 18])
    for k, degree in enumerate((6, 18)):
        single = otgraph.quadratic_ot_graph(X, mean_degree=degree)
        assert graph.part(k).mean_degree == pytest.approx(single.mean_degree, rel=0.03)
        assert graph.certificate.parts[k].status == "exact"


def test_masses_self_loops_and_floors(X, rng):
    mass = rng.uniform(0.5, 2.0, size=len(X))
    for options in ({"self_loops": True}, {"min_degree": 5}, {"connect": True}):
        graph = otgraph.multiscale_graph(X, [0.05, 0.5], mass=mass, **options)
        sums = np.asarray(graph.weights.sum(axis=1)).ravel()
        np.testing.assert_allclose(sums, mass, rtol=1e-6)
        assert graph.certificate.verify(X)


def test_copies_are_collapsed_in_every_part(X):
    Z = np.vstack([X, X[:30]])
    graph = otgraph.multiscale_graph(Z, mean_degree=[5, 15], collapse=True)
    assert graph.certificate.verify(Z)
    assert graph.part(0).copies is not None
    np.testing.assert_allclose(graph.extend(Z[:4] + 0.1).sum(axis=1), 1.0)


def test_threads_do_not_change_the_bits(X):
    one, two = (otgraph.multiscale_graph(X, n_jobs=jobs) for jobs in (1, 2))
    assert (one.weights != two.weights).nnz == 0


def test_few_points():
    graph = otgraph.multiscale_graph([[0.0], [1.0], [3.0], [4.0]])
    assert graph.n_parts == 1


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"eps": [1.0], "mean_degree": [5]}, "at most one of `eps` and `mean_degree`"),
        ({"eps": [1.0, -1.0]}, "`eps` must be a positive"),
        ({"mean_degree": []}, "`mean_degree` must be a list of positive numbers"),
        ({"mean_degree": [5, 500]}, "`mean_degree` must be at most"),
        ({"serach": "exact"}, "`serach` is not a keyword of multiscale_graph"),
    ],
)
def test_errors(X, keywords, match):
    with pytest.raises((TypeError, ValueError), match=match):
        otgraph.multiscale_graph(X, **keywords)


@pytest.mark.parametrize("shares", [[1.0], [1.0, 0.0, 1.0], [1.0, np.nan, 1.0]])
def test_bad_shares(path, shares):
    with pytest.raises(ValueError, match="`shares` must be 3 positive numbers"):
        path.mean(shares)


def test_shares_sum_to_one():
    assert checked_shares([1, 3], 2).tolist() == [0.25, 0.75]


def test_an_empty_path_has_no_mean(path):
    with pytest.raises(ValueError, match="at least one graph"):
        path[:0].mean()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda g: {"potentials": g.potentials[:, :2]}, "its potentials are not 450"),
        (
            lambda g: {"certificate": replace(g.certificate, shares=(0.5, 0.5, 0.5))},
            "do not sum to one",
        ),
    ],
)
def test_what_does_not_belong_together_is_not_saved(path, tmp_path, change, match):
    mean = path.mean()
    with pytest.raises(ValueError, match=match):
        replace(mean, **change(mean)).save(tmp_path / "bad.otg")


def test_points_that_may_drop_out_are_refused(rng):
    X = rng.normal(size=(60, 3))
    with pytest.raises(ValueError, match="`outlier_cost` must be None for a mean of plans"):
        otgraph.multiscale_graph(X, outlier_cost=0.5)
    path = otgraph.eps_path(X, [0.1, 1.0], outlier_cost=0.5)
    with pytest.raises(ValueError, match="`outlier_cost` must be None for a mean of plans"):
        path.mean()
