"""The two experiments of section 3.2: small runs, and claims against made-up scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import otgraph
from otgraph import datasets
from otgraph.experiments import arms, density
from otgraph.experiments._framework.labels import accuracy, authors_labels, with_known
from otgraph.experiments._framework.methods import (
    ENTROPIC,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN,
    KNN_GAUSSIAN,
    QUADRATIC,
    graph_at,
)
from small_experiments import frame, run_small, verdicts

TINY_ARMS = replace(
    arms.QUICK, n_per_arm=30, quadratic_eps=(0.1,), hollow_eps=(0.01, 0.1), entropic_eps=(0.1,),
    kernel_eps=(0.1,), k=(1, 3),
)  # fmt: skip


@pytest.mark.parametrize("variant", ["text", "code"])
def test_arms_small(variant):
    scores, summary, pictures = run_small(arms.EXPERIMENT, TINY_ARMS, seeds=1, variant=variant)
    assert pictures == ["data", "accuracy", "labels"]
    assert len(summary.claims) == (5 if variant == "text" else 4)
    assert set(scores["method"]) == set(arms.METHODS)
    assert scores["value"].between(0, 1).all()
    assert len(scores) == 2 * (1 + 2 + 1 + 1 + 2)  # two scores of every graph


def test_density_small():
    parameters = replace(
        density.QUICK, n_per_arm=(30, 40), text_eps=(0.1, 1.0), code_eps=(1.0,), k=(3, 6)
    )
    for variant in ("text", "code"):
        scores, summary, pictures = run_small(density.EXPERIMENT, parameters, variant=variant)
        assert pictures == ["heatmap"]
        assert len(summary.claims) == 3
        assert not scores.duplicated(subset=list(scores.columns.drop("value"))).any()


def test_labels_of_the_authors_are_the_series_of_their_walk():
    """F = Y + (W/2) Y + (W/2)² Y + ..., on a matrix that is not symmetric."""
    known = with_known(datasets.spiral_arms(20, n_arms=3, dim=5), 0.1, 0)
    graph = graph_at(KNN_GAUSSIAN, known.sample.X, {"k": 6, "eps": 0.1}, "code")
    W = graph.transition().toarray()
    assert abs(W - W.T).max() > 0.01
    F = term = np.eye(3)[known.truth] * known.known[:, None]
    for _ in range(60):
        term = W @ term / 2
        F = F + term
    found = authors_labels(graph, known)
    reached = F.any(axis=1)
    np.testing.assert_array_equal(found[reached], F[reached].argmax(axis=1))
    assert accuracy(graph, known, "code") == np.mean(found == known.truth)  # labeled ones count


def test_labels_of_the_authors_on_a_plan_are_those_of_mu_two():
    known = with_known(datasets.spiral_arms(40, n_arms=4, dim=5), 0.1, 0)
    graph = otgraph.quadratic_ot_graph(known.sample.X, 0.5)
    partial = np.where(known.known, known.truth, -1)
    expected = otgraph.spread_labels(graph, partial, mu=2.0).labels
    np.testing.assert_array_equal(authors_labels(graph, known), expected)


def test_no_two_arms_look_alike_and_none_like_unlabeled_points():
    from matplotlib.colors import rgb_to_hsv, to_rgb

    rgb = np.array([to_rgb(color) for color in arms.ARM_COLORS])
    assert len(rgb) == arms.Parameters().n_arms
    assert rgb_to_hsv(rgb)[:, 1].min() > 0.5  # no greys
    apart = np.linalg.norm(rgb[:, None] - rgb, axis=2)
    assert apart[np.triu_indices(10, 1)].min() > 0.25


class TestArmsClaims:
    def summary(
        self, quadratic=(0.6, 0.62), knn=(0.5, 0.5), between=(0.1, 0.2), variant="text", eps=1.0,
        hollow=(0.75, 0.76),
    ):  # fmt: skip
        other = {"accuracy": (0.7, 0.7), "edges between arms": (0, 0)}
        ours = other | {"accuracy": hollow}
        scores = frame(
            [
                (QUADRATIC, {"eps": eps}, {"accuracy": quadratic, "edges between arms": between}),
                (HOLLOW, {"eps": 1.0}, ours),
                *((method, {"eps": 1.0}, other) for method in (ENTROPIC, HOLLOW_ENTROPIC)),
                (KNN_GAUSSIAN, {"k": 3, "eps": 0.1},
                 {"accuracy": knn, "edges between arms": (0.4, 0.4)}),
            ]
        )  # fmt: skip
        return arms.summarize(scores.assign(variant=variant), arms.Parameters())

    def judged(self, **changes):
        return verdicts(self.summary(**changes))

    def test_as_in_the_paper(self):
        assert self.judged(quadratic=(0.95, 0.96)) == [True] * 5
        assert self.judged(quadratic=(0.95, 0.96), variant="code") == [True] * 4

    def test_lead_must_be_significant_and_in_every_seed(self):
        assert self.judged(quadratic=(0.9, 0.52))[::4] == [False, False]
        assert self.judged(quadratic=(0.53, 0.532))[::4] == [True, False]

    def test_the_words_of_the_text_need_its_picture(self):
        claim = self.summary().claims[1]
        assert not claim.confirmed
        assert "With the text's noise no graph here reaches it" in claim.reason
        assert "noise" not in self.summary(variant="code").claims[1].reason
        assert self.judged(quadratic=(0.95, 0.96), knn=(0.92, 0.93))[1] is False

    def test_hollow_for_hollow(self):
        assert self.summary(hollow=(0.69, 0.72)).claims[3].verdict == "a tie"
        assert self.summary(hollow=(0.6, 0.61)).claims[3].verdict == "not confirmed"

    def test_edges_between_arms(self):
        assert self.judged(between=(0.1, 0.5))[2] is False

    def test_the_edge_of_a_grid_is_said(self):
        note = "quadratic OT is best at the smallest ε of its grid in 2 of 2 seeds"
        assert note in self.summary(eps=0.01).claims[0].sentence
        assert note not in self.summary().claims[0].sentence


class TestDensityClaims:
    def judged(self, quadratic, knn):
        """Rows are densities, columns parameters, values those of both seeds."""
        rows = [
            (method, {name: grid[column], "n_per_arm": row}, {"accuracy": pair})
            for method, name, grid, table in (
                (QUADRATIC, "eps", (0.1, 1.0), quadratic), (KNN, "k", (3, 6), knn)
            )
            for row, values in enumerate(table, start=50)
            for column, pair in enumerate(values)
        ]  # fmt: skip
        return density.summarize(frame(rows), None)

    def test_one_for_all(self):
        summary = self.judged(
            [[(0.5, 0.5), (0.6, 0.6)], [(0.7, 0.7), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.9, 0.9)]],
        )
        assert verdicts(summary) == [True, True, True]
        assert "k = 6 loses 0.050 in the mean" in summary.claims[0].sentence
        assert summary.table[0]["best at"] == {"eps": 1.0}
        assert summary.table[0]["with ε = 1"] == pytest.approx(0.6)

    def test_a_loss_within_its_standard_error(self):
        """The best eps moves, but within the spread over the seeds; that of k moves for sure."""
        summary = self.judged(
            [[(0.62, 0.58), (0.55, 0.64)], [(0.7, 0.7), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.9, 0.9)]],
        )
        assert verdicts(summary) == [True, True, True]
        assert "more than its standard error at 0 of 2 densities" in summary.claims[1].sentence

    def test_a_loss_beyond_its_standard_error(self):
        """A loss of 0.01 and 0.05 has the mean 0.03 and the standard error 0.02."""
        summary = self.judged(
            [[(0.6, 0.6), (0.59, 0.55)], [(0.7, 0.7), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.9, 0.9)]],
        )
        assert verdicts(summary) == [True, False, False]
        assert "at most 1.5 standard errors" in summary.claims[1].sentence

    def test_both_move(self):
        summary = self.judged(
            [[(0.6, 0.61), (0.55, 0.56)], [(0.7, 0.7), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.9, 0.9)]],
        )
        assert verdicts(summary) == [True, False, False]

    def test_k_stays(self):
        summary = self.judged(
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.9, 0.9), (0.8, 0.8)]],
        )
        assert verdicts(summary) == [False, False, False]

    def test_another_eps_than_one(self):
        summary = self.judged(
            [[(0.6, 0.6), (0.5, 0.5)], [(0.9, 0.9), (0.8, 0.8)]],
            [[(0.6, 0.6), (0.5, 0.5)], [(0.7, 0.7), (0.9, 0.9)]],
        )
        assert verdicts(summary) == [True, True, False]
        assert "ε = 1 loses 0.100 in the mean" in summary.claims[2].sentence
