"""Text from data in pictures: never read as mathematics."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.text import Text


def set_plain(text: Text, content: str) -> None:
    """Set the text; a ``$`` in it is a dollar sign."""
    text.set_parse_math(False)
    text.set_text(content)


def make_plain(texts: Iterable[Text]) -> None:
    """From now on, a ``$`` in these texts is a dollar sign."""
    for text in texts:
        text.set_parse_math(False)
