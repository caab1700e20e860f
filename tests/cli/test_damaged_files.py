"""Damaged and hostile files end in one line, never in a crash, a hang or a full memory."""

from __future__ import annotations

import errno
import gzip
import io
import os
import struct
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import anndata
import numpy as np
import pytest
import scipy
import scipy.sparse as sp

from otgraph import _unpacked
from otgraph.cli.reading import read_points
from otgraph.exceptions import MemoryLimitError

FREE = 50_000_000  # bytes of memory, as far as these tests go


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setattr(_unpacked, "available_bytes", lambda: FREE)


def assert_refused(done, *words):
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("otgraph: ")
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


BANNER = b"%%MatrixMarket matrix coordinate real general\n"
scipy_version = tuple(map(int, scipy.__version__.split(".")[:2]))
# scipy 1.17 crashes on these.
CRASHING = {
    "zero bytes": BANNER + b"3 3 2\n1 1 1\0\0\n2 2 1.0\n",
    "cut within a number": BANNER + b"3 3 2\n1 1 1.0\n2 2 1.5E-",
}


@pytest.mark.skipif(scipy_version < (1, 17), reason="older versions may read what is there")
@pytest.mark.parametrize("name", CRASHING)
def test_matrix_market_that_crashes_its_reader(cli, name):
    Path("s.mtx").write_bytes(CRASHING[name])
    assert_refused(cli("info", "s.mtx"), "s.mtx: cannot be read: ")


