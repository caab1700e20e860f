"""Plans between two clouds whose points may hold mass back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from tests.clouds import soft_plan

import otgraph

TOL = 1e-6


def clouds(rng, n=40, m=55, d=3, shift=0.5):
    return rng.normal(size=(n, d)), 1.3 * rng.normal(size=(m, d)) + shift


def costs_of(X, Y, power=2.0):
    costs = cdist(X, Y) ** power
    return costs / costs.mean()


@pytest.mark.parametrize("power", [1.0, 2.0])
@pytest.mark.parametrize(("eps", "price"), [(0.02, 0.3), (0.3, 0.3), (0.3, 2.0), (3.0, 1.0)])
def test_plan_is_that_of_a_dense_minimizer(rng, eps, price, power):
    X, Y = clouds(rng)
    mass_x, mass_y = rng.uniform(0.5, 2.0, 40), rng.uniform(0.5, 2.0, 55)
    plan = otgraph.transport_graph(
        X, Y, eps=eps, power=power, mass_x=mass_x, mass_y=mass_y, outlier_cost=price
    )
    mass_y = mass_y * mass_x.sum() / mass_y.sum()
    expected = soft_plan(costs_of(X, Y, power), eps, mass_x, mass_y, price)
    assert plan.certificate.status == "exact"
    assert plan.certificate.outlier_cost == plan.params["outlier_cost"] == price
    # The minimizer stops where its value no longer falls: half of the digits of the potentials.
    np.testing.assert_allclose(plan.weights.toarray(), expected, atol=1e-4)
    for kept, mass, u in zip(plan.mass_kept, plan.mass, plan.potentials, strict=True):
        share = np.clip(2.0 * u / price, 0.0, 1.0)
        np.testing.assert_allclose(kept, mass * (1.0 - share), atol=10 * TOL)
    assert plan.mass_kept.x.sum() == pytest.approx(plan.mass_kept.y.sum())
    assert plan.mass_kept.x.sum() < 0.95 * mass_x.sum()
    assert plan.certificate.verify(X, Y)
    assert plan.T.certificate.verify(Y, X)
    assert not plan.weights.toarray()[costs_of(X, Y, power) > price].any()


def test_no_other_plan_has_a_smaller_primal_value(rng):
    """The primal problem, solved without potentials."""
    X, Y = clouds(rng, 5, 6)
    costs, eps, price, mass = costs_of(X, Y), 0.2, 0.8, np.r_[np.ones(5), np.full(6, 5 / 6)]

    def value(entries):
        plan = entries.reshape(5, 6)
        held = mass - np.r_[plan.sum(axis=1), plan.sum(axis=0)]
        penalty = 0.25 * price * np.sum(held**2 / mass)
        return np.sum(costs * plan) + 0.5 * eps * np.sum(plan**2) + penalty

    def held_back(entries):
        plan = entries.reshape(5, 6)
        return mass - np.r_[plan.sum(axis=1), plan.sum(axis=0)]

    least = minimize(
        value, np.full(30, 0.01), bounds=[(0.0, None)] * 30, method="SLSQP",
        constraints={"type": "ineq", "fun": held_back}, options={"maxiter": 1000, "ftol": 1e-14},
    )  # fmt: skip
    plan = otgraph.transport_graph(X, Y, eps=eps, outlier_cost=price)
    assert value(plan.weights.toarray().ravel()) == pytest.approx(least.fun, rel=1e-7)
    np.testing.assert_allclose(plan.weights.toarray().ravel(), least.x, atol=1e-4)


def test_a_high_price_is_the_plan_without_one(rng):
    X, Y = clouds(rng)
    hard = otgraph.transport_graph(X, Y, eps=0.3)
    soft = otgraph.transport_graph(X, Y, eps=0.3, outlier_cost=1e7)
    np.testing.assert_allclose(soft.weights.toarray(), hard.weights.toarray(), atol=1e-5)
    assert hard.mass_kept is hard.mass
    assert not np.any(hard.dropped.x)


@pytest.mark.parametrize("price", [0.3, "auto"])
@pytest.mark.parametrize(("d", "n"), [(2, 2500), (8, 2500), (3, 9000)])
def test_points_without_counterpart_drop_out(rng, d, n, price):
    """A tenth of either cloud is where the other cloud has nothing."""
    X, Y = rng.normal(size=(n, d)), rng.normal(size=(n + 300, d))
    X[: n // 10] += 30.0
    Y[: n // 10] -= 30.0
    plan = otgraph.transport_graph(X, Y, mean_degree=10, outlier_cost=price)
    assert plan.certificate.status == "exact"
    assert plan.certificate.verify(X, Y)
    assert plan.mean_degree == pytest.approx(10.0, rel=0.05)
    for dropped in plan.dropped:
        assert dropped[: n // 10].all()
        assert dropped[n // 10 :].mean() < 0.05


def test_dropped_points_have_no_label_and_no_image(rng):
    X, Y = clouds(rng)
    X[7] = 50.0
    plan = otgraph.transport_graph(X, Y, eps=0.1, normalize=False, outlier_cost=9.0)
    assert plan.dropped.x[7]
    assert plan.mass_kept.x[7] == 0.0
    carried = plan.transfer_labels(["a"] * 55)
    assert carried.labels[7] is None
    assert carried.known[7] == 0.0
    mapped = plan.barycentric_map()
    np.testing.assert_array_equal(np.isnan(mapped).any(axis=1), plan.dropped.x)
    assert plan.transition()[[7]].nnz == 0


def test_a_shift_matters(rng):
    X, Y = clouds(rng)
    keywords = {"eps": 0.5, "normalize": False, "outlier_cost": 4.0}
    near, far = (otgraph.transport_graph(X, Y + by, **keywords) for by in (0.0, 1.0))
    away = otgraph.transport_graph(X, Y + 100.0, **keywords)
    assert far.mass_kept.x.sum() < 0.9 * near.mass_kept.x.sum()
    assert away.weights.nnz == 0
    for plan, by in ((near, 0.0), (far, 1.0), (away, 100.0)):
        assert plan.certificate.status == "exact"
        assert plan.certificate.verify(X, Y + by)


def test_all_kinds_of_input_give_the_same(rng, tmp_path):
    X, Y = clouds(rng)
    keywords = {"eps": 0.3, "outlier_cost": 0.7}
    given = otgraph.transport_graph(X, Y, **keywords)
    costs = cdist(X, Y) ** 2
    others = [
        otgraph.transport_graph(costs, metric="precomputed", **keywords),
        otgraph.transport_graph(sp.csr_matrix(costs), metric="precomputed", **keywords),
        otgraph.transport_graph(sp.csr_matrix(X), sp.csr_matrix(Y), **keywords),
        otgraph.transport_graph(X, Y, metric="sqeuclidean", power=1.0, **keywords),
    ]
    for other in others:
        np.testing.assert_allclose(other.weights.toarray(), given.weights.toarray(), atol=10 * TOL)
    given.save(tmp_path / "plan.otg")
    loaded = otgraph.CrossGraph.load(tmp_path / "plan.otg")
    assert loaded.certificate == given.certificate
    np.testing.assert_array_equal(loaded.mass_kept.y, given.mass_kept.y)
    assert loaded.certificate.verify(X, Y)


def test_bits_do_not_depend_on_threads(rng):
    X, Y = clouds(rng, 3000, 2500, 3)
    one, two = (otgraph.transport_graph(X, Y, outlier_cost=0.2, n_jobs=jobs) for jobs in (1, 2))
    assert (one.weights != two.weights).nnz == 0
    np.testing.assert_array_equal(one.potentials.x, two.potentials.x)


@pytest.mark.parametrize("price", [0.0, -1.0, "much"])
def test_errors_name_the_argument(rng, price):
    with pytest.raises(ValueError, match="`outlier_cost`"):
        otgraph.transport_graph(*clouds(rng), outlier_cost=price)
