"""Colors of groups."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from otgraph.plots.colors import UNKNOWN, groups_of, palette

TOOL = Path(__file__).parents[2] / "tools" / "palette.py"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("tool_of_palette", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("labels", "names", "codes"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([3, -1, 2], ["2", "3", "unknown"], [1, 2, 0]),
        ([0.0, np.nan, 1.0], ["0.0", "1.0", "unknown"], [0, 2, 1]),
        (np.array(["a", None, -1, np.nan, pd.NA], dtype=object), ["a", "unknown"], [0, 1, 1, 1, 1]),
        (np.array(["None", "nan"], dtype=object), ["None", "nan"], [0, 1]),
    ],
)
def test_groups_with_unknown_labels_last(labels, names, codes):
    found, hues, numbers = groups_of(labels)
    assert found == names
    assert list(numbers) == codes
    assert (hues[-1] == UNKNOWN) == (names[-1] == "unknown")


class TestPalette:
    @pytest.mark.parametrize("n", [0, 1, 10, 28, 100, 130])
    def test_as_many_as_asked_and_a_longer_one_begins_with_a_shorter_one(self, n):
        assert len(palette(n)) == n
        assert palette(n)[:100] == palette(100)[:n]

    def test_the_table_is_what_the_tool_finds(self, tool):
        assert tool.found_colors(100) == palette(100)

    # The smallest distance of Petroff's ten colors is 0.118 in these units; one that is just
    # noticeable is about 0.02.
    @pytest.mark.parametrize(("n", "least"), [(10, 0.117), (20, 0.11), (28, 0.1), (100, 0.05)])
    def test_colors_differ_for_all_readers(self, n, least, tool):
        views = tool.views(np.array([tool.rgb_of(color) for color in palette(n)]))
        for k in range(n):
            distances = tool.distances(views, views[:, [k]])
            assert np.delete(distances, k).min() >= least

    def test_no_grays(self, tool):
        views = tool.views(np.array([tool.rgb_of(color) for color in palette(100)]))
        _, *opponents = views[0].T
        assert np.hypot(*opponents).min() > 0.05
        gray = tool.views(tool.rgb_of(UNKNOWN)[None])
        assert tool.distances(views, gray).min() > 0.05
