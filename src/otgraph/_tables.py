"""Read text tables, with or without names of columns and rows.

The command line and the tables of cells both use this reader.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from otgraph._optional import require

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GZIP_MAGIC = b"\x1f\x8b"
SPACES = " "  # any number of spaces, as numpy.savetxt writes
SAMPLE_ROWS = 3  # a header and two rows of data are enough to detect the layout
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}
# A column of integers with one of these names numbers the rows.
INDEX_NAMES = {"", "index", "id", "row", "unnamed: 0"}
# A column with a larger share of numbers holds numbers with bad cells; otherwise it holds words.
MOSTLY = 0.5
DECIMAL = re.compile(r"[+-]?\d*\.\d*(e[+-]?\d+)?|[+-]?\d+e[+-]?\d+", re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """Layout of a text table."""

    separator: str
    decimal: str
    names: list[str] | None  # names of the columns; None without a header
    first_line: int  # number of lines before the data


def read_table(
    source: str | bytes, *, tabs: bool = False, header: bool | None = None
) -> tuple[Any, bool]:
    """A whole table; see :func:`table_chunks`."""
    return next(table_chunks(source, tabs=tabs, header=header))


def table_chunks(
    source: str | bytes,
    *,
    tabs: bool = False,
    header: bool | None = None,
    rows: int | None = None,
) -> Iterator[tuple[Any, bool]]:
    """Data frames of all columns, and whether the header says that the first column names rows.

    Columns of a table without a header are numbered.

    Parameters
    ----------
    source
        A path, or the content of a file; both may be compressed by gzip.
    tabs
        Whether tabs separate the columns; otherwise the separator is detected.
    header
        Whether the first line holds names; None detects it.
    rows
        Number of rows in a data frame; None reads all at once.

    Raises
    ------
    ValueError
        If the source is not a table. The message begins with "it"; callers put the file name first.
    """
    pandas = require("pandas", "data")
    with _opened(source) as stream:
        layout = _layout(stream, tabs, header)
    with _opened(source) as stream:
        try:
            found = pandas.read_csv(
                stream,
                sep=r"\s+" if layout.separator == SPACES else layout.separator,
                decimal=layout.decimal,
                header=None,  # pandas would rename columns of the same name
                skiprows=layout.first_line,
                skipinitialspace=True,
                encoding="utf-8-sig",
                low_memory=False,  # one type per column, even in long files
                chunksize=rows,
                **_exact_numbers(pandas.__version__),
            )
            columns = None
            for frame in [found] if rows is None else found:
                columns = columns or _columns(frame, layout.names)
                frame = frame.iloc[:, : len(columns)]
                frame.columns = columns
                yield frame, layout.names is not None and columns[0] == "" and len(columns) > 1
        except pandas.errors.EmptyDataError as error:
            msg = "it has no rows."
            raise ValueError(msg) from error
        except pandas.errors.ParserError as error:
            msg = str(error).strip().removeprefix("Error tokenizing data. C error: ")
            raise ValueError(msg) from error


def has_row_names(frame: Any, *, indexed: bool) -> bool:
    """Whether the first column names the rows.

    It does if its header is empty (`indexed`), if it holds words that all differ, or if it holds
    integers that all differ under a name such as ``index``.
    """
    first = frame.iloc[:, 0]
    if indexed or frame.shape[1] == 1:
        return indexed
    if first.dtype.kind in "iu":
        return str(frame.columns[0]).strip().lower() in INDEX_NAMES and bool(first.is_unique)
    if first.dtype.kind in "fb" or not first.is_unique:
        return False
    numbers = require("pandas", "data").to_numeric(first, errors="coerce").notna()
    return bool(numbers.mean() <= MOSTLY)


def first_word(column: Any) -> tuple[int, Any]:
    """Row and content of the first cell that is not a number; row 0 if all are numbers."""
    numbers = require("pandas", "data").to_numeric(column, errors="coerce")
    words = (numbers.isna() & column.notna()).to_numpy()
    row = int(words.argmax())
    return row, column.iloc[row]


def _exact_numbers(version: str) -> dict[str, str]:
    """Keywords of ``pandas.read_csv`` that read exactly the numbers that were written."""
    major, minor = (int(part) for part in version.split(".")[:2])
    # From 3.1 on this is the only way that pandas reads numbers, and the keyword is deprecated.
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _columns(frame: Any, names: list[str] | None) -> list[Any]:
    """Names of the columns to keep, or their numbers."""
    width = frame.shape[1]
    if (names is None or names[-1] == "") and frame.iloc[:, -1].isna().all():
        width -= 1  # all lines end in a separator
        names = names and names[:-1]
    if names is None:
        return list(range(width))
    if len(names) == width - 1:  # R writes no name for the column of row names
        names = ["", *names]
    if len(names) != width:
        msg = f"its first line has {len(names)} names but the rows have {width} fields."
        raise ValueError(msg)
    return names


@contextlib.contextmanager
def _opened(source: str | bytes) -> Iterator[IO[bytes]]:
    """The decompressed bytes. The first bytes show whether they are compressed, not the name."""
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as stream:
        packed = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        stream.seek(0)
        if not packed:
            yield stream
            return
        with gzip.GzipFile(fileobj=stream) as unpacked:
            yield unpacked  # type: ignore[misc]


def _layout(stream: IO[bytes], tabs: bool, header: bool | None) -> Layout:
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
        lines.detach()  # the caller closes the stream
    if not found:
        msg = "it is empty."
        raise ValueError(msg)
    rows = [[cell.strip() for cell in row] for row, _ in found]
    names, decimal = rows[0], "."
    if separator != ",":
        decimal = "," if any(map(DECIMAL_COMMA.fullmatch, rows[-1])) else "."
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    named = _is_header(rows[0], rows[1:]) if header is None else header
    first_line = found[0][1]  # number of the line on which the first row ends, from one
    return Layout(separator, decimal, names if named else None, first_line if named else 0)


def _separator(lines: Sequence[str]) -> str:
    """The separator: a tab or a semicolon if there is one, since commas may be decimal."""
    bare = [re.sub(r'"[^"]*"', "", line) for line in lines]
    for separator in "\t;,":
        if any(separator in line for line in bare):
            return separator
    return SPACES if bare and all(len(line.split()) > 1 for line in bare) else ","


def _is_header(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names.

    A word above numbers is a name. Data frames without names are written with the numbers of
    their columns. Such numbers are names if they follow a corner, or stand above decimals.
    """
    if not others:
        return len(first) > 1 and all(map(_is_word, first[1:]))
    corner, rest = first[0], first[1:]
    if len(rest) > 1 and _counts(rest) and (_is_word(corner) or corner == ""):
        return True
    shift = len(others[0]) == len(first) + 1  # R writes no corner
    below = [[row[i + shift] for row in others if i + shift < len(row)] for i in range(len(first))]
    numeric = [any(map(_is_number, cells)) for cells in below]
    names = sum(_is_word(cell) for cell, over in zip(first, numeric, strict=True) if over)
    numbers = sum(_is_number(cell) for cell, over in zip(first, numeric, strict=True) if over)
    if not any(numeric):
        return all(map(_is_word, rest or first))
    if names == 0:
        counted = _counts(first) and corner == "0"
        return counted and any(DECIMAL.fullmatch(cell) for cell in others[0])
    return names > numbers  # otherwise it is a row of data with bad cells


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


def _counts(cells: Sequence[str]) -> bool:
    """Whether cells are consecutive integers."""
    if not cells or not cells[0].isdecimal():
        return False
    return list(cells) == [str(int(cells[0]) + i) for i in range(len(cells))]
