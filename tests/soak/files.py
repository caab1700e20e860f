"""Damaged files for every reader, and writers that are killed.

Every file is read by the command line in a process of its own, with limits of time and memory. It
may be read, or refused in one line with exit code 1; nothing else. A killed writer leaves the old
file or the new one, and the next writer removes what it left besides.

Processes are forked from one that has read a good file of every format, so that they import nothing
and thousands of files take minutes.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import io
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import anndata
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp

import otgraph
from otgraph import _isolated
from otgraph._atomic import PREFIX
from otgraph.cli.app import run
from otgraph.cli.reading import Points
from otgraph.cli.writing import Target, write_graph
from otgraph.graphs.io import MAGIC, PRELUDE

from .patience import waited

SECONDS = 60.0  # of processor time; then a reader hangs, its own limit is shorter
READER_SECONDS = 20.0
MEMORY = 2 << 30  # a small file that takes more than this is a fault
FORMATS = (
    "csv", "csv.gz", "tsv", "npy", "npz", "sparse.npz", "mtx", "mtx.gz", "parquet", "otg", "h5ad",
)  # fmt: skip
INTERPRETERS = 17  # every so many, a reader in a process of its own starts its own interpreter
# Numbers that a header may hold instead of its own.
NUMBERS = (b"0", b"-1", b"1e400", b"nan", b"99999999999", b"9" * 30, b"9" * 5000, b"4294967297")
VALUES = (None, True, -1, 0, 1.5, 10**12, 10**4000, "x", [], [[]], {"float": "nan"}, {})
KILLED = (".otg", ".csv", ".mtx", ".graphml")  # equal graphs give equal bytes


@functools.cache
def _samples():
    """Good files, one of each format, as bytes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)).round(3)
    frame = pd.DataFrame(X, columns=list("abcd"), index=[f"r{i}" for i in range(40)])
    sparse = sp.random(40, 6, density=0.3, random_state=0)
    adata = anndata.AnnData(sp.csr_matrix(np.abs(X).round()), obs=frame[["a"]].copy())
    adata.obs["kind"] = pd.Categorical(["left", "right"] * 20)
    adata.obsm["X_pca"] = X[:, :2]
    adata.uns["note"] = {"text": "words", "number": 3}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        frame.to_csv(path / "s.csv")
        frame.to_csv(path / "s.tsv", sep="\t")
        np.save(path / "s.npy", X)
        np.savez_compressed(path / "s.npz", X=X, names=frame.index.to_numpy(str))
        sp.save_npz(path / "s.sparse.npz", sparse)
        scipy.io.mmwrite(path / "s.mtx", sparse)
        frame.to_parquet(path / "s.parquet")
        adata.write_h5ad(path / "s.h5ad")
        otgraph.quadratic_ot_graph(X, 1.0, n_jobs=1).save(path / "s.otg")
        for name in ("csv", "mtx"):
            (path / f"s.{name}.gz").write_bytes(gzip.compress((path / f"s.{name}").read_bytes()))
        return {name: (path / f"s.{name}").read_bytes() for name in FORMATS}


def judge_file(seed):
    chance = random.Random(seed)
    kind = FORMATS[seed % len(FORMATS)]
    _import_readers()
    content = _damaged(kind, _samples()[kind], chance)
    told = f"file seed {seed}: .{kind}, {len(content)} bytes"
    interpreter = seed % INTERPRETERS == 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"s.{kind}"
        path.write_bytes(content)
        code, out, err = _in_child(lambda: _info(path, interpreter), Path(folder) / "said")
    if code is None:
        return [("file HUNG", told)]
    if code == 0:
        return [(f".{kind} read", "")]
    told += f": {err[-300:]!r}"
    if code != 1:
        return [("file CRASHED its reader", f"{told} exit code {code}")]
    if out or err.count("\n") != 1 or not err.startswith("otgraph: ") or "unexpected" in err:
        return [("file TOLD BADLY", told)]
    return [(f".{kind} refused", "")]


@functools.cache
def _import_readers():
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        for kind, content in _samples().items():
            path = Path(folder) / f"s.{kind}"
            path.write_bytes(content)
            assert run(["info", str(path)]) == 0, kind


def _info(path, interpreter):
    """The command; readers in a process of their own start a new interpreter only if asked."""
    if not interpreter:
        _isolated.subprocess = SimpleNamespace(
            Popen=_ForkedReader, DEVNULL=None, TimeoutExpired=subprocess.TimeoutExpired
        )
    return run(["info", str(path)])


