"""Imports that happen when they are needed: optional packages, and names of our own."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import ModuleType

__all__ = ["lazily", "require"]


def require(module: str, extra: str | None = None) -> ModuleType:
    """Import an optional module, or say how to install it.

    ``extra`` is the extra of this package that installs it, and the subpackage that needs it. An
    error inside an installed package passes through.
    """
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        msg = f'otgraph.{extra} needs {package}; install it with `pip install "otgraph[{extra}]"`'
        if extra is None:
            msg = f"This needs {package}; install it with `pip install {package}`"
        raise ImportError(msg, name=package) from error
    return importlib.import_module(module)


def lazily(package: str, name: str, names: Collection[str], homes: Iterable[str]) -> Any:
    """One of the public names of a package, loaded when it is first used.

    It is a module of the package, or is found in the first of the modules ``homes`` that has it.
    """
    if name not in names:
        msg = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(msg)
    if find_spec(f"{package}.{name}") is not None:
        value: object = importlib.import_module(f"{package}.{name}")
    else:
        modules = (importlib.import_module(f"{package}.{home}") for home in homes)
        value = next(getattr(module, name) for module in modules if hasattr(module, name))
    setattr(sys.modules[package], name, value)  # the next access does not come here
    return value
