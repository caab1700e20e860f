"""Output for people: colors and tables on a terminal, the same words as plain text in a pipe."""

from __future__ import annotations

import contextlib
import sys
from typing import IO, TYPE_CHECKING, NoReturn

from otgraph._text import COMPILING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

ERROR, WARNING, LABEL, NOTE = "red", "yellow", "bold", "dim"
GAP = 2  # spaces between the columns of a table


def refuse(message: str) -> NoReturn:
    """Give up: the message names the file or the option at fault, and a way out."""
    raise ValueError(message)


def say(text: str, stream: IO[str] | None = None, *, style: str = "") -> None:
    """Print a line; in this style on a terminal that shows colors."""
    stream = sys.stderr if stream is None else stream
    console = _console(stream)
    if console is None:
        print(text, file=stream)
    else:
        from rich.text import Text

        console.print(Text(text, style=style), soft_wrap=True)


def say_rows(rows: Sequence[tuple[str, str]], width: int, stream: IO[str]) -> None:
    """Print labels and texts; the labels stand out on a terminal."""
    console = _console(stream)
    for label, text in rows:
        line = f"{label:{width}}{text}" if label else text
        if console is None:
            print(line, file=stream)
            continue
        from rich.text import Text

        styled = Text(line)
        styled.stylize(LABEL, 0, len(label))
        if not label:  # a remark on the whole result
            styled.stylize(ERROR)
        console.print(styled, soft_wrap=True)


def say_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], stream: IO[str]
) -> None:
    """Print a table; the columns at the positions ``right`` are aligned to the right."""
    console = _console(stream)
    if console is None:
        print(plain_table(header, rows, right), file=stream)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(header):
        table.add_column(name, justify="right" if i in right else "left")
    for row in rows:
        table.add_row(*map(Text, row))  # as text: rich takes brackets for markup
    console.print(table)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> str:
    """A table with aligned columns."""
    lines = [list(header), *map(list, rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    aligned = [
        [f"{cell:{'>' if i in right else '<'}{widths[i]}}" for i, cell in enumerate(line)]
        for line in lines
    ]
    return "\n".join((" " * GAP).join(cells).rstrip() for cells in aligned)


@contextlib.contextmanager
def compilation_noted(shown: bool) -> Iterator[None]:
    """Say so if numba compiles kernels, which takes long and happens once on a machine."""
    from otgraph._numba import announced_compilation

    with announced_compilation(_note_compilation if shown else _say_nothing):
        yield


def _say_nothing() -> None:
    """For pipes and for those who asked for silence."""


def _note_compilation() -> None:
    from tqdm import tqdm

    with tqdm.external_write_mode(file=sys.stderr):  # above a progress bar, not in it
        say(COMPILING, style=NOTE)


def _console(stream: IO[str]) -> Console | None:
    """The terminal behind a stream; None for a pipe, so that rich is loaded for people only.

    rich itself respects NO_COLOR and terminals without colors.
    """
    if not stream.isatty():
        return None
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False, emoji=False)
