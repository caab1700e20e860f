"""Imports that happen when they are needed: large packages, optional ones, names of our own.

They happen in one thread at a time (`importing`). Packages whose modules import each other, as
those of scikit-learn do, may otherwise be seen half loaded by a second thread. A process that is
forked meanwhile would wait for ever for the import of a thread that it does not have.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from types import ModuleType

__all__ = ["importing", "lazily", "require"]

# Seconds that a fork waits for an import. It cannot wait for ever: that import may wait for one of
# the thread that forks.
FORK_PATIENCE = 20.0

_lock = threading.RLock()


def importing() -> threading.RLock:
    """Context for an import that other threads may want at the same time."""
    return _lock


def _before_fork() -> None:
    _lock.acquire(timeout=FORK_PATIENCE)


def _after_fork_in_parent() -> None:
    with suppress(RuntimeError):  # the import took longer
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock  # the thread that holds it may not be here
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )


def require(module: str, extra: str | None = None) -> ModuleType:
    """Import an optional module, or say how to install it.

    ``extra`` is the extra of this package that installs it, and the subpackage that needs it. An
    error inside an installed package passes through.
    """
    package = module.partition(".")[0]
    try:
        with importing():
            importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        msg = f'otgraph.{extra} needs {package}; install it with `pip install "otgraph[{extra}]"`'
        if extra is None:
            msg = f"This needs {package}; install it with `pip install {package}`"
        raise ImportError(msg, name=package) from error
    with importing():
        return importlib.import_module(module)


def lazily(package: str, name: str, names: Collection[str], homes: Iterable[str]) -> Any:
    """One of the public names of a package, loaded when it is first used.

    It is a module of the package, or is found in the first of the modules ``homes`` that has it.
    """
    if name not in names:
        msg = f"module {package!r} has no attribute {name!r}"
        raise AttributeError(msg)
    with importing():
        if find_spec(f"{package}.{name}") is not None:
            value: object = importlib.import_module(f"{package}.{name}")
        else:
            modules = (importlib.import_module(f"{package}.{home}") for home in homes)
            value = next(getattr(module, name) for module in modules if hasattr(module, name))
    setattr(sys.modules[package], name, value)  # the next access does not come here
    return value
