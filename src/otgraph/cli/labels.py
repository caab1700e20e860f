"""Labels from a file, or from a column of the points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph._text import is_unknown
from otgraph.cli.options import ReadOptions
from otgraph.cli.reading import STDIN, check_file, is_counted, read_frame, read_standard_input
from otgraph.cli.terminal import refuse

if TYPE_CHECKING:
    from collections.abc import Collection

    import pandas as pd

    from otgraph.cli.reading import Points
    from otgraph.typing import Array

MOST_EXACT = 2**53  # whole numbers up to here differ as floats
UNKNOWN_WORDS = {"", "-1", "-1.0", "nan", "none", "na", "<na>"}  # unknown labels


def check_label_source(path: str | None, column: str | None) -> None:
    """Raise unless labels come from one place, before anything is read."""
    if (path is None) == (column is None):
        came = "neither" if path is None else "both"
        refuse(f"Give exactly one of --labels and --label-column, got {came}.")
    if path is not None and path != STDIN:
        check_file(path)


def known_labels(path: str | None, points: Points | None, n: int) -> Array:
    """Labels from a file, or else from the column that was set aside."""
    if path is not None:
        return read_labels(path, points, n)
    assert points is not None  # a graph file has no columns to set aside
    assert points.aside is not None
    return group_names(points.aside)


def read_labels(path: str, points: Points | None, n: int) -> Array:
    """Labels from a file, matched by row names if both files have them, else in order.

    An empty line of a text with one column is an unknown label. The file also has the labels of
    rows that were left out of the points.
    """
    if points is None or points.kept is None:
        return _labels_of_rows(path, None if points is None else points.row_names, n)
    return _labels_of_rows(path, points.file_names, len(points.kept))[points.kept]


def _labels_of_rows(path: str, names: Array | None, n: int) -> Array:
    content = read_standard_input() if path == STDIN else None
    frame, _ = read_frame(path, blank_rows=True, content=content)
    if _may_begin_with_a_label(frame, names, n):
        headless = ReadOptions(header=False)
        whole, _ = read_frame(path, headless, blank_rows=True, content=content)
        if whole.shape[1] == 2 or _fitting(whole.iloc[:, -1], n) is not None:
            frame = whole
    if not is_counted(frame):
        frame = frame.reset_index()
    if frame.shape[1] > 2:
        refuse(
            f"{path}: must hold one column of labels, or names of the rows and labels, got "
            f"{frame.shape[1]} columns."
        )
    labels = frame.iloc[:, -1]
    if frame.shape[1] == 2 and names is not None:
        return _by_name(frame.iloc[:, 0], labels.to_numpy(), names, path)
    fitting = _fitting(labels, n)
    if fitting is None:
        n_blank = int(labels.isna().sum())
        blank = f", {n_blank} of them empty" if n_blank else ""
        refuse(f"{path}: must hold one label for each of the {n} points, got {len(labels)}{blank}.")
    return group_names(fitting.to_numpy())


def _may_begin_with_a_label(frame: pd.DataFrame, names: Array | None, n: int) -> bool:
    """Whether what looks like a header may be the first label, or a row name with its label."""
    if not isinstance(frame.columns[0], str):
        return False
    if names is not None and frame.columns[0] in names:
        return True
    labels = frame.iloc[:, 0]
    return frame.shape[1] == 1 and (_fitting(labels, n) is None or frame.columns[0] in set(labels))


def _fitting(labels: pd.Series, n: int) -> pd.Series | None:
    """One label for each of n points, or None.

    Empty lines are unknown labels, apart from those after the last point. If there is a label for
    every point without them, they are only space.
    """
    if len(labels) >= n and labels.iloc[n:].isna().all():
        return labels.iloc[:n]
    filled = labels.dropna()
    return filled if len(filled) == n else None


def _by_name(given: pd.Series, labels: Array, names: Array, path: str) -> Array:
    position = {name: row for row, name in enumerate(names)}
    _check_unique(names, f"{path}: names rows, but the points have two rows")
    _check_unique(given.astype(str), f"{path}: labels twice the row")
    placed = np.full(len(names), None, dtype=object)
    for name, label in zip(given.astype(str), labels, strict=True):
        if name not in position:
            refuse(f"{path}: labels a row {name!r}, which the points do not have.")
        placed[position[name]] = label
    return group_names(placed)


def _check_unique(names: Collection[str], complaint: str) -> None:
    found, counts = np.unique(np.asarray(names, str), return_counts=True)
    if (counts > 1).any():
        refuse(f"{complaint} {str(found[counts > 1][0])!r}; names must differ.")


def group_names(values: Array) -> Array:
    """Labels as :func:`otgraph.spread_labels` and pictures take them.

    Whole numbers with -1 where unknown, or else words with None where unknown.
    """
    words = [None if is_unknown(value) else str(value).strip() for value in values]
    words = [None if word is None or word.lower() in UNKNOWN_WORDS else word for word in words]
    numbers = [_whole_number(word) for word in words]
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.int64)
    labels = np.empty(len(words), dtype=object)
    labels[:] = words
    return labels


def _whole_number(word: str | None) -> int | None:
    """A word as a number; -1 for unknown labels, None if it is not a number or too large."""
    if word is None:
        return -1
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) <= MOST_EXACT else None
