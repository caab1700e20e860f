"""Wrong input and options: the command ends with one clear line."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import otgraph
from otgraph.cli import writing
from otgraph.cli.app import ExitCode, app


def graph(points, *options, output="g.otg"):
    return ("graph", points, "-o", output, *options)


def assert_refused(done, pattern: str):
    """One line, no traceback, exit code 1, nothing on standard output."""
    assert done.code == 1, done
    assert "Traceback" not in done.err
    (line,) = done.err.splitlines()
    assert line.startswith("otgraph: ")
    assert re.search(pattern, line), line
    assert done.out == ""


def files() -> set[str]:
    return {entry.name for entry in os.scandir(".")}


# Content of a file of points by its name, and what is said about it.
FILES = {
    "missing.npy": (None, r"missing\.npy: no such file"),
    "points.xyz": (b"1,2", r"the name of a file of points must end in .*\.npy, \.npz, \.csv"),
    "points": (b"1,2", r"the name of a file of points must end"),
    "empty.csv": (b"", r"empty\.csv: cannot be read: it is empty"),
    "header_only.csv": (b"a,b\n", r"cannot be read: it has no rows"),
    "binary.csv": (bytes(range(128, 256)), r"it is not text in UTF-8"),
    "ragged.csv": (b"1,2\n3,4,5\n6,7\n", r"Expected 2 fields in line 2, saw 3"),
    "short.csv": (b"a,b\n1,2\n3\n5,6\n", r"NaN at row 1, column 'b'"),
    "words.csv": (b"a,b\n1,x\n2,x\n", r"column 'b' is not numeric"),
    "only_words.csv": (b"a\nx\ny\n", r"no column holds numbers only: column 'a' is not"),
    "thousands.csv": (b'a\n"1,000"\n"2,000"\n', r"numbers only: .*without thousands separators"),
    "nan.csv": (b"1,2\n3,nan\n", r"NaN at row 1, column '1'"),
    "inf.csv": (b"1,2\n3,inf\n4,5\n", r"inf\.csv: contains infinity: 1 value.* in row 1"),
    "damaged.npy": (b"\x93NUMPY\x01", r"damaged\.npy: cannot be read"),
    "damaged.npz": (b"PK\x03\x04....", r"damaged\.npz: cannot be read"),
    "damaged.parquet": (b"PAR1....", r"damaged\.parquet: cannot be read"),
    "damaged.mtx": (b"%%MatrixMarket matrix coordinate real general\n2 2 9\n1 1 1\n",
                    r"damaged\.mtx: cannot be read"),
    "damaged.csv.gz": (b"\x1f\x8b\x08\x00....", r"damaged\.csv\.gz: cannot be read"),
    "damaged.mtx.gz": (b"\x1f\x8b\x08\x00....", r"damaged\.mtx\.gz: cannot be read"),
    "damaged.h5ad": (b"\x89HDF....", r"damaged\.h5ad: cannot be read"),
    "graph.otg": (b"", r"is a graph, and points are needed"),
    "one_row.csv": (b"a,b\n1,2\n", r"one_row\.csv: must hold points, .* 1 sample.* minimum of 2"),
}  # fmt: skip

# The same for arrays.
ARRAYS = {
    "1d": (np.zeros(5), r"must hold a table with one row per point, got .* \(5,\)"),
    "3d": (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
    "no rows": (np.zeros((0, 3)), r"shape \(0, 3\)"),
    "words": (np.array([["a", "b"]]), r"must hold real numbers, got dtype <U1"),
    "complex": (np.zeros((3, 2), dtype=complex), r"must hold real numbers"),
    "nan": (np.array([[0.0, 1.0], [1.0, 2.0], [np.nan, 1.0]]),
            r"npy: NaN at row 2, column '0' .*--missing drop-rows"),
}  # fmt: skip

# Options, and what is said about them.
OPTIONS = {
    "both": (["--eps", 1, "--mean-degree", 5], r"--eps and --mean-degree, got both: 1\.0 and 5"),
    "negative": (["--eps", -1], r"--eps must be a positive, finite number, got -1\.0"),
    "degree": (["--mean-degree", 90], r"--mean-degree must be at most n - 1 = 39"),
    "metric": (["--eps", 1, "--metric", "furlongs"], r"metric.* must be .*'furlongs'"),
    "foreign": (["--method", "magic", "--tol", 1, "--mass", "m"],
                r"--method magic has no --mass, --tol; it knows .*--thresh"),
    "unknown": (["--eps", 1, "--epsilon", 2], r"No such option.*--epsilon.* Try `otgraph graph"),
    "number": (["--eps", "one"], r"--eps must be a positive number or auto, got 'one'"),
    "choice": (["--method", "umap"], r"Invalid value for '--method'.*quadratic"),
    "mass": (["--eps", 1, "--mass", "nowhere.csv"], r"nowhere\.csv: no such file"),
    "dask": (["--method", "knn", "--dask", "tcp://x"], r"--dask computes quadratic graphs"),
    "column": (["--eps", 1, "--columns", "7"], r"no column '7'; there are 0, 1, 2"),
    "all dropped": (["--eps", 1, "--drop", "0,1,2"], r"no column is left"),
    "n_jobs": (["--eps", 1, "--n-jobs", 0], r"--n-jobs must be"),
}  # fmt: skip


class TestInput:
    """What a file of points can have wrong."""

    @pytest.mark.parametrize("name", FILES)
    def test_damaged_file_is_named(self, cli, name):
        content, pattern = FILES[name]
        if content is not None:
            Path(name).write_bytes(content)
        before = files()
        assert_refused(cli(*graph(name, "--eps", 1)), pattern)
        assert files() == before

    @pytest.mark.parametrize("name", ARRAYS)
    def test_array(self, cli, name):
        array, pattern = ARRAYS[name]
        np.save("points.npy", array)
        assert_refused(cli(*graph("points.npy", "--eps", 1)), pattern)

    def test_pickles_are_not_read(self, cli):
        np.save("points.npy", np.array([{}, []], dtype=object))
        assert_refused(cli(*graph("points.npy", "--eps", 1)), r"Python objects")

    def test_directory(self, cli):
        os.mkdir("folder.npy")
        assert_refused(cli(*graph("folder.npy", "--eps", 1)), r"is a directory")

    def test_standard_input(self, cli):
        done = cli(*graph("-", "--eps", 1), stdin=b"a,b\n1,2\n3,x\n4,y\n")
        assert_refused(done, r"standard input: column 'b' is not numeric: 'x' in row 1")
        assert_refused(cli(*graph("-", "--eps", 1), stdin=b""), r"standard input: .* it is empty")


class TestOptions:
    @pytest.mark.parametrize("name", OPTIONS)
    def test_refused(self, cli, points, name):
        options, pattern = OPTIONS[name]
        assert_refused(cli(*graph(points, *options)), pattern)
        assert files() == {"points.npy"}

    def test_missing_output(self, cli, points):
        assert_refused(cli("graph", points, "--eps", 1), r"Missing option '-o'")

    def test_unknown_command(self, cli):
        assert_refused(cli("grpah"), r"No such command 'grpah'")

    def test_mass_of_the_wrong_length(self, cli, points):
        np.save("mass.npy", np.ones(7))
        done = cli(*graph(points, "--eps", 1, "--mass", "mass.npy"))
        assert_refused(done, r"--mass must hold one number per point, shape \(40,\)")

    def test_damaged_mass(self, cli, points):
        Path("mass.npy").write_bytes(b"nonsense")
        done = cli(*graph(points, "--eps", 1, "--mass", "mass.npy"))
        assert_refused(done, r"mass\.npy: cannot be read")

    def test_infeasible_mass_names_the_way_out(self, cli, points):
        np.save("mass.npy", np.r_[100.0, np.ones(39)])
        done = cli(*graph(points, "--eps", 1, "--mass", "mass.npy"))
        assert_refused(done, r"--mass of point 0 .* or pass --self-loops or an --outlier-cost\.")


@pytest.fixture
def no_work(monkeypatch):
    """Fail if the points are read."""

    def fail(*_, **__):
        pytest.fail("the work began")

    monkeypatch.setattr("otgraph.cli.graphs.read_points", fail)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["both", "negative", "foreign", "dask", "mass"])
def test_options_are_checked_before_the_points_are_read(cli, points, name):
    options, pattern = OPTIONS[name]
    assert_refused(cli(*graph(points, *options)), pattern)


@pytest.mark.usefixtures("no_work")
class TestOutput:
    """An output that cannot be is refused before anything is read."""

    def test_exists(self, cli, points):
        Path("g.otg").write_text("precious")
        assert_refused(cli(*graph(points, "--eps", 1)), r"g\.otg: exists already; --force")
        assert Path("g.otg").read_text() == "precious"

    def test_unknown_format(self, cli, points):
        done = cli(*graph(points, "--eps", 1, output="g.xls"))
        assert_refused(
            done, r"g\.xls: the name of a graph must end in .*\.otg, .*\.graphml, \.h5ad"
        )

    def test_no_directory(self, cli, points):
        done = cli(*graph(points, "--eps", 1, output="no/where/g.otg"))
        assert_refused(done, r"the directory .*where does not exist")

    def test_two_things_on_standard_output(self, cli, points):
        done = cli(*graph(points, "--eps", 1, "--json", output="-"))
        assert done.code == 1
        assert "--json and -o - cannot both" in done.json["error"]

    def test_is_a_directory(self, cli, points):
        os.mkdir("g.otg")
        assert_refused(cli(*graph(points, "--eps", 1, "--force")), r"g\.otg: is a directory")

    def test_no_permission(self, cli, points, monkeypatch):
        os.mkdir("locked")
        os.chmod("locked", 0o555)
        if os.geteuid() == 0:  # whom no mode keeps out

            def refuse(*_, **__):
                raise PermissionError(13, "Permission denied")

            monkeypatch.setattr(writing.tempfile, "TemporaryFile", refuse)
        done = cli(*graph(points, "--eps", 1, output="locked/g.otg"))
        assert_refused(done, r"locked/g\.otg: cannot write into .*locked: Permission denied")


def test_force_replaces(cli, points):
    Path("g.otg").write_text("old")
    assert cli(*graph(points, "--eps", 1, "--force")).code == 0
    assert otgraph.load_graph("g.otg").n == 40


def test_a_full_disk_leaves_nothing(cli, points, monkeypatch):
    def fill(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("otgraph._atomic.os.fsync", fill)
    done = cli(*graph(points, "--eps", 1))
    assert_refused(done, r"no space left on device")
    assert files() == {"points.npy"}


class TestNotConverged:
    OPTIONS = ("--eps", 0.01, "--max-iter", 1, "--tol", 1e-9)

    def test_is_written_and_says_so(self, cli, points):
        done = cli(*graph(points, *self.OPTIONS))
        assert done.code == 3
        assert "NOT CONVERGED, not_converged" in done.out
        assert "otgraph: warning: The row sums are off by" in done.err
        assert otgraph.load_graph("g.otg").certificate.status == "not_converged"

    def test_in_json(self, cli, points):
        done = cli(*graph(points, *self.OPTIONS, "--json"))
        assert done.code == 3
        assert done.err == ""
        assert done.json["converged"] is False
        assert "row sums are off" in done.json["warnings"][0]

    def test_raise_writes_nothing(self, cli, points):
        done = cli(*graph(points, *self.OPTIONS, "--on-failure", "raise"))
        assert_refused(done, r"row sums are off by .* steps was reached; raise --max-iter")
        assert files() == {"points.npy"}


def test_errors_in_json(cli):
    done = cli("graph", "nowhere.csv", "-o", "g.otg", "--eps", 1, "--json")
    assert done.code == 1
    assert done.json == {"error": "nowhere.csv: no such file."}


def test_debug_shows_the_traceback(cli):
    done = cli("graph", "nowhere.csv", "-o", "g.otg", "--eps", 1, "--debug")
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1] == "otgraph: nowhere.csv: no such file."


def test_a_slip_of_ours_is_called_one(cli, points, monkeypatch):
    def slip(*_, **__):
        return {}["key"]

    monkeypatch.setattr("otgraph.cli.building.builder", slip)
    assert_refused(cli(*graph(points, "--eps", 1)), r"unexpected KeyError: key \(--debug")


def test_version_and_help(cli):
    assert cli("--version").out == f"otgraph {otgraph.__version__}\n"
    for arguments in ((), ("--help",), ("graph", "-h")):
        done = cli(*arguments)
        assert done.code == 0
        assert "Usage: otgraph" in done.out


def test_the_manual_lists_every_command():
    manual = Path(__file__).parents[2].joinpath("docs", "cli.md").read_text()
    listed = re.findall(r"^\| `otgraph (\w+)", manual, flags=re.MULTILINE)
    assert sorted(listed) == sorted(command.name for command in app.registered_commands)
    for code in ExitCode:
        assert f"| {code.value} |" in manual


def test_options_of_the_manual_exist():
    manual = Path(__file__).parents[2].joinpath("docs", "cli.md").read_text()
    known = {"--help", "--install-completion"}
    for command in app.registered_commands:
        for name in inspect.signature(command.callback).parameters:
            known |= {f"--{name.replace('_', '-')}", f"--no-{name.replace('_', '-')}"}
    known |= {"--quiet"}  # the other side of --verbose
    assert set(re.findall(r"--[a-z][a-z-]+", manual)) <= known


def test_without_the_extra(tmp_path):
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError(name='typer')")
    done = subprocess.run(
        [sys.executable, "-m", "otgraph", "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        'otgraph: the command line needs typer; install it with `pip install "otgraph[cli]"`\n'
    )
