"""Denoising equals powers of the random walk, for data of any kind."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import procrustes

import otgraph
from otgraph import denoise
from otgraph.exceptions import ConvergenceWarning
from otgraph.methods import diffusion_time
from otgraph.methods._columns import ColumnReader
from small_graphs import random_graph, ring


class Stored:
    """A chunked array on disk, as h5py and zarr have it: slices only, and it keeps count."""

    def __init__(self, array, chunks=None):
        self._array = array
        self.shape, self.dtype = array.shape, array.dtype
        self.chunks = chunks
        self.reads = []

    def __getitem__(self, key):
        rows, columns = key
        assert rows == slice(None)
        assert isinstance(columns, slice)
        self.reads.append((columns.start, columns.stop))
        return self._array[key]

    def __setitem__(self, key, value):
        self._array[key] = value


class Zeros:
    """A large array on disk; nothing of it is in memory."""

    dtype = np.dtype(np.float32)

    def __init__(self, shape):
        self.shape = shape
        self.columns_written = 0

    def __getitem__(self, key):
        _, columns = key
        return np.zeros((self.shape[0], columns.stop - columns.start), self.dtype)

    def __setitem__(self, key, value):
        self.columns_written += value.shape[1]


class Frame:
    """As much of a data frame as is used."""

    def __init__(self, array, columns):
        self._array, self.columns, self.iloc = array, columns, None

    def to_numpy(self):
        return self._array


@pytest.fixture
def W(rng):
    return random_graph(50, rng)


@pytest.fixture
def X(rng):
    return rng.gamma(1.0, size=(50, 7))


class TestMagic:
    """Values of magic-impute itself; data/make_magic_reference.py wrote them."""

    @pytest.fixture
    def reference(self):
        with np.load(Path(__file__).parent / "data" / "magic_reference.npz") as file:
            return dict(file)

    @pytest.mark.parametrize("t", [1, 3, "auto"])
    def test_same_kernel(self, reference, t):
        kernel = sp.csr_matrix((reference["data"], reference["indices"], reference["indptr"]))
        np.testing.assert_allclose(
            denoise(kernel, reference["X"], t), reference[f"t_{t}"], rtol=1e-12
        )

    @pytest.mark.parametrize("t", [1, 3, "auto"])
    def test_own_kernel(self, reference, t):
        graph = otgraph.magic_graph(reference["X"], n_neighbors=4)
        np.testing.assert_allclose(
            denoise(graph, reference["X"], t), reference[f"t_{t}"], rtol=1e-12
        )


class TestPowers:
    @pytest.mark.parametrize("t", [0, 1, 4])
    def test_against_dense_power(self, W, X, t):
        P = W.toarray() / W.toarray().sum(axis=1, keepdims=True)
        np.testing.assert_allclose(denoise(W, X, t), np.linalg.matrix_power(P, t) @ X)

    def test_point_without_edges_stays(self, X):
        W = sp.block_diag([ring(49), sp.csr_matrix((1, 1))], format="csr")
        np.testing.assert_array_equal(denoise(W, X)[-1], X[-1])

    def test_features_of_the_graph_need_not_be_those_denoised(self, rng):
        spiral = otgraph.datasets.noisy_spiral(300)
        graph = otgraph.quadratic_ot_graph(spiral.X, eps=1.0)
        truth = np.cos(spiral.t)
        noisy = truth + 0.5 * rng.standard_normal(300)
        smooth = denoise(graph, noisy[:, None], t=3)[:, 0]
        assert np.std(smooth - truth) < 0.5 * np.std(noisy - truth)

    @pytest.mark.parametrize(
        ("value", "error"),
        [(-1, ValueError), (2.5, TypeError), ("automatic", ValueError), (True, TypeError)],
    )
    def test_bad_t(self, W, X, value, error):
        with pytest.raises(error, match="`t` must be"):
            denoise(W, X, value)


class TestStorage:
    @pytest.mark.parametrize(
        "convert",
        [
            np.asfortranarray,
            np.ndarray.tolist,
            sp.csr_matrix,
            sp.csc_array,
            sp.coo_matrix,
            Stored,
            lambda X: X.astype(object),
            lambda X: Frame(X, list("abcdefg")),
        ],
    )
    def test_any_kind(self, W, X, convert):
        np.testing.assert_allclose(denoise(W, convert(X)), denoise(W, X))

    def test_integers_and_float32(self, W, X):
        counts = (10 * X).astype(np.int16)
        np.testing.assert_allclose(denoise(W, counts), denoise(W, counts.astype(float)))
        assert denoise(W, X.astype(np.float32)).dtype == np.float64

    @pytest.mark.parametrize("n_columns_at_once", [1, 3, 4, 100])
    def test_in_blocks(self, X, n_columns_at_once):
        reader = ColumnReader(Stored(X), 50, block_entries=50 * n_columns_at_once)
        read = np.full_like(X, np.nan)
        for place, block in reader.blocks():
            assert block.shape[1] <= n_columns_at_once
            read[:, place] = block
        np.testing.assert_array_equal(read, X)

    def test_no_chunk_is_read_twice(self, X):
        stored = Stored(X, chunks=(10, 2))
        list(ColumnReader(stored, 50, block_entries=50 * 5).blocks())
        assert stored.reads == [(0, 4), (4, 7)]

    @pytest.mark.parametrize("columns", [None, [5, 0, 1]])
    def test_hdf5(self, W, X, columns, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "X.h5", "w") as file:
            stored = file.create_dataset("X", data=X, chunks=(10, 3))
            out = file.create_dataset("out", (50, 7 if columns is None else 3), dtype="f8")
            denoise(W, stored, columns=columns, out=out)
            np.testing.assert_allclose(out[:], denoise(W, X, columns=columns))

    @pytest.mark.parametrize("columns", [None, [5, 0, 1]])
    def test_zarr(self, W, X, columns, tmp_path):
        zarr = pytest.importorskip("zarr")
        stored = zarr.open(str(tmp_path / "X.zarr"), mode="w", shape=X.shape, chunks=(10, 3))
        stored[:] = X
        np.testing.assert_allclose(
            denoise(W, stored, columns=columns), denoise(W, X, columns=columns)
        )

    def test_to_disk(self, W, X):
        out = Stored(np.empty_like(X))
        assert denoise(W, Stored(X), out=out) is out
        np.testing.assert_allclose(out[:, :], denoise(W, X))

    def test_memory_stays_bounded(self):
        """Ten blocks of 64 MB, of which about three copies exist: never the whole 640 MB."""
        n, m = 1000, 80_000
        stored, graph = Zeros((n, m)), otgraph.Graph.from_weights(ring(n))
        tracemalloc.start()
        try:
            denoise(graph, stored, 1, out=stored)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert stored.columns_written == m
        assert peak < 300e6

    def test_input_is_not_changed(self, W, X):
        before = X.copy()
        denoise(W, X, rescale=True)
        np.testing.assert_array_equal(X, before)

    @pytest.mark.parametrize(
        ("bad", "error", "match"),
        [
            (np.ones((49, 2)), ValueError, r"one row for each of the 50 points.*\(49, 2\)"),
            (np.ones(50), ValueError, r"got shape \(50,\)"),
            (np.full((50, 2), np.nan), ValueError, r"`X` contains NaN: 100 value\(s\)"),
            (np.full((50, 2), 1j), TypeError, "must hold real numbers, got dtype complex"),
            (np.full((50, 2), "a"), TypeError, "must hold real numbers, got dtype <U1"),
        ],
    )
    def test_bad_features(self, W, bad, error, match):
        with pytest.raises(error, match=match):
            denoise(W, bad)

    def test_bad_out(self, W, X):
        with pytest.raises(ValueError, match=r"`out` must have shape \(50, 7\), got \(50, 6\)"):
            denoise(W, X, out=np.empty((50, 6)))


class TestColumns:
    @pytest.mark.parametrize(
        "columns", [[4, 1, 2], np.array([-1]), slice(1, 6, 2), np.arange(7) > 3, 5, [3, 3]]
    )
    @pytest.mark.parametrize("convert", [np.asarray, Stored, sp.csr_matrix])
    def test_selection(self, W, X, columns, convert):
        expected = denoise(W, X)[:, [columns] if isinstance(columns, int) else columns]
        np.testing.assert_allclose(denoise(W, convert(X), columns=columns), expected)

    def test_names(self, W, X):
        frame = Frame(X, list("abcdefg"))
        np.testing.assert_allclose(
            denoise(W, frame, columns=["c", "a"]), denoise(W, X, columns=[2, 0])
        )
        with pytest.raises(ValueError, match="it has no 'z'"):
            denoise(W, frame, columns=["z"])

    @pytest.mark.parametrize(
        ("columns", "error", "match"),
        [
            ([7], ValueError, r"`columns` must lie in 0..6, got 7"),
            ([0.5], TypeError, "`columns` must be column numbers"),
            (np.ones(3, dtype=bool), TypeError, "a mask of length 7"),
            (["a"], TypeError, "names if `X` is a data frame"),
            ([], TypeError, "`columns` must be column numbers"),
        ],
    )
    def test_faults(self, W, X, columns, error, match):
        with pytest.raises(error, match=match):
            denoise(W, X, columns=columns)


class TestRescale:
    def test_upper_end_is_restored(self, W, X):
        rescaled = denoise(W, X, rescale=True)
        np.testing.assert_allclose(
            np.percentile(rescaled, 99, axis=0), np.percentile(X, 99, axis=0)
        )
        ratio = rescaled / denoise(W, X)
        np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:1], ratio.shape))

    def test_rare_feature_goes_by_its_maximum(self, rng):
        W, X = random_graph(300, rng), np.zeros((300, 2))
        X[7, 0] = 5.0
        rescaled = denoise(W, X, t=1, rescale=True)
        smooth = denoise(W, X, t=1)
        end = np.percentile(smooth[:, 0], 99) or smooth[:, 0].max()
        np.testing.assert_allclose(rescaled[:, 0], smooth[:, 0] * 5.0 / end)
        np.testing.assert_array_equal(rescaled[:, 1], 0.0)

    def test_negative_values(self, W, X):
        with pytest.raises(ValueError, match="`rescale=True` needs values >= 0, got -"):
            denoise(W, X - 1.0, rescale=True)


class TestAutomaticTime:
    @pytest.fixture
    def cloud(self):
        X = otgraph.datasets.noisy_spiral(150, dim=20, noise=0.5).X
        return otgraph.magic_graph(X), X

    def test_is_one_more_than_the_first_small_change(self, cloud):
        steps = [denoise(*cloud, t) for t in range(21)]
        changes = [procrustes(a, b)[2] for a, b in pairwise(steps)]
        first = int(np.flatnonzero(np.array(changes) < 1e-3)[0]) + 1
        assert 1 < first < 20
        assert diffusion_time(*cloud) == first + 1
        np.testing.assert_array_equal(denoise(*cloud, "auto"), steps[first + 1])

    def test_never_small(self, cloud):
        with pytest.warns(ConvergenceWarning, match="after `max_t`=2 steps"):
            assert diffusion_time(*cloud, threshold=1e-9, max_t=2) == 2

    def test_constant_features(self, W):
        assert diffusion_time(W, np.ones((50, 3))) == 2

    def test_some_of_many_columns(self, cloud):
        graph, X = cloud[0], Stored(cloud[1])
        few = diffusion_time(graph, X, max_columns=10)
        assert sum(b - a for a, b in X.reads) == 10
        assert few == diffusion_time(graph, X, max_columns=10)
