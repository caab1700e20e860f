"""Labels: numbers, strings or objects, some of them unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from otgraph._optional import importing
from otgraph._text import UNKNOWN_LABEL, is_missing, is_unknown
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.typing import Array, BoolArray, FloatArray, LongArray


@dataclass(frozen=True, eq=False)
class EncodedLabels:
    """Class number of every point, and the classes in sorted order."""

    classes: Array
    codes: LongArray  # -1 = unknown

    def one_hot(self) -> FloatArray:
        """One-hot encoding, with zeros for unknown labels."""
        rows = np.zeros((len(self.codes), len(self.classes)))
        known = np.flatnonzero(self.codes >= 0)
        rows[known, self.codes[known]] = 1.0
        return rows


def encode_labels(labels: ArrayLike, n: int) -> EncodedLabels:
    """Check labels of n points and number their classes."""
    array = np.asarray(labels)
    if array.shape != (n,):
        msg = f"must hold one label per point, shape ({n},), got shape {array.shape}."
        raise invalid("labels", msg)
    known = _known(array)
    if not known.any():
        raise invalid("labels", "must hold at least one known label, got only unknown ones (-1).")
    values = array[known]
    if array.dtype.kind == "O":  # strings with -1 among them; the known labels have one type
        values = np.array(values.tolist())
    with importing():  # takes half a second
        from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(values)
    classes, numbers = np.unique(values, return_inverse=True)
    codes = np.full(n, UNKNOWN_LABEL, dtype=np.int64)
    codes[known] = numbers
    return EncodedLabels(classes, codes)


def decode_labels(classes: Array, codes: LongArray, undecided: BoolArray) -> Array:
    """Labels from class numbers, with the mark of unknown labels for undecided points."""
    labels = classes[codes]
    if not undecided.any():
        return np.asarray(labels)
    if labels.dtype.kind in "USb":  # these types cannot hold -1
        labels = labels.astype(object)
    elif labels.dtype.kind == "u":
        labels = labels.astype(np.int64)
    labels[undecided] = None if labels.dtype.kind == "O" else UNKNOWN_LABEL
    return np.asarray(labels)


def _known(array: Array) -> BoolArray:
    kind = array.dtype.kind
    if kind in "US":
        if np.any(array == ("-1" if kind == "U" else b"-1")):
            msg = (
                "are strings and some are '-1', which would be a class of that name. Mark unknown "
                "labels in an array of dtype object, with -1 or None."
            )
            raise invalid("labels", msg)
        return np.ones(len(array), dtype=bool)
    if kind in "iufb":
        if kind == "f" and not np.isfinite(array).all():
            bad = int(np.count_nonzero(~np.isfinite(array)))
            msg = f"hold {bad} NaN or infinite value(s). Mark unknown labels with -1."
            raise invalid("labels", msg)
        return np.ones(len(array), dtype=bool) if kind == "b" else array != UNKNOWN_LABEL
    if kind == "O":
        return _known_objects(array)
    raise invalid("labels", f"must be numbers or strings, got dtype {array.dtype}.", TypeError)


def _known_objects(array: Array) -> BoolArray:
    known = np.array([not is_unknown(label) for label in array], dtype=bool)
    if any(label is not None and is_missing(label) for label in array[~known]):
        raise invalid("labels", "hold NaN or missing values. Mark unknown labels with -1 or None.")
    strings = [isinstance(label, str) for label in array[known]]
    if any(strings) and not all(strings):
        msg = "must be all strings or all numbers, apart from unknown ones; got both."
        raise invalid("labels", msg, TypeError)
    if any(strings) and np.any(array[known] == "-1"):
        msg = "hold the string '-1'. Mark unknown labels with the number -1 or None."
        raise invalid("labels", msg)
    return known
