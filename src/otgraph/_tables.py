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
    from types import ModuleType

    import pandas as pd

GZIP_MAGIC = b"\x1f\x8b"
SPACES = " "  # any number of spaces, as numpy.savetxt writes
SAMPLE_ROWS = 3  # a header and two rows of data are enough to detect the layout
MISSING = {"", "na", "nan", "n/a", "null", "none", "?"}
NUMERIC = "iufb"  # kinds of numpy types that count as numbers
MOST_CHARACTERS = 2**31 - 1  # of a cell; the csv module allows 131,072 unless told otherwise
# A column of integers with one of these names numbers the rows.
INDEX_NAMES = {"", "index", "id", "row", "unnamed: 0"}
# A column with a larger share of numbers holds numbers with bad cells; otherwise it holds words.
MOSTLY = 0.5
DECIMAL = re.compile(r"[+-]?\d*\.\d*(e[+-]?\d+)?|[+-]?\d+e[+-]?\d+", re.IGNORECASE)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE)
WITH_COMMA = re.compile(r"[+-]?\d+(,\d+)?(e[+-]?\d+)?", re.IGNORECASE)  # or a whole number
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")


NOT_UTF8 = (
    "it is not text in UTF-8. Spreadsheets save such text as 'CSV UTF-8'; "
    "`iconv -f latin1 -t utf-8 FILE` converts older files."
)


@dataclass(frozen=True)
class Layout:
    """Layout of a text table."""

    separator: str
    decimal: str
    names: list[str] | None  # names of the columns; None without a header
    first_line: int  # number of lines before the data
    n_columns: int  # of the widest row at the beginning

    @property
    def commas_may_be_decimal(self) -> bool:
        """Whether no comma separates columns."""
        return self.separator != ","


def read_table(source: str | bytes, **options: Any) -> tuple[pd.DataFrame, bool]:
    """A whole table; see :func:`table_chunks`."""
    return next(table_chunks(source, **options))


