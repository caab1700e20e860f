"""Messages of the library in the words of the command line, on one line."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

# `name`, `name=value` and `name`=value, as error messages of the library write arguments.
ARGUMENT = re.compile(r"`(\w+)(?:=([^`]*))?`(?:=([^\s,.;]+(?:\.\d+)?))?")


# How the library begins what it has to say about the points.
SUBJECT = re.compile(r"^(Input X|`X`|Found array) ")


@contextlib.contextmanager
def naming(source: str) -> Iterator[None]:
    """Complaints about the points become complaints about the file they came from."""
    try:
        yield
    except ValueError as error:
        if not SUBJECT.match(str(error)):
            raise
        msg = f"{source}: {SUBJECT.sub('', str(error))}"
        raise ValueError(msg) from error


def one_line(error: object, options: Collection[str] = ()) -> str:
    """What went wrong, without a traceback.

    Parameters
    ----------
    error
        An exception, a warning or a text.
    options
        Arguments that are options of the command, and are to be called so.
    """
    if isinstance(error, OSError) and error.strerror:
        return _of_file(error)
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory"
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    message = " ".join(str(text).split())
    sentence = isinstance(error, KeyError) and " " in message  # raised for people, not by a slip
    if not (sentence or isinstance(error, _EXPECTED)):
        message = (
            f"unexpected {type(error).__name__}: {message} (--debug shows where; please report it)"
        )
    return ARGUMENT.sub(lambda match: _as_option(match, options), message)


# What the library raises for bad input, and readers for bad files.
_EXPECTED = (str, Warning, OSError, ValueError, TypeError, ImportError, MemoryError, RuntimeError)


def _of_file(error: OSError) -> str:
    reason = str(error.strerror)
    reason = reason[:1].lower() + reason[1:]
    return f"{error.filename}: {reason}" if error.filename else reason


def _as_option(match: re.Match[str], options: Collection[str]) -> str:
    name, inside, behind = match.groups()
    if name not in options:
        return match.group(0)
    flag = name.replace("_", "-")
    value = inside or behind
    if value == "True":
        return f"--{flag}"
    if value == "False":
        return f"--no-{flag}"
    return f"--{flag}" if value is None else f"--{flag} {value.strip(chr(39))}"
