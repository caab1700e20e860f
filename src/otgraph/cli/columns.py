"""Columns of a table: their types and ranges, and what makes them doubtful as features."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._tables import NUMERIC, first_word, has_thousands

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from otgraph.typing import Array

# Endings of the names of columns that number the rows: patient_id, CellID, nr.
IDENTIFIER = re.compile(
    r"(?:^|[\W_])(?:id|idx|index|identifier|nr|row)$|(?<=[a-z])(?:ID|Id|Idx|Index)$"
)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./]\d\d?[./]\d{2,4}")
# A column with a tenth of the spread of another has a hundredth of its part in squared distances.
UNEQUAL = 10.0
# Principal components have falling spreads. Five random columns do so in one case of 120.
COMPONENTS = 5
# Numbers of a table from which spreads are estimated; the sample takes half a second.
SAMPLE_ENTRIES = 10**7
FEWEST_ROWS = 100
# In fewer rows, measurements may be consecutive whole numbers by chance.
FEWEST_COUNTED = 20
SHOWN_WORDS = 3  # examples of words in a column
MOST_COLUMNS = 60  # that a table shows; more do not help a reader
CELL_WIDTH = 24  # characters of a name or an example that a table shows


@dataclass(frozen=True)
class WordColumn:
    """A column that is not numeric, and its first cell that is not a number."""

    name: str
    handle: str  # for --drop
    row: int
    cell: object
    thousands: bool

    def __str__(self) -> str:
        """What is wrong."""
        cell = shortened(repr(self.cell))
        if self.thousands:
            return f"column {self.name!r} has thousands separators: {cell} in row {self.row}"
        return f"column {self.name!r} is not numeric: {cell} in row {self.row}"


def word_columns(frame: pd.DataFrame, handles: Sequence[str]) -> dict[int, WordColumn]:
    """Columns that are not numeric, by their position."""
    found = {}
    for i, dtype in enumerate(frame.dtypes):
        if dtype.kind not in NUMERIC:
            column, name = frame.iloc[:, i], str(frame.columns[i])
            row, cell = first_word(column)
            found[i] = WordColumn(name, handles[i], row, cell, has_thousands(column))
    return found


def identifiers(values: Array, names: Sequence[str]) -> list[int]:
    """Positions of columns of different whole numbers that have the name of an identifier.

    Whole numbers without a gap number the rows whatever the name.
    """
    return [
        i
        for i, name in enumerate(names)
        if (IDENTIFIER.search(_lowered(name)) and _numbers_rows(values[:, i]))
        or _counts_rows(values[:, i])
    ]


def unequal_spread(values: Array) -> tuple[float, int, int] | None:
    """Whether half of the columns hardly count beside the one with the largest spread.

    Returns
    -------
    factor, largest, smallest
        How many times larger the largest standard deviation is than the median, and the columns
        of the largest and the smallest; None if the columns are alike, or if their spreads fall
        from each to the next as those of principal components do.
    """
    spreads = _spreads(values)
    varying = np.flatnonzero(spreads > 0)
    if varying.size < 2 or not np.isfinite(spreads).all():
        return None
    ordered = varying[np.argsort(spreads[varying], kind="stable")]
    smallest, median, largest = ordered[0], ordered[(ordered.size - 1) // 2], ordered[-1]
    factor = float(spreads[largest] / spreads[median])
    falling = varying.size >= COMPONENTS and bool((np.diff(spreads[varying]) <= 0).all())
    return None if factor < UNEQUAL or falling else (factor, int(largest), int(smallest))


def handles(names: Sequence[object]) -> list[str]:
    """What to write after ``--drop`` for each column: its name, or its number.

    The number is used if the name is empty, contains a comma, or repeats an earlier name.
    """
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        first.setdefault(str(name), i)
    return [
        str(i) if "," in str(name) or first[str(name)] != i or not str(name).strip() else str(name)
        for i, name in enumerate(names)
    ]


@dataclass(frozen=True)
class Column:
    """A row of the table that ``otgraph info`` shows."""

    name: str
    type: str  # integer, number, boolean, date or words
    low: float | None  # smallest and largest number
    high: float | None
    words: list[str]  # examples
    missing: int
    distinct: int

    @property
    def range(self) -> str:
        """Range of the numbers, or examples of the words."""
        if self.type in ("date", "words"):
            more = ", …" if self.distinct > len(self.words) else ""
            return ", ".join(shortened(word) for word in self.words) + more
        if self.low is None or self.high is None:
            return ""
        return f"{self.low:.6g} to {self.high:.6g}"


def describe_columns(frame: pd.DataFrame) -> list[Column]:
    """Name, type, range, missing and distinct values of every column."""
    return [
        _described(str(frame.columns[i]), frame.iloc[:, i], dtype)
        for i, dtype in enumerate(frame.dtypes)
    ]


def shortened(text: str) -> str:
    """A text that fits into a cell of a table."""
    return text if len(text) <= CELL_WIDTH else f"{text[: CELL_WIDTH - 1]}…"


def _described(name: str, column: pd.Series, dtype: np.dtype[np.generic]) -> Column:
    present = column.dropna()
    missing, distinct = len(column) - len(present), int(present.nunique())
    if dtype.kind in NUMERIC:
        kind = {"b": "boolean", "f": "number"}.get(dtype.kind, "integer")
        if kind == "number" and present.size and _is_whole(present.to_numpy(np.float64)):
            kind = "integer"  # pandas makes them floats beside missing values
        low, high = (present.min().item(), present.max().item()) if present.size else (None, None)
        return Column(name, kind, low, high, [], missing, distinct)
    words = [str(word) for word in present.iloc[: 1 << 10].unique()[:SHOWN_WORDS]]
    dates = dtype.kind == "M" or (words and all(map(DATE.fullmatch, words)))
    return Column(name, "date" if dates else "words", None, None, words, missing, distinct)


def _lowered(name: str) -> str:
    """A name in small letters, unless their case shows where a word begins, as in cellID."""
    return name if re.search(r"[a-z](ID|Id|Idx|Index)$", name) else name.lower()


def _numbers_rows(column: Array) -> bool:
    present = column[~np.isnan(column)]
    return present.size > 1 and _is_whole(present) and np.unique(present).size == present.size


def _counts_rows(column: Array) -> bool:
    """Whether every whole number from the smallest to the largest is there once."""
    gapless = len(column) >= FEWEST_COUNTED and np.ptp(column) == len(column) - 1
    return bool(gapless) and _numbers_rows(column)


def _is_whole(numbers: Array) -> bool:
    return bool(np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all())


def _spreads(values: Array) -> Array:
    """Standard deviations of the columns without their missing values, from a sample of rows."""
    n, d = values.shape
    rows = max(FEWEST_ROWS, SAMPLE_ENTRIES // max(d, 1))
    sample = np.asarray(values[:: -(-n // rows)], dtype=np.float64)
    present = ~np.isnan(sample)
    count = np.maximum(present.sum(axis=0), 1)
    # Infinite values are refused later, so they need not warn here.
    with np.errstate(invalid="ignore", over="ignore"):
        mean = np.where(present, sample, 0.0).sum(axis=0) / count
        variance = (np.where(present, sample - mean, 0.0) ** 2).sum(axis=0) / count
        low, high = np.fmin.reduce(sample), np.fmax.reduce(sample)
        constant = ~(low < high)  # where rounding might leave a little variance
    return np.where(constant, 0.0, np.sqrt(variance))
