"""What every construction owes its callers when the input is odd or wrong."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from otgraph.graphs import (
    entropic_ot_graph,
    gaussian_graph,
    knn_gaussian_graph,
    magic_graph,
)

BUILDERS = {
    "entropic": lambda X, **options: entropic_ot_graph(X, 0.5, **options),
    "gaussian": lambda X, **options: gaussian_graph(X, 0.5, **options),
    "knn": lambda X, **options: knn_gaussian_graph(X, 5, 0.5, **options),
    "magic": lambda X, **options: magic_graph(X, 5, **options),
}
WITH_EPS = {"entropic": entropic_ot_graph, "gaussian": gaussian_graph}
WITH_EPS["knn"] = lambda X, eps, **options: knn_gaussian_graph(X, 5, eps, **options)
WITH_K = {"knn": knn_gaussian_graph, "magic": magic_graph}


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.integers(-50, 50, size=(40, 3)).astype(float)  # exact in every type below


@pytest.fixture(params=BUILDERS)
def build(request):
    return BUILDERS[request.param]


def test_nan_is_counted_and_placed(build, X):
    X[[7, 9], 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: 2 value\(s\).*first in row 7"):
        build(X)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity(build, X, value):
    X[5, 0] = value
    with pytest.raises(ValueError, match=r"infinity: 1 value\(s\).*row 5"):
        build(X)


@pytest.mark.parametrize(
    ("points", "match"),
    [
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((5, 0)), "0 feature"),
        (np.zeros((1, 3)), "1 sample"),
        (np.ones(5), "1D array"),
    ],
)
def test_too_little(build, points, match):
    with pytest.raises(ValueError, match=match):
        build(points)


@pytest.mark.parametrize("points", [np.ones((5, 2)) * 1j, np.full((5, 2), "a")])
def test_not_numbers(build, points):
    with pytest.raises(ValueError, match=r"`X` must hold (points|numbers)"):
        build(points)


@pytest.mark.parametrize(
    "kind",
    [
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(np.int16),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
    ],
)
def test_same_graph_whatever_holds_the_numbers(build, X, kind):
    assert (build(kind(X)).weights != build(X).weights).nnz == 0


def test_read_only_and_mapped_input_is_left_alone(build, X, tmp_path):
    np.save(tmp_path / "X.npy", X)
    expected = build(X).weights
    digest = hashlib.sha256(X.tobytes()).digest()
    X.flags.writeable = False
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for points in (X, mapped):
        assert (build(points).weights != expected).nnz == 0
    assert hashlib.sha256(X.tobytes()).digest() == digest
    assert hashlib.sha256((tmp_path / "X.npy").read_bytes()[-X.nbytes :]).digest() == digest


def test_sparse_input_is_left_alone(build, X):
    csc = sp.csc_matrix(X)
    kept = csc.copy()
    build(csc)
    assert (csc != kept).nnz == 0


def test_malformed_sparse_input(build, X):
    points = sp.csr_matrix(X)
    points.indices[3] = 99
    with pytest.raises(ValueError, match="well-formed CSR matrix"):
        build(points)


def test_constant_feature(build, X):
    padded = np.column_stack([X, np.full(40, 7.0)])
    np.testing.assert_allclose(
        build(padded).weights.toarray(), build(X).weights.toarray(), rtol=1e-9
    )


def test_two_points(build):
    with np.errstate(all="raise"):
        if build in (BUILDERS["knn"], BUILDERS["magic"]):
            with pytest.warns(UserWarning, match="more than the 1 possible"):
                graph = build([[0.0], [1.0]])
        else:
            graph = build([[0.0], [1.0]])
    assert graph.degrees.tolist() == [1, 1]


class TestPrecomputed:
    @pytest.fixture
    def C(self, X):
        return cdist(X, X)

    def test_not_square(self, build, C):
        with pytest.raises(ValueError, match=r"square cost matrix.*\(40, 39\)"):
            build(C[:, :-1], metric="precomputed")

    def test_not_symmetric(self, build, C):
        C[3, 4] += 1.0
        with pytest.raises(ValueError, match=r"must be symmetric.*reaches 1"):
            build(C, metric="precomputed")

    def test_negative(self, build, C):
        C[3, 4] = C[4, 3] = -1.0
        with pytest.raises(ValueError, match="costs >= 0"):
            build(C, metric="precomputed")

    def test_sparse(self, build, C):
        with pytest.raises(TypeError, match=r"dense cost matrix.*toarray"):
            build(sp.csr_matrix(C), metric="precomputed")

    def test_last_digits_may_differ(self, build, C, rng):
        weights = build(
            C * (1 + 1e-13 * rng.standard_normal(C.shape)), metric="precomputed"
        ).weights
        assert (weights != weights.T).nnz == 0


@pytest.mark.parametrize("eps", [0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", WITH_EPS)
def test_eps_out_of_range(X, name, eps):
    with pytest.raises(ValueError, match="`eps` must be a positive, finite number, got"):
        WITH_EPS[name](X, eps)


@pytest.mark.parametrize("eps", ["1", True, [1.0]])
@pytest.mark.parametrize("name", WITH_EPS)
def test_eps_not_a_number(X, name, eps):
    with pytest.raises(TypeError, match="`eps` must be a positive number, got"):
        WITH_EPS[name](X, eps)


@pytest.mark.parametrize("name", WITH_K)
@pytest.mark.parametrize(
    ("k", "error"), [(0, ValueError), (-3, ValueError), (2.5, TypeError), ("5", TypeError)]
)
def test_bad_k(X, name, k, error):
    with pytest.raises(error, match="`n_neighbors` must be an integer"):
        WITH_K[name](X, k)


def test_bad_choices(build, X):
    with pytest.raises(ValueError, match=r"`metric` must be 'euclidean'.*got 'nonsense'"):
        build(X, metric="nonsense")
    with pytest.raises(ValueError, match="`n_jobs` must be"):
        build(X, n_jobs=0)


def test_bad_options(X):
    with pytest.raises(ValueError, match="`symmetrize` must be one of 'union', 'average'"):
        knn_gaussian_graph(X, symmetrize="both")
    with pytest.raises(ValueError, match="`on_failure` must be one of"):
        entropic_ot_graph(X, on_failure="ignore")
    with pytest.raises(ValueError, match="`power` must be a positive"):
        gaussian_graph(X, power=0)


def test_zero_rows_have_no_direction(build, X):
    X[4] = 0.0
    with pytest.raises(ValueError, match=r"row of zeros \(row 4\)"):
        build(X, metric="cosine")
