"""Messages of the library in the words of the command line, on one line."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from otgraph.cli.options import GraphOptions, ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYWORDS = {*GraphOptions.__dataclass_fields__, *ReadOptions.__dataclass_fields__}
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


def one_line(error: object) -> str:
    """What went wrong, without a traceback and with options instead of arguments."""
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
    return ARGUMENT.sub(_as_option, message)


# What the library raises for bad input, and readers for bad files.
_EXPECTED = (str, Warning, OSError, ValueError, TypeError, ImportError, MemoryError, RuntimeError)


def _of_file(error: OSError) -> str:
    reason = str(error.strerror)
    reason = reason[:1].lower() + reason[1:]
    return f"{error.filename}: {reason}" if error.filename else reason


def _as_option(match: re.Match[str]) -> str:
    name, inside, behind = match.groups()
    if name not in KEYWORDS:
        return match.group(0)
    flag = name.replace("_", "-")
    value = inside or behind
    if value == "True":
        return f"--{flag}"
    if value == "False":
        return f"--no-{flag}"
    return f"--{flag}" if value is None else f"--{flag} {value.strip(chr(39))}"
