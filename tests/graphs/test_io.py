"""Files: what is saved comes back, and whatever is damaged is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from otgraph.exceptions import FormatError
from otgraph.graphs import CrossGraph, Graph, TransportGraph, load_graph, quadratic_ot_graph
from otgraph.graphs import io as graph_io
from otgraph.graphs.io import MAGIC, MOST_HEADER_BYTES, PRELUDE, VERSION
from otgraph.solvers.certificate import Certificate, Status

CERTIFICATE = Certificate(
    Status.EXACT, 1.5e-7, 0.1 + 0.2, 10**12, 0, 7, 1 / 3, 2, float("nan"),
    history=((float("inf"), 0.1 + 0.2), (1 / 3,)),
)  # fmt: skip


def small_graph(points=None) -> Graph:
    return TransportGraph(
        weights=sp.csr_matrix([[0.0, 0.1, 0.0], [0.1, 0.0, 1 / 3], [0.0, 1 / 3, 0.0]]),
        params={"method": "test", "eps": 1 / 3, "k": 3, "loops": True, "none": None, "ä": "ö\n"},
        certificate=CERTIFICATE,
        potentials=np.array([0.1, -2.0, 1e-300]),
        mass=np.ones(3),
        points=np.arange(6.0).reshape(3, 2) if points is None else points,
        edge_costs=np.array([0.5, 0.5, 1 / 3, 1 / 3]),
    )


def assert_same(a: Graph, b: Graph) -> None:
    for part in ("data", "indices", "indptr"):
        left, right = getattr(a.weights, part), getattr(b.weights, part)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    assert a.params == b.params
    assert [type(v) for v in a.params.values()] == [type(v) for v in b.params.values()]
    assert type(a) is type(b)
    names = ["points", "edge_costs"]
    if isinstance(a, TransportGraph):
        assert repr(a.certificate) == repr(b.certificate)  # repr: nan equals itself there
        assert a.certificate.history == b.certificate.history
        names += ["potentials", "mass"]
    for name in names:
        left, right = getattr(a, name), getattr(b, name)
        if sp.issparse(left):
            assert left.shape == right.shape
            assert (left != right).nnz == 0
        else:
            np.testing.assert_array_equal(left, right)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.otg"


def rewritten(content: bytes, change) -> bytes:
    """The file with a changed header and checksums that hold: made, not damaged."""
    _, version, length = PRELUDE.unpack(content[: PRELUDE.size])
    start = PRELUDE.size + 32
    header = json.loads(content[start : start + length])
    arrays = bytearray(content[start + length :])
    offset, views = 0, {}
    for entry in header["arrays"]:
        n_bytes = int(np.prod(entry["shape"])) * np.dtype(entry["type"]).itemsize
        views[entry["name"]] = np.frombuffer(
            arrays, entry["type"], int(np.prod(entry["shape"])), offset
        )
        offset += n_bytes
    change(header, views)
    for entry in header["arrays"] if isinstance(header.get("arrays"), list) else []:
        if isinstance(entry, dict) and entry.get("name") in views:
            entry["sha256"] = hashlib.sha256(views[entry["name"]].tobytes()).hexdigest()
    encoded = json.dumps(header).encode()
    prelude = PRELUDE.pack(MAGIC, version, len(encoded))
    return prelude + hashlib.sha256(prelude + encoded).digest() + encoded + bytes(arrays)


class TestRoundTrip:
    def test_everything(self, path):
        graph = small_graph()
        graph.save(path)
        assert_same(graph, load_graph(path))
        assert load_graph(str(path)).certificate.status == "exact"

    def test_sparse_points(self, path):
        graph = small_graph(sp.csr_matrix([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
        graph.save(path)
        assert_same(graph, load_graph(path))

    def test_file_from_before_edge_costs_were_kept(self, path):
        older = replace(small_graph(), edge_costs=None)
        older.save(path)
        assert b"edge_costs" not in path.read_bytes()
        assert_same(older, load_graph(path))

    def test_without_points(self, path):
        small_graph().save(path)
        size = path.stat().st_size
        small_graph().save(path, include_points=False)
        assert path.stat().st_size < size
        assert load_graph(path).points is None

    def test_of_a_kernel_without_certificate(self, path):
        graph = Graph.from_weights(sp.csr_matrix((4, 4)))
        graph.save(path)
        loaded = load_graph(path)
        assert_same(graph, loaded)

    def test_infinite_parameters(self, path):
        graph = Graph.from_weights([[1.0]], params={"a": np.inf, "b": -np.inf, "c": 1e-320})
        graph.save(path)
        assert load_graph(path).params == {"a": np.inf, "b": -np.inf, "c": 1e-320}

    def test_of_a_computed_graph(self, path, rng):
        graph = quadratic_ot_graph(rng.standard_normal((40, 3)), 1.0)
        graph.save(path)
        loaded = load_graph(path)
        assert_same(graph, loaded)
        assert loaded.n_connected == graph.n_connected

    def test_the_same_graph_gives_the_same_bytes(self, path, tmp_path):
        small_graph().save(path)
        small_graph().save(tmp_path / "other")
        assert path.read_bytes() == (tmp_path / "other").read_bytes()

    def test_loaded_arrays_can_be_written_to(self, path):
        small_graph().save(path)
        weights = load_graph(path).weights
        weights.data[0] = 5.0
        assert weights.data[0] == 5.0


class TestDamage:
    @pytest.fixture
    def content(self, path) -> bytes:
        small_graph().save(path)
        return path.read_bytes()

    def test_every_byte_counts(self, path, content):
        for position in range(len(content)):
            damaged = bytearray(content)
            damaged[position] ^= (0x01, 0x10, 0x80, 0xFF)[position % 4]
            path.write_bytes(damaged)
            with pytest.raises(FormatError, match="not a graph that can be read"):
                load_graph(path)

    def test_truncated_anywhere(self, path, content):
        for length in [*range(60), *range(60, len(content), 13), len(content) - 1]:
            path.write_bytes(content[:length])
            with pytest.raises(FormatError):
                load_graph(path)

    def test_something_appended(self, path, content):
        path.write_bytes(content + b"\0")
        with pytest.raises(FormatError, match="followed by something else"):
            load_graph(path)

    @pytest.mark.parametrize("foreign", [b"", b"PK\x03\x04" + bytes(100), b"\x80\x04" + bytes(99)])
    def test_foreign(self, path, foreign):
        path.write_bytes(foreign)
        with pytest.raises(FormatError, match="does not begin as one"):
            load_graph(path)

    def test_newer_version(self, path, content):
        path.write_bytes(content[:8] + (VERSION + 1).to_bytes(4, "little") + content[12:])
        with pytest.raises(
            FormatError, match=f"version {VERSION + 1} and this package reads up to"
        ):
            load_graph(path)

    def test_header_longer_than_the_file(self, path, content):
        path.write_bytes(content[:12] + (2**63).to_bytes(8, "little") + content[20:])
        with pytest.raises(FormatError, match="header should have 9223372036854775808 bytes"):
            load_graph(path)

    def test_header_that_is_not_json(self, path):
        for encoded in (b"{", b"[" * 100_000, b"\xff\xfe", b"[1]", b"3"):
            prelude = PRELUDE.pack(MAGIC, VERSION, len(encoded))
            path.write_bytes(prelude + hashlib.sha256(prelude + encoded).digest() + encoded)
            with pytest.raises(FormatError, match="header is not"):
                load_graph(path)


def _set(name, index, value):
    def change(header, arrays):
        arrays[name][index] = value

    return change


def _entry(name, /, **values):
    def change(header, arrays):
        next(entry for entry in header["arrays"] if entry["name"] == name).update(values)

    return change


def _header(**values):
    return lambda header, arrays: header.update(values)


def _certificate(**values):
    return lambda header, arrays: header["certificate"].update(values)


def _nested(depth):
    return [_nested(depth - 1)] if depth else []


MADE = {
    "indptr falls": (_set("weights.indptr", 1, 9), "indptr"),
    "indptr starts late": (_set("weights.indptr", 0, 1), "indptr"),
    "indptr ends early": (_set("weights.indptr", 3, 3), "indptr"),
    "index too large": (_set("weights.indices", 0, 3), "outside"),
    "index negative": (_set("weights.indices", 0, -1), "outside"),
    "indices out of order": (_set("weights.indices", slice(1, 3), [2, 0]), "not in order"),
    "index twice": (_set("weights.indices", slice(1, 3), [2, 2]), "not in order"),
    "weight zero": (_set("weights.data", slice(None), 0.0), "positive"),
    "weight nan": (_set("weights.data", 0, np.nan), "positive"),
    "weights asymmetric": (_set("weights.data", 0, 0.7), "not symmetric"),
    "potentials nan": (_set("potentials", 0, np.nan), "potentials are not 3 finite"),
    "edge cost negative": (_set("edge_costs", 0, -1.0), "edge costs are not one number"),
    "edge cost nan": (_set("edge_costs", 0, np.nan), "edge costs are not one number"),
    "points of other length": (_entry("points", shape=[2, 3]), "points have shape"),
    "absurd size": (_entry("points", shape=[2**40, 2**40]), "truncated"),
    "negative size": (_entry("points", shape=[-3, -2]), "unknown type or shape"),
    "size not a number": (_entry("points", shape=["3", 2]), "unknown type or shape"),
    "object type": (_entry("points", type="|O"), "unknown type or shape"),
    "array twice": (_entry("mass", name="potentials"), "twice"),
    "array missing": (_entry("weights.data", name="w"), "do not describe a graph"),
    "no table": (_header(arrays=None), "do not describe a graph"),
    "table of numbers": (_header(arrays=[1]), "do not describe a graph"),
    "params nested": (_header(params={"a": [1]}), "do not describe a graph"),
    "params missing": (lambda header, arrays: header.pop("params"), "do not describe a graph"),
    "certificate unknown": (_header(certificate={"status": "exact", "x": 1}), "do not describe"),
    "status unknown": (_header(certificate={"status": "perfect"}), "do not describe a graph"),
    "array of three dimensions": (_entry("points", shape=[1, 3, 2]), "unknown type or shape"),
    "sizes of thousands of digits": (
        _entry("points", shape=[10**4000] * 3000),
        "unknown type or shape",
    ),
    "two sizes of thousands of digits": (
        _entry("points", shape=[10**4000] * 2),
        "unknown type or shape",
    ),
    "parts of different types": (_entry("weights.indptr", type="<i8", shape=[2]), "not belong"),
    "points nan": (_set("points", 0, np.nan), "points are not all finite"),
    "points infinite": (_set("points", 0, np.inf), "points are not all finite"),
    "mass zero": (_set("mass", 0, 0.0), "masses are not all positive"),
    "eps negative": (_certificate(eps=-1.0), "eps of its certificate must be positive"),
    "eps infinite": (_certificate(eps={"float": "inf"}), "eps of its certificate must be"),
    "share of 400 digits": (_certificate(dropped_share=10**400), "a number in its header is too"),
    "eps a word": (_certificate(eps="1"), "eps of its certificate is not a number"),
    "eps of thousands of digits": (_certificate(eps=10**4000), "a number in its header is too"),
    "steps a fraction": (_certificate(n_steps=1.5), "n_steps of its certificate is not a whole"),
    "steps true": (_certificate(n_steps=True), "n_steps of its certificate is not a whole"),
    "pairs negative": (_certificate(pairs_checked=-1), "pairs_checked of its certificate is not"),
    "gap a list": (_certificate(duality_gap=[1]), "duality_gap of its certificate is not a number"),
    "history of words": (_certificate(history=[["a"]]), "history of its certificate is not"),
    "history flat": (_certificate(history=[1.0]), "history of its certificate is not"),
    "evidence": (_certificate(evidence=1), "comes with evidence"),
    "nested deeply": (_header(params={"a": _nested(900)}), "do not describe|not JSON"),
    "no points at all": (_header(points_shape=[0, 0]), "do not describe a graph"),
    "sparse points missing": (_header(points_shape=[3, 2]), "do not describe a graph"),
}


@pytest.mark.parametrize("name", MADE)
def test_file_made_wrong_with_right_checksums(path, name):
    small_graph().save(path)
    change, message = MADE[name]
    path.write_bytes(rewritten(path.read_bytes(), change))
    with pytest.raises(FormatError, match=message):
        load_graph(path)


@pytest.mark.parametrize(
    "shape", [[10**12, 2], [3, -1], [3], [3.0, 2], "32", [10**4000, 2], [2, 2]]
)
def test_shape_of_sparse_points(path, shape):
    small_graph(sp.csr_matrix(np.arange(6.0).reshape(3, 2))).save(path)
    path.write_bytes(rewritten(path.read_bytes(), _header(points_shape=shape)))
    begin = time.monotonic()
    with pytest.raises(FormatError):
        load_graph(path)
    assert time.monotonic() - begin < 1


def test_graph_without_points_is_refused(path):
    Graph.from_weights([[1.0]]).save(path)

    def empty(header, arrays):
        for entry in header["arrays"]:
            entry["shape"] = [0]
        for name in arrays:
            arrays[name] = arrays[name][:0]

    content = rewritten(path.read_bytes(), empty)
    start = len(content) - 8 - 4 - 8  # one weight, one index, two bounds
    path.write_bytes(content[:start])
    with pytest.raises(FormatError):
        load_graph(path)


def test_header_that_is_too_long(path):
    encoded = b"[" + b"1," * (MOST_HEADER_BYTES // 2) + b"1]"
    prelude = PRELUDE.pack(MAGIC, VERSION, len(encoded))
    path.write_bytes(prelude + hashlib.sha256(prelude + encoded).digest() + encoded)
    with pytest.raises(FormatError, match="more than"):
        load_graph(path)


def test_names_with_half_a_character(path):
    graph = replace(small_graph(), params={"source": "\udcff.csv", "other": "\ud800"})
    graph.save(path)
    assert load_graph(path).params == graph.params


def test_existing_file_is_kept_if_asked(path):
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="exists already"):
        small_graph().save(path, overwrite=False)
    assert path.read_bytes() == b"old"


def test_rewriting_alone_does_no_harm(path):
    small_graph().save(path)
    path.write_bytes(rewritten(path.read_bytes(), lambda header, arrays: None))
    assert_same(small_graph(), load_graph(path))


class TestWriting:
    def test_old_file_survives_a_full_disk(self, path, monkeypatch):
        small_graph().save(path)
        before = path.read_bytes()

        def full(array):
            yield memoryview(b"some bytes")
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(graph_io, "_digest", lambda array: "")
        monkeypatch.setattr(graph_io, "_chunks", full)
        with pytest.raises(OSError, match="No space left"):
            small_graph().save(path)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == ["graph.otg"]

    def test_old_file_survives_an_interrupt_before_renaming(self, path, monkeypatch):
        small_graph().save(path)
        before = path.read_bytes()

        def interrupted(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            small_graph().save(path, include_points=False)
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == ["graph.otg"]

    def test_missing_directory(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
            small_graph().save(tmp_path / "nowhere" / "graph.otg")

    def test_path_is_a_directory(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="give the name of a file"):
            small_graph().save(tmp_path)

    def test_directory_not_writable(self, path, monkeypatch):
        def denied(*args):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(os, "open", denied)
        with pytest.raises(PermissionError, match="cannot write into the directory"):
            small_graph().save(path)

    def test_missing_file(self, path):
        with pytest.raises(FileNotFoundError):
            load_graph(path)

    def test_a_link_goes_on_pointing_to_its_file(self, path, tmp_path):
        link = tmp_path / "link.otg"
        link.symlink_to(path)
        small_graph().save(link)
        assert link.is_symlink()
        assert_same(small_graph(), load_graph(path))

    @pytest.mark.skipif(os.name != "posix", reason="permission bits")
    def test_permissions_of_any_new_file(self, path, tmp_path):
        (tmp_path / "ordinary").write_bytes(b"")
        small_graph().save(path)
        expected = stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == expected


@pytest.mark.parametrize(
    "call",
    [
        lambda path: quadratic_ot_graph([[0.0], [1.0]], eps=1.0).save(path),
        load_graph,
        CrossGraph.load,
    ],
)
@pytest.mark.parametrize("path", [5, None, ["a.otg"]])
def test_what_is_no_path_is_refused_by_name(call, path):
    """A number would be the file that is open under it, whatever that is."""
    with pytest.raises(TypeError, match="`path` must be the path of a file"):
        call(path)
