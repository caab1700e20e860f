"""Readers that crash, hang or take all memory do so in another process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

from otgraph import _isolated
from otgraph._isolated import read_isolated
from otgraph.exceptions import FormatError, MemoryLimitError

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    return str(tmp_path / "file")


def test_result_comes_back(path):
    with pytest.warns(UserWarning, match="not unique") as heard:
        found = read_isolated("bad_readers:chatty", path)
    assert found["path"] == path
    assert found["pid"] != os.getpid()
    np.testing.assert_array_equal(found["array"], np.arange(5.0))
    assert found["empty"].shape == (0,)
    assert [str(each.message) for each in heard] == ["names are not unique"]


def test_arrays_are_mapped_writable_and_aligned(path):
    numbers, few, transposed = read_isolated("bad_readers:large", path)
    np.testing.assert_array_equal(numbers, np.arange(10**6))
    np.testing.assert_array_equal(few, np.arange(7))
    np.testing.assert_array_equal(transposed, np.eye(3))
    for array in (numbers, few, transposed):
        assert array.ctypes.data % 64 == 0
        array[...] = 3
        assert np.all(array == 3)


@pytest.mark.parametrize(
    ("reader", "kind", "match"),
    [
        ("crash", FormatError, r"its reader crashed \(SIGSEGV\)"),
        ("leave", FormatError, "its reader ended with exit code 7"),
        ("fail", FormatError, "such thing"),
        ("silent", FormatError, "ValueError"),
        ("greedy", MemoryLimitError, r"it needs more than the .*B that are free"),
    ],
)
def test_what_becomes_of_faults(path, reader, kind, match):
    with pytest.raises(kind, match=match) as caught:
        read_isolated(f"bad_readers:{reader}", path)
    assert "\n" not in str(caught.value)


def test_reader_that_does_not_end(path, monkeypatch):
    monkeypatch.setattr(_isolated, "START_SECONDS", 2.0)
    with pytest.raises(FormatError, match="does not come to an end"):
        read_isolated("bad_readers:hang", path)


def test_reader_outlives_nobody(path):
    """Its own limit of processor time ends it if the process that waits is killed."""
    code = (
        "import sys; from otgraph import _isolated; _isolated.START_SECONDS = 0.5;"
        "_isolated.subprocess.Popen.wait = lambda *_: __import__('os')._exit(0);"
        f"_isolated.read_isolated('bad_readers:hang', {path!r})"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, timeout=60)
    assert done.returncode == 0
    while _runs(path):
        assert time.monotonic() - begin < 60
        time.sleep(0.2)


def _runs(word: str) -> bool:
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                command = file.read()
        except OSError:
            continue
        if word.encode() in command and int(number) != os.getpid():
            return True
    return False


def test_nothing_is_left_and_the_reader_dies_with_an_interrupt(path, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import sys; from otgraph._isolated import read_isolated;"
        "print('ready', flush=True);"
        f"read_isolated('bad_readers:slow', {path!r})"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while not os.path.getsize(path) and time.monotonic() < deadline:
            time.sleep(0.05)
        with open(path) as file:
            reader = int(file.read())
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(reader, 0)
    assert os.listdir(tmp_path) == ["file"]


def test_the_meantime_is_used_and_its_errors_end_the_reader(path):
    def fail():
        raise ImportError

    with pytest.raises(ImportError):
        read_isolated("bad_readers:slow", path, meanwhile=fail)
