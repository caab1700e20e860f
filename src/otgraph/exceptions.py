"""Errors and warnings; every one derives from a class that callers already catch."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from otgraph._optional import importing

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ClusterError",
    "ConvergenceError",
    "ConvergenceWarning",
    "DisconnectedWarning",
    "ExperimentError",
    "FormatError",
    "InfeasibleError",
    "MemoryLimitError",
    "MissingPairsWarning",
    "StaleGraphWarning",
    "argument_error",
]

Kind = TypeVar("Kind", bound=Exception)


def __getattr__(name: str) -> object:
    """scikit-learn's warning when it is asked for: a graph needs nothing else of that package."""
    if name == "ConvergenceWarning":
        with importing():
            from sklearn.exceptions import ConvergenceWarning

        return ConvergenceWarning
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def argument_error(kind: type[Kind], argument: str, message: str) -> Kind:
    """An error of the given class whose attribute ``argument`` names the argument at fault.

    Callers catch the class, and programs that have other names for the arguments, such as the
    command line, read the attribute instead of the message.

    Parameters
    ----------
    kind
        Class of the error.
    argument
        Name of the argument.
    message
        Which argument, what it must be, what came, and the way out.

    Examples
    --------
    >>> from otgraph.exceptions import argument_error
    >>> error = argument_error(ValueError, "eps", "`eps` must be positive, got -1.0.")
    >>> error.argument
    'eps'
    """
    error = kind(message)
    error.argument = argument  # type: ignore[attr-defined]
    return error


def invalid(argument: str, text: str, kind: type[Exception] = ValueError) -> Exception:
    """An error about an argument whose message is its name and what it must be."""
    return argument_error(kind, argument, f"`{argument}` {text}")


class InfeasibleError(ValueError):
    """No plan has the wanted masses on the pairs that are allowed."""


class ClusterError(RuntimeError):
    """A Dask cluster cannot do the work, or was lost while doing it."""


class ConvergenceError(RuntimeError):
    """The solver stopped short of its tolerance and ``on_failure="raise"`` was asked for."""


class FormatError(ValueError):
    """A file is not a graph of this package, is damaged, or is newer than this version."""


class MemoryLimitError(MemoryError):
    """The result would not fit into memory; raised before anything is allocated."""


class DisconnectedWarning(UserWarning):
    """Points fall into groups that share no edge."""


class MissingPairsWarning(UserWarning):
    """An approximate search misses a noticeable share of the pairs that matter."""


class StaleGraphWarning(UserWarning):
    """A stored graph was built on other cells than the object has now."""


class ExperimentError(ValueError):
    """An experiment cannot be run as asked: unknown name, unwritable folder, unsuitable data."""
