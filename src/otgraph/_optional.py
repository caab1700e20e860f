"""Optional packages: imported where they are used, with a hint when they are missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["require"]


def require(module: str, extra: str | None = None) -> ModuleType:
    """Import an optional module, or say how to install it.

    Parameters
    ----------
    module
        Dotted name, such as ``"matplotlib.collections"``.
    extra
        Extra of this package that installs it. The subpackage which needs the module has
        the same name. None for a package that no extra installs.

    Raises
    ------
    ImportError
        If the package is not installed. An error inside an installed package passes through.
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