def test_matrix_market_that_is_not_text(cli):
    Path("s.mtx.gz").write_bytes(gzip.compress(BANNER[:-1] + b"\xec"))
    assert_refused(cli("info", "s.mtx.gz"), "s.mtx.gz: cannot be read: it is not text in UTF-8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BANNER + b"3 3 200000000000\n1 1 1\n", "announces 200,000,000,000 numbers"),
        (BANNER + b"300000000000 3 1\n1 1 1\n", "takes 2400.0 GB of memory"),
        (BANNER.replace(b"coordinate", b"array") + b"100000 100000\n1\n", "announces 10,000,000"),
        (BANNER + b"%" * 100 + b"\n\n" + b"9" * 4000 + b" 3 1\n1 1 1\n", "4,000 digits"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_matrix_market_that_announces_too_much(cli, text, words, packed):
    name = "m.mtx.gz" if packed else "m.mtx"
    Path(name).write_bytes(gzip.compress(text) if packed else text)
    begin = time.monotonic()
    assert_refused(cli("info", name), f"{name}: cannot be read: it", words)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("name", ["zeros.csv.gz", "zeros.csv", "zeros.mtx.gz"])
def test_compressed_text_that_fills_the_memory(cli, name, little_memory):
    with gzip.open(name, "wb", compresslevel=1) as file:
        if ".mtx" in name:
            file.write(BANNER)
        for _ in range(60):
            file.write(b"0,0,0,0\n" * 125_000)
    begin = time.monotonic()
    assert_refused(cli("info", name), f"{name}: cannot be read: it unpacks to more than the 50 MB")
    assert time.monotonic() - begin < 20


@pytest.mark.parametrize("command", [("graph", "-"), ("labels", "x.npy", "--labels", "-")])
def test_compressed_standard_input_that_fills_the_memory(cli, command, little_memory):
    np.save("x.npy", np.eye(4))
    bomb = gzip.compress(b"0,0,0,0\n" * (FREE // 8 + 1), compresslevel=1)
    assert len(bomb) < FREE / 10
    done = cli(*command, "-o", "out.csv", "--eps", 1, stdin=bomb)
    assert_refused(done, "standard input: cannot be read: it unpacks to more than the 50 MB")


def test_endless_standard_input(little_memory):
    """It is read until it has filled what is free, and no further."""

    class Endless:
        given = 0

        def read(self, n):
            self.given += n
            return bytes(n)

    endless = Endless()
    with pytest.raises(MemoryLimitError, match="it has more than the 50 MB of memory"):
        _unpacked.read_stream(endless)
    assert endless.given <= FREE + _unpacked.CHUNK_BYTES


def test_damaged_compressed_standard_input(cli):
    damaged = gzip.compress(b"1,2\n3,4\n" * 100)[:-9]
    done = cli("graph", "-", "-o", "g.otg", "--eps", 1, stdin=damaged)
    assert_refused(done, "standard input: cannot be read: ")


def test_compressed_text_that_fits(cli, little_memory):
    with gzip.open("zeros.csv.gz", "wb") as file:
        file.write(b"0,1,2,3\n" * 125_000)
    assert cli("info", "zeros.csv.gz").code == 0


class TestArchives:
    def test_array_that_fills_the_memory(self, cli, little_memory):
        np.savez_compressed("zeros.npz", X=np.zeros((10**6, 8)))
        assert os.path.getsize("zeros.npz") < 100_000
        assert_refused(cli("info", "zeros.npz"), "zeros.npz: cannot be read: it takes 64 MB")

    def test_only_the_array_that_is_read_counts(self, cli, little_memory):
        np.savez_compressed("zeros.npz", X=np.zeros((10**6, 8)), small=np.ones((5, 2)))
        assert cli("info", "zeros.npz", "--key", "small").code == 0

    def test_sparse_matrix_that_fills_the_memory(self, cli, little_memory):
        sp.save_npz("tall.npz", sp.coo_matrix(([1.0], ([0], [0])), shape=(10**8, 3)))
        assert_refused(cli("info", "tall.npz"), "a matrix of shape (100000000, 3) takes 800 MB")

    def test_header_that_announces_more_than_there_is(self, cli):
        array = io.BytesIO()
        np.save(array, np.zeros((4, 2)))
        forged = array.getvalue().replace(b"(4, 2), }" + b" " * 6, b"(4000000000, 2),}", 1)
        assert forged != array.getvalue()
        with zipfile.ZipFile("forged.npz", "w") as archive:
            archive.writestr("X.npy", forged)
        done = cli("info", "forged.npz")
        assert_refused(done, "its array 'X' is damaged: 64,000,000,000 bytes are announced")

    def test_table_that_fills_the_memory(self, cli, little_memory):
        import pandas as pd

        pd.DataFrame({"x": np.zeros(10**7), "y": np.zeros(10**7)}).to_parquet("zeros.parquet")
        assert_refused(cli("info", "zeros.parquet"), "zeros.parquet: cannot be read: it takes 160")

    def test_cells(self, tmp_path, monkeypatch):
        from otgraph import datasets

        monkeypatch.setattr(_unpacked, "available_bytes", lambda: 1000)
        path = tmp_path / "counts.csv.gz"
        path.write_bytes(gzip.compress(b",a,b\nr,0,1\n" * 1000))
        with pytest.raises(MemoryLimitError, match=r"counts\.csv\.gz.*unpacks to more than"):
            datasets.load_cells(path)


def test_memory_that_runs_out_names_the_file(cli, monkeypatch):
    Path("x.csv").write_text("1,2\n3,4\n")

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("otgraph.cli.reading.read_table", fail)
    assert_refused(cli("info", "x.csv"), "x.csv: cannot be read: it does not fit into memory")


class TestH5ad:
    @pytest.fixture
    def cells(self, X, tmp_path):
        adata = anndata.AnnData(np.abs(X))
        adata.obs_names = [f"cell{i}" for i in range(len(X))]
        adata.write_h5ad(tmp_path / "cells.h5ad")
        return tmp_path / "cells.h5ad"

    def test_that_makes_its_reader_loop(self, cli, cells, monkeypatch):
        """A heap of strings whose free space has the size zero: HDF5 walks it for ever."""
        content = bytearray(cells.read_bytes())
        heap = content.index(b"GCOL")
        size = struct.unpack_from("<Q", content, heap + 8)[0]
        place = heap + 16
        while place < heap + size:
            index = struct.unpack_from("<H", content, place)[0]
            length = struct.unpack_from("<Q", content, place + 8)[0]
            if index == 0:
                struct.pack_into("<Q", content, place + 8, 0)
                break
            place += 16 + (length + 7) // 8 * 8
        cells.write_bytes(content)
        monkeypatch.setattr("otgraph._isolated.START_SECONDS", 6.0)
        assert_refused(cli("info", cells), "cells.h5ad: cannot be read: ")

    def test_of_another_kind(self, cli, tmp_path):
        (tmp_path / "text.h5ad").write_text("not HDF5")
        assert_refused(cli("info", "text.h5ad"), "text.h5ad: cannot be read: ")

    def test_full_disk(self, cli, points, monkeypatch):
        """The file is made in memory; what fails is one ordinary write."""

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("otgraph._atomic.os.fsync", full)
        done = cli("graph", points, "-o", "g.h5ad", "--eps", 1)
        assert_refused(done, "g.h5ad: no space left on device")
        assert os.listdir(".") == [points]

    @pytest.mark.parametrize("suffix", ["h5ad", "otg", "npz", "mtx", "csv", "parquet", "graphml"])
    def test_limit_of_the_size_of_files(self, tmp_path, rng, suffix):
        """As a full disk: writing fails in the middle, whoever writes."""
        np.save(tmp_path / "x.npy", rng.standard_normal((2000, 3)))
        code = (
            "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000));"
            "from otgraph.cli.app import run;"
            f"sys.exit(run(['graph', 'x.npy', '-o', 'g.{suffix}', '--method', 'knn', '-k', '9']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("\n") == 1
        assert f"g.{suffix}: file too large" in done.stderr
        assert os.listdir(tmp_path) == ["x.npy"]


def test_ordinary_files_are_read_as_before(tmp_path, X):
    sparse = sp.random(30, 8, density=0.3, format="csr", random_state=0)
    sp.save_npz(tmp_path / "s.npz", sparse)
    assert (read_points(str(tmp_path / "s.npz")).values != sparse).nnz == 0
