"""Text tables as people have them: with or without names of columns and of rows."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GZIP_MAGIC = b"\x1f\x8b"
SPACES = " "  # any number of them, as numpy.savetxt writes
SAMPLE_ROWS = 3  # a header and two rows of data tell all that a table can tell
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}
# Names of a column of numbers that is an index and no feature.
INDEX_NAMES = {"", "index", "id", "row", "unnamed: 0"}
DECIMAL = re.compile(r"[+-]?\d*\.\d*(e[+-]?\d+)?|[+-]?\d+e[+-]?\d+", re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """How a text table is arranged."""

    separator: str
    decimal: str
    names: list[str] | None  # of the columns, row names included
    first_line: int  # lines before the data
    indexed: bool  # the header says that the first column holds row names


def read_delimited(source: str | bytes, *, tabs: bool, header: bool | None) -> tuple[Any, bool]:
    """A data frame of all columns, and whether its first one is an index by its name.

    Parameters
    ----------
    source
        A path, or the text itself.
    tabs
        Whether the name of the file promises tabs.
    header
        Whether the first line holds names; None looks.
    """
    import pandas as pd

    with _opened(source) as stream:
        sample = _sample(stream, tabs)
    layout = _layout(sample, header)
    with _opened(source) as stream:
        try:
            frame = pd.read_csv(
                stream,
                sep=r"\s+" if layout.separator == SPACES else layout.separator,
                decimal=layout.decimal,
                header=None,
                skiprows=layout.first_line,
                skipinitialspace=True,
                encoding="utf-8-sig",
                low_memory=False,  # one type per column, whatever its length
                float_precision="round_trip",  # the bits that were written
            )
        except pd.errors.EmptyDataError as error:
            msg = "it has no rows."
            raise ValueError(msg) from error
        except pd.errors.ParserError as error:
            msg = str(error).strip().removeprefix("Error tokenizing data. C error: ")
            raise ValueError(msg) from error
    names = layout.names
    if (names is None or names[-1] == "") and frame.iloc[:, -1].isna().all():
        frame = frame.iloc[:, :-1]  # all lines end in a separator
        names = names and names[:-1]
    if names is None:
        return frame, layout.indexed
    if len(names) == frame.shape[1] - 1:  # R leaves out the corner
        names = ["", *names]
        layout = Layout(layout.separator, layout.decimal, names, layout.first_line, True)
    if len(names) != frame.shape[1]:
        msg = f"its first line has {len(names)} names but the rows have {frame.shape[1]} fields."
        raise ValueError(msg)
    frame.columns = names
    return frame, layout.indexed


def is_index_name(name: Any) -> bool:
    """Whether a column of this name numbers the rows."""
    return str(name).strip().lower() in INDEX_NAMES


@contextlib.contextmanager
def _opened(source: str | bytes) -> Iterator[IO[bytes]]:
    """The decompressed bytes; what is compressed is seen from its beginning, not its name."""
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as stream:
        packed = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        stream.seek(0)
        if not packed:
            yield stream
            return
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield unpacked  # type: ignore[misc]


@dataclass(frozen=True)
class _Sample:
    separator: str
    rows: list[list[str]]
    first_line: int  # number of the line on which the first row ends, from one


def _sample(stream: IO[bytes], tabs: bool) -> _Sample:
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    try:
        beginning = list(itertools.islice((line for line in lines if line.strip()), 2))
        separator = "\t" if tabs else _separator(beginning)
        lines.seek(0)
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        filled = ((row, reader.line_num) for row in reader if any(cell.strip() for cell in row))
        found = list(itertools.islice(filled, SAMPLE_ROWS))
    except (UnicodeDecodeError, csv.Error) as error:
        msg = "it is not text in UTF-8."
        raise ValueError(msg) from error
    finally:
        lines.detach()  # the stream is closed by whoever opened it
    if not found:
        msg = "it is empty."
        raise ValueError(msg)
    rows = [[cell.strip() for cell in row] for row, _ in found]
    return _Sample(separator, rows, found[0][1])


def _separator(lines: Sequence[str]) -> str:
    """Tabs and semicolons are chosen by writers on purpose; commas may be decimal."""
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    for separator in "\t;,":
        if any(separator in line for line in bare):
            return separator
    return SPACES if bare and all(len(line.split()) > 1 for line in bare) else ","


def _layout(sample: _Sample, header: bool | None) -> Layout:
    rows, comma = sample.rows, sample.separator != ","
    decimal = "," if comma and any(map(DECIMAL_COMMA.fullmatch, rows[-1])) else "."
    rows = [[cell.replace(",", ".") if comma else cell for cell in row] for row in rows]
    named = _is_header(rows[0], rows[1:]) if header is None else header
    names = sample.rows[0] if named else None
    return Layout(
        separator=sample.separator,
        decimal=decimal,
        names=names,
        first_line=sample.first_line if named else 0,
        indexed=names is not None and names[0] == "" and len(names) > 1,
    )


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names.

    A word above numbers is a name. Numbers are names only where they count the columns, as data
    frames without names are written: beside a corner, or above decimals.
    """
    if not others:
        return len(first) > 1 and all(map(_is_word, first[1:]))
    corner, rest = first[0], first[1:]
    if len(rest) > 1 and _counts(rest) and (_is_word(corner) or corner == ""):
        return True
    shift = len(others[0]) == len(first) + 1  # R leaves out the corner
    below = [[row[i + shift] for row in others if i + shift < len(row)] for i in range(len(first))]
    numeric = [any(map(_is_number, cells)) for cells in below]
    names = sum(_is_word(cell) for cell, over in zip(first, numeric, strict=True) if over)
    numbers = sum(_is_number(cell) for cell, over in zip(first, numeric, strict=True) if over)
    if not any(numeric):
        return all(map(_is_word, rest or first))
    if names == 0:
        return _counts(first) and corner == "0" and any(map(_is_decimal, others[0]))
    return names > numbers  # or else it is a row of data with bad cells


def _is_number(cell: str) -> bool:
    return cell.lower() not in MISSING and not _is_word(cell)


def _is_word(cell: str) -> bool:
    if cell.lower() in MISSING:
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def _is_decimal(cell: str) -> bool:
    return DECIMAL.fullmatch(cell) is not None


def _counts(cells: Sequence[str]) -> bool:
    """Whether cells are consecutive integers."""
    if not cells or not cells[0].isdecimal():
        return False
    return list(cells) == [str(int(cells[0]) + i) for i in range(len(cells))]
