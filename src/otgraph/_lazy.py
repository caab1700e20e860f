"""Names of a package that are loaded when they are first used."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package.

    ``homes`` gives the module below the package in which each name is found; a module is its own.
    """

    def load(name: str) -> Any:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        value: Any = importlib.import_module(f"{package}.{homes[name]}")
        if name != homes[name]:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)  # the next access does not come here
        return value

    return load
