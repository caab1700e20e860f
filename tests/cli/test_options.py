"""Every keyword of a construction is an option with the same default."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

from otgraph.cli.options import GraphOptions
from otgraph.graphs.constructions import CONSTRUCTIONS
from otgraph.graphs.options import DEFAULT_MEAN_DEGREE


def test_every_keyword_is_an_option():
    for construction in CONSTRUCTIONS.values():
        keywords = set(inspect.signature(construction.build).parameters)
        assert keywords - {"X", "progress"} <= set(GraphOptions.__dataclass_fields__)


@pytest.mark.parametrize("method", CONSTRUCTIONS)
def test_help_says_the_true_defaults(method):
    """Defaults are not written by hand where the function has a number or a word."""
    parameters = inspect.signature(CONSTRUCTIONS[method].build).parameters
    shown = {"yes": True, "no": False}
    hints = get_type_hints(GraphOptions, include_extras=True)
    checked = 0
    for name, hint in hints.items():
        text = hint.__metadata__[0].show_default
        if name not in parameters or not text or parameters[name].default is None:
            continue
        values = [shown.get(word, word) for word in text.split(", ")]
        default = parameters[name].default
        assert any(str(value) == str(default) or as_number(value) == default for value in values)
        checked += 1
    assert checked >= 2


def as_number(word) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def test_help_says_the_default_mean_degree():
    option = get_type_hints(GraphOptions, include_extras=True)["mean_degree"].__metadata__[0]
    assert option.show_default == f"{DEFAULT_MEAN_DEGREE:g} without --eps"
