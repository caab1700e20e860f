"""Points of every kind give the same graph; what is not points is refused."""

from __future__ import annotations

from functools import partial

import dask.array as da
import dask.dataframe as dd
import fsspec
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import zarr

import otgraph
from otgraph.distributed._cluster import Cluster
from otgraph.distributed._files import open_points
from otgraph.exceptions import ClusterError


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(1).normal(size=(600, 5))


@pytest.fixture(scope="module")
def here(X):
    return otgraph.quadratic_ot_graph(X.astype(np.float32), 0.5)


def test_points_from_dask_array(assert_same, build, X, here):
    chunks = da.from_array(X.astype(np.float32), chunks=(170, 2))
    assert_same(build(chunks, 0.5), here)


def test_points_from_npy(assert_same, build, X, here, tmp_path):
    np.save(tmp_path / "points.npy", X.astype(np.float32))
    assert_same(build(tmp_path / "points.npy", 0.5), here)


def test_points_from_zarr(assert_same, build, X, here, tmp_path):
    zarr.save_array(tmp_path / "points.zarr", X.astype(np.float32))
    assert_same(build(str(tmp_path / "points.zarr"), 0.5), here)


@pytest.fixture(scope="module")
def frame(X):
    return pd.DataFrame(X.astype(np.float32), columns=list("abcde"))


def test_points_from_data_frame(assert_same, build, frame, here):
    assert_same(build(dd.from_pandas(frame, npartitions=4), 0.5), here)


def test_points_from_parquet(assert_same, build, frame, here, tmp_path):
    frame.to_parquet(tmp_path / "one.parquet")
    assert_same(build(tmp_path / "one.parquet", 0.5), here)
    folder = tmp_path / "many.parquet"
    folder.mkdir()
    for part, rows in enumerate((slice(0, 170), slice(170, 400), slice(400, None))):
        frame.iloc[rows].to_parquet(folder / f"part-{part}.parquet", row_group_size=60)
    assert_same(build(folder, 0.5), here)


def test_rows_of_every_kind_of_file(frame, tmp_path):
    X = np.ascontiguousarray(frame.to_numpy())  # some releases of pandas store columns
    np.save(tmp_path / "x.npy", X)
    zarr.save_array(tmp_path / "x.zarr", X)
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
    rows = np.array([599, 3, 140, 139, 3])
    for name in ("x.npy", "x.zarr", "x.parquet"):
        for address in (str(tmp_path / name), f"file://{tmp_path / name}"):
            points = open_points(address)
            assert points.shape == X.shape
            assert points.dtype == np.float32
            np.testing.assert_array_equal(points.rows(65, 211), X[65:211])
            np.testing.assert_array_equal(points.take(rows), X[rows])


def test_points_at_an_address(assert_same, build, X, here):
    memory = fsspec.filesystem("memory")
    with memory.open("/points.npy", "wb") as file:
        np.save(file, X.astype(np.float32))
    assert_same(build("memory://points.npy", 0.5), here)


def test_addresses_that_cannot_be_read(build):
    with pytest.raises(ClusterError, match=r"'nosuch://points.npy'.*Protocol not known: nosuch"):
        build("nosuch://points.npy", 1.0)
    with pytest.raises(ClusterError, match=r"'memory://absent.npy'.*FileNotFoundError"):
        build("memory://absent.npy", 1.0)


def test_columns_without_numbers(build, frame, tmp_path):
    wrong = frame.assign(name="a")
    wrong.to_parquet(tmp_path / "wrong.parquet")
    with pytest.raises(ClusterError, match="columns name hold no numbers"):
        build(tmp_path / "wrong.parquet", 1.0)
    with pytest.raises(ValueError, match="`X` must hold numbers"):
        build(dd.from_pandas(wrong, npartitions=2), 1.0)


def test_points_from_array_in_pieces(assert_same, build, X, here, monkeypatch):
    small = partial(Cluster, piece_entries=500)
    monkeypatch.setattr("otgraph.distributed.quadratic.Cluster", small)
    assert_same(build(X.astype(np.float32), 0.5), here)


def test_points_from_lists(assert_same, build, X):
    points = X[:50].tolist()
    assert_same(build(points, 0.5), otgraph.quadratic_ot_graph(points, 0.5))


def test_points_that_are_sparse(assert_same, build, X):
    points = sp.csr_matrix(np.where(X > -0.5, X, 0.0))
    assert_same(build(points, 0.5), otgraph.quadratic_ot_graph(points, 0.5))


def test_path_that_no_worker_can_read(build, tmp_path):
    with pytest.raises(ClusterError, match=r"which 2 of 2 workers cannot read .*FileNotFound"):
        build(tmp_path / "absent.npy", 1.0)
    (tmp_path / "text.npy").write_text("not an array")
    with pytest.raises(ClusterError, match=r"cannot read .*ValueError"):
        build(tmp_path / "text.npy", 1.0)


def test_input_that_is_no_points(build, X):
    with pytest.raises(ValueError, match="must compute costs from points"):
        build(X @ X.T, 1.0, metric="precomputed")
    with pytest.raises(ValueError, match="at least two points"):
        build(X[0], 1.0)
    points = da.from_array(X)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        build(points[points[:, 0] > 0], 1.0)
    with pytest.raises(TypeError, match="at most one of `eps` and `mean_degree`"):
        build(X, 1.0, mean_degree=5)


def test_errors_of_a_worker_are_those_of_the_local_function(build, X):
    X = X.copy()
    X[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"`X` contains NaN.* in row 7"):
        build(X, 1.0)


def test_zarr_chunks_that_are_missing_are_told(build, X, tmp_path):
    path = tmp_path / "points.zarr"
    array = zarr.create_array(path, shape=X.shape, chunks=(200, 5), dtype="f8")
    array[:] = X
    next(file for file in path.rglob("*") if file.is_file() and "zarr" not in file.name).unlink()
    with pytest.warns(UserWarning, match=r"1 chunk\(s\) are not stored.*fill value"):
        build(path, 0.5)


def test_chunks_with_fewer_rows_than_declared(build, X):
    whole = da.from_array(X, (200, 5))
    short = da.map_blocks(lambda block: block[:-3], whole, chunks=((200,) * 3, (5,)))
    with pytest.raises(
        ValueError, match=r"shape that it declares.*\(591, 5\) instead of \(600, 5\)"
    ):
        build(short, 0.5)


def test_masked_values_are_missing(build, X):
    with pytest.raises(ValueError, match="masked value"):
        build(np.ma.masked_array(X, X > 2), 0.5)
