"""Colors of groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from otgraph.plots.colors import UNKNOWN, groups_of


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