def table_chunks(
    source: str | bytes,
    *,
    tabs: bool = False,
    header: bool | None = None,
    rows: int | None = None,
    blank_rows: bool = False,
) -> Iterator[tuple[pd.DataFrame, bool]]:
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
    blank_rows
        Whether an empty line of a table with one column is a row without a value.

    Raises
    ------
    ValueError
        If the source is not a table. The message begins with "it"; callers put the file name first.
    """
    pandas = require("pandas", "data")
    with _text(source) as text:
        layout = _layout(text, tabs, header)
    blanks = blank_rows and layout.n_columns == 1
    with _text(source) as text:
        # Not `skiprows`: pandas and the csv module disagree about quotes in these lines.
        for _ in range(layout.first_line):
            text.readline()
        try:
            found = pandas.read_csv(
                text,
                sep=r"\s+" if layout.separator == SPACES else layout.separator,
                decimal=layout.decimal,
                header=None,  # pandas would rename columns of the same name
                skipinitialspace=True,
                names=[0] if blanks else None,  # pandas cannot count them in an empty line
                skip_blank_lines=not blanks,
                na_values=sorted(MISSING),
                low_memory=False,  # one type per column, even in long files
                chunksize=rows,
                **_exact_numbers(pandas),
            )
            columns = None
            for frame in [found] if rows is None else found:
                columns = columns or _columns(frame, layout.names)
                frame = _typed(frame.iloc[:, : len(columns)], layout)
                frame.columns = columns
                yield frame, layout.names is not None and columns[0] == "" and len(columns) > 1
        except pandas.errors.EmptyDataError as error:
            msg = "it has no rows."
            raise ValueError(msg) from error
        except pandas.errors.ParserError as error:
            msg = str(error).strip().removeprefix("Error tokenizing data. C error: ")
            # pandas has not seen the first lines.
            before = layout.first_line
            msg = re.sub(r"(?<=line )\d+", lambda found: str(int(found[0]) + before), msg)
            raise ValueError(msg) from error
        except UnicodeDecodeError as error:
            raise ValueError(NOT_UTF8) from error


def has_row_names(frame: pd.DataFrame, *, indexed: bool) -> bool:
    """Whether the first column names the rows.

    It does if its header is empty (`indexed`), if it holds words that all differ, or if it holds
    integers that all differ under a name such as ``index``. Numbers with thousands separators are
    no words.
    """
    first = frame.iloc[:, 0]
    if indexed or frame.shape[1] == 1:
        return indexed
    if first.dtype.kind in "iu":
        return str(frame.columns[0]).strip().lower() in INDEX_NAMES and bool(first.is_unique)
    if first.dtype.kind in "fb" or not first.is_unique:
        return False
    plain = first.astype(str).str.replace(",", "")
    numbers = require("pandas", "data").to_numeric(plain, errors="coerce").notna()
    return bool(numbers.mean() <= MOSTLY)


def first_word(column: pd.Series) -> tuple[int, object]:
    """Row and content of the first cell that is not a number; row 0 if all are numbers."""
    numbers = require("pandas", "data").to_numeric(column, errors="coerce")
    words = (numbers.isna() & column.notna()).to_numpy()
    row = int(words.argmax())
    return row, column.iloc[row]


def has_thousands(column: pd.Series) -> bool:
    """Whether a column that is not numeric is so because of thousands separators."""
    cells = column.dropna().astype(str).str.strip()
    grouped = cells.str.fullmatch(THOUSANDS)
    return bool(grouped.any() and cells[~grouped].map(_is_number).all())


def _exact_numbers(pandas: ModuleType) -> dict[str, str]:
    """The option with which pandas reads exactly the numbers that were written."""
    major, minor = map(int, pandas.__version__.split(".")[:2])
    # From 3.1 on it always does, and the option is deprecated.
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _typed(frame: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """The table with numbers in columns that pandas takes for words.

    These are truth values with missing ones between them, and decimal commas that begin after the
    rows from which the layout was detected.
    """
    found = {}
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind not in NUMERIC:
            numbers = _hidden_numbers(frame.iloc[:, i], layout)
            if numbers is not None:
                found[frame.columns[i]] = numbers
    frame = frame.copy(deep=False)  # a shallow copy, whose columns can be replaced
    for name, numbers in found.items():
        frame[name] = numbers
    return frame


def _hidden_numbers(column: pd.Series, layout: Layout) -> pd.Series | None:
    present = column.dropna()
    if present.empty:
        return None
    first = present.iloc[0]
    if isinstance(first, bool):
        booleans = present.map(lambda cell: isinstance(cell, bool)).all()
        return column.astype(float) if booleans else None
    if not (layout.commas_may_be_decimal and isinstance(first, str)):
        return None
    if WITH_COMMA.fullmatch(first.strip()) is None:  # most columns of words end here
        return None
    cells = present.str.strip()
    if not cells.str.fullmatch(WITH_COMMA).all():
        return None
    if not any(_is_decimal_comma(cell, layout.separator) for cell in cells):
        return None
    return column.str.strip().str.replace(",", ".").astype(float)


def _is_decimal_comma(cell: str, separator: str) -> bool:
    """Whether a comma in this cell begins decimals.

    ``1,200`` is ambiguous. Semicolons are used to separate columns where the comma is decimal.
    """
    if DECIMAL_COMMA.fullmatch(cell) is None:
        return False
    return separator == ";" or THOUSANDS.fullmatch(cell) is None


def _columns(frame: pd.DataFrame, names: list[str] | None) -> list[str] | list[int]:
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
def _text(source: str | bytes) -> Iterator[IO[str]]:
    """The text, with its line ends as they are.

    The first bytes show whether it is compressed, not the name.
    """
    with io.BytesIO(source) if isinstance(source, bytes) else open(source, "rb") as stream:
        packed = stream.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        stream.seek(0)
        unpacked = gzip.GzipFile(fileobj=stream) if packed else contextlib.nullcontext(stream)
        with unpacked as content, io.TextIOWrapper(content, "utf-8-sig", newline="") as text:
            yield text


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Let the csv module read cells of any length."""
    before = csv.field_size_limit(MOST_CHARACTERS)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _layout(lines: IO[str], tabs: bool, header: bool | None) -> Layout:
    try:
        beginning = list(itertools.islice((line for line in lines if line.strip()), 2))
        separator = "\t" if tabs else _separator(beginning)
        lines.seek(0)
        reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        filled = ((row, reader.line_num) for row in reader if any(cell.strip() for cell in row))
        with _long_cells():
            found = list(itertools.islice(filled, SAMPLE_ROWS))
    except UnicodeDecodeError as error:
        raise ValueError(NOT_UTF8) from error
    except csv.Error as error:
        msg = f"line {reader.line_num}: {error}."
        raise ValueError(msg) from error
    if not found:
        msg = "it is empty."
        raise ValueError(msg)
    rows = [[cell.strip() for cell in row] for row, _ in found]
    names, decimal = rows[0], "."
    if separator != ",":
        cells = [cell for row in rows for cell in row]
        decimal = "," if any(_is_decimal_comma(cell, separator) for cell in cells) else "."
        rows = [[cell.replace(",", ".") for cell in row] for row in rows]
    named = _is_header(rows[0], rows[1:]) if header is None else header
    first_line = found[0][1]  # number of the line on which the first row ends, from one
    return Layout(
        separator,
        decimal,
        names if named else None,
        first_line if named else 0,
        max(map(len, rows)),
    )


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
