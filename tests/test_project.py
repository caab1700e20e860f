"""What surrounds the package: citation, metadata, and the files of the project's host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import otgraph

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
HOME = "https://github.com/otgraph/otgraph"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
COMMIT = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def parsed(path):
    return yaml.safe_load(path.read_text("utf-8"))


class TestCitation:
    citation = parsed(ROOT / "CITATION.cff")

    def test_software(self):
        assert self.citation["version"] == PROJECT["version"] == otgraph.__version__
        assert self.citation["license"] == PROJECT["license"]
        assert self.citation["repository-code"] == PROJECT["urls"]["Source"] == HOME

    def test_paper(self):
        (paper,) = self.citation["references"]
        assert paper["title"] == (
            "Beyond kNN: Adaptive, Sparse Neighborhood Graphs via Optimal Transport"
        )
        names = [author["family-names"] for author in paper["authors"]]
        assert names == ["Matsumoto", "Zhang", "Schiebinger"]
        assert paper["year"] == 2022
        assert paper["url"].endswith("2208.00604")


class TestReadmeOnTheIndex:
    """The substitutions of pyproject.toml, applied as at build time."""

    def readme(self, text):
        hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
        for step in hook["substitutions"]:
            new = step["replacement"].replace("$HFPR_VERSION", PROJECT["version"])
            text = re.sub(step["pattern"], new, text)
        return text

    def test_no_link_is_relative(self):
        text = (ROOT / "README.md").read_text("utf-8")
        targets = re.findall(r"\]\(([^)\s]+)", self.readme(text))
        assert targets
        assert [found for found in targets if not found.startswith(("https://", "#"))] == []

    def test_pictures_are_files_and_links_are_pages(self):
        tag = f"v{PROJECT['version']}"
        text = self.readme("![a\nb](docs/a.png), [c](docs/c.md#d), [e](https://f.org), [g](#h)")
        assert text == (
            f"![a\nb](https://raw.githubusercontent.com/otgraph/otgraph/{tag}/docs/a.png), "
            f"[c]({HOME}/blob/{tag}/docs/c.md#d), [e](https://f.org), [g](#h)"
        )


class TestMetadata:
    def test_addresses_lead_to_one_home(self):
        addresses = dict(PROJECT["urls"])
        assert addresses.pop("Documentation") == "https://otgraph.readthedocs.io"
        assert {"Homepage", "Source", "Changelog", "Issues"} == set(addresses)
        assert all(address.startswith(HOME) for address in addresses.values())

    def test_users_get_no_pins(self):
        groups = PROJECT["optional-dependencies"].values()
        listed = [*PROJECT["dependencies"], *(one for group in groups for one in group)]
        assert [one for one in listed if "==" in one] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflows:
    def test_jobs_have_steps_and_end(self, path):
        workflow = parsed(path)
        assert {"name", "permissions", "jobs"} <= set(workflow)
        assert True in workflow  # `on`, which YAML 1.1 reads as a truth value
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"] <= 240
            assert all(("uses" in step) != ("run" in step) for step in job["steps"])

    def test_actions_are_pinned_to_commits(self, path):
        used = re.findall(r"uses: (.+)", path.read_text("utf-8"))
        assert used
        assert [action for action in used if not COMMIT.fullmatch(action)] == []

    def test_later_steps_cannot_read_the_token_of_the_checkout(self, path):
        steps = [step for job in parsed(path)["jobs"].values() for step in job["steps"]]
        checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
        assert checkouts
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)

    def test_targets_exist(self, path):
        makefile = (ROOT / "Makefile").read_text("utf-8")
        for target in re.findall(r"\bmake ([\w-]+)", path.read_text("utf-8")):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_three_workflows():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "tests"]


def test_matrix_is_what_the_classifiers_claim():
    matrix = parsed(ROOT / ".github/workflows/tests.yml")["jobs"]["suite"]["strategy"]["matrix"]
    claimed = {f"Programming Language :: Python :: {version}" for version in matrix["python"]}
    assert claimed <= set(PROJECT["classifiers"])
    assert sum(bool(re.search(r":: 3\.\d+$", one)) for one in PROJECT["classifiers"]) == len(
        claimed
    )
    assert len(matrix["os"]) == 3


def test_publishing_waits_for_the_checks_and_needs_no_password():
    jobs = parsed(ROOT / ".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["needs"] == "check"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets" not in (ROOT / ".github/workflows/release.yml").read_text("utf-8")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_form(path):
    form = parsed(path)
    if path.stem == "config":
        assert form["contact_links"]
    else:
        assert {"name", "description", "body"} <= set(form)
        assert len({part["id"] for part in form["body"]}) == len(form["body"])


def test_hooks_run_what_lint_runs():
    hooks = parsed(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    lint = (ROOT / "Makefile").read_text("utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    for hook in hooks:
        tool = hook["entry"].replace(".venv/bin/", "").replace("python -m ", "").split()
        name = tool[1] if tool[0] == "python" else tool[0]
        assert name in lint


@pytest.mark.parametrize("name", [".readthedocs.yaml", ".github/dependabot.yml"])
def test_services_know_their_version(name):
    assert parsed(ROOT / name)["version"] == 2


def test_pages_are_built_from_an_extra_that_exists():
    (install,) = parsed(ROOT / ".readthedocs.yaml")["python"]["install"]
    assert set(install["extra_requirements"]) <= set(PROJECT["optional-dependencies"])
