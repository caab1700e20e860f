"""What only a process of its own can show: signals, pipes, completion, and the README."""

from __future__ import annotations

import os
import re
import shlex
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


# In C, where no handler in Python runs.
FOREVER = "import collections, itertools; collections.deque(itertools.repeat(0), maxlen=0)"


class TestSecondTermination:
    """The first signal waits for compiled code to return; the second one does not."""

    CODE = """
from otgraph.cli import _end_on_termination
_end_on_termination()
print("ready", flush=True)
{work}
"""

    @pytest.mark.parametrize(
        ("work", "codes"),
        [
            (FOREVER, [-signal.SIGTERM]),
            ("import time; time.sleep(60)", [143, -signal.SIGTERM]),
        ],
    )
    def test_kills_at_once(self, work, codes):
        process = subprocess.Popen(
            [sys.executable, "-c", self.CODE.format(work=work)], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(1.0)  # until the compiled code runs
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) in codes


class TestStandardStreams:
    """Streams that are closed, or that cannot be written to."""

    @pytest.fixture
    def shell(self, tmp_path, rng):
        np.save(tmp_path / "x.npy", rng.standard_normal((30, 3)))

        program = f"{shlex.quote(sys.executable)} -m otgraph"

        def call(command: str) -> subprocess.CompletedProcess:
            return subprocess.run(
                ["bash", "-c", command.replace("otgraph", program)],
                cwd=tmp_path, env=environment(), capture_output=True, text=True,
            )  # fmt: skip

        return call

    @pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
    def test_closed_ones_count_as_nowhere(self, shell, tmp_path, closed):
        done = shell(f"otgraph graph x.npy -o g.otg --eps 1 {closed}")
        assert (done.returncode, done.stderr) == (0, "")
        if ">&-" not in closed.split():
            assert done.stdout.startswith("g.otg: exact")
        assert otgraph.load_graph(tmp_path / "g.otg").n == 30

    def test_closed_input_is_empty(self, shell):
        done = shell("otgraph graph - -o g.otg --eps 1 <&-")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("otgraph: standard input: cannot be read")
        assert done.stderr.count("\n") == 1

    def test_errors_have_their_code_without_a_stream(self, shell):
        assert shell("otgraph info missing.npy 2>&-").returncode == 1
        assert shell("otgraph info missing.npy 2>/dev/full").returncode == 1

    @pytest.mark.parametrize(
        "command",
        ["graph x.npy -o g.otg --eps 1 --json", "info x.npy", "--version", "graph x.npy -o - -k 3"
         " --method knn"],
    )  # fmt: skip
    def test_full_disk_behind_the_output(self, shell, command):
        done = shell(f"otgraph {command} > /dev/full")
        assert done.returncode == 1
        assert done.stderr == "otgraph: standard output: no space left on device\n"

    def test_error_as_json_on_a_full_disk(self, shell):
        done = shell("otgraph info missing.npy --json > /dev/full")
        assert done.returncode == 1
        assert done.stderr == "otgraph: missing.npy: no such file.\n"

    def test_name_that_is_no_text(self, shell, tmp_path):
        os.rename(tmp_path / "x.npy", os.fsencode(tmp_path) + b"/\xff.npy")
        done = shell("export PYTHONIOENCODING=utf-8:strict; otgraph info $'\\xff.npy'")
        assert (done.returncode, done.stderr) == (0, "")
        assert r"\udcff.npy" in done.stdout


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
            "quadratic", "multiscale", "entropic", "knn", "gaussian", "magic",
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
