"""Labels as files have them: words or numbers, with unknown ones left empty or -1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph.cli.options import ReadOptions
from otgraph.cli.readers import read_frame

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.cli.frames import Points

UNKNOWN = {"", "-1", "-1.0", "nan", "none", "na", "<na>"}


def group_names(values: NDArray[Any]) -> NDArray[Any]:
    """Labels in the form that :func:`otgraph.spread_labels` and pictures take.

    Whole numbers with -1 where unknown, or else words with None where unknown.
    """
    words = [None if _is_unknown(value) else str(value).strip() for value in values]
    numbers = [_whole_number(word) for word in words]
    if all(number is not None for number in numbers):
        return np.array(numbers, dtype=np.int64)
    labels = np.empty(len(words), dtype=object)
    labels[:] = words
    return labels


def read_labels(path: str, points: Points | None, n: int) -> NDArray[Any]:
    """Labels of a file: by the names of the rows where both have them, else in order."""
    names = None if points is None else points.row_names
    frame, _ = read_frame(path)
    # Words without a header look like a header; the number and the names of the points tell.
    lost = frame.shape[1] == 1 and len(frame) == n - 1
    if lost or (names is not None and str(frame.columns[0]) in names):
        frame, _ = read_frame(path, ReadOptions(header=False))
    if type(frame.index).__name__ != "RangeIndex":
        frame = frame.reset_index()
    if frame.shape[1] > 2:
        msg = (
            f"{path}: must hold one column of labels, or names of the rows and labels, got "
            f"{frame.shape[1]} columns."
        )
        raise ValueError(msg)
    labels = frame.iloc[:, -1].to_numpy()
    if frame.shape[1] == 2 and names is not None:
        return _by_name(frame.iloc[:, 0], labels, names, path)
    if len(labels) != n:
        msg = f"{path}: must hold one label for each of the {n} points, got {len(labels)}."
        raise ValueError(msg)
    return group_names(labels)


def _by_name(given: Any, labels: NDArray[Any], names: NDArray[Any], path: str) -> NDArray[Any]:
    position = {name: row for row, name in enumerate(names)}
    placed = np.full(len(names), None, dtype=object)
    for name, label in zip(given.astype(str), labels, strict=True):
        if name not in position:
            msg = f"{path}: labels a row {name!r}, which the points do not have."
            raise ValueError(msg)
        placed[position[name]] = label
    return group_names(placed)


def _is_unknown(value: Any) -> bool:
    return value is None or str(value).strip().lower() in UNKNOWN


def _whole_number(word: str | None) -> int | None:
    """The number that a word stands for; -1 for what is unknown, None for other words."""
    if word is None:
        return -1
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None
