"""Tables of counts from files, from AnnData and from the web, and what is refused."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import re
import threading
from pathlib import Path

import anndata as ad
import numpy as np
import pytest
import scipy.sparse as sp

from otgraph import datasets
from otgraph.datasets import _downloads
from otgraph.datasets._counts import read_counts
from otgraph.datasets.cells import make_cells
from otgraph.exceptions import FormatError

EMT = Path(__file__).parents[3] / "shared" / "data" / "emt_subset.csv"
TABLE = ",Mpo,Klf1,Ifitm1\nA,3,0,1\nB,0,2,0\nC,1,1,1\n"
COUNTS = np.array([[3, 0, 1], [0, 2, 0], [1, 1, 1]])


def written(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("counts.csv", TABLE),
        ("counts.csv.gz", TABLE),
        ("counts.tsv", TABLE.replace(",", "\t")),
        ("a.b.tsv.gz", TABLE.replace(",", "\t")),
        ("counts.txt", TABLE.replace(",", "\t")),
        ("r.csv", TABLE.removeprefix(",")),  # R writes no name above the names of the rows
        ("named.csv", "cell" + TABLE),
    ],
)
def test_text_files(tmp_path, name, text):
    cells = datasets.load_cells(written(tmp_path / name, text))
    np.testing.assert_array_equal(cells.X.toarray(), COUNTS)
    assert list(cells.genes) == ["Mpo", "Klf1", "Ifitm1"]
    assert list(cells.cells) == ["A", "B", "C"]
    assert cells.are_counts
    np.testing.assert_array_equal(cells.totals, [4, 2, 3])
    np.testing.assert_array_equal(cells.expression(["Ifitm1", "Mpo"]), COUNTS[:, [2, 0]])


def test_rows_without_names_are_numbered(tmp_path):
    cells = datasets.load_cells(written(tmp_path / "counts.csv", "a,b\n1,2\n3,4\n"))
    assert list(cells.genes) == ["a", "b"]
    assert list(cells.cells) == ["0", "1"]


def test_unnamed_numbers_in_front_are_names(tmp_path):
    cells = datasets.load_cells(written(tmp_path / "counts.csv", ",a,b\n17,2,3\n18,4,5\n"))
    assert list(cells.cells) == ["17", "18"]
    assert cells.X.shape == (2, 2)


def test_more_rows_than_are_read_at_a_time(tmp_path):
    path = written(tmp_path / "counts.csv", TABLE)
    X, genes, cells = read_counts(path, rows_at_a_time=2)
    np.testing.assert_array_equal(X.toarray(), COUNTS)
    assert genes == ["Mpo", "Klf1", "Ifitm1"]
    assert cells == ["A", "B", "C"]


def test_transposed(tmp_path):
    cells = datasets.load_cells(written(tmp_path / "counts.csv", TABLE), transpose=True)
    np.testing.assert_array_equal(cells.X.toarray(), COUNTS.T)
    assert list(cells.genes) == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("counts.csv", ",a\n", "it has no rows"),
        ("counts.csv", "a\nA\nB\n", "column a holds 'A', which is not a number"),
        ("counts.csv", "", "it is empty"),
        ("counts.csv", "a,b\n", "it has no rows"),
        ("counts.csv", "1,2\n3,4\n", "its first line holds no names"),
        ("counts.csv", ",a\nA,x\n", "column a holds 'x', which is not a number"),
        ("counts.csv", "a,b\n1,2,3,4\n1,2,3,4\n", "has 2 names but the rows have 4 fields"),
        ("counts.csv", "a,b\n1,2\n1,2,3\n", "Expected 2 fields"),
        ("counts.xlsx", "a,b\n1,2\n", "must end in .csv"),
        ("counts.h5ad", "a,b\n1,2\n", "cannot be read as an h5ad file"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, text, message):
    with pytest.raises(FormatError, match=message):
        datasets.load_cells(written(tmp_path / name, text))


def test_damaged_archives(tmp_path):
    path = written(tmp_path / "counts.csv.gz", TABLE * 100)
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:30] + b"\0\0\0\0" + whole[34:]):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="damaged"):
            datasets.load_cells(path)


def test_text_that_is_called_an_archive_is_read(tmp_path):
    (tmp_path / "counts.csv.gz").write_text(TABLE)
    assert len(datasets.load_cells(tmp_path / "counts.csv.gz")) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace("A,3", "A,-3"), "negative numbers, 1 in all, .* gene Mpo, cell A: -3"),
        (TABLE.replace("B,0,2", "B,0,"), "missing or infinite .* gene Klf1, cell B: nan"),
        (TABLE.replace("Ifitm1", "Mpo"), "gene name.* more than once: Mpo"),
    ],
)
def test_values_that_are_no_counts(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        datasets.load_cells(written(tmp_path / "counts.csv", text))


def test_missing_genes_are_named_with_similar_ones(tmp_path):
    cells = datasets.load_cells(written(tmp_path / "counts.csv", TABLE))
    with pytest.raises(ValueError, match=r"no gene KLF1, Gata1\. For KLF1 there is Klf1.*Its 3"):
        cells.columns(["Mpo", "KLF1", "Gata1"])
    with pytest.raises(ValueError, match=r"among the rows.*transpose=True"):
        cells.columns(["A"])


def test_anndata_takes_counts_where_they_are(tmp_path):
    scaled = ad.AnnData(np.array([[-1.0, 1.0], [1.0, -1.0]]))
    scaled.var_names = ["a", "b"]
    with pytest.raises(ValueError, match="AnnData, X has negative numbers"):
        datasets.load_cells(scaled)
    logarithms = ad.AnnData(np.log1p(COUNTS))
    logarithms.var_names = ["Mpo", "Klf1", "Ifitm1"]
    scaled = logarithms.copy()
    scaled.X = scaled.X - 1.0
    scaled.raw = logarithms
    from_raw = datasets.load_cells(scaled)
    assert from_raw.source == "AnnData, raw"
    assert not from_raw.are_counts
    scaled.layers["counts"] = sp.csc_matrix(COUNTS)
    scaled.write_h5ad(tmp_path / "cells.h5ad")
    for source in (scaled, tmp_path / "cells.h5ad"):
        counts = datasets.load_cells(source)
        assert counts.source.endswith('layers["counts"]')
        np.testing.assert_array_equal(counts.X.toarray(), COUNTS)


def test_source_of_another_kind():
    with pytest.raises(FileNotFoundError, match=r"no file 'bmcc'.*'bmmc', 'pbmc68k_reduced'"):
        datasets.load_cells("bmcc")
    with pytest.raises(TypeError, match=r"`source` must be 'bmmc'.*got int"):
        datasets.load_cells(3)


def test_names_must_fit():
    with pytest.raises(ValueError, match=r"shape .3, 3., but there are 3 names of cells and 2"):
        make_cells(COUNTS, ["a", "b"], ["1", "2", "3"], "example")


def test_scanpy_comes_with_blood_cells():
    cells = datasets.load_cells("pbmc68k_reduced")
    assert cells.X.shape == (700, 765)
    assert cells.source == "pbmc68k_reduced, raw"
    assert not cells.are_counts


@pytest.mark.skipif(not EMT.exists(), reason="the table of cells is not here")
def test_table_of_an_emt_time_course():
    cells = datasets.load_cells(EMT)
    assert cells.X.shape == (500, 197)
    assert not cells.are_counts  # square roots
    assert cells.expression(["VIM", "CDH1", "ZEB1"]).max() > 3


PIN = "0123456789abcdef0123456789abcdef01234567"


def test_remote_files_are_pinned_to_commits():
    assert _downloads.REMOTE_FILES
    for url in _downloads.REMOTE_FILES.values():
        assert re.fullmatch(r"https://github\.com/[\w/-]+/raw/[0-9a-f]{40}/[\w/.]+", url)


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A folder served on this machine in place of the web; what lies in it is the argument."""
    folder = tmp_path / "served"
    (folder / PIN).mkdir(parents=True)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=folder)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{httpd.server_port}/{PIN}/BMMC_myeloid.csv.gz"
        monkeypatch.setitem(_downloads.REMOTE_FILES, "bmmc", url)
        yield folder / PIN / "BMMC_myeloid.csv.gz"
        httpd.shutdown()
        thread.join()


