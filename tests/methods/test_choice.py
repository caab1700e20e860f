"""choose_eps: labels, counts and bad input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import otgraph
from otgraph import datasets
from otgraph.graphs.choice import Doubt
from otgraph.methods.choice import _folds, _held_out, _smoothed

# Graphs of small eps fall apart, which does not matter here.
pytestmark = pytest.mark.filterwarnings("ignore:The graph has")


@pytest.fixture(scope="module")
def arms():
    return datasets.spiral_arms(60, n_arms=5, noise=0.4, dim=30)


@pytest.fixture(scope="module")
def partial(arms):
    known = datasets.label_mask(arms.labels, 0.1, random_state=0)
    return np.where(known, arms.labels, -1)


def wrong(arms, partial, eps):
    found = otgraph.spread_labels(otgraph.quadratic_ot_graph(arms.X, eps), partial).labels
    return float(np.mean(found[partial < 0] != arms.labels[partial < 0]))


@pytest.mark.filterwarnings("ignore:No label reaches")
def test_labels_find_the_best_eps(arms, partial):
    choice = otgraph.choose_eps(arms.X, partial)
    best = min(wrong(arms, partial, eps) for eps in np.logspace(-3, 1, 9))
    assert choice.kind == "labels"
    assert choice.trusted
    assert wrong(arms, partial, choice.eps) <= best + 0.05
    by_features = otgraph.choose_eps(arms.X)
    assert wrong(arms, partial, choice.eps) < wrong(arms, partial, by_features.eps)


def test_names_are_labels_too(arms, partial):
    names = np.array([None if k < 0 else f"arm {k}" for k in partial], dtype=object)
    assert otgraph.choose_eps(arms.X, names).eps == otgraph.choose_eps(arms.X, partial).eps


def test_hidden_labels_by_hand(arms, partial):
    graph = otgraph.quadratic_ot_graph(arms.X, 0.1)
    folds = _folds(partial, 1000, 0)  # as many folds as labels: each is hidden alone
    found = _held_out(graph, partial, folds, 1.0)
    expected = []
    for i in np.flatnonzero(partial >= 0):
        without = partial.copy()
        without[i] = -1
        expected.append(otgraph.spread_labels(graph, without).labels[i] != partial[i])
    np.testing.assert_array_equal(found, expected)


def test_folds_hold_every_label_once_and_all_classes(partial):
    folds = _folds(partial, 3, 0)
    np.testing.assert_array_equal(np.sort(np.concatenate(folds)), np.flatnonzero(partial >= 0))
    assert all(set(partial[fold]) == set(range(5)) for fold in folds)


def test_smoothing():
    np.testing.assert_allclose(_smoothed(np.array([0.0, 4.0, 0.0])), [1.0, 2.0, 1.0])


def test_labels_of_costs_without_units(arms, partial):
    chosen = otgraph.choose_eps(arms.X, partial)
    raw = otgraph.choose_eps(arms.X, partial, normalize=False)
    scale = otgraph.quadratic_ot_graph(arms.X, 1.0).params["scale"]
    assert raw.eps == pytest.approx(scale * chosen.eps, rel=1e-6)
    given = otgraph.choose_eps(arms.X, partial, normalize=False, eps=raw.grid)
    np.testing.assert_allclose(given.scores, raw.scores, atol=0.05)


def test_labels_without_meaning(arms, rng):
    random = np.where(rng.random(300) < 0.2, rng.integers(0, 2, 300), -1)
    assert otgraph.choose_eps(arms.X, random).doubt is Doubt.NO_SIGNAL


def test_labels_that_any_eps_finds():
    X = np.vstack([np.zeros((20, 2)), np.full((20, 2), 9.0)])
    X += 0.1 * np.random.default_rng(0).normal(size=X.shape)
    choice = otgraph.choose_eps(X, np.repeat([0, 1], 20), eps=[0.01, 0.03])
    assert choice.doubt is Doubt.FLAT
    np.testing.assert_array_equal(choice.scores, 0.0)


def test_labels_of_given_costs(arms, partial):
    C = np.square(arms.X[:, None] - arms.X[None]).sum(axis=2)
    by_costs = otgraph.choose_eps(C, partial, metric="precomputed")
    assert by_costs.eps == pytest.approx(otgraph.choose_eps(arms.X, partial).eps, rel=1e-6)


@pytest.fixture(scope="module")
def cells():
    return datasets.simulated_cells(300, n_genes=300, n_types=4, rarest=0.05)


def prepared(counts):
    totals = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    return np.sqrt((sp.diags(1000 / totals) @ counts).toarray())


def test_counts_denoise_as_well_as_the_best(cells):
    truth = np.sqrt(1000 * cells.expression())
    X = prepared(cells.counts)

    def error(graph):
        return float(np.mean((otgraph.denoise(graph, X, 1) - truth) ** 2))

    choice = otgraph.choose_eps(cells.counts, split="counts", prepare=prepared)
    assert (choice.kind, choice.trusted) == ("counts", True)
    best = min(error(graph) for graph in otgraph.eps_path(X, np.logspace(-1.5, 1.5, 13)))
    assert error(otgraph.quadratic_ot_graph(X, choice.eps)) <= 1.1 * best


def test_counts_without_preparation(cells):
    dense = otgraph.choose_eps(cells.counts.toarray(), split="counts")
    assert dense.eps == pytest.approx(otgraph.choose_eps(cells.counts, split="counts").eps)


def test_only_counts(rng):
    with pytest.raises(ValueError, match="whole numbers >= 0"):
        otgraph.choose_eps(rng.normal(size=(50, 4)), split="counts")


REFUSED = {
    "keyword": ({"epsilon": 1}, TypeError, "`epsilon` is not a keyword of choose_eps; it takes"),
    "option": ({"power": -1}, ValueError, "`power` must be a positive"),
    "split": ({"split": "genes"}, ValueError, "`split` must be one of 'features', 'counts'"),
    "prepare": ({"prepare": np.sqrt}, ValueError, "`prepare` makes points of counts"),
    "values": ({"eps": 1.0}, ValueError, "at least two values"),
    "negative": ({"eps": [1.0, -1.0]}, ValueError, "`eps` must be a positive"),
    "both": ({"labels": [0, 1] * 20, "split": "counts"}, ValueError, "two ways to choose"),
    "one label": ({"labels": [0] + 39 * [-1]}, ValueError, "at least two known labels"),
    "folds": ({"labels": [0, 1] * 20, "n_folds": 1}, ValueError, "`n_folds` must be"),
    "costs": ({"metric": "precomputed"}, ValueError, "costs have no features to split"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, rng):
    options, kind, message = REFUSED[case]
    X = rng.normal(size=(40, 40))
    with pytest.raises(kind, match=message) as caught:
        otgraph.choose_eps(X, **options)
    assert caught.value.argument


def test_examples_of_the_page_run():
    page = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text()
    names: dict[str, object] = {}
    for example in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
        exec(example, names)
    assert names["choice"].kind == "counts"
