"""Interpreters are found, and one that is missing is not passed over in silence."""

from __future__ import annotations

import sys

import environments
import pytest
import suites

THIS = "{}.{}".format(*sys.version_info[:2])


def test_this_python_is_found():
    assert environments.interpreter(THIS) == sys.executable


def test_python_on_the_path_that_leads_nowhere(tmp_path, monkeypatch):
    fake = tmp_path / "python3.99"
    fake.write_text("#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert environments.interpreter("3.99") is None


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
def test_newest_python_of_pyenv(tmp_path, monkeypatch):
    for release in ("3.99.9", "3.99.10"):
        folder = tmp_path / "versions" / release / "bin"
        folder.mkdir(parents=True)
        (folder / "python").write_text("#!/bin/sh\necho 3.99\n")
        (folder / "python").chmod(0o755)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert "3.99.10" in environments.interpreter("3.99")


def test_environment_is_made_again_when_its_arguments_change(tmp_path, monkeypatch):
    made = []

    def make(folder, python, *requirements):
        folder.mkdir(exist_ok=True)
        made.append(requirements)

    monkeypatch.setattr(environments, "make", make)
    for requirements in [("a",), ("a",), ("a", "b")]:
        environments.make_once(tmp_path / "venv", sys.executable, *requirements)
    assert made == [("a",), ("a", "b")]


def results(monkeypatch, capsys, given, *arguments):
    monkeypatch.setattr(suites, "run", lambda name, pytest: given[name])
    monkeypatch.setattr(sys, "argv", ["suites.py", *given, *arguments])
    return suites.main(), capsys.readouterr()


def test_missing_python_is_reported(monkeypatch, capsys):
    given = {"3.98": (0, "5 passed"), "3.99": (None, "SKIPPED: Python 3.99 is not installed here")}
    code, said = results(monkeypatch, capsys, given)
    assert code == 0
    assert "3.99     SKIPPED" in said.out
    assert "NOT TESTED on 3.99" in said.err
    code, _ = results(monkeypatch, capsys, given, "--require-all")
    assert code == 1


def test_nothing_tested_is_a_failure(monkeypatch, capsys):
    code, _ = results(monkeypatch, capsys, {"3.99": (None, "SKIPPED")})
    assert code == 1


def test_failed_suite_is_a_failure(monkeypatch, capsys):
    code, said = results(monkeypatch, capsys, {"3.98": (1, "1 failed"), "lowest": (0, "5 passed")})
    assert code == 1
    assert "lowest   5 passed" in said.out


def test_summary_of_a_run(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_one.py"]
    code, summary = suites.run_tests(command, cwd=str(tmp_path))
    assert code == 0
    assert summary.startswith("1 passed in")


def test_environments_do_not_share_compiled_code(monkeypatch):
    given = []
    monkeypatch.setattr(environments, "interpreter", lambda version: sys.executable)
    monkeypatch.setattr(
        environments, "make_once", lambda folder, *_: environments.python_of(folder)
    )
    monkeypatch.setattr(suites, "run_tests", lambda command, env: given.append((command, env)))
    for name in (suites.LOWEST_PYTHON, "lowest"):
        suites.run(name, [])
    folders = [env["NUMBA_CACHE_DIR"] for _, env in given]
    assert len(set(folders)) == 2
    for folder, (command, _) in zip(folders, given, strict=True):
        assert command[0].startswith(folder.removesuffix("numba"))
