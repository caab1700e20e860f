"""Bad input and faults: tests carry the numbers of the rows in docs/reliability.md."""

from __future__ import annotations

import gc
import hashlib
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import Parallel, delayed

import otgraph
import problems
import reference
from otgraph import eps_path, quadratic_ot_graph
from otgraph._kernels import restricted as kernels
from otgraph.costs import base, points
from otgraph.exceptions import (
    ConvergenceWarning,
    DisconnectedWarning,
    InfeasibleError,
    MemoryLimitError,
)

SOURCE = Path(otgraph.__file__).parents[1]


@pytest.fixture
def X(rng):
    return rng.normal(size=(120, 3))


def assert_same(graph, other, tol=1e-5):
    assert graph.certificate.status == "exact"
    assert abs(graph.weights - other.weights).max() <= tol


def digest(graph):
    W = graph.weights
    arrays = (W.indptr, W.indices, W.data, graph.potentials)
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


# 1, 2: not finite ----------------------------------------------------------------------------


def test_fault_01_nan(X):
    X[[7, 9], 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN: 2 value\(s\).*first in row 7"):
        quadratic_ot_graph(X, 1.0)
    with pytest.raises(ValueError, match=r"NaN: 2 value\(s\).*first in row 7"):
        quadratic_ot_graph(sp.csr_matrix(X), 1.0)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fault_02_infinity(X, value, dtype):
    X[5, 0] = value
    with pytest.raises(ValueError, match=r"infinity: 1 value\(s\).*row 5"):
        quadratic_ot_graph(X.astype(dtype), 1.0)


def test_fault_02_beyond_float32(X):
    """1e39 is no float32, but no cast to float32 comes before the scaling."""
    assert_same(quadratic_ot_graph(1e39 * X, 1.0), quadratic_ot_graph(X, 1.0))


# 3, 4, 5: scales and offsets -----------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("scale", [1e154, 1e200, 1e300, 1e-160, 1e-200, 1e-300])
def test_fault_03_04_scale(X, scale, p):
    plain, scaled = (quadratic_ot_graph(s * X, 0.5, power=p, tol=1e-9) for s in (1.0, scale))
    assert_same(scaled, plain, 1e-7)


@pytest.mark.parametrize("scale", [1e154, 1e-160])
@pytest.mark.parametrize("kind", ["sparse", "manhattan", "cosine"])
def test_fault_03_04_scale_of_other_costs(X, scale, kind):
    points = {"sparse": sp.csr_matrix}.get(kind, np.asarray)
    options = {"metric": "euclidean" if kind == "sparse" else kind, "power": 1, "tol": 1e-9}
    plain, scaled = (quadratic_ot_graph(points(s * X), 0.5, **options) for s in (1.0, scale))
    assert_same(scaled, plain, 1e-7)


def test_fault_03_float32_1e20(X):
    X = X.astype(np.float32)
    assert_same(quadratic_ot_graph(np.float32(1e20) * X, 0.5), quadratic_ot_graph(X, 0.5))


def test_fault_03_overflow_without_normalizing(X):
    with pytest.raises(ValueError, match="beyond the range of float64"):
        quadratic_ot_graph(1e200 * X, 0.5, normalize=False)


@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_fault_05_offset(rng, offset):
    X = np.round(rng.normal(size=(300, 3)), 3)
    moved = X + offset
    graph = quadratic_ot_graph(moved, 0.5, tol=1e-9)
    # Digits that the sum itself lost are not ours to find.
    assert_same(graph, quadratic_ot_graph(moved - offset, 0.5, tol=1e-9), 1e-7)


# 6, 7, 8, 9: duplicates and constants --------------------------------------------------------


def test_fault_06_pairs_of_duplicates(X):
    """Each is the other's neighbor at no cost; nobody is its own."""
    X[60:] = X[:60]
    graph = quadratic_ot_graph(X, 1.0)
    assert np.all(graph.weights.diagonal() == 0)
    assert np.all(graph.weights[np.arange(60), np.arange(60) + 60] > 0)
    reference.assert_optimal(graph, reference.cost_matrix(X), 1.0)


def test_fault_06_sparse_duplicates(X):
    X[60:] = X[:60]
    X[np.abs(X) < 0.5] = 0.0
    sparse, dense = quadratic_ot_graph(sp.csr_matrix(X), 1.0), quadratic_ot_graph(X, 1.0)
    assert_same(sparse, dense)


def test_fault_07_more_duplicates_than_candidates(X):
    X[:80] = 3.0
    graph = quadratic_ot_graph(X, 100.0, n_candidates=5)
    assert graph.n_connected == 1
    reference.assert_optimal(graph, reference.cost_matrix(X), 100.0)
    with pytest.warns(DisconnectedWarning, match=r"80 points fall into 1 group\(s\) of exact"):
        graph = quadratic_ot_graph(X, 0.01, n_candidates=5)
    reference.assert_optimal(graph, reference.cost_matrix(X), 0.01)


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("value", [0.0, 3.7, 1e200])
def test_fault_08_all_rows_identical(self_loops, value):
    with pytest.warns(UserWarning, match="identical"):
        graph = quadratic_ot_graph(np.full((30, 4), value), 1.0, self_loops=self_loops)
    expected = np.full((30, 30), 1 / 30) if self_loops else (1 - np.eye(30)) / 29
    np.testing.assert_allclose(graph.weights.toarray(), expected, atol=1e-5)
    assert graph.certificate.status == "exact"


def test_fault_09_constant_feature(X):
    padded = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))])
    assert_same(quadratic_ot_graph(padded, 1.0), quadratic_ot_graph(X, 1.0))


