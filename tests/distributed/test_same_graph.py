"""The graph of a cluster is the graph of one process, bit for bit."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import otgraph

N = 600


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).normal(size=(N, 5))


def assert_same(there, here):
    W = there.to_scipy()
    for name in ("indptr", "indices", "data"):
        mine, other = getattr(W, name), getattr(here.weights, name)
        assert mine.dtype == other.dtype
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(there.potentials, here.potentials)
    np.testing.assert_array_equal(there.mass, here.mass)
    np.testing.assert_array_equal(there.degrees, here.degrees)
    assert there.certificate == here.certificate
    assert there.params == here.params


@pytest.mark.parametrize("n_blocks", [1, 2, 3])
@pytest.mark.parametrize("which", ["client", "one_worker"])
def test_blocks_and_workers(request, build, X, which, n_blocks):
    cluster = request.getfixturevalue(which)
    there = build(X, 0.5, client=cluster, block_rows=-(-N // n_blocks))
    assert there.n_blocks == n_blocks
    assert_same(there, otgraph.quadratic_ot_graph(X, 0.5))


OPTIONS = {
    "degree": {"mean_degree": 8},
    "loops": {"eps": 0.5, "self_loops": True},
    "cosine": {"eps": 0.5, "metric": "cosine", "power": 1},
    "power": {"eps": 0.5, "power": 1.5, "normalize": False},
    "any_metric": {"eps": 0.5, "metric": "manhattan"},
    "few_candidates": {"eps": 5.0, "n_candidates": 3},  # screens, also of single points
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_options(build, X, options):
    X = X[:300]
    assert_same(build(X, block_rows=70, **options), otgraph.quadratic_ot_graph(X, **options))


def test_masses_and_start(build, X, rng):
    mass = rng.uniform(0.5, 2.0, size=N)
    u0 = otgraph.quadratic_ot_graph(X, 0.4, mass=mass).potentials
    there = build(X, 0.5, mass=mass, u0=u0, block_rows=N)
    assert_same(there, otgraph.quadratic_ot_graph(X, 0.5, mass=mass, u0=u0))


@pytest.mark.parametrize(
    ("dim", "search"), [(12, "exact"), (12, "approximate"), (3, "exact")], ids=str
)
def test_cells_and_trees(build, rng, dim, search):
    X = rng.normal(size=(8200, dim)) / np.arange(1, dim + 1)
    options = {"eps": 0.05, "search": search}
    assert_same(build(X, block_rows=3000, **options), otgraph.quadratic_ot_graph(X, **options))


def test_progress(build, X, capsys):
    assert_same(build(X[:50], 0.5, progress=True), otgraph.quadratic_ot_graph(X[:50], 0.5))
    shown = capsys.readouterr().err
    for label in ("search", "screen", "solve"):
        assert label in shown


def test_one_block_per_row(build, X):
    assert_same(build(X[:9], 1.0, block_rows=1), otgraph.quadratic_ot_graph(X[:9], 1.0))


def test_more_rows_to_a_block_than_there_are(build, X):
    there = build(X[:9], 1.0, block_rows=1000)
    assert there.n_blocks == 1
    assert_same(there, otgraph.quadratic_ot_graph(X[:9], 1.0))


def test_vectors_in_several_pieces(build, X, monkeypatch):
    monkeypatch.setattr("otgraph.distributed._cluster.PIECE_ENTRIES", 128)
    assert_same(build(X, 0.5, block_rows=250), otgraph.quadratic_ot_graph(X, 0.5))


@pytest.fixture(scope="module")
def here(X):
    return otgraph.quadratic_ot_graph(X.astype(np.float32), 0.5)


def test_points_from_dask_array(build, X, here):
    chunks = da.from_array(X.astype(np.float32), chunks=(170, 2))
    assert_same(build(chunks, 0.5), here)


def test_points_from_npy(build, X, here, tmp_path):
    np.save(tmp_path / "points.npy", X.astype(np.float32))
    assert_same(build(tmp_path / "points.npy", 0.5), here)


def test_points_from_zarr(build, X, here, tmp_path):
    zarr.save_array(tmp_path / "points.zarr", X.astype(np.float32))
    assert_same(build(str(tmp_path / "points.zarr"), 0.5), here)


def test_points_from_array_in_pieces(build, X, here, monkeypatch):
    monkeypatch.setattr("otgraph.distributed._cluster.PIECE_ENTRIES", 500)
    assert_same(build(X.astype(np.float32), 0.5), here)


def test_points_from_lists(build, X):
    points = X[:50].tolist()
    assert_same(build(points, 0.5), otgraph.quadratic_ot_graph(points, 0.5))


def test_points_that_are_sparse(build, X):
    points = sp.csr_matrix(np.where(X > -0.5, X, 0.0))
    assert_same(build(points, 0.5), otgraph.quadratic_ot_graph(points, 0.5))
