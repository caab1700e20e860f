"""Exact laws of the problem, as properties of random instances.

Both sides of a law are solved to `TOL`; the plans then agree to a small multiple of it, since
the Newton systems are well conditioned for these eps.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from otgraph import quadratic_ot_graph

TOL = 1e-9
SAME = 1e-6

pytestmark = pytest.mark.filterwarnings("ignore::otgraph.exceptions.DisconnectedWarning")


@st.composite
def clouds(draw):
    """A random cloud: Gaussian, clustered, on a grid with ties and copies, or stretched."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(4, 60)), draw(st.integers(1, 6))
    X = rng.normal(size=(n, d))
    kind = draw(st.sampled_from(["gaussian", "clusters", "grid", "stretched"]))
    if kind == "clusters":
        X += 10.0 * rng.integers(0, 3, size=(n, 1))
    elif kind == "grid":
        X = np.round(2.0 * X)
        X[0] += 0.5  # never all the same
    elif kind == "stretched":
        X *= 10.0 ** rng.uniform(-2, 2, size=d)
    return X


epsilons = st.floats(0.1, 100.0)
loops = st.booleans()
few = settings(max_examples=80)


def solved(X, eps, **options):
    graph = quadratic_ot_graph(X, eps, tol=TOL, **options)
    assert graph.certificate.status == "exact"
    return graph


def assert_same(a, b, tol=SAME):
    assert abs(a - b).max() <= tol


@few
@given(clouds(), epsilons, loops, st.booleans())
def test_optimality(X, eps, self_loops, uniform):
    mass = None if uniform else np.linspace(0.5, 1.5, len(X))
    graph = solved(X, eps, self_loops=self_loops, mass=mass)
    C = reference.cost_matrix(X)
    reference.assert_optimal(graph, C, eps, mass=mass, self_loops=self_loops, tol=TOL)


@few
@given(clouds(), epsilons, loops, st.randoms(use_true_random=False))
def test_permutation(X, eps, self_loops, random):
    order = list(range(len(X)))
    random.shuffle(order)
    mass = np.linspace(0.8, 1.2, len(X))
    plain = solved(X, eps, self_loops=self_loops, mass=mass).weights
    shuffled = solved(X[order], eps, self_loops=self_loops, mass=mass[order]).weights
    assert_same(plain[order][:, order], shuffled)


@few
@given(clouds(), epsilons, st.floats(-1e3, 1e3), loops)
def test_translation(X, eps, shift, self_loops):
    moved = solved(X + shift, eps, self_loops=self_loops)
    assert_same(solved(X, eps, self_loops=self_loops).weights, moved.weights)


@few
@given(clouds(), epsilons, st.integers(0, 2**32 - 1))
def test_rotation(X, eps, seed):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=2 * X.shape[1:]))
    assert_same(solved(X, eps).weights, solved(X @ Q, eps).weights)


@few
@given(clouds(), epsilons, st.floats(-100, 100))
def test_scale_of_normalized_points(X, eps, exponent):
    assert_same(solved(X, eps).weights, solved(10.0**exponent * X, eps).weights)


@few
@given(clouds(), epsilons, st.floats(1e-6, 1e6), loops)
def test_joint_scaling_of_cost_and_eps(X, eps, factor, self_loops):
    """(factor C, factor eps): the same plan, potentials times the factor."""
    C = reference.cost_matrix(X)
    options = {"metric": "precomputed", "normalize": False, "self_loops": self_loops}
    plain, scaled = solved(C, eps, **options), solved(factor * C, factor * eps, **options)
    assert_same(plain.weights, scaled.weights)
    if has_unique_potentials(plain):
        np.testing.assert_allclose(scaled.potentials / factor, plain.potentials, atol=SAME * eps)


@few
@given(clouds(), epsilons, st.floats(0.0, 1e3))
def test_constant_added_to_the_cost(X, eps, constant):
    """Each pair pays the constant once: half of it goes to either potential."""
    C = reference.cost_matrix(X)
    options = {"metric": "precomputed", "normalize": False}
    plain, raised = solved(C, eps, **options), solved(C + constant, eps, **options)
    assert_same(plain.weights, raised.weights)
    if has_unique_potentials(plain):
        np.testing.assert_allclose(
            raised.potentials - 0.5 * constant, plain.potentials, atol=SAME * max(eps, 1.0)
        )


def has_unique_potentials(graph):
    """Unless a component of the graph is bipartite, or nearly so in its few points."""
    edges = (graph.weights.toarray() > 0).astype(float)
    return np.linalg.eigvalsh(np.diag(edges.sum(axis=1)) + edges)[0] > 0.01


@few
@given(clouds(), st.floats(0.05, 20.0), st.floats(1.01, 10.0), loops)
def test_larger_eps_spreads_the_mass(X, eps, factor, self_loops):
    """The sum of squares never grows with eps, the transport cost never falls."""
    C = reference.cost_matrix(X)
    small, large = (
        solved(X, e, self_loops=self_loops).weights.toarray() for e in (eps, factor * eps)
    )
    assert (large**2).sum() <= (small**2).sum() * (1 + 10 * TOL)
    assert (C * large).sum() >= (C * small).sum() * (1 - 10 * TOL) - 10 * TOL


@few
@given(clouds(), epsilons, loops)
def test_scaling_of_masses(X, eps, self_loops):
    """Masses times t and eps over t: the plan times t, the potentials unchanged."""
    t, mass = 7.0, np.linspace(0.7, 1.3, len(X))
    plain = solved(X, eps, self_loops=self_loops, mass=mass)
    more = solved(X, eps / t, self_loops=self_loops, mass=t * mass)
    assert_same(t * plain.weights, more.weights, 10 * SAME)


@few
@given(clouds(), epsilons)
def test_candidates_that_suffice(X, eps):
    """The pairs of the solution alone, and some more: the same plan."""
    C = reference.cost_matrix(X)
    full = solved(X, eps)
    u = full.potentials
    allowed = u[:, None] + u + 0.1 * eps > C
    np.fill_diagonal(allowed, False)
    i, j = np.nonzero(allowed)
    candidates = sp.csr_matrix((C[i, j], (i, j)), shape=C.shape)
    graph = quadratic_ot_graph(candidates, eps, metric="precomputed", normalize=False, tol=TOL)
    assert graph.certificate.status == "exact_on_candidates"
    assert_same(full.weights, graph.weights)


@few
@given(clouds(), epsilons, st.sampled_from(["euclidean", "manhattan"]))
def test_extension_of_a_training_point_is_its_row(X, eps, metric):
    """With self-loops the row equation is the one that the point solved in the graph."""
    graph = solved(X, eps, self_loops=True, metric=metric)
    assert_same(graph.extend(X), graph.weights)


@few
@given(clouds(), epsilons)
def test_extension_with_masses(X, eps):
    mass = np.linspace(0.5, 1.5, len(X))
    graph = solved(X, eps, self_loops=True, mass=mass)
    assert_same(graph.extend(X, mass=mass), graph.weights)


@few
@given(clouds(), epsilons, loops)
def test_copies_are_treated_alike(X, eps, self_loops):
    X = np.vstack([X, X[:3]])
    W = solved(X, eps, self_loops=self_loops).weights.toarray()
    n = len(X)
    for twin, original in zip(range(n - 3, n), range(3), strict=True):
        others = np.setdiff1d(np.arange(n), [twin, original])
        np.testing.assert_allclose(W[twin, others], W[original, others], atol=SAME)
