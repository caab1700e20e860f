"""Every public name has an entry in the reference: its parameters, their types, an example."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import warnings
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
MODULES = (
    "otgraph",
    "otgraph.graphs",
    "otgraph.methods",
    "otgraph.estimators",
    "otgraph.singlecell",
    "otgraph.singlecell.pp",
    "otgraph.singlecell.tl",
    "otgraph.singlecell.pl",
    "otgraph.distributed",
    "otgraph.plots",
    "otgraph.datasets",
    "otgraph.experiments",
    "otgraph.exceptions",
)
SPEC = importlib.util.spec_from_file_location("entries", DOCS / "entries.py")
ENTRIES = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(ENTRIES)
# Types of Python, which need no explanation.
PLAIN = {
    "Any", "Callable", "False", "Iterable", "Literal", "Mapping", "None", "PathLike", "Sequence",
    "True", "auto", "bool", "dict", "float", "int", "list", "np", "object", "os", "slice", "str",
    "tuple", "type",
}  # fmt: skip


def public_names():
    """Each object once, under its shortest name."""
    found: dict[int, tuple[str, object]] = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value) and name != "__version__":
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return dict(found.values())


PUBLIC = public_names()


def entries():
    """Full names that the page lists, and the members of modules that it shows whole."""
    listed, module = set(), ""
    for line in PAGE.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   (\w[\w.]*)$", line):
            listed.add(f"{module}.{found[1]}")
        elif found := re.match(r"\.\. automodule:: (\S+)", line):
            whole = importlib.import_module(found[1])
            listed.update(f"{found[1]}.{name}" for name in whole.__all__)
    return listed


def test_every_public_name_has_an_entry():
    homes = {id(value): name for name, value in PUBLIC.items()}
    described = {homes[id(resolved(name))] for name in entries()}
    assert described == set(PUBLIC)


def resolved(full_name):
    parts = full_name.split(".")
    value = importlib.import_module(parts[0])
    for part in parts[1:]:
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", PUBLIC)
def test_name_has_an_example(name):
    example = f"{inspect.getdoc(PUBLIC[name]) or ''}".partition("Examples\n---")[2]
    assert ">>>" in example or re.search(rf"\b{name.rpartition('.')[2]}\b", CODE)


def test_examples_of_the_page_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(CODE, {})


def callables(name):
    """A function, or a class and its methods, with the docstring that readers see."""
    value = PUBLIC[name]
    if inspect.isfunction(value):
        return [(name, value, described(value))]
    if not inspect.isclass(value) or issubclass(value, (Exception, str)):
        return []
    found = [(name, value, described(value))]
    for key, member in inspect.getmembers(value):
        own = (getattr(member, "__module__", "") or "").startswith("otgraph")
        if own and not key.startswith("_") and callable(member):
            found.append((f"{name}.{key}", member, described(member, name)))
    return found


def described(value, owner=""):
    return ENTRIES.expanded(inspect.getdoc(value) or "", value, owner)


def listed_parameters(docstring):
    """Entries of the sections that list parameters, or fields of a record."""
    found = []
    for section in ENTRIES.SECTION.finditer(docstring):
        following = ENTRIES.NEXT_SECTION.search(docstring, section.end())
        body = docstring[section.end() : following.start() if following else len(docstring)]
        found += ENTRIES.entries_of(body)
    return {name.lstrip("*"): text for names, text in found for name in names if len(names) == 1}


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_described_one_by_one(name):
    for place, function, docstring in callables(name):
        listed = listed_parameters(docstring)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
                continue
            assert listed.get(parameter.name, "").strip(), (place, parameter.name)
            assert not ENTRIES.REFERENCE.search(listed[parameter.name]), (place, parameter.name)
            assert parameter.annotation is not inspect.Parameter.empty, (place, parameter.name)


def test_a_reference_gives_the_entries_of_the_other_docstring():
    text = "Parameters\n----------\ntol, X\n    As in :func:`otgraph.eps_path`; for points only.\n"
    entries = listed_parameters(ENTRIES.expanded(text, None))
    assert list(entries) == ["tol", "X"]
    assert entries["tol"].split(".")[0].strip() == "Largest relative error of a row sum"
    assert entries["X"].endswith("For points only.")


def test_names_of_types_are_explained():
    explained = set(re.findall(r"`(\w+)`", PAGE.partition("## Types")[2]))
    known = PLAIN | explained | {name.rpartition(".")[2] for name in PUBLIC}
    unknown = set()
    for name in PUBLIC:
        for place, function, _ in callables(name):
            for parameter in inspect.signature(function).parameters.values():
                if isinstance(parameter.annotation, str) and not parameter.name.startswith("_"):
                    words = re.sub(r"'[^']*'|\"[^\"]*\"", "", parameter.annotation)
                    found = set(re.findall(r"(?<![\w.])[A-Za-z]\w*", words)) - known
                    unknown |= {(word, place) for word in found}
    assert not unknown