# 10, 11, 12: too little ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "match"),
    [((0, 3), "0 sample"), ((5, 0), "0 feature"), ((1, 3), "1 sample")],
)
def test_fault_10_11_too_little(shape, match):
    with pytest.raises(ValueError, match=match):
        quadratic_ot_graph(np.zeros(shape), 1.0)


@pytest.mark.parametrize(
    ("points", "match"),
    [(5.0, "2D array"), (np.ones(5), "2D array"), (np.ones((2, 2, 2)), "dim 3")],
)
def test_fault_10_wrong_dimensions(points, match):
    with pytest.raises(ValueError, match=match):
        quadratic_ot_graph(points, 1.0)


def test_fault_12_two_and_three_points():
    two = quadratic_ot_graph([[0.0], [1.0]], 0.1).weights.toarray()
    np.testing.assert_allclose(two, [[0, 1], [1, 0]], atol=1e-5)
    three = quadratic_ot_graph([[0.0], [1.0], [5.0]], 0.1).weights.toarray()
    np.testing.assert_allclose(three, (1 - np.eye(3)) / 2, atol=1e-5)


# 13, 14: infeasible and singular -------------------------------------------------------------


def test_fault_13_infeasible_candidates_are_named():
    star = np.zeros((6, 6))
    star[0, 1:] = star[1:, 0] = 1.0
    with pytest.raises(InfeasibleError, match=r"points 1, 2, 3, 4, 5\).*more candidates"):
        quadratic_ot_graph(sp.csr_matrix(star), 1.0, metric="precomputed")
    lonely = np.zeros((4, 4))
    lonely[:3, :3] = 1.0 - np.eye(3)
    with pytest.raises(InfeasibleError, match=r"points 3\)"):
        quadratic_ot_graph(sp.csr_matrix(lonely), 1.0, metric="precomputed")
    with pytest.raises(InfeasibleError, match="points"):
        quadratic_ot_graph(sp.csr_matrix((5, 5)), 1.0, metric="precomputed")


def test_fault_13_knn_candidates_that_are_infeasible(rng):
    """User-given neighbor graphs with hubs are often infeasible; large ones too must end."""
    X = rng.normal(size=(400, 30))
    C = reference.cost_matrix(X)
    nearest = np.argsort(C, axis=1)[:, 1:2]  # one neighbor each: stars everywhere
    i = np.repeat(np.arange(400), 1)
    matrix = sp.csr_matrix((C[i, nearest.ravel()], (i, nearest.ravel())), shape=C.shape)
    matrix = matrix.maximum(matrix.T)
    with pytest.raises(InfeasibleError, match="points"):
        quadratic_ot_graph(matrix, 1.0, metric="precomputed")


@pytest.mark.parametrize("k", [1, 2])
def test_fault_13_too_few_first_candidates_grow(X, k):
    assert_same(quadratic_ot_graph(X, 1.0, n_candidates=k), quadratic_ot_graph(X, 1.0))


