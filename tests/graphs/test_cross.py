"""Plans between two clouds, against an independent dense solver and a linear program."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from tests.clouds import dense_plan

import otgraph
from otgraph._parallel import Workers
from otgraph.costs.clouds import check_clouds, cross_cost, scaled_clouds
from otgraph.costs.coarse import Multilevel
from otgraph.costs.sizes import SearchSizes

TOL = 1e-6


def clouds(rng, n=40, m=55, d=3, shift=0.0):
    return rng.normal(size=(n, d)), 1.3 * rng.normal(size=(m, d)) + shift


def costs_of(X, Y, metric="euclidean", power=2.0):
    costs = cdist(X, Y, metric) ** power
    return costs / costs.mean()


@pytest.mark.parametrize("eps", [1e-3, 0.05, 1.0, 30.0])
@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_plan_is_that_of_a_dense_solver(rng, eps, shift):
    X, Y = clouds(rng, shift=shift)
    mass_x, mass_y = rng.uniform(0.5, 2.0, 40), rng.uniform(0.5, 2.0, 55)
    plan = otgraph.transport_graph(X, Y, eps=eps, mass_x=mass_x, mass_y=mass_y)
    mass_y = mass_y * mass_x.sum() / mass_y.sum()
    expected = dense_plan(costs_of(X, Y), eps, mass_x, mass_y)
    assert plan.certificate.status == "exact"
    np.testing.assert_allclose(plan.weights.toarray(), expected, atol=10 * TOL)
    np.testing.assert_allclose(plan.weights.sum(axis=1).A1, mass_x, rtol=TOL)
    np.testing.assert_allclose(plan.weights.sum(axis=0).A1, mass_y, rtol=TOL)
    assert plan.certificate.verify(X, Y)


@pytest.mark.parametrize(
    ("metric", "power"),
    [
        ("euclidean", 1.0), ("euclidean", 3.0), ("cosine", 1.0), ("cityblock", 1.0),
        ("seuclidean", 2.0), ("mahalanobis", 1.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("eps", [0.01, 0.5])
def test_all_metrics(rng, metric, power, eps):
    X, Y = clouds(rng, shift=0.5)
    plan = otgraph.transport_graph(X, Y, eps=eps, metric=metric, power=power)
    keywords = {}
    if metric == "seuclidean":
        keywords["V"] = np.var(np.vstack([X, Y]), axis=0, ddof=1)
    if metric == "mahalanobis":
        keywords["VI"] = np.linalg.inv(np.cov(np.vstack([X, Y]).T))
    costs = cdist(X, Y, metric, **keywords) ** power
    costs /= costs.mean()
    expected = dense_plan(costs, eps, np.ones(40), np.full(55, 40 / 55))
    np.testing.assert_allclose(plan.weights.toarray(), expected, atol=10 * TOL)
    assert plan.certificate.status == "exact"
    assert plan.certificate.verify(X, Y)


def test_functions_precomputed_and_sparse_points(rng):
    X, Y = clouds(rng)
    given = otgraph.transport_graph(X, Y, eps=0.3)
    costs = cdist(X, Y) ** 2
    dense = otgraph.transport_graph(costs, metric="precomputed", eps=0.3)
    listed = otgraph.transport_graph(sp.csr_matrix(costs), metric="precomputed", eps=0.3)
    sparse = otgraph.transport_graph(sp.csr_matrix(X), sp.csr_matrix(Y), eps=0.3)

    def distance(x, y):
        return float(np.sum((x - y) ** 2))

    called = otgraph.transport_graph(X, Y, metric=distance, power=1.0, eps=0.3)
    for other in (dense, listed, sparse, called):
        np.testing.assert_allclose(other.weights.toarray(), given.weights.toarray(), atol=10 * TOL)
    assert dense.certificate.status == "exact"
    assert listed.certificate.status == "exact_on_candidates"
    assert dense.certificate.verify(costs)
    assert listed.certificate.verify(sp.csr_matrix(costs))
    assert sparse.certificate.verify(sp.csr_matrix(X), sp.csr_matrix(Y))
    assert called.certificate.verify(X, Y, metric=distance)


def test_tiny_eps_is_the_linear_program(rng):
    X, Y = clouds(rng, 12, 17, 2)
    costs = costs_of(X, Y)
    rows, columns = np.divmod(np.arange(12 * 17), 17)
    marginals = sp.vstack(
        [sp.csr_matrix((np.ones(204), (place, np.arange(204)))) for place in (rows, columns)]
    )
    program = linprog(costs.ravel(), A_eq=marginals, b_eq=np.r_[np.ones(12), np.full(17, 12 / 17)])
    plan = otgraph.transport_graph(X, Y, eps=1e-7)
    assert plan.certificate.status == "exact"
    assert np.sum(plan.weights.toarray() * costs) == pytest.approx(program.fun, rel=1e-6)


SMALL = SearchSizes(
    most_tree_dimensions=3, fewest_tree_points=50, fewest_cell_points=50, neighbor_cells=2,
    nearest_cells=2, screen_cells=2, near_share=0.55, plain_share=1.1, block_rows=64,
)  # fmt: skip
PLAIN = SearchSizes(fewest_tree_points=10**9, fewest_cell_points=10**9)


@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_searches_find_the_same_pairs(rng, d, power):
    X, Y = clouds(rng, 300, 170, d, shift=1.0)
    found = []
    for sizes in (SMALL, PLAIN):
        given = check_clouds((X, Y), "euclidean")
        cost = cross_cost(given, power=power, workers=Workers(2), sizes=sizes)
        place = np.argsort(cost.order)
        upper = np.random.default_rng(3).uniform(-0.5, 0.8, 470)[cost.order]
        rows = place[np.arange(7, 470, 31)]
        for some in (None, rows):
            pairs = cost.screen(upper, some).pairs
            i = np.repeat(cost.order, np.diff(pairs.indptr))
            found.append(set(zip(i.tolist(), cost.order[pairs.indices].tolist(), strict=True)))
        near = cost.neighbors(5)
        assert np.diff(near.indptr).min() >= 5
        assert np.all(
            (cost.order[near.indices] < 300) != (np.repeat(cost.order, np.diff(near.indptr)) < 300)
        )
    assert found[0] == found[2]
    assert found[1] == found[3]
    scaled = scaled_clouds(X, Y, metric="euclidean", power=power, normalize=True, seed=0)
    if power != 2.0:
        assert scaled.offsets is None
    costs = costs_of(X, Y, power=power)
    u = np.random.default_rng(3).uniform(-0.5, 0.8, 470)
    if power != 2.0:
        expected = np.argwhere(u[:300, None] + u[300:] > costs)
        assert {(i, j + 300) for i, j in expected.tolist()} <= found[0]


def test_masses_may_be_given_for_one_cloud(rng):
    X, Y = clouds(rng)
    plan = otgraph.transport_graph(X, Y, eps=0.5, mass_y=np.arange(1.0, 56.0))
    np.testing.assert_allclose(plan.mass.x, 1.0)
    assert plan.mass.y.sum() == pytest.approx(40.0)
    assert plan.mass.y[54] == pytest.approx(55.0 * plan.mass.y[0])


def test_a_shift_changes_nothing_but_the_potentials(rng):
    X, Y = clouds(rng, 300, 300)
    near = otgraph.transport_graph(X, Y, mean_degree=8)
    far = otgraph.transport_graph(X, Y + 1000.0, mean_degree=8)
    np.testing.assert_allclose(near.weights.toarray(), far.weights.toarray(), atol=1e-5)
    assert far.certificate.verify(X, Y + 1000.0)


def test_mean_degree_and_transpose(rng):
    X, Y = clouds(rng, 400, 250)
    plan = otgraph.transport_graph(X, Y, mean_degree=6)
    assert plan.mean_degree == pytest.approx(6.0, rel=0.05)
    assert plan.degrees.x.sum() == plan.degrees.y.sum() == plan.weights.nnz
    back = plan.T
    assert back.shape == (250, 400)
    assert (back.weights != plan.weights.T).nnz == 0
    assert back.certificate.verify(Y, X)
    other = otgraph.transport_graph(Y, X, eps=plan.eps, mass_x=plan.mass.y)
    np.testing.assert_allclose(other.weights.toarray(), plan.weights.toarray().T, atol=1e-5)


def test_labels_and_means_travel(rng):
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 8.0])
    Y = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 8.0]) + 3.0
    plan = otgraph.transport_graph(X, Y, mean_degree=5)
    names = np.repeat(["a", "b"], 50)
    carried = plan.transfer_labels(names)
    assert carried.labels.tolist() == ["a"] * 30 + ["b"] * 30
    np.testing.assert_allclose(carried.probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(carried.known, 1.0)
    some = names.astype(object)
    some[::2] = None
    assert np.all(plan.transfer_labels(some).known < 1.0)
    np.testing.assert_allclose(plan.barycentric_map(), plan.transition() @ Y)
    np.testing.assert_allclose(plan.barycentric_map(Y[:, :1]), (plan.transition() @ Y)[:, :1])
    assert plan.n_connected >= 2
    assert len(plan.component_labels.y) == 100


def test_unreached_points_have_no_label():
    plan = otgraph.transport_graph([[0.0], [1.0]], [[0.0], [1.0]], eps=0.01)
    carried = plan.transfer_labels([3, -1])
    assert carried.labels.tolist() == [3, -1]
    np.testing.assert_allclose(carried.probabilities, 1.0)


def test_one_point_and_identical_points():
    plan = otgraph.transport_graph([[0.0, 1.0]], [[1.0, 2.0], [3.0, 4.0]], eps=1.0)
    np.testing.assert_allclose(plan.weights.toarray(), [[0.5, 0.5]])
    with pytest.warns(UserWarning, match="identical"):
        same = otgraph.transport_graph(np.ones((4, 2)), np.ones((6, 2)), eps=1.0)
    np.testing.assert_allclose(same.weights.toarray(), 1.0 / 6.0)


def test_bits_do_not_depend_on_threads(rng):
    X, Y = clouds(rng, 3000, 2500, 3)
    one = otgraph.transport_graph(X, Y, n_jobs=1)
    two = otgraph.transport_graph(X, Y, n_jobs=2)
    assert (one.weights != two.weights).nnz == 0
    np.testing.assert_array_equal(one.potentials.x, two.potentials.x)
    assert one.certificate.status == "exact"
    assert one.certificate.verify(X, Y)


@pytest.mark.parametrize("d", [2, 8])
def test_clouds_of_different_shape(rng, d):
    """Nearest points are no partners here, and whole groups must move."""
    X = rng.normal(size=(2500, d))
    Y = rng.normal(size=(3000, d)) * 0.3 + rng.choice([-3.0, 0.0, 4.0], size=(3000, 1))
    plan = otgraph.transport_graph(X, Y, mean_degree=10)
    assert plan.certificate.status == "exact"
    assert plan.certificate.verify(X, Y)


@pytest.mark.parametrize("outlier_cost", [None, 0.05])
def test_long_thin_clouds_use_groups_of_points(rng, monkeypatch, outlier_cost):
    X, Y = (np.column_stack((np.linspace(0.0, 1.0, 400), rng.normal(0.0, 1e-3, 400)))
            for _ in range(2))  # fmt: skip
    Y[:, 0] = np.square(Y[:, 0])
    calls = []
    plain = Multilevel.__call__
    monkeypatch.setattr(Multilevel, "__call__", lambda *args: calls.append(1) or plain(*args))
    plan = otgraph.transport_graph(X, Y, mean_degree=4, outlier_cost=outlier_cost)
    assert plan.certificate.status == "exact"
    assert plan.certificate.verify(X, Y)
    assert calls  # otherwise this tests nothing


def test_potentials_are_balanced_before_the_plan_is_computed(rng):
    """Newton steps may move a large constant from one cloud to the other; its digits are lost."""
    X, Y = clouds(rng, 20, 34, 1)
    mass_x, mass_y = np.exp(2.0 * rng.normal(size=20)), np.exp(2.0 * rng.normal(size=34))
    plan = otgraph.transport_graph(X, Y, eps=100.0, mass_x=mass_x, mass_y=mass_y)
    f, g = plan.potentials
    expected = np.maximum(f[:, None] + g - costs_of(X, Y), 0.0) / plan.eps
    noise = 16.0 * np.finfo(float).eps * (np.abs(f)[:, None] + np.abs(g) + 10.0) / plan.eps
    assert np.all(np.abs(plan.weights.toarray() - expected) <= noise + 1e-12 * expected)


def test_files(rng, tmp_path):
    X, Y = clouds(rng)
    plan = otgraph.transport_graph(X, Y, eps=0.3)
    for given in (plan, otgraph.transport_graph(sp.csr_matrix(X), sp.csr_matrix(Y), eps=0.3)):
        given.save(tmp_path / "plan.otg")
        loaded = otgraph.CrossGraph.load(tmp_path / "plan.otg")
        assert (loaded.weights != given.weights).nnz == 0
        np.testing.assert_array_equal(loaded.potentials.y, given.potentials.y)
        np.testing.assert_array_equal(loaded.mass.x, given.mass.x)
        assert loaded.params == given.params
        assert loaded.certificate == given.certificate
        assert loaded.certificate.verify(X, Y)
    with pytest.raises(otgraph.exceptions.FormatError, match="two clouds"):
        otgraph.load_graph(tmp_path / "plan.otg")
    otgraph.quadratic_ot_graph(X, eps=1.0).save(tmp_path / "graph.otg")
    with pytest.raises(otgraph.exceptions.FormatError, match="load_graph"):
        otgraph.CrossGraph.load(tmp_path / "graph.otg")
    plan.save(tmp_path / "small.otg", include_points=False)
    assert otgraph.CrossGraph.load(tmp_path / "small.otg").points is None


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"Y": None}, "`Y` must hold"),
        ({"Y": np.ones((3, 5))}, "features"),
        ({"mass_x": [1.0] * 39}, "`mass_x`"),
        ({"mass_y": np.r_[0.0, np.ones(54)]}, "`mass_y` must be positive"),
        ({"eps": "auto"}, "`eps` must be a number"),
        ({"mean_degree": 80}, "2 n m"),
        ({"metric": "precomputed"}, "`Y` must be None"),
        ({"Y": np.full((3, 3), np.nan)}, "`Y` contains NaN"),
    ],
)
def test_errors_name_the_argument(rng, keywords, match):
    X, Y = clouds(rng)
    with pytest.raises((ValueError, TypeError), match=match):
        otgraph.transport_graph(**{"X": X, "Y": Y, **keywords})


def test_errors_of_methods(rng):
    X, Y = clouds(rng)
    plan = otgraph.transport_graph(X, Y, eps=1.0)
    with pytest.raises(ValueError, match="`values` must have 55 rows"):
        plan.barycentric_map(X)
    with pytest.raises(ValueError, match="`labels`"):
        plan.transfer_labels([1, 2])
    with pytest.raises(TypeError, match="`Y` must be the points"):
        plan.certificate.verify(X)
    with pytest.raises(TypeError, match="`Y` must be None"):
        otgraph.quadratic_ot_graph(X, eps=1.0).certificate.verify(X, Y)
    bare = otgraph.transport_graph(cdist(X, Y), metric="precomputed", eps=1.0)
    with pytest.raises(TypeError, match="`values`"):
        bare.barycentric_map()
