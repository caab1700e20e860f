"""Hostile input for what is built on the constructions: refused by name, or the same result."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph

# What graphs of few, far or identical points are told about is tested elsewhere.
pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::otgraph.exceptions.ConvergenceWarning"
)


def quadratic(X, **options):
    return otgraph.quadratic_ot_graph(X, **options).weights


CALLS = {
    "soft marginals": lambda X, **more: quadratic(X, eps=1.0, outlier_cost=2.0, **more),
    "chosen outlier cost": lambda X, **more: quadratic(X, outlier_cost="auto", **more),
    "copies as one": lambda X, **more: quadratic(X, eps=1.0, collapse=True, **more),
    "several scales": lambda X, **more: otgraph.multiscale_graph(X, [0.3, 1.0], **more).weights,
    "to itself": lambda X, **more: otgraph.transport_graph(X, X, 1.0, **more).weights,
    "to one point": lambda X, **more: otgraph.transport_graph(X, X[:1], 1.0, **more).weights,
    "from one point": lambda X, **more: otgraph.transport_graph(X[:1], X, 1.0, **more).weights,
    "gaussian": lambda X, **more: otgraph.gaussian_graph(X, 0.2, max_error=1e-3, **more).weights,
    "entropic": lambda X, **more: otgraph.entropic_ot_graph(X, 0.1, max_error=1e-3, **more).weights,
    "dimension": lambda X, **more: sp.csr_array([[float(otgraph.intrinsic_dimension(X, **more))]]),
}


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 4))


def bits(weights):
    weights = sp.csr_array(weights)
    return weights.indptr.tolist(), weights.indices.tolist(), weights.data.tobytes()


def with_value(X, value):
    X = X.copy()
    X[7, 1] = value
    return X


REFUSED = {
    "NaN": lambda X: with_value(X, np.nan),
    "infinity": lambda X: with_value(X, -np.inf),
    "a mask": lambda X: np.ma.masked_greater(X, 1.0),
    "complex numbers": lambda X: X + 1j,
    "text": lambda X: X.astype(str),
    "one dimension": lambda X: X[:, 0],
    "three dimensions": lambda X: X[None],
    "no points": lambda X: X[:0],
    "no features": lambda X: X[:, :0],
    "dates": lambda X: X.astype("timedelta64[s]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_points_is_refused_by_name(call, X, what):
    with pytest.raises((ValueError, TypeError), match=r"`[XY]`"):
        call(REFUSED[what](X))


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


SAME = {
    "Fortran order": np.asfortranarray,
    "read only": read_only,
    "every other column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "big endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "long double": lambda X: X.astype(np.longdouble),
    "huge": lambda X: np.ldexp(X, 500),
    "tiny": lambda X: np.ldexp(X, -500),
}


@pytest.mark.parametrize("what", SAME)
def test_other_containers_and_scales_give_the_same_bits(call, X, what):
    given = SAME[what](X)
    before = given.copy()
    assert bits(call(given)) == bits(call(X))
    np.testing.assert_array_equal(given, before)


HARD = {
    "duplicates": lambda X: np.repeat(X[:20], 3, axis=0),
    "a constant column": lambda X: np.column_stack([X, np.full(len(X), 7.0)]),
    "a point far away": lambda X: with_value(X, 1e6),
    "integers of one byte": lambda X: (20 * X).astype(np.int8),
    "half precision": lambda X: X.astype(np.float16),
    "beyond all squares": lambda X: X * 1e306,
    "below all squares": lambda X: X * 1e-300,
}


@pytest.mark.parametrize("what", HARD)
def test_hard_points_give_finite_weights_whatever_numpy_does_about_errors(call, X, what):
    with np.errstate(all="raise"):
        weights = sp.csr_array(call(HARD[what](X)))
    assert weights.nnz
    assert np.isfinite(weights.data).all()
    assert (weights.data > 0.0).all()


UNDERFLOWS = {
    "identical points": lambda X: quadratic(np.ones((30, 4)), mean_degree=5, outlier_cost="auto"),
    "a cloud that vanishes": lambda X: otgraph.transport_graph(X * 1e307, X, 1.0).weights,
    "a point that vanishes": lambda X: otgraph.transport_graph(X[:1], X * 1e-150, 1.0).weights,
    "small eps": lambda X: otgraph.entropic_ot_graph(sp.csr_array(X), 0.01, max_error=1e-3).weights,
}


@pytest.mark.parametrize("what", UNDERFLOWS)
def test_underflow_is_no_error(X, what):
    with np.errstate(all="raise"):
        assert UNDERFLOWS[what](X).nnz


def test_the_same_bits_for_any_number_of_threads(call, rng):
    X = rng.normal(size=(700, 4))
    assert bits(call(X, n_jobs=1)) == bits(call(X, n_jobs=2))


WRONG = {
    "outlier_cost": lambda X, value: quadratic(X, eps=1.0, outlier_cost=value),
    "max_error": lambda X, value: otgraph.gaussian_graph(X, 1.0, max_error=value),
    "eps": lambda X, value: otgraph.multiscale_graph(X, value),
    "mean_degree": lambda X, value: otgraph.multiscale_graph(X, mean_degree=value),
    "mass_x": lambda X, value: otgraph.transport_graph(X, X, 1.0, mass_x=value),
    "mass_y": lambda X, value: otgraph.transport_graph(X, X, 1.0, mass_y=value),
    "Y": lambda X, value: otgraph.transport_graph(X, value),
    "dim": lambda X, value: otgraph.quadratic_ot_graph(X).log_density(value),
    "strength": lambda X, value: otgraph.balanced_mass(["a", "b"], value),
    "shares": lambda X, value: otgraph.eps_path(X, [1.0, 2.0]).mean(value),
}
VALUES = {
    "text": "x",
    "an object": object(),
    "a list": [1.0, -1.0],
    "NaN": np.nan,
    "infinity": np.inf,
    "negative": -1e9,
    "complex": 1j,
    "nothing": [],
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("name", WRONG)
def test_values_that_are_none_are_refused_by_name(name, value, X):
    with pytest.raises((ValueError, TypeError), match=f"`{name}"):
        WRONG[name](X, VALUES[value])


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_density_of_points_whose_costs_have_no_number_is_refused(X, scale):
    graph = otgraph.quadratic_ot_graph(X * scale)
    with pytest.raises(ValueError, match="beyond the range of float64"):
        graph.log_density(4)


def test_shares_whose_sum_overflows(X):
    path = otgraph.eps_path(X, [1.0, 2.0])
    assert bits(path.mean([1e308, 1e308]).weights) == bits(path.mean().weights)
