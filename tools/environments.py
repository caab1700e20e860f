"""Python interpreters of this machine, and virtual environments made with them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WITHDRAWN = "is a yanked version"  # pip's words


def interpreter(version: str) -> str | None:
    """The Python of a version such as ``3.12``: this one, one on the path, or one of pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    newest_first = sorted(pyenv.glob(f"{version}.*"), key=_numbers, reverse=True)
    candidates = [
        sys.executable,
        shutil.which(f"python{version}"),
        *(str(folder / "bin" / "python") for folder in newest_first),
    ]
    # Each is asked: pyenv puts a `python3.12` on the path that may lead nowhere.
    return next((found for found in candidates if found and _version_of(found) == version), None)


def make(folder: Path, python: str, *requirements: str) -> Path:
    """A new environment with these arguments of ``pip install``; returns its Python."""
    subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
    inside = python_of(folder)
    if requirements:
        install(inside, *requirements)
    return inside


def make_once(folder: Path, python: str, *requirements: str) -> Path:
    """The same, unless the folder has been made from the same arguments and pyproject.toml."""
    stamp = folder / ".installed"
    wanted = "\n".join([python, *requirements, (ROOT / "pyproject.toml").read_text("utf-8")])
    if not stamp.exists() or stamp.read_text("utf-8") != wanted:
        make(folder, python, *requirements)
        stamp.write_text(wanted, "utf-8")
    return python_of(folder)


def install(python: Path, *requirements: str) -> None:
    """Let pip install; it speaks only of problems. A release that was withdrawn is an error."""
    quiet = ["--quiet", "--disable-pip-version-check"]
    command = [str(python), "-m", "pip", "install", *quiet, *requirements]
    done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    print(done.stderr, end="", file=sys.stderr)
    if done.returncode or WITHDRAWN in done.stderr:
        msg = f"pip could not install {' '.join(requirements)}, or chose a withdrawn release"
        raise SystemExit(msg)


def python_of(folder: Path) -> Path:
    """The interpreter inside an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _numbers(folder: Path) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", folder.name)]


def _version_of(python: str) -> str:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()
