"""The steps before a release fail where they should."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import release_check

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The files that carry the version, to be changed."""
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(release_check, "ROOT", tmp_path)
    return tmp_path


def replace(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def test_version_of_this_project():
    assert release_check.check_version(None).startswith(release_check.project()["version"])


def test_version_that_differs_in_the_citation(copy):
    version = release_check.project()["version"]
    replace(copy / "CITATION.cff", f"version: {version}", "version: 99.0")
    with pytest.raises(release_check.Failure, match=r"CITATION\.cff"):
        release_check.check_version(None)


def test_version_without_a_changelog(copy):
    version = release_check.project()["version"]
    replace(copy / "CHANGELOG.md", f"## [{version}]", "## [99.0]")
    with pytest.raises(release_check.Failure, match=r"CHANGELOG\.md has no section"):
        release_check.check_version(None)


def test_tag(copy):
    version = release_check.project()["version"]
    text = (copy / "CHANGELOG.md").read_text("utf-8")
    heading = f"## [{version}] - "

    def dated(when):
        changed = re.sub(re.escape(heading) + ".*", heading + when, text)
        (copy / "CHANGELOG.md").write_text(changed, "utf-8")

    dated("2030-01-01")
    assert release_check.check_version(f"v{version}") == f"v{version}"
    with pytest.raises(release_check.Failure, match=r"the tag is v99\.0"):
        release_check.check_version("v99.0")
    dated("unreleased")
    with pytest.raises(release_check.Failure, match="must date"):
        release_check.check_version(f"v{version}")


def test_relative_links():
    text = "[a](docs/a.md) ![b](https://x.org/b.png) [c](#c) ![d\ne](d.png)"
    assert release_check.relative_links(text) == ["docs/a.md", "d.png"]


def test_files_of_the_package():
    files = release_check.package_files()
    assert {"otgraph/py.typed", "otgraph/__init__.py", "otgraph/plots/explorer/page.html"} <= files
    assert not any(name.endswith((".pyc", ".nbi", ".nbc")) for name in files)


def test_archives_have_to_be_built_first(tmp_path, monkeypatch):
    monkeypatch.setattr(release_check, "DIST", tmp_path)
    with pytest.raises(release_check.Failure, match="'build' has to run first"):
        release_check.built()


def test_pythons_are_those_of_the_classifiers():
    given = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    minor = r"Programming Language :: Python :: (3\.\d+)"
    named = [found.group(1) for found in (re.fullmatch(minor, one) for one in given) if found]
    assert named == release_check.PYTHONS
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert f"PYTHONS ?= {' '.join(named)}\n" in makefile


def run_script(*arguments):
    command = [sys.executable, ROOT / "tools" / "release_check.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_report():
    done = run_script("version", "links")
    assert done.returncode == 0, done.stdout + done.stderr
    report = done.stdout.partition("Outcome\n")[2].splitlines()
    assert [line.split()[0] for line in report] == ["version", "links"]
    assert all(re.search(r"\d\.\d s  passed", line) for line in report)


def test_failure_ends_in_an_error():
    done = run_script("version", "links", "--tag", "v99.0")
    assert done.returncode == 1
    assert "FAILED  the tag is v99.0" in done.stdout
    assert "links" in done.stdout.partition("Outcome\n")[2]  # the next step ran all the same


def test_unknown_step():
    done = run_script("nonsense")
    assert done.returncode == 2
    assert "no such step: nonsense" in done.stderr