def test_fault_14_bipartite_component():
    """u + t on one side, u - t on the other: the same weights, found from anywhere."""
    X = np.vstack([np.column_stack([10.0 * np.arange(20), np.full(20, y)]) for y in (0.0, 1.0)])
    side = np.repeat([1.0, -1.0], 20)
    for t in (0.0, 3.0, -50.0):
        graph = quadratic_ot_graph(X, 1e-2, normalize=False, u0=0.5 + t * side)
        assert graph.certificate.status == "exact"
        np.testing.assert_allclose(graph.weights[:20, 20:].toarray(), np.eye(20), atol=1e-5)


# 16, 17: eps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "error"),
    [
        (0.0, ValueError),
        (-1.0, ValueError),
        (np.nan, ValueError),
        (np.inf, ValueError),
        ("1", TypeError),
        (True, TypeError),
        (1j, TypeError),
        ([1.0], TypeError),
        (np.array([1.0]), TypeError),
    ],
)
def test_fault_16_eps(X, eps, error):
    with pytest.raises(error, match="`eps` must be a positive"):
        quadratic_ot_graph(X, eps)


@pytest.mark.parametrize("eps", [1, np.float32(1.0), np.int64(1), np.float64(1.0)])
def test_fault_16_eps_of_other_types(X, eps):
    assert (quadratic_ot_graph(X, eps).weights != quadratic_ot_graph(X, 1.0).weights).nnz == 0


def test_fault_17_tiny_eps(X):
    graph = quadratic_ot_graph(X, 1e-7)
    assert graph.certificate.status == "exact"
    assert graph.mean_degree < 2


def test_fault_17_huge_eps_is_refused_before_memory_is_taken(rng, monkeypatch):
    X = rng.normal(size=(3000, 3))
    monkeypatch.setattr(base, "available_bytes", lambda: 100_000_000)
    quadratic_ot_graph(X, 0.1)  # fits
    taken = []
    monkeypatch.setattr(points.EuclideanCost, "screen", lambda *a, **k: taken.append(a))
    with pytest.raises(MemoryLimitError, match=r"(GB|MB).*may be used.*Lower `eps`") as caught:
        quadratic_ot_graph(X, 1e6)
    assert not taken
    assert isinstance(caught.value, MemoryError)
    with pytest.raises(MemoryLimitError):
        eps_path(X, [0.1, 1e6])


# 18, 19, 20: geometry ------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"eps": 1.0}, {"eps": 0.1}])
def test_fault_18_outlier(rng, options):
    X = rng.normal(size=(500, 3))
    X[3] = [1e6, -1e6, 1e6]
    graph = quadratic_ot_graph(X, **options)
    assert graph.certificate.status == "exact"
    assert np.all(np.isfinite(graph.potentials))
    assert graph.weights[3].sum() == pytest.approx(1.0, abs=1e-5)


def test_fault_18_outlier_and_mean_degree(rng):
    """Where rounding alone exceeds the tolerance, the result is close and says how close.

    The costs of the outlier are n/2 = 250 times the mean cost, and so is its potential. The eps
    of ten neighbors is 1e-10. The rounding of the potential, divided by eps, is 2e-4.
    """
    X = rng.normal(size=(500, 3))
    X[3] = 1e6
    with pytest.warns(ConvergenceWarning, match="off by up to"):
        graph = quadratic_ot_graph(X, mean_degree=10)
    assert graph.certificate.status == "not_converged"
    assert 1e-6 < graph.certificate.marginal_error < 1e-2
    assert graph.mean_degree == pytest.approx(10, rel=0.05)
    assert np.all(np.isfinite(graph.potentials))


def test_fault_19_disconnected(rng):
    X = rng.normal(size=(200, 3))
    X[:80, 0] += 1e6
    graph = quadratic_ot_graph(X, 1.0)
    assert graph.certificate.status == "exact"
    assert graph.n_connected == 2
    np.testing.assert_array_equal(graph.component_labels, np.repeat([0, 1], [80, 120]))


@pytest.mark.parametrize("ratio", [1e3, 1e6])
def test_fault_20_density_ratio(rng, ratio):
    X = np.vstack([rng.normal(size=(150, 2)) / ratio, rng.normal(size=(150, 2))])
    graph = quadratic_ot_graph(X, 0.5)
    reference.assert_optimal(graph, reference.cost_matrix(X), 0.5)


def test_fault_20_not_converged_is_said_and_usable(X):
    with pytest.warns(ConvergenceWarning, match="row sums are off"):
        graph = quadratic_ot_graph(X, 1e-3, max_iter=2)
    assert graph.certificate.status == "not_converged"
    assert graph.certificate.marginal_error > 1e-6
    again = quadratic_ot_graph(X, 1e-3, u0=graph.potentials)
    assert again.certificate.status == "exact"


