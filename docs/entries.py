"""Docstrings with an entry of its own for every parameter.

In the source, parameters that mean the same are described once: ``tol, max_iter`` "As in"
another function. Readers of the reference get the entries themselves, with their types.
"""

from __future__ import annotations

import inspect
import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import otgraph

if TYPE_CHECKING:
    from sphinx.application import Sphinx

SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n", re.MULTILINE)
NEXT_SECTION = re.compile(r"^\S[^\n]*\n-{3,}$", re.MULTILINE)
REFERENCE = re.compile(r"[Aa]s in (?::\w+:`~?|``)(?P<name>[\w.]+)`+(?P<rest>.*)", re.DOTALL)
BEFORE_NAPOLEON = 400  # which reads the sections; events run in the order of these numbers


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", _process, priority=BEFORE_NAPOLEON)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _process(
    app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    owner = name.rpartition(".")[0] if what == "method" else ""
    lines[:] = expanded("\n".join(lines), value, owner).splitlines()


def expanded(docstring: str, value: object, owner: str = "") -> str:
    """A docstring in which every parameter has an entry of its own.

    Parameters
    ----------
    docstring
        Text without common indentation.
    value
        The object that it describes.
    owner
        Full name of the class, for a method.
    """
    parts, end = [], 0
    for section in SECTION.finditer(docstring):
        following = NEXT_SECTION.search(docstring, section.end())
        stop = following.start() if following else len(docstring)
        parts += [docstring[end : section.end()]]
        body = docstring[section.end() : stop]
        parts += [_text(entries_of(body), value, owner), body[len(body.rstrip("\n")) :]]
        end = stop
    return "".join([*parts, docstring[end:]])


def entries_of(section: str) -> list[tuple[list[str], str]]:
    """Names and description of every entry of a section."""
    found: list[tuple[list[str], list[str]]] = []
    for line in section.rstrip("\n").splitlines():
        if line and not line.startswith(" "):
            found.append(([name.strip() for name in line.split(",")], []))
        elif found:
            found[-1][1].append(line)
    return [(names, "\n".join(lines)) for names, lines in found]


def _text(entries: list[tuple[list[str], str]], value: object, owner: str) -> str:
    lines = []
    for names, body in entries:
        reference = REFERENCE.search(body)
        known = {} if reference is None else _entries_at(reference["name"], value, owner)
        for name in names:
            lines.append(name)
            described = known.get(name.lstrip("*"))
            if reference is None or described is None:
                lines.append(body)
                continue
            before, rest = body[: reference.start()].strip(), reference["rest"].strip()
            lines += [f"    {before}"] if before else []
            lines.append(described.rstrip("\n"))
            lines += [f"    {_sentence(rest)}"] if len(rest) > 1 else []
    return "\n".join(lines)


def _sentence(rest: str) -> str:
    """What follows a reference, as a sentence of its own."""
    words = " ".join(rest.split()).lstrip(".,; ")
    return words[:1].upper() + words[1:]


def _entries_at(name: str, value: object, owner: str) -> dict[str, str]:
    found = _resolved(name, value, owner)
    return {} if found is None or found is value else all_entries(found)


@cache
def all_entries(value: object) -> dict[str, str]:
    """Description of every parameter of an object, by name."""
    text = expanded(inspect.getdoc(value) or "", value)
    found: dict[str, str] = {}
    for section in SECTION.finditer(text):
        following = NEXT_SECTION.search(text, section.end())
        body = text[section.end() : following.start() if following else len(text)]
        for names, described in entries_of(body):
            found |= {name.lstrip("*"): described for name in names}
    return found


def _resolved(name: str, value: object, owner: str) -> object | None:
    """What a reference in the docstring of an object means: a full name, or the nearest one."""
    if name.startswith("otgraph."):
        return _attribute(otgraph, name.removeprefix("otgraph."))
    parts = (getattr(value, "__module__", "") or "").split(".")
    modules = [sys.modules.get(".".join(parts[:n])) for n in range(len(parts), 0, -1)]
    places = [_attribute(otgraph, owner.removeprefix("otgraph.")), *modules]
    return next((found for place in places if (found := _attribute(place, name))), None)


def _attribute(start: object, path: str) -> object | None:
    for part in path.split("."):
        start = getattr(start, part, None)
    return start
