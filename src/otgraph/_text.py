"""Values as text: names in a message or picture, numbers in JSON, labels that are missing."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_LISTED = 8  # more names than this make a message hard to read
# Said while kernels are compiled, which takes seconds, once on a machine.
COMPILING = "otgraph: compiling, once: later runs start at once"
UNKNOWN_LABEL = -1  # scikit-learn's mark of a label that is to be found


def listed(names: Iterable[object], most: int = MOST_LISTED) -> str:
    """The first names of many, with the number of the others; ``"none"`` if there are none."""
    words = [str(name) for name in names]
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return (", ".join(words[:most]) or "none") + more


def printable(value: object) -> str:
    """The value as one line of text that every file and font takes.

    Halves of surrogate pairs, which no encoding has, become replacement characters. Control
    characters become spaces.
    """
    text = str(value).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in text)


def plain(value: object) -> Any:
    """The value in the types of JSON; NaN and infinity, which JSON does not have, become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # arrays and numbers of numpy
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_missing(value: object) -> bool:
    """Whether a value is None, or NaN, NaT or NA of numpy and pandas."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # NA of pandas: neither equal nor unequal
        return True


def is_unknown(label: object) -> bool:
    """Whether a label is to be found: the number -1, or missing."""
    if is_missing(label):
        return True
    return not isinstance(label, str | bool) and bool(label == UNKNOWN_LABEL)