# 21, 22: precomputed costs and malformed matrices --------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
def test_fault_21_precomputed_costs(rng, make):
    C = reference.cost_matrix(rng.normal(size=(20, 2)))
    for wrong, match in (
        (C[:10], "must be a square cost matrix"),
        (np.triu(C), "must be symmetric"),
        (-C, "must hold costs >= 0"),
        (C + np.tril(np.full_like(C, 1e-3), -1), "must be symmetric"),
    ):
        with pytest.raises(ValueError, match=match):
            quadratic_ot_graph(make(wrong), 1.0, metric="precomputed")


def test_fault_21_diagonal_of_a_cost(rng):
    """What a point costs itself is asked of self-loops only, where it is zero."""
    C = reference.cost_matrix(rng.normal(size=(20, 2)))
    plain = quadratic_ot_graph(C, 1.0, metric="precomputed")
    with_diagonal = quadratic_ot_graph(C + np.eye(20), 1.0, metric="precomputed")
    assert (plain.weights != with_diagonal.weights).nnz == 0


def test_fault_21_rounding_asymmetry_is_forgiven(rng):
    C = reference.cost_matrix(rng.normal(size=(20, 2)))
    noisy = C * (1 + 1e-13 * rng.normal(size=C.shape))
    graph = quadratic_ot_graph(noisy, 1.0, metric="precomputed")
    assert (graph.weights != graph.weights.T).nnz == 0


def _out_of_range(A):
    A.indices[3] = 99


def _negative_index(A):
    A.indices[3] = -1


def _falling_indptr(A):
    A.indptr[5] = A.indptr[6] + 1


def _indptr_past_the_end(A):
    A.indptr[-1] += 4


def _short_data(A):
    A.data = A.data[:-3]


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_matrix", "csc_array"])
@pytest.mark.parametrize(
    "damage", [_out_of_range, _negative_index, _falling_indptr, _indptr_past_the_end, _short_data]
)
@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_fault_22_malformed(rng, damage, kind, metric):
    A = getattr(sp, kind)(reference.cost_matrix(rng.normal(size=(20, 2))))
    damage(A)
    with pytest.raises(ValueError, match="well-formed"):
        quadratic_ot_graph(A, 1.0, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_fault_22_unsorted_and_repeated_entries(rng, metric):
    """Made canonical on a copy: the caller's matrix keeps its order."""
    C = sp.csr_matrix(reference.cost_matrix(rng.normal(size=(20, 2))))
    data, indices, indptr = [], [], [0]
    for i in range(20):
        row = C[i]
        order = rng.permutation(row.nnz)
        # Every entry in two halves, in any order.
        data += list(np.repeat(0.5 * row.data[order], 2))
        indices += list(np.repeat(row.indices[order], 2))
        indptr.append(len(data))
    messy = sp.csr_matrix((data, indices, indptr), shape=C.shape)
    before = messy.indices.copy()
    graph = quadratic_ot_graph(messy, 1.0, metric=metric)
    np.testing.assert_array_equal(messy.indices, before)
    assert abs(graph.weights - quadratic_ot_graph(C, 1.0, metric=metric).weights).max() <= 1e-6


# 23, 24, 25: types and layouts ---------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        lambda X: X.astype(np.int16),
        lambda X: X.astype(np.int64),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(np.float32),
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.astype(">f8"),
        lambda X: X.tolist(),
        np.asfortranarray,
        lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        lambda X: X[::-1][::-1],
    ],
)
def test_fault_23_24_whatever_holds_the_numbers(rng, kind):
    X = rng.integers(-50, 50, size=(60, 3)).astype(float)  # exact in every type
    expected = quadratic_ot_graph(X, 1.0)
    assert (quadratic_ot_graph(kind(X), 1.0).weights != expected.weights).nnz == 0


def test_fault_23_booleans(rng):
    X = rng.uniform(size=(40, 6)) < 0.5
    expected = quadratic_ot_graph(X.astype(float), 5.0)
    assert (quadratic_ot_graph(X, 5.0).weights != expected.weights).nnz == 0


@pytest.mark.parametrize("points", [np.ones((5, 2)) * 1j, np.full((5, 2), "a"), [["a", "b"]] * 4])
def test_fault_23_not_numbers(points):
    with pytest.raises(ValueError, match=r"`X` must hold (points|numbers)"):
        quadratic_ot_graph(points, 1.0)


