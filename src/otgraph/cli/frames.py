"""Data frames as points: numbers, names of rows and columns, and columns set aside."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.cli.delimited import is_index_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MAX_LISTED = 8  # names in an error message


@dataclass(frozen=True)
class Points:
    """What a file holds: numbers, one row per point, and what belongs to them."""

    values: Any  # dense array or CSR
    source: str
    row_names: NDArray[Any] | None = None
    column_names: NDArray[Any] | None = None
    # Columns that are no features, by name.
    aside: dict[str, NDArray[Any]] = field(default_factory=dict)
    adata: Any = None  # the whole object, for formats that hold more than points
    use_rep: str | None = None

    def __str__(self) -> str:
        """Size and origin, with what was detected."""
        n, d = self.values.shape
        found = [
            what
            for what, names in (("column names", self.column_names), ("row names", self.row_names))
            if names is not None
        ]
        rep = [f"{self.use_rep}"] if self.use_rep else []
        notes = ", ".join([*rep, *found])
        return f"{n:,} in {d:,} dimensions, {self.source}" + (f" ({notes})" if notes else "")


def points_of_frame(
    frame: Any,
    source: str,
    *,
    columns: Sequence[str] | None,
    drop: Sequence[str] | None,
    aside: Sequence[str] = (),
    row_names: bool | None = None,
    indexed: bool = False,
    transpose: bool = False,
) -> Points:
    """Points of a data frame whose index, if it is not a mere count, holds row names.

    Parameters
    ----------
    frame
        The table.
    source
        Where it comes from, for messages.
    columns, drop
        Columns to use and to leave out.
    aside
        Columns that are no features but wanted.
    row_names
        Whether the first column holds names; None looks.
    indexed
        Whether its name says so.
    transpose
        Whether points are columns.
    """
    named = isinstance(frame.columns[0], str) if len(frame.columns) else False
    if type(frame.index).__name__ == "RangeIndex" and row_names is not False:
        protected = {*(columns or ()), *(drop or ()), *aside}
        if row_names or str(frame.columns[0]) not in protected:
            frame = _with_row_names(frame, wanted=bool(row_names) or indexed, named=named)
    indices = pick(frame.columns, aside, source, "column")
    kept_aside = {name: frame.iloc[:, i].to_numpy() for name, i in zip(aside, indices, strict=True)}
    frame = frame.iloc[:, chosen(frame.columns, columns, [*(drop or ()), *aside], source)]
    values = _numbers(frame, source)
    rows = None if type(frame.index).__name__ == "RangeIndex" else np.asarray(frame.index, str)
    names = np.asarray(frame.columns, str) if named else None
    if transpose:
        values, rows, names = np.ascontiguousarray(values.T), names, rows
    return Points(values, source, rows, names, kept_aside)


def chosen(
    names: Any, columns: Sequence[str] | None, drop: Sequence[str] | None, source: str
) -> list[int]:
    """Positions of the columns to use."""
    kept = list(range(len(names))) if columns is None else pick(names, columns, source, "column")
    left_out = set(pick(names, drop or (), source, "column"))
    kept = [index for index in kept if index not in left_out]
    if not kept:
        msg = f"{source}: no column is left to use."
        raise ValueError(msg)
    return kept


def pick(names: Any, wanted: Sequence[str], source: str, what: str) -> list[int]:
    """Positions of wanted names; numbers count from zero where no name is meant."""
    position: dict[str, int] = {}
    for index, name in enumerate(names):
        position.setdefault(str(name), index)  # of columns with the same name the first
    found = []
    for name in wanted:
        if name in position:
            found.append(position[name])
        elif name.isdecimal() and int(name) < len(names):
            found.append(int(name))
        else:
            near = difflib.get_close_matches(name, position, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are {listed(position)}."
            msg = f"{source}: no {what} {name!r}{hint}"
            raise ValueError(msg)
    return found


def split_list(given: Sequence[str] | None) -> list[str] | None:
    """Names of a repeated option that may have commas inside."""
    if given is None:
        return None
    return [name.strip() for entry in given for name in entry.split(",") if name.strip()]


def listed(names: Any) -> str:
    """The first names of many, for an error message."""
    names = [str(name) for name in names]
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def _with_row_names(frame: Any, *, wanted: bool, named: bool) -> Any:
    """The first column as the index, where it is wanted or looks like names of rows."""
    first = frame.iloc[:, 0]
    if not wanted and frame.shape[1] > 1:
        if first.dtype.kind not in "iufb":
            wanted = bool(first.is_unique) and not _mostly_numbers(first)
        elif named and is_index_name(frame.columns[0]):
            wanted = first.dtype.kind in "iu" and bool(first.is_unique)
    if not wanted:
        return frame
    return frame.iloc[:, 1:].set_axis(first.astype(str).to_numpy(), axis="index")


def _mostly_numbers(column: Any) -> bool:
    """Whether a column of words is one of numbers with a few bad cells."""
    import pandas as pd

    return bool(pd.to_numeric(column, errors="coerce").notna().mean() > 0.5)


def _numbers(frame: Any, source: str) -> Any:
    for i, name in enumerate(frame.columns):
        if frame.dtypes.iloc[i].kind not in "iufb":
            column = frame.iloc[:, i]
            row, cell = _first_word(column)
            msg = (
                f"{source}: column {str(name)!r} is not numeric: {cell!r} in row {row}. Leave it "
                f"out with --drop {name}, or choose others with --columns."
            )
            raise ValueError(msg)
    values = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(values)
    if missing.any():
        row, i = np.argwhere(missing)[0]
        msg = (
            f"{source}: NaN at row {row}, column {str(frame.columns[i])!r} ({int(missing.sum())} "
            "missing value(s) in all; rows count from 0). Fill them in, or drop these rows or "
            "columns."
        )
        raise ValueError(msg)
    return np.ascontiguousarray(values)


def _first_word(column: Any) -> tuple[int, Any]:
    import pandas as pd

    words = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    row = int(np.argmax(words.to_numpy())) if words.any() else 0
    return row, column.iloc[row]
