"""Check what must hold before a release: ``python tools/release_check.py [STEP ...]``.

Without a step all of them run, in the order of ``STEPS``. A step that fails does not stop the next
ones; the report at the end has the time and the outcome of each. ``--tag v0.1.0`` also asks that
this is the tag of the version, and that the changelog dates it.
"""

from __future__ import annotations

import argparse
import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import NoReturn

import environments
import links
import suites
from environments import ROOT

DIST = ROOT / "out" / "dist"
PYTHONS = ["3.11", "3.12", "3.13"]
WORKERS = "2"  # as `make test`
PICTURES = (".png", ".jpg", ".svg", ".gif", ".pdf")
# Larger than the package, which is text, and smaller than one picture of an experiment too many.
MAX_WHEEL_BYTES = 1_000_000
SMOKE = """
import numpy as np, otgraph
graph = otgraph.quadratic_ot_graph(np.random.default_rng(0).normal(size=(200, 3)), eps=1.0)
assert graph.certificate.status == "exact", graph.certificate
print("otgraph", otgraph.__version__, graph)
"""


class Failure(Exception):
    """What a step found wrong."""


def fail(reason: str) -> NoReturn:
    """End a step."""
    raise Failure(reason)


def check_version(tag: str | None) -> str:
    """The version is the same everywhere, and the changelog has it."""
    version = project()["version"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    cited = re.search(r"^version: \"?([^\"\n]+)\"?$", citation, flags=re.MULTILINE)
    if cited is None or cited.group(1) != version:
        fail(f"pyproject.toml has version {version}, CITATION.cff another")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = re.search(rf"^## \[{re.escape(version)}\] - (.+)$", changelog, flags=re.MULTILINE)
    if heading is None:
        fail(f"CHANGELOG.md has no section '## [{version}] - date'")
    dated = re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading.group(1)) is not None
    if tag is None:
        return version if dated else f"{version}, not dated in the changelog yet"
    if tag != f"v{version}":
        fail(f"the tag is {tag}, the version {version}")
    if not dated:
        fail(f"CHANGELOG.md must date {version}; it says {heading.group(1)!r}")
    return tag


def check_tree() -> str:
    """Git knows every file, and none has changed."""
    changed = output("git", "status", "--porcelain")
    if changed:
        fail(f"not committed:\n{changed}")
    return output("git", "rev-parse", "--short", "HEAD")


def check_links() -> str:
    """Links between Markdown files lead somewhere."""
    files = links.markdown_files()
    broken = [line for path in files for line in links.broken_links(path)]
    if broken:
        fail("\n".join(broken))
    return f"{len(files)} files"


def check_lint() -> str:
    """Style, types and the direction of imports."""
    run("make", "lint")
    return ""


def check_pythons() -> str:
    """The tests pass on every Python that the classifiers name."""
    named = {f"Programming Language :: Python :: {version}" for version in PYTHONS}
    if not named <= set(project()["classifiers"]):
        fail(f"the classifiers do not name {', '.join(PYTHONS)}")
    return run_suites(PYTHONS)


def check_lowest() -> str:
    """The tests pass with every dependency at its lower bound."""
    return run_suites(["lowest"])


