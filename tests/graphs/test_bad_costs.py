"""Costs that are no numbers >= 0, and input that is no numbers: refused by every construction."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import otgraph
from otgraph.graphs import (
    entropic_ot_graph,
    gaussian_graph,
    knn_gaussian_graph,
    magic_graph,
    quadratic_ot_graph,
)

BUILDERS = {
    "quadratic": lambda X, **options: quadratic_ot_graph(X, 1.0, **options),
    "entropic": lambda X, **options: entropic_ot_graph(X, 1.0, **options),
    "gaussian": lambda X, **options: gaussian_graph(X, 1.0, **options),
    "knn": lambda X, **options: knn_gaussian_graph(X, 3, 1.0, **options),
    "magic": lambda X, **options: magic_graph(X, 3, **options),
}


@pytest.fixture(params=BUILDERS)
def build(request):
    return BUILDERS[request.param]


@pytest.fixture
def X(rng):
    return rng.normal(size=(30, 4))


# Costs ------------------------------------------------------------------------------------


def test_seuclidean_with_a_constant_column(build, X):
    X[:, 2] = 3.0
    with pytest.raises(ValueError, match=r"'seuclidean'.*column 2 with variance 0.*Drop"):
        build(X, metric="seuclidean")


def test_correlation_with_a_constant_row(build, X):
    X[5] = 2.0
    with pytest.raises(ValueError, match=r"row 0 and point 5 is nan.*no correlation.*drop"):
        build(X, metric="correlation")


def test_mahalanobis_with_a_singular_covariance(build, rng, X):
    with pytest.raises(ValueError, match=r"cannot invert: its rank is 4.*9 columns and 5 points"):
        build(rng.normal(size=(5, 9)), metric="mahalanobis")
    X[:, 3] = X[:, 0] - X[:, 1]
    with pytest.raises(ValueError, match="cannot invert: its rank is 3"):
        build(X, metric="mahalanobis")


def test_mahalanobis_in_one_dimension_is_the_scaled_distance(build, X):
    one = X[:, :1]
    found = build(one, metric="mahalanobis").weights
    wanted = build(one / one.std(ddof=1), metric="manhattan").weights
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-6, atol=1e-9)


def some_nan(x, y):
    return np.nan if abs(x[0] - y[0]) > 2.5 else abs(x[0] - y[0])


def negative(x, y):
    return float(x[0] * y[0])


def asymmetric(x, y):
    return abs(x[0] - y[0]) + max(x[1] - y[1], 0.0)


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (some_nan, r"row \d+ and point \d+ is nan.*another `metric`"),
        (negative, r"row \d+ and point \d+ is -.*another `metric`"),
        (asymmetric, r"`metric` must be symmetric.* points 0 and 1 .*one way.*the other"),
    ],
)
def test_functions_that_are_no_metric(build, X, function, match):
    with pytest.raises(ValueError, match=match):
        build(X, metric=function)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
@pytest.mark.parametrize("exponent", [-500, 500])
def test_huge_and_tiny_distances_give_the_same_graph(build, X, metric, exponent):
    scaled = build(X * 2.0**exponent, metric=metric)
    np.testing.assert_array_equal(scaled.weights.data, build(X, metric=metric).weights.data)


def test_new_points_without_a_correlation(build, X):
    graph = build(X, metric="correlation")
    new = X[:4].copy()
    new[2] = 1.0
    with pytest.raises(ValueError, match=r"`X_new` has a cost.* row 2 and point 0 is nan"):
        graph.extend(new)


def test_huge_sparse_points(build, X):
    points = sp.csr_matrix(np.where(X > 0.0, X, 0.0))
    scaled = build(points * 2.0**515)
    np.testing.assert_array_equal(scaled.weights.data, build(points).weights.data)


def test_costs_whose_squares_overflow(X):
    for scale in (1e80, 1e100, 1e140):
        with pytest.raises(ValueError, match=r"`X` has costs.*normalize=True"):
            quadratic_ot_graph(1e3 * X * scale, 1.0, normalize=False)


@pytest.mark.parametrize("options", [{"eps": 5e-324}, {"eps": 1e300}, {"eps": 1.0, "power": 1e-9}])
def test_numbers_without_an_inverse(X, options):
    with pytest.raises(ValueError, match=r"must be between"):
        quadratic_ot_graph(X, **options)


def test_a_walk_on_weights_near_the_smallest_number():
    graph = gaussian_graph([[0], [1], [27.65]], 1.0, normalize=False)
    np.testing.assert_array_equal(otgraph.denoise(graph, np.eye(3))[2], [0.0, 1.0, 0.0])


@pytest.mark.parametrize("eps", [1e-8, 1e8, 1e40])
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_warnings_of_numpy_do_not_reach_the_caller(rng, eps, scale):
    points = scale * rng.normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # convergence; numpy's are errors
        for normalize in (False, True):
            graph = quadratic_ot_graph(points, eps, normalize=normalize, max_iter=50)
            assert np.isfinite(graph.weights.data).all()


# Input ------------------------------------------------------------------------------------


def test_masked_values_are_missing(build, X):
    masked = np.ma.masked_array(X, mask=np.zeros_like(X, dtype=bool))
    assert build(masked).weights.nnz == build(X).weights.nnz
    masked[3, 1] = masked[7, 0] = np.ma.masked
    with pytest.raises(ValueError, match=r"`X` has 2 masked value\(s\), the first in row 3"):
        build(masked)


def test_masked_masses_are_missing(X):
    mass = np.ma.masked_array(np.ones(30), np.arange(30) == 4)
    for construct in (quadratic_ot_graph, entropic_ot_graph):
        with pytest.raises(ValueError, match=r"`mass` has 1 masked value.*row 4"):
            construct(X, 1.0, mass=mass)


@pytest.mark.parametrize(
    ("convert", "what"),
    [
        (lambda X: X.astype(str), "text"),
        (lambda X: X.astype(str).tolist(), "text"),
        (lambda X: X.astype(str).astype(object), "str '"),
        (lambda X: X.astype("S"), "bytes"),
        (lambda X: (1e6 * X).astype("datetime64[s]"), "dates"),
        (lambda X: (1e6 * X).astype("timedelta64[s]"), "time differences"),
        (lambda X: np.zeros(X.shape, dtype=[("value", float)]), "records"),
        (lambda X: pd.DataFrame(X).astype(str), "str"),
        (lambda X: pd.DataFrame((1e6 * X).astype("datetime64[s]")), "dates"),
    ],
)
def test_what_converts_to_numbers_but_is_none(build, X, convert, what):
    with pytest.raises(ValueError, match=f"`X` must hold numbers, got {what}"):
        build(convert(X))


def test_integers_beyond_float64(build):
    with pytest.raises(ValueError, match=r"`X` must hold points.*too large"):
        build([[10**400, 1], [2, 3], [4, 5], [6, 7]])


def test_columns_of_the_same_name(build, X):
    with pytest.raises(ValueError, match=r"`X` must have columns of different names.* 'a'"):
        build(pd.DataFrame(X, columns=list("abac")))


# Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", ["1", np.inf, np.nan, 1.5, True])
def test_a_number_of_threads_that_is_none(build, X, n_jobs):
    with pytest.raises(TypeError, match=r"`n_jobs` must be None, a positive or a negative integer"):
        build(X, n_jobs=n_jobs)


def test_any_number_of_threads(build, X):
    assert build(X, n_jobs=10**6).weights.nnz == build(X).weights.nnz


@pytest.mark.parametrize("wrong", ["abc", ["a"] * 30, [10**400] * 30, object()])
@pytest.mark.parametrize("name", ["mass", "u0"])
def test_vectors_that_are_none_are_named(X, name, wrong):
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must hold"):
        quadratic_ot_graph(X, 1.0, **{name: wrong})


def test_out_that_is_no_array(X):
    with pytest.raises(TypeError, match=r"`out` must be an array of shape \(30, 4\), got 5"):
        otgraph.denoise(quadratic_ot_graph(X, 1.0), X, out=5)


def test_labels_with_missing_values(X):
    labels = pd.array(["a", pd.NA, "b"] * 10, dtype="string")
    with pytest.raises(ValueError, match="`labels` hold NaN or missing values"):
        otgraph.spread_labels(quadratic_ot_graph(X, 1.0), labels)


# Files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["potentials", "weights"])
def test_save_does_not_write_what_could_not_be_loaded(X, tmp_path, what):
    graph = quadratic_ot_graph(X, 1.0)
    parts = {"potentials": graph.potentials.copy(), "weights": graph.weights.copy()}
    if what == "potentials":
        parts["potentials"][3] = np.nan
    else:
        parts["weights"].data[3] = np.nan
    path = tmp_path / "graph.otg"
    graph.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"cannot be saved.*{what}"):
        replace(graph, **parts).save(path)
    assert path.read_bytes() == before
