"""A fit that fails leaves every estimator as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import otgraph.estimators as estimators
from otgraph.estimators import GraphLabelSpreading

ALL = [getattr(estimators, name) for name in estimators.__all__]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("before", ["fitted", "never fitted"])
def test_a_failed_fit_changes_nothing(rng, kind, before):
    X = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd"))
    y = np.repeat([0, 1], 30)
    estimator = kind()
    if before == "fitted":
        estimator.fit(X, y)
    attributes = vars(estimator).copy()
    wrong = pd.DataFrame(np.full((60, 7), np.nan), columns=list("tuvwxyz"))
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(wrong, y)
    assert vars(estimator).keys() == attributes.keys()
    assert all(vars(estimator)[name] is value for name, value in attributes.items())
    if before == "fitted" and hasattr(estimator, "transform"):
        assert estimator.transform(X[:5]).shape[0] == 5
    if before == "fitted" and kind is GraphLabelSpreading:
        assert len(estimator.predict(X[:5])) == 5


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_columns_of_the_same_name_are_refused_in_our_words(rng, kind):
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("aba"))
    with pytest.raises(ValueError, match="`X` must have columns of different names"):
        kind().fit(X, np.repeat([0, 1], 30))