def check_build() -> str:
    """Wheel and source archive can be made, and hold what they should."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(release_python(), "-m", "build", "--outdir", DIST, ROOT)
    wheel, archive = built()
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        description = email.message_from_bytes(content.read(metadata))
    pictures = sorted(name for name in names if name.endswith(PICTURES))
    if pictures:
        fail(f"the wheel has pictures: {', '.join(pictures)}")
    lacking = sorted(package_files() - names)
    if lacking:
        fail(f"the wheel lacks {', '.join(lacking)}")
    if wheel.stat().st_size > MAX_WHEEL_BYTES:
        fail(f"the wheel has {wheel.stat().st_size} bytes, more than {MAX_WHEEL_BYTES}")
    relative = relative_links(description.get_payload())
    if relative:
        fail(f"on the package index these links lead nowhere: {', '.join(relative)}")
    if not description.get_all("Project-URL"):
        fail("the metadata has no project URLs")
    sizes = (f"{path.name} {path.stat().st_size / 1e3:.0f} kB" for path in (wheel, archive))
    return ", ".join(sizes)


def check_twine() -> str:
    """The package index will accept and display them."""
    run(release_python(), "-m", "twine", "check", "--strict", *built())
    return ""


def check_wheel() -> str:
    """In a new environment the wheel builds a graph, and its command starts."""
    wheel, _ = built()
    with tempfile.TemporaryDirectory() as folder:
        python = environments.make(Path(folder) / "venv", sys.executable, str(wheel))
        result = output(python, "-c", SMOKE, cwd=folder)
        environments.install(python, f"{wheel}[cli]")
        run(python.parent / "otgraph", "--help", cwd=folder)
    return result


def check_sdist() -> str:
    """In a new environment the source archive installs, and its own tests pass."""
    _, archive = built()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as content:
            content.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        python = environments.make(Path(folder) / "venv", sys.executable, f"{source}[test]")
        output(python, "-c", SMOKE, cwd=folder)
        command = [str(python), "-m", "pytest", "-n", WORKERS]
        code, summary = suites.run_tests(command, cwd=str(source))
    if code:
        fail(summary)
    return summary


def check_docs() -> str:
    """The pages are built without a warning."""
    run("make", "docs")
    return ""


STEPS = {
    "tree": check_tree,
    "version": check_version,
    "links": check_links,
    "lint": check_lint,
    "build": check_build,
    "twine": check_twine,
    "wheel": check_wheel,
    "sdist": check_sdist,
    "docs": check_docs,
    "lowest": check_lowest,
    "pythons": check_pythons,
}


def main() -> int:
    """Run the steps and report; 0 if all passed."""
    summary = "\n".join(f"  {name:<8} {step.__doc__}" for name, step in STEPS.items())
    parser = argparse.ArgumentParser(
        description=f"{__doc__}\nsteps:\n{summary}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("steps", nargs="*", metavar="STEP")
    parser.add_argument("--tag", help="the tag that is being released, such as v0.1.0")
    arguments = parser.parse_args()
    unknown = set(arguments.steps) - set(STEPS)
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    report, failed = [], False
    for name in arguments.steps or STEPS:
        print(f"\n=== {name}: {STEPS[name].__doc__}", flush=True)
        start = time.perf_counter()
        try:
            found = check_version(arguments.tag) if name == "version" else STEPS[name]()
            outcome = f"passed  {found}"
        except (Failure, subprocess.CalledProcessError, SystemExit) as error:
            outcome, failed = f"FAILED  {error}", True
        report.append(f"{name:<8} {time.perf_counter() - start:7.1f} s  {outcome}".rstrip())
        print(report[-1], flush=True)
    print("\nStep         Time    Outcome", *report, sep="\n")
    return int(failed)


# ---- Helpers


def project() -> dict:
    """The table ``[project]`` of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def package_files() -> set[str]:
    """What the package is made of: modules, pages of the explorer, the mark of a typed package."""
    source = ROOT / "src"
    files = (path for path in (source / "otgraph").rglob("*") if path.is_file())
    return {
        path.relative_to(source).as_posix() for path in files if "__pycache__" not in path.parts
    }


def relative_links(text: str) -> list[str]:
    """Targets of a Markdown text that only work beside the file."""
    return [found for found in links.LINK.findall(text) if not re.match(r"https?:|#", found)]


def built() -> tuple[Path, Path]:
    """The wheel and the source archive."""
    wheels, archives = list(DIST.glob("*.whl")), list(DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        fail("the step 'build' has to run first")
    return wheels[0], archives[0]


def release_python() -> Path:
    """An environment with the tools that build and check archives."""
    return environments.make_once(ROOT / ".venv-release", sys.executable, "build", "twine")


def run_suites(names: list[str]) -> str:
    """Results of the tests in several environments."""
    results = {name: suites.run(name, ["-n", WORKERS]) for name in names}
    text = "; ".join(f"{name}: {result}" for name, (_, result) in results.items())
    if any(code != 0 for code, _ in results.values()):
        fail(text)
    return text


def run(*command: object, cwd: str | Path = ROOT) -> None:
    """Run a command that may speak; an error is a failure."""
    subprocess.run([str(part) for part in command], cwd=cwd, check=True)


def output(*command: object, cwd: str | Path = ROOT) -> str:
    """What a command prints."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, stdout=subprocess.PIPE)
    if done.returncode:
        fail(f"{command[0]} ended with {done.returncode}")
    return done.stdout.decode().strip("\n")


if __name__ == "__main__":
    sys.exit(main())