class _ForkedReader:
    """In place of the ``Popen`` of a reader: the same function, limits and answer."""

    def __init__(self, command, *, stdout, **_):
        self.ended = False
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.dup2(stdout.fileno(), 1)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                _isolated.serve(json.loads(command[-1]))
                code = 0
            finally:
                os._exit(code)

    def wait(self, seconds=SECONDS):
        if self.ended:
            return None
        code, self.ended = waited(self.pid, seconds), True
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), seconds)
        return code

    def kill(self):
        """It has ended by itself, or by the limit of its time."""


def _damaged(kind, content, chance):
    """One to three changes; of what is inside if there is a checksum around it, half the time."""
    inside = chance.random() < 0.5
    if kind == "otg" and inside:
        return _remade_graph(content, chance)
    if kind.endswith(".gz") and inside:
        return gzip.compress(_mutated(gzip.decompress(content), chance))
    return _mutated(content, chance)


def _mutated(content, chance):
    data = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        # Half the changes hit the beginning, where headers are.
        span = len(data) if chance.random() < 0.5 else min(len(data), 400)
        place, length = chance.randrange(max(1, span)), chance.randint(1, 64)
        match chance.randrange(8):
            case 0:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case 1 if data:
                data[min(place, len(data) - 1)] ^= 1 << chance.randrange(8)
            case 2:
                data[place : place + length] = bytes(length)
            case 3:
                data[place : place + length] = chance.randbytes(length)
            case 4:
                del data[place:]
            case 5:
                del data[place : place + length]
            case 6:
                data[place:place] = data[place : place + length] * chance.randint(1, 20)
            case _:
                found = list(re.finditer(rb"\d+", data[: place + 400]))
                if found:
                    start, end = chance.choice(found).span()
                    data[start:end] = chance.choice(NUMBERS)
    return bytes(data)


def _remade_graph(content, chance):
    """A graph file with a changed header and right checksums."""
    _, version, length = PRELUDE.unpack(content[: PRELUDE.size])
    start = PRELUDE.size + 32
    header = json.loads(content[start : start + length])
    table, _ = chance.choice(list(_tables(header)))
    key = chance.choice(list(table) if isinstance(table, dict) else range(len(table)))
    table[key] = chance.choice(VALUES)
    encoded = json.dumps(header).encode()
    prelude = PRELUDE.pack(MAGIC, version, len(encoded))
    return (
        prelude + hashlib.sha256(prelude + encoded).digest() + encoded + content[start + length :]
    )


def _tables(value, depth=0):
    if isinstance(value, dict | list) and value:
        yield value, depth
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tables(item, depth + 1)


def _in_child(work, said):
    """Exit code of a forked process, None if it hangs, and what it printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside threads of BLAS, which have no part in it
        pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = _limited(work, said)
        finally:
            os._exit(code)
    code = waited(pid, SECONDS)
    out, err = (
        path.read_text(errors="replace") if path.exists() else ""
        for path in (said.with_suffix(".out"), said.with_suffix(".err"))
    )
    return code, out, err


def _limited(work, said):
    _isolated.START_SECONDS = READER_SECONDS
    for number, stream, suffix in ((1, "stdout", ".out"), (2, "stderr", ".err")):
        file = said.with_suffix(suffix).open("w")
        os.dup2(file.fileno(), number)
        setattr(sys, stream, file)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = work()
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


def judge_kill(seed):
    """Write two graphs in turn to one file, and kill the writer at any moment."""
    chance = random.Random(seed)
    suffix = KILLED[seed % len(KILLED)]
    told = f"kill seed {seed}: {suffix}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"g{suffix}"
        place = Target(str(path), suffix, force=True)
        known = []
        for size in (30, 300):
            _write(place, size)
            known.append(path.read_bytes())
        for _ in range(5):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pid = os.fork()
            if pid == 0:
                with contextlib.suppress(BaseException):
                    while True:
                        _write(place, 30)
                        _write(place, 300)
                os._exit(1)
            time.sleep(chance.uniform(0.0, 0.06))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
                return [("writer CRASHED", told)]
            if path.read_bytes() not in known:
                return [("TORN file after a kill", told)]
        left = _hidden(folder)
        _write(place, 30)
        if _hidden(folder) or path.read_bytes() != known[0]:
            return [("LEFTOVERS after the next write", told)]
    return [("five writers killed, leftovers removed" if left else "five writers killed", "")]


@functools.cache
def _graph(size):
    X = np.random.default_rng(size).normal(size=(size, 3))
    names = np.array([f"r{i}" for i in range(size)], dtype=object)
    return otgraph.knn_gaussian_graph(X, 5), Points(X, "points", names)


def _write(place, size):
    write_graph(place, *_graph(size))


def _hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(PREFIX)]