def test_fault_24_input_is_left_alone(rng, tmp_path):
    X = rng.normal(size=(80, 3))
    before = X.copy()
    expected = quadratic_ot_graph(X, 1.0)
    np.save(tmp_path / "X.npy", X)
    X.flags.writeable = False
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r+")
    for again in (X, mapped):
        assert (quadratic_ot_graph(again, 1.0).weights != expected.weights).nnz == 0
        np.testing.assert_array_equal(again, before)


@pytest.mark.parametrize("metric", ["precomputed", "manhattan", "cosine", "euclidean"])
def test_fault_24_read_only_everything(rng, metric):
    C = reference.cost_matrix(rng.normal(size=(40, 2)))
    mass, u0 = rng.uniform(0.8, 1.2, size=40), np.full(40, 0.1)
    before = C.copy(), mass.copy(), u0.copy()
    for array in (C, mass, u0):
        array.flags.writeable = False
    graph = quadratic_ot_graph(C, 1.0, metric=metric, mass=mass, u0=u0)
    assert graph.certificate.status == "exact"
    for array, copy in zip((C, mass, u0), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_fault_24_result_is_not_a_view_of_the_input(rng):
    mass, u0 = np.ones(30), np.full(30, 0.1)
    graph = quadratic_ot_graph(rng.normal(size=(30, 2)), 1.0, mass=mass, u0=u0)
    assert not np.shares_memory(graph.potentials, u0)
    assert not np.shares_memory(graph.mass, mass)


CONSTRUCTIONS = {
    "quadratic": lambda X: quadratic_ot_graph(X, 1.0),
    "entropic": lambda X: otgraph.entropic_ot_graph(X, 1.0),
    "gaussian": lambda X: otgraph.gaussian_graph(X, 1.0),
    "knn": lambda X: otgraph.knn_gaussian_graph(X, 5, 1.0),
    "magic": lambda X: otgraph.magic_graph(X, 3),
    "magic_pca": lambda X: otgraph.magic_graph(X, 3, n_pca=2),
}


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "frame", "csr", "list"])
@pytest.mark.parametrize("build", CONSTRUCTIONS.values(), ids=CONSTRUCTIONS)
def test_fault_24_changing_the_points_later_does_not_change_the_graph(rng, build, kind):
    X = np.abs(np.round(rng.normal(size=(40, 3)) * 100)) + 1.0
    new = X[:5].copy()
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X)
    elif kind == "csr":
        X = sp.csr_matrix(X)
    elif kind == "list":
        X = X.tolist()
    else:
        X = X.astype(kind)
    graph = build(X)
    before = graph.extend(new)
    if kind == "list":
        X[3][0] = 1e3
    elif kind == "frame":
        X.loc[:, 0] *= 3
    else:
        X *= 3
    assert (graph.extend(new) != before).nnz == 0
    if kind == "float32":
        assert graph.points.dtype == np.float32


def test_fault_24_data_frame(rng):
    pandas = pytest.importorskip("pandas")
    X = rng.normal(size=(40, 3))
    frame = pandas.DataFrame(X, columns=list("abc"))
    assert (quadratic_ot_graph(frame, 1.0).weights != quadratic_ot_graph(X, 1.0).weights).nnz == 0


@pytest.mark.parametrize(
    "kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_array, sp.lil_matrix]
)
def test_fault_25_sparse_points(rng, kind):
    X = rng.normal(size=(80, 6))
    X[np.abs(X) < 0.7] = 0.0
    sparse = kind(X)
    graph = quadratic_ot_graph(sparse, 1.0)
    assert_same(graph, quadratic_ot_graph(X, 1.0))
    np.testing.assert_array_equal(sparse.toarray(), X)


def test_fault_25_wide_indices(rng):
    X = sp.random_array((60, 40), density=0.3, random_state=rng, format="csr")
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    a, b = quadratic_ot_graph(X, 1.0), quadratic_ot_graph(wide, 1.0)
    assert (a.weights != b.weights).nnz == 0


def test_fault_25_wide_sparse_points_stay_sparse(rng):
    """Densified, these points alone would have 16 GB."""
    X = sp.random_array((2000, 1_000_000), density=2e-5, random_state=rng, format="csr")
    X.data[:] = 1.0
    graph = quadratic_ot_graph(X, 1.0)
    assert graph.certificate.status == "exact"


# 27: index types -----------------------------------------------------------------------------


