"""Copies collapsed to one point: the graph is a function of the measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import otgraph
from otgraph.exceptions import InfeasibleError
from otgraph.graphs.copies import Copies, distinct_rows

ROUNDING = 1e-14  # a few operations on numbers near one


@pytest.fixture
def copied(rng):
    """Points, the same with 30 % of them once more, and the point behind every row."""
    X = rng.normal(size=(200, 3))
    again = rng.choice(200, 60, replace=False)
    order = rng.permutation(260)
    point = np.append(np.arange(200), again)[order]
    return X, X[point], point


def block_sums(weights, point):
    """Weights between distinct points: sums over their copies."""
    member = sp.csr_matrix((np.ones(len(point)), (point, np.arange(len(point)))))
    return (member @ weights @ member.T).toarray()


def test_the_graph_of_distinct_points_with_their_numbers_as_masses(copied):
    X, Z, point = copied
    graph = otgraph.quadratic_ot_graph(Z, 0.5, collapse=True)
    once = otgraph.quadratic_ot_graph(X, 0.5, mass=np.bincount(point).astype(float))
    np.testing.assert_allclose(block_sums(graph.weights, point), once.weights.toarray(), atol=1e-12)
    assert graph.n == len(Z)
    assert graph.certificate.status == "exact"
    np.testing.assert_allclose(graph.weights.sum(axis=1), 1.0, atol=1e-6)
    assert (graph.weights != graph.weights.T).nnz == 0


def test_a_measure_can_be_split_in_any_way(copied, rng):
    """Copies that share the mass of their point change nothing: the same bits on the rest."""
    X, Z, point = copied
    _, first = np.unique(distinct_rows(Z), return_index=True)
    order = point[first]  # distinct points in the order of first appearance
    part = rng.uniform(0.1, 1.0, size=len(Z))
    mass = part / np.bincount(point, weights=part)[point]
    graph = otgraph.quadratic_ot_graph(Z, mean_degree=12, mass=mass, collapse=True)
    once = otgraph.quadratic_ot_graph(X[order], mean_degree=12)
    place = np.empty(200, dtype=int)
    place[order] = np.arange(200)
    sums = block_sums(graph.weights, place[point])
    np.testing.assert_allclose(sums, once.weights.toarray(), rtol=1e-9, atol=ROUNDING)
    single = np.bincount(point) == 1
    rows = np.flatnonzero(single[point])
    there = once.weights[place[point[rows]]][:, place[point[rows]]]
    here = graph.weights[rows][:, rows]
    np.testing.assert_allclose(here.toarray(), there.toarray(), rtol=1e-9, atol=ROUNDING)


def test_thirty_percent_copies_are_the_same_graph_on_the_rest_bit_for_bit(rng):
    X = rng.normal(size=(200, 3))
    again = rng.choice(200, 60, replace=False)
    Z = np.vstack([X, X[again]])
    mass = otgraph.balanced_mass(np.append(np.arange(200), again))
    half = np.ones(260)
    half[again] = half[200:] = 0.5
    np.testing.assert_allclose(mass / mass.max(), half)
    graph = otgraph.quadratic_ot_graph(Z, mass=half, collapse=True)
    once = otgraph.quadratic_ot_graph(X)
    rest = np.setdiff1d(np.arange(200), again)
    assert (graph.weights[rest][:, rest] != once.weights[rest][:, rest]).nnz == 0
    assert graph.eps == once.eps


def test_copies_have_the_same_neighbors_and_no_edges_between_them(copied):
    _, Z, point = copied
    graph = otgraph.quadratic_ot_graph(Z, collapse=True)
    rows, columns = graph.weights.nonzero()
    assert not np.any(point[rows] == point[columns])
    i, j = np.flatnonzero(point == np.bincount(point).argmax())
    assert (graph.weights[i] != graph.weights[j]).nnz == 0
    modes = otgraph.eigenmaps(graph, 3).coordinates
    np.testing.assert_allclose(modes[i], modes[j], atol=1e-7)


def test_copies_without_collapse_give_each_other_most_of_their_mass(copied):
    """What the keyword is for."""
    _, Z, point = copied
    plain = otgraph.quadratic_ot_graph(Z, mean_degree=5, connect=False).weights.tocoo()
    twice = np.bincount(point)[point] > 1
    between = plain.data[point[plain.row] == point[plain.col]].sum()
    assert between > 2.0 * twice.sum() / 5


def test_with_self_loops_copies_share_what_their_point_keeps(copied):
    _, Z, point = copied
    graph = otgraph.quadratic_ot_graph(Z, 0.5, self_loops=True, collapse=True)
    i, j = np.flatnonzero(point == np.bincount(point).argmax())
    assert graph.weights[i, i] == graph.weights[i, j] == graph.weights[j, j] > 0.0
    assert graph.certificate.verify(Z)


def test_optimal_for_the_regularizer_that_counts_copies(copied):
    """pi = s_i s_j (u_i + u_j - c)+ / eps with one u for all copies, and rows sum to the mass."""
    _, Z, point = copied
    graph = otgraph.quadratic_ot_graph(Z, 0.5, collapse=True)
    share = 1.0 / np.bincount(point)[point]
    costs = ((Z[:, None] - Z) ** 2).sum(axis=2) / graph.params["scale"]
    costs[point[:, None] == point] = np.inf
    u = graph.potentials
    expected = np.outer(share, share) * np.maximum(u[:, None] + u - costs, 0.0) / graph.eps
    np.testing.assert_allclose(graph.weights.toarray(), expected, atol=1e-12)


def test_nothing_changes_without_copies(rng):
    X = rng.normal(size=(80, 3))
    one, other = (otgraph.quadratic_ot_graph(X, collapse=each) for each in (False, True))
    assert (one.weights != other.weights).nnz == 0
    assert other.copies is None


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix, np.float32])
def test_kinds_of_points(copied, convert):
    _, Z, _ = copied
    Z = convert(np.round(Z, 1))
    graph = otgraph.quadratic_ot_graph(Z, collapse=True)
    assert graph.certificate.verify(Z)
    assert graph.points.shape == Z.shape


def test_zeros_of_both_signs_are_equal():
    assert distinct_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])).tolist() == [0, 0, 1]
    stored = sp.csr_matrix(([0.0, 1.0, 1.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    assert distinct_rows(stored).tolist() == [0, 0]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_distinct_rows_are_numbered_in_the_order_of_appearance(values):
    found = distinct_rows(np.array(values, dtype=float)[:, None])
    seen = list(dict.fromkeys(values))
    assert found.tolist() == [seen.index(value) for value in values]


def test_spread_and_back(rng):
    group = np.array([0, 1, 0, 2, 3, 3, 3])
    copies = Copies(group, rng.uniform(0.5, 2.0, size=7))
    half = sp.random(4, 4, 0.7, random_state=0)
    matrix = sp.csr_matrix(half + half.T)
    spread, entries = copies.spread(matrix)
    expected = matrix.toarray()[np.ix_(group, group)] * np.outer(copies.shares, copies.shares)
    np.testing.assert_allclose(spread.toarray(), expected)
    assert (spread != spread.T).nnz == 0
    np.testing.assert_array_equal(matrix.data[entries] > 0, spread.data > 0)


def test_new_points_and_files(copied, tmp_path):
    _, Z, _ = copied
    graph = otgraph.quadratic_ot_graph(Z, 0.5, collapse=True)
    new = Z[:7] + 0.05
    rows = graph.extend(new)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    once = otgraph.quadratic_ot_graph(
        Z[Copies(graph.copies, graph.mass).first], graph.eps,
        mass=np.bincount(graph.copies).astype(float),
    )  # fmt: skip
    member = sp.csr_matrix((np.ones(len(Z)), (np.arange(len(Z)), graph.copies)))
    np.testing.assert_allclose((rows @ member).toarray(), once.extend(new).toarray(), atol=1e-6)
    graph.save(tmp_path / "copies.otg")
    loaded = otgraph.load_graph(tmp_path / "copies.otg")
    assert (loaded.extend(new) != rows).nnz == 0
    assert loaded.certificate.verify(Z)
    np.testing.assert_array_equal(loaded.copies, graph.copies)


def test_verification_finds_what_is_wrong(copied):
    _, Z, _ = copied
    graph = otgraph.quadratic_ot_graph(Z, collapse=True)
    found = graph.certificate.verify(Z + np.arange(len(Z))[:, None] * 1e-9)
    assert any("copies" in problem for problem in found.problems)
    with pytest.raises(ValueError, match="`X` must have 260 rows"):
        graph.certificate.verify(Z[:10])
    graph.weights.data[5] *= 1.5
    assert not graph.certificate.verify(Z)


def test_a_path_and_a_start_with_copies(copied):
    _, Z, _ = copied
    path = otgraph.eps_path(Z, [0.2, 1.0], collapse=True)
    again = otgraph.quadratic_ot_graph(Z, 0.2, u0=path[0].potentials, collapse=True)
    assert path[0].n == again.n == len(Z)
    assert abs(path[0].weights - again.weights).max() < 1e-6


def test_eps_is_chosen_on_the_distinct_points(rng):
    X = otgraph.datasets.noisy_spiral(n=150).X
    Z = np.vstack([X, X[:40]])
    mass = np.ones(150)
    mass[:40] = 2.0
    expected = otgraph.choose_eps(X, mass=mass).eps
    assert otgraph.choose_eps(Z, collapse=True).eps == expected
    assert otgraph.quadratic_ot_graph(Z, "auto", collapse=True).eps == expected


def test_errors(rng):
    X = rng.normal(size=(5, 2))
    with pytest.raises(ValueError, match="`collapse` must be False with precomputed costs"):
        otgraph.quadratic_ot_graph(np.ones((4, 4)), metric="precomputed", collapse=True)
    with pytest.raises(ValueError, match="all identical"):
        otgraph.quadratic_ot_graph(np.ones((4, 2)), collapse=True)
    Z = np.vstack([X, np.tile(X[:1], (9, 1))])
    with pytest.raises(InfeasibleError, match="`collapse` makes row 0 and its copies one point"):
        otgraph.quadratic_ot_graph(Z, collapse=True)
    assert otgraph.quadratic_ot_graph(Z, 0.5, collapse=True, self_loops=True).n == 14


@pytest.mark.parametrize("bad", [[1, 0, 2], [0, 2, 1], [0, -1, 1]])
def test_numbers_of_points_that_are_none_are_not_saved(copied, tmp_path, bad):
    _, Z, _ = copied
    graph = otgraph.quadratic_ot_graph(Z, 0.5, collapse=True)
    numbers = graph.copies.copy()
    numbers[:3] = bad
    with pytest.raises(ValueError, match="its copies are not"):
        replace(graph, copies=numbers).save(tmp_path / "bad.otg")
