"""The closed curves: a small run, where points lie, and claims against made-up scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import otgraph
from otgraph import datasets
from otgraph.experiments import curve, reproduce
from otgraph.experiments._framework.experiment import Verdict
from otgraph.experiments._framework.methods import CORRECTED, HOLLOW, KNN, QUADRATIC
from otgraph.experiments._outline import Places, eigenfunctions
from otgraph.experiments.curve import (
    ANGLE,
    ELEPHANT,
    ELSEWHERE,
    MEAN_DEGREE,
    PEANUT,
    SPURIOUS,
    Parameters,
)
from small_experiments import frame, run_small, verdicts


def test_small_run():
    parameters = replace(Parameters(), n=60, eps=(0.3, 1.0), k=(3, 6, 12, 15, 24))
    scores, summary, pictures = run_small(curve.EXPERIMENT, parameters, seeds=1)
    assert pictures == ["figure-1", "peanut", "spurious", "embeddings"]
    assert len(summary.claims) == 5
    assert all(claim.reason for claim in summary.claims)
    assert scores["value"].notna().all()
    assert not scores.duplicated(subset=list(scores.columns.drop("value"))).any()
    assert {row["curve"] for row in summary.table} == {ELEPHANT, PEANUT}


@pytest.mark.slow
def test_processes_do_not_change_the_scores(tmp_path):
    for n_jobs in (1, 2):
        reproduce("curve", out=tmp_path / str(n_jobs), quick=True, n_jobs=n_jobs)
    one, two = (tmp_path / str(n) / "curve" / "scores.csv" for n in (1, 2))
    assert one.read_bytes() == two.read_bytes()


class TestPlaces:
    def test_peanut(self):
        """Its length in closed form is an elliptic integral; here by a fine polygon."""
        parameters = Parameters(n=500)
        sample = curve.sample(PEANUT, parameters, 1)
        at = curve.places(PEANUT, sample, parameters)
        t = np.linspace(0, 2 * np.pi, 100_001)
        steps = np.linalg.norm(np.diff(datasets.curves._peanut(t), axis=0), axis=1)
        along = np.concatenate([[0.0], np.cumsum(steps)])
        # The polygon starts at its own first point, within a thousandth of t = 0.
        assert at.length == pytest.approx(along[-1], rel=1e-5)
        shift = at.position - np.interp(sample.t, t, along)
        np.testing.assert_allclose(shift, shift.mean(), atol=1e-3 * at.length)
        # Points crowd on the right, by a factor of 10: the left half is sparse.
        cosine = np.cos(sample.t)
        clear = np.abs(cosine) > 0.1  # density is counted, which is not exact in the middle
        np.testing.assert_array_equal(at.sparse[clear], cosine[clear] < 0)

    def test_samples_are_those_of_the_paper(self):
        expected = datasets.elephant_curve(200, concentration=1.1, noise=2.5, random_state=4)
        np.testing.assert_array_equal(curve.sample(ELEPHANT, Parameters(), 4).X, expected.X)

    def test_eigenfunctions_of_even_points_on_a_circle(self):
        """The ring's own eigenvectors are the waves along it."""
        angle = 2 * np.pi * np.arange(40) / 40
        ring = otgraph.knn_gaussian_graph(np.c_[np.cos(angle), np.sin(angle)], 4)
        waves = eigenfunctions(Places(angle, 2 * np.pi, np.ones(40)))
        assert otgraph.subspace_angle(curve.embedding(KNN, ring), waves) < 1e-7


def test_short_cuts_across_a_square():
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=float)
    at = Places(np.arange(4.0), 4.0, np.ones(4))
    graph = otgraph.knn_gaussian_graph(corners, 3)
    diagonals = [(0, 2), (1, 3)]
    i, j, _ = graph.edges()
    # Sides are no short cuts, also not the one that closes the curve; the diagonals are.
    expected = [pair in diagonals for pair in zip(i.tolist(), j.tolist(), strict=True)]
    np.testing.assert_array_equal(curve.short_cuts(graph, corners, at), expected)
    assert sum(expected) == 2


class TestClaims:
    def scores(self, spurious=(0, 0), angle=(0.4, 0.4), divided=(0.1, 0.1)):
        def graph(name, method, params, degree, number, angle=(0.6, 0.6)):
            measured = {
                MEAN_DEGREE: (degree, degree), SPURIOUS: number, ELSEWHERE: (0, 0), ANGLE: angle
            }  # fmt: skip
            return method, {"curve": name, **params}, measured

        return frame(
            [
                row
                for name in (ELEPHANT, PEANUT)
                for row in (
                    graph(name, QUADRATIC, {"eps": 0.1}, 5.0, (0, 0)),
                    graph(name, QUADRATIC, {"eps": 1.0}, 11.0, spurious, angle),
                    graph(name, QUADRATIC, {"eps": 9.0}, 99.0, (500, 500)),  # beyond every kNN
                    graph(name, HOLLOW, {"eps": 1.0}, 10.0, (0, 0), angle),
                    graph(name, CORRECTED, {"eps": 1.0}, 10.0, (0, 0), divided),
                    graph(name, KNN, {"k": 4}, 5.0, (0, 0)),
                    graph(name, KNN, {"k": 15}, 10.0, (7, 3)),
                    graph(name, KNN, {"k": 20}, 24.0, (50, 40)),
                )
            ]
        )

    def judged(self, **changes):
        return verdicts(curve.summarize(self.scores(**changes), None))

    def test_all_hold(self):
        assert self.judged() == [True] * 5
        pairs = curve.matched(self.scores(), QUADRATIC, PEANUT)
        assert pairs["k of kNN"].tolist() == [4, 15, 4, 15]
        np.testing.assert_array_equal(curve.largest_free_degree(self.scores(), KNN, PEANUT), [5, 5])

    def test_spurious_edges(self):
        assert self.judged(spurious=(17, 9))[:3] == [False] * 3
        # Ahead in one seed and behind in the other by as much: nobody is.
        claim, *_ = curve.summarize(self.scores(spurious=(8, 2)), None).claims
        assert claim.verdict is Verdict.TIE
        assert "ahead in 1 of 2 seeds" in claim.reason

    def test_geometry(self):
        assert self.judged(angle=(0.8, 0.7))[3] is False
        assert self.judged(divided=(0.5, 0.6))[4] is False  # ahead of kNN, not of the plain graph

    def test_both_curves_count(self):
        verdict, reason = curve._on_both({ELEPHANT: [1, 1], PEANUT: [1, -1]})
        assert verdict is Verdict.TIE
        assert reason.startswith("Elephant: ahead in 2 of 2 seeds. Peanut: ahead in 1 of 2 seeds")
        assert curve._on_both({ELEPHANT: [1, -1], PEANUT: [-3, -3]})[0] is Verdict.NOT_CONFIRMED