@pytest.mark.parametrize("self_loops", [False, True])
def test_fault_27_small_indices(X, self_loops):
    for graph in (
        quadratic_ot_graph(X, 1.0, self_loops=self_loops),
        quadratic_ot_graph(X, mean_degree=5, self_loops=self_loops),
        eps_path(X, [1.0], self_loops=self_loops)[0],
    ):
        assert graph.weights.indices.dtype == np.int32
        assert graph.weights.indptr.dtype == np.int32


# 28, 29, 30: threads and processes -----------------------------------------------------------


def test_fault_28_four_threads(rng):
    clouds = [problems.random(rng, 300) for _ in range(8)]
    expected = [digest(problems.graph_with(problems.CELLS, X, 0.5, n_jobs=1)) for X in clouds]
    with ThreadPoolExecutor(4) as pool:
        built = pool.map(partial(problems.graph_with, problems.CELLS, eps=0.5), clouds)
        found = [digest(graph) for graph in built]
    assert found == expected


def test_fault_28_no_thread_stays_behind(rng):
    X = problems.random(rng, 6000)  # enough rows for threads to share
    before = set(threading.enumerate())
    graph = quadratic_ot_graph(X, 1.0, n_jobs=2)
    gc.collect()  # a pool ends with its last reference; the graph holds none
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(timeout=10.0)
    assert not [thread for thread in started if thread.is_alive()]
    assert graph.n == 6000


def test_fault_29_number_of_threads(rng):
    build = partial(problems.graph_with, problems.CELLS, problems.random(rng, 900), 0.5)
    assert len({digest(build(n_jobs=n)) for n in (1, 2, 5, None)}) == 1


def test_fault_30_other_processes(X):
    """Processes that joblib spawns compute the same; forks are documented, not promised."""
    expected = quadratic_ot_graph(X, 0.5)
    found = Parallel(n_jobs=2, backend="loky")(delayed(quadratic_ot_graph)(X, 0.5) for _ in "ab")
    for graph in found:
        assert digest(graph) == digest(expected)


# 31: nowhere to write ------------------------------------------------------------------------


def test_fault_31_no_cache_directory(tmp_path):
    """Neither the package nor the home directory can hold compiled kernels: works all the same.

    Files stand where directories would have to be made, which stops even the superuser.
    """
    package = tmp_path / "src" / "otgraph"
    shutil.copytree(SOURCE / "otgraph", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("")
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    code = """
import logging
logging.basicConfig(level="DEBUG", format="%(name)s: %(message)s")
logging.getLogger("numba").setLevel("WARNING")
import numpy as np
import otgraph
from otgraph import quadratic_ot_graph  # decorates every kernel; one is compiled below
from otgraph._kernels.restricted import solve_row
print(otgraph.__file__, solve_row(np.array([0.0, 1.0]), 2.0))
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={
            "PYTHONPATH": str(tmp_path / "src"), "PATH": "",
            "HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere / "cache"),
            "LOCALAPPDATA": str(nowhere), "USERPROFILE": str(nowhere),
        },
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(package / "__init__.py"), "1.5"]
    assert "kernel cache is off" in done.stderr


# 32: interruptions ---------------------------------------------------------------------------


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kernel", ["evaluate", "lift_rows", "select_plan"])
def test_fault_32_interruption(X, monkeypatch, error, n_jobs, kernel):
    """It comes through, the input is as it was, and the next call is as if nothing had been."""
    expected = digest(quadratic_ot_graph(X, 0.5))
    before = X.copy()

    def interrupted(*arguments):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(kernels, kernel, interrupted)
        with pytest.raises(error):
            quadratic_ot_graph(X, 0.5, n_jobs=n_jobs)
    np.testing.assert_array_equal(X, before)
    assert digest(quadratic_ot_graph(X, 0.5, n_jobs=n_jobs)) == expected


def test_fault_32_interruption_of_a_long_call():
    """Ctrl-C ends a process within seconds: compiled code runs in short pieces."""
    if sys.platform == "win32":
        pytest.skip("no SIGINT for a child there")
    code = """
import numpy as np
from otgraph import quadratic_ot_graph
X = np.random.default_rng(0).normal(size=(60_000, 200))
print("go", flush=True)
try:
    while True:  # a fast machine is interrupted in a later call
        quadratic_ot_graph(X, 1.0)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline().strip() == "go"
        time.sleep(3.0)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert out.strip() == "interrupted", err
