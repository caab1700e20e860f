"""Color and tables on a terminal, plain text in a pipe."""

from __future__ import annotations

import importlib.util
import io
import sys

import pytest

from otgraph._numba import announced_compilation
from otgraph._text import COMPILING
from otgraph.cli.terminal import ERROR, _note_compilation, say, say_rows, say_table

YELLOW, RED, BOLD, END = "\x1b[33m", "\x1b[31m", "\x1b[1m", "\x1b[0m"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


class TestColor:
    def test_on_a_terminal(self, terminal):
        say("otgraph: wrong", terminal, style=ERROR)
        assert terminal.getvalue() == f"{RED}otgraph: wrong{END}\n"

    def test_not_in_a_pipe(self):
        pipe = io.StringIO()
        say("otgraph: wrong", pipe, style=ERROR)
        say_rows([("edges", "[5]")], 12, pipe)
        assert pipe.getvalue() == "otgraph: wrong\nedges       [5]\n"

    @pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
    def test_not_where_it_is_not_wanted(self, terminal, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        say("otgraph: wrong", terminal, style=ERROR)
        assert RED not in terminal.getvalue()

    def test_long_lines_stay_lines(self, terminal):
        say("x" * 500, terminal)
        assert terminal.getvalue() == "x" * 500 + "\n"

    def test_labels_stand_out_and_brackets_are_text(self, terminal):
        say_rows([("edges", "[bold]5")], 12, terminal)
        assert terminal.getvalue() == f"{BOLD}edges{END}       [bold]5\n"

    def test_of_errors_and_warnings(self, cli, points, terminal, monkeypatch):
        monkeypatch.setattr(sys, "stderr", terminal)
        cli("graph", "nowhere.csv", "-o", "g.otg")
        assert terminal.getvalue() == f"{RED}otgraph: nowhere.csv: no such file.{END}\n"
        cli("graph", points, "-o", "g.otg", "--eps", 1, "--n-candidates", 900, "--no-progress")
        assert f"{YELLOW}otgraph: warning: --n-candidates" in terminal.getvalue()


class TestTables:
    ROWS = (["a[0]", "1"], ["b", "1,000"])

    def test_in_a_pipe(self):
        pipe = io.StringIO()
        say_table(["name", "n"], self.ROWS, right=(1,), stream=pipe)
        assert pipe.getvalue() == "name      n\na[0]      1\nb     1,000\n"

    def test_on_a_terminal(self, terminal):
        say_table(["name", "n"], self.ROWS, right=(1,), stream=terminal)
        assert "a[0]" in terminal.getvalue()
        assert "───" in terminal.getvalue()


KERNEL = """
from otgraph._numba import njit

@njit
def add(a, b):
    return a + b
"""


class TestCompilation:
    def kernel(self, path):
        spec = importlib.util.spec_from_file_location("kernel_of_a_test", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.add

    def test_is_announced_once_and_never_from_the_cache(self, tmp_path):
        path = tmp_path / "kernel_of_a_test.py"
        path.write_text(KERNEL)
        heard = []
        with announced_compilation(lambda: heard.append("first")):
            add = self.kernel(path)
            assert add(1, 2) == 3
            assert add(1.0, 2.0) == 3.0  # another type is compiled, but not announced again
        assert heard == ["first"]
        with announced_compilation(lambda: heard.append("second")):
            assert self.kernel(path)(1, 2) == 3
        assert heard == ["first"]

    def test_line(self, capsys):
        _note_compilation()
        assert capsys.readouterr().err == f"{COMPILING}\n"
