"""Print every dependency at its lower bound: ``python tools/lowest.py [EXTRA ...]``.

The bounds are those of pyproject.toml, of the package itself and of the named extras. A bound that
is given twice, by two extras, must be the same; a dependency without a bound is an error.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?(.*)")


def pins(project: dict[str, Any], extras: list[str]) -> list[str]:
    """Requirements such as ``numpy==2.0``, sorted by name."""
    found: dict[str, str] = {}
    for requirement in _requirements(project, extras):
        name, inner, bounds = _parts(requirement)
        lower = re.findall(r">=\s*([^,;\s]+)", bounds)
        if len(lower) != 1:
            msg = f"{requirement!r} must have one lower bound, such as {name}>=1.0"
            raise ValueError(msg)
        pin = f"{name}[{inner}]=={lower[0]}" if inner else f"{name}=={lower[0]}"
        if found.setdefault(name.lower(), pin) != pin:
            msg = f"{name} has two lower bounds: {found[name.lower()]} and {pin}"
            raise ValueError(msg)
    return [found[name] for name in sorted(found)]


def _requirements(project: dict[str, Any], extras: list[str]) -> list[str]:
    """Requirements of the package and the extras; extras of the package itself are followed."""
    result = list(project["dependencies"])
    waiting, seen = list(extras), set()
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for requirement in project["optional-dependencies"][extra]:
            name, inner, _ = _parts(requirement)
            if name == project["name"]:
                waiting.extend(part.strip() for part in inner.split(","))
            else:
                result.append(requirement)
    return result


def _parts(requirement: str) -> tuple[str, str, str]:
    """Name, extras and bounds of a requirement."""
    match = REQUIREMENT.fullmatch(requirement)
    if match is None:
        msg = f"{requirement!r} is not a requirement"
        raise ValueError(msg)
    name, inner, bounds = match.groups(default="")
    return name, inner, bounds


if __name__ == "__main__":
    print(*pins(tomllib.loads(PYPROJECT.read_text())["project"], sys.argv[1:]), sep="\n")
