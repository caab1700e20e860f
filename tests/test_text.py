"""Wording of lists, JSON without NaN, and unknown labels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from otgraph._text import is_missing, is_unknown, listed, plain


def test_listed():
    assert listed([]) == "none"
    assert listed(["a", 2]) == "a, 2"
    assert listed(range(10), 3) == "0, 1, 2 and 7 more"


def test_plain_is_json():
    value = {1: np.float64("nan"), "a": (np.int8(2), float("inf")), "b": np.array([1.5, np.nan])}
    expected = {"1": None, "a": [2, None], "b": [1.5, None]}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


@pytest.mark.parametrize("value", [None, np.nan, float("nan"), pd.NA, pd.NaT])
def test_missing(value):
    assert is_missing(value)
    assert is_unknown(value)


@pytest.mark.parametrize("value", ["", "nan", "-1", 0, False, True, 1.5])
def test_known(value):
    assert not is_missing(value)
    assert not is_unknown(value)


@pytest.mark.parametrize("value", [-1, -1.0, np.int8(-1)])
def test_minus_one_is_unknown(value):
    assert not is_missing(value)
    assert is_unknown(value)
