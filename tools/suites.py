"""Run the tests in several environments: ``python tools/suites.py 3.12 lowest [-- PYTEST ...]``.

A version of Python stands for the newest releases of all dependencies on it. ``lowest`` stands for
the oldest Python with every dependency at its lower bound. Each has an environment of its own,
``.venv-3.12`` or ``.venv-lowest``, which is made anew when pyproject.toml has changed. A Python
that this machine does not have is skipped, and the summary says so; ``--require-all`` makes that a
failure.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib

import environments
import lowest

LOWEST_PYTHON = "3.11"
# Old releases beside newer ones of what they need: their deprecations are not ours.
LOWEST_OPTIONS = ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning"]


def main() -> int:
    """Run the suites; 0 if no test failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="+", metavar="3.12|lowest")
    parser.add_argument("--require-all", action="store_true", help="fail if a Python is missing")
    own, pytest = _split(sys.argv[1:])
    arguments = parser.parse_args(own)
    results = {name: run(name, pytest) for name in arguments.suites}
    print("\nSuite    Result")
    for name, (_, result) in results.items():
        print(f"{name:<8} {result}")
    missing = [name for name, (code, _) in results.items() if code is None]
    failed = [name for name, (code, _) in results.items() if code]
    if missing:
        print(f"\n*** NOT TESTED on {', '.join(missing)}: no such Python here ***", file=sys.stderr)
    return 1 if failed or len(missing) == len(results) or (missing and arguments.require_all) else 0


def run(name: str, pytest: list[str]) -> tuple[int | None, str]:
    """Exit code of pytest (None if there is no such Python), and its last line."""
    version = LOWEST_PYTHON if name == "lowest" else name
    found = environments.interpreter(version)
    if found is None:
        return None, f"SKIPPED: Python {version} is not installed here"
    print(f"\n=== {name}: {found}", flush=True)
    pins = []
    if name == "lowest":
        pytest = [*LOWEST_OPTIONS, *pytest]
        pins = lowest.pins(tomllib.loads(lowest.PYPROJECT.read_text())["project"], ["test"])
    folder = environments.ROOT / f".venv-{name}"
    python = environments.make_once(folder, found, *pins, "--editable", ".[test]")
    # By default numba keeps compiled code beside the source, for one numba per Python: two
    # environments of one Python would replace each other's.
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "numba")}
    return run_tests([str(python), "-m", "pytest", *pytest], env=environment)


def run_tests(
    command: list[str], cwd: str | None = None, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Show what pytest says while it runs; return its exit code and its summary."""
    last = ""
    with subprocess.Popen(
        command,
        cwd=cwd or environments.ROOT,
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            last = line.strip() or last
    return process.returncode, last.strip("= ") or f"exit code {process.returncode}"


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    sys.exit(main())