def test_download_is_kept_and_pinned(server, tmp_path):
    written(server, TABLE)
    cache = tmp_path / "cache"
    cells = datasets.load_cells("bmmc", cache=cache)
    np.testing.assert_array_equal(cells.X.toarray(), COUNTS)
    recorded = (cache / "BMMC_myeloid.csv.gz.sha256").read_text()
    checksum = hashlib.sha256(server.read_bytes()).hexdigest()
    assert recorded == f"{checksum}  BMMC_myeloid.csv.gz\n"

    server.rename(server.with_name("gone"))
    assert len(datasets.load_cells("bmmc", cache=cache)) == 3  # from the cache
    server.with_name("gone").rename(server)

    (cache / "BMMC_myeloid.csv.gz").write_bytes(b"damaged")
    assert len(datasets.load_cells("bmmc", cache=cache)) == 3  # downloaded again

    written(server, TABLE.replace("3", "4"))
    (cache / "BMMC_myeloid.csv.gz").unlink()
    with pytest.raises(FormatError, match=f"checksum {checksum} that is recorded in"):
        datasets.load_cells("bmmc", cache=cache)


def test_checksum_of_the_caller(server, tmp_path, monkeypatch):
    written(server, TABLE)
    monkeypatch.setenv("OTGRAPH_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FormatError, match="pass its checksum"):
        datasets.load_cells("bmmc", sha256="0" * 64)
    checksum = hashlib.sha256(server.read_bytes()).hexdigest()
    assert len(datasets.load_cells("bmmc", sha256=checksum)) == 3
    assert (tmp_path / "elsewhere" / "BMMC_myeloid.csv.gz").exists()


def test_what_to_do_without_a_network(server, tmp_path, monkeypatch):
    advice = rf"answers 404.*{PIN}/BMMC.*if that is gone from http.*/main/BMMC.*--data PATH.*cache"
    with pytest.raises(ConnectionError, match=advice):
        datasets.load_cells("bmmc", cache=tmp_path / "cache")
    nobody = "http://127.0.0.1:9/BMMC_myeloid.csv.gz"
    monkeypatch.setitem(_downloads.REMOTE_FILES, "bmmc", nobody)
    with pytest.raises(ConnectionError, match=r"no connection.*Get it on a machine with a network"):
        datasets.load_cells("bmmc", cache=tmp_path / "cache")
    # What the message advises works.
    written(tmp_path / "cache" / "BMMC_myeloid.csv.gz", TABLE)
    assert len(datasets.load_cells("bmmc", cache=tmp_path / "cache")) == 3


LOGIN = b"\n<!DOCTYPE html><html><body>Log in</body></html>"


@pytest.mark.parametrize(
    "answer",
    [LOGIN, b"", b"plain words", gzip.compress(b"x" * 9999)[:-9]],
    ids=["login", "nothing", "words", "cut off"],  # compressed data contain the time
)
def test_what_is_not_the_file_is_never_trusted(server, tmp_path, answer):
    """A login page of the network, say; once it is gone, the file is loaded."""
    server.write_bytes(answer)
    cache = tmp_path / "cache"
    with pytest.raises(FormatError, match=r"does not give the file BMMC.*Nothing was kept"):
        datasets.load_cells("bmmc", cache=cache)
    assert list(cache.iterdir()) == []
    written(server, TABLE)
    assert len(datasets.load_cells("bmmc", cache=cache)) == 3


def test_page_that_was_trusted_before_says_what_to_delete(server, tmp_path):
    path = tmp_path / "BMMC_myeloid.csv.gz"
    record = tmp_path / "BMMC_myeloid.csv.gz.sha256"
    path.write_bytes(LOGIN)
    record.write_text(f"{hashlib.sha256(LOGIN).hexdigest()}  {path.name}\n")
    with pytest.raises(FormatError, match=r"it is a web page\. Delete it and .*\.sha256") as caught:
        datasets.load_cells("bmmc", cache=tmp_path)
    assert str(path) in str(caught.value)
    path.unlink()
    record.unlink()
    written(server, TABLE)
    assert len(datasets.load_cells("bmmc", cache=tmp_path)) == 3


@pytest.mark.parametrize("content", ["", "\n", "abc  BMMC_myeloid.csv.gz\n"])
def test_record_that_was_not_written_whole(server, tmp_path, content):
    written(server, TABLE)
    record = tmp_path / "BMMC_myeloid.csv.gz.sha256"
    record.write_text(content)
    assert len(datasets.load_cells("bmmc", cache=tmp_path)) == 3
    assert record.read_text().startswith(hashlib.sha256(server.read_bytes()).hexdigest())


@pytest.mark.parametrize("sha256", [5, "abc", "", b"0" * 64])
def test_checksum_of_another_kind(sha256):
    with pytest.raises(ValueError, match="`sha256` must be 64 hexadecimal digits"):
        datasets.load_cells("bmmc", sha256=sha256)
