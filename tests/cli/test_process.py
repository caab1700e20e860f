"""What only a process of its own can show: signals, pipes, completion, and the README."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import otgraph
from otgraph.cli import main

SCRIPTS = Path(sys.executable).parent
README = Path(__file__).parents[2] / "README.md"


def environment(**variables: str) -> dict[str, str]:
    path = os.pathsep.join([str(SCRIPTS), os.environ["PATH"]])
    return {**os.environ, "PATH": path, **variables}


def start(*arguments: str, directory: Path, **pipes) -> subprocess.Popen:
    return subprocess.Popen(
        [SCRIPTS / "otgraph", *arguments], cwd=directory, env=environment(), text=True, **pipes
    )


class TestInterrupt:
    def test_while_computing(self, tmp_path, rng):
        np.save(tmp_path / "points.npy", rng.standard_normal((20_000, 60)))
        process = start(
            "graph", "points.npy", "-o", "g.otg", "--eps", "1", "--progress",
            directory=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        beginning = process.stderr.read(10)  # the first bar: the work has begun
        time.sleep(0.2)  # tqdm draws it while it makes it, and half of a bar ends in a traceback
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert beginning
        assert out == ""
        assert "Traceback" not in err
        assert err.splitlines()[-1].endswith("otgraph: interrupted")
        assert os.listdir(tmp_path) == ["points.npy"]

    @pytest.mark.parametrize(
        "suffix", ["otg", "npz", "mtx", "csv.gz", "parquet", "h5ad", "graphml"]
    )
    def test_while_writing(self, cli, points, monkeypatch, suffix):
        """The file is there under another name when the signal comes."""
        seen = []

        def interrupt(descriptor):
            seen.extend(set(os.listdir(".")) - {points})
            raise KeyboardInterrupt

        monkeypatch.setattr("otgraph._atomic.os.fsync", interrupt)
        done = cli("graph", points, "-o", f"g.{suffix}", "--eps", 1)
        assert (done.code, done.out, done.err) == (130, "", "otgraph: interrupted\n")
        assert len(seen) == 1
        assert seen != [f"g.{suffix}"]
        assert os.listdir(".") == [points]


def test_termination_leaves_no_partial_file(points, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["otgraph", "graph", points, "-o", "g.npz", "--eps", "1"])
    monkeypatch.setattr("otgraph._atomic.os.fsync", lambda _: signal.raise_signal(signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as caught:
            main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 143
    assert os.listdir(".") == [points]


def test_whoever_stops_reading_gets_no_traceback(tmp_path, rng):
    np.save(tmp_path / "points.npy", rng.standard_normal((50, 3)))
    process = start(
        "info", "points.npy", directory=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    with process:
        assert process.stderr.read() == ""
    assert process.returncode == 141


class TestCompletion:
    def complete(self, words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        done = subprocess.run(
            [SCRIPTS / "otgraph"],
            env=environment(_OTGRAPH_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=count),
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        return done.stdout.split()

    def test_commands(self):
        assert self.complete("otgraph e") == ["embed", "explore"]

    def test_options_and_their_values(self):
        assert self.complete("otgraph graph x.csv --mean") == ["--mean-degree"]
        assert self.complete("otgraph graph x.csv --method ") == [
            "quadratic", "entropic", "knn", "gaussian", "magic",
        ]  # fmt: skip

    def test_script(self):
        done = subprocess.run(
            [SCRIPTS / "otgraph"],
            env=environment(_OTGRAPH_COMPLETE="source_bash"),
            capture_output=True,
            text=True,
        )
        assert "complete -o default -F _otgraph_completion otgraph" in done.stdout


def test_commands_load_what_they_need_and_no_more(tmp_path, rng):
    np.save(tmp_path / "points.npy", rng.standard_normal((50, 3)))
    code = """
import sys
from otgraph.cli.app import run
def loaded(names):
    return sorted(set(names.split()) & {name.partition(".")[0] for name in sys.modules})
assert loaded("scipy sklearn numba pandas matplotlib anndata dask networkx rich") == []
assert run(["graph", "points.npy", "-o", "g.otg", "--eps", "1", "-q"]) == 0
# Not pandas and rich: scikit-learn itself loads them wherever they are installed.
assert loaded("matplotlib anndata dask networkx bokeh") == []
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_module_is_the_same_program():
    done = subprocess.run(
        [sys.executable, "-m", "otgraph", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"otgraph {otgraph.__version__}\n")


def test_commands_of_the_readme(tmp_path):
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), flags=re.DOTALL)
    (commands,) = [block for block in blocks if block.startswith("otgraph ")]
    done = subprocess.run(
        ["bash", "-e", "-c", commands],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    files = {path.suffix: path for path in tmp_path.iterdir()}
    assert set(files) == {".csv", ".otg", ".png"}
    assert len(commands.splitlines()) == 3
    assert otgraph.load_graph(files[".otg"]).certificate.status == "exact"
    assert files[".png"].read_bytes().startswith(b"\x89PNG")
