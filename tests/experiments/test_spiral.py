"""The spiral: a small run, its eigenvectors, and claims against made-up scores."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

import otgraph
from otgraph import datasets
from otgraph.experiments import reproduce, spiral
from otgraph.experiments._framework import runner
from otgraph.experiments._framework.experiment import Verdict
from otgraph.experiments._framework.methods import (
    ENTROPIC,
    GAUSSIAN,
    HOLLOW,
    HOLLOW_ENTROPIC,
    KNN_GAUSSIAN,
    MAGIC,
    QUADRATIC,
    log_grid,
)
from otgraph.experiments.spiral import ANGLE, DETERMINED, GAP_VARIATION, KEPT, RADIUS_VARIATION
from small_experiments import frame, verdicts


def test_small_run(monkeypatch, tmp_path):
    # Smaller still than a quick run, which takes some ten seconds.
    quick = replace(
        spiral.QUICK, n=120, quadratic_eps=(1.0,), kernel_eps=log_grid(-1, 0, 2), k=(5,)
    )
    monkeypatch.setattr(runner, "load", lambda name: replace(spiral.EXPERIMENT, quick=quick))
    report = reproduce("spiral", out=tmp_path, quick=True, seeds=1, variant="code", n_jobs=1)
    summary = json.loads((tmp_path / "spiral" / "summary.json").read_text())
    assert {claim.verdict for claim in report.claims} == {Verdict.NOT_JUDGED}
    assert len(report.claims) == 6
    drawn = [figure["name"] for figure in summary["figures"]]
    assert drawn == ["dataset", "graphs", "errors", "embeddings"]
    scores = pd.read_csv(tmp_path / "spiral" / "scores.csv")
    assert set(scores["method"]) == set(spiral.SHOWN)
    assert not scores.duplicated(subset=list(scores.columns.drop("value"))).any()
    # The shape of an embedding that falls apart is not a number; all else is.
    assert scores.loc[~scores["score"].str.endswith("variation"), "value"].notna().all()


def test_sample_is_the_dataset():
    np.testing.assert_array_equal(
        spiral.sample(spiral.Parameters(n=50), 3).X, datasets.noisy_spiral(50, random_state=3).X
    )


class TestLeadingModes:
    def test_connected_graphs_have_the_eigenmaps(self, rng):
        graph = otgraph.knn_gaussian_graph(rng.random((80, 2)), 8, 0.5)
        modes = spiral.leading_modes(graph, 4)
        assert modes.determined
        expected = otgraph.eigenmaps(graph, 4).coordinates
        # Signs are free; the scale is that of the stationary distribution in both.
        signs = np.sign((modes.vectors * expected).sum(axis=0))
        np.testing.assert_allclose(modes.vectors * signs, expected, atol=1e-8)

    def test_pieces_are_among_the_leading_eigenvectors(self):
        """Two cliques: the second eigenvector says which, whatever they look like inside."""
        pieces = [sp.csr_matrix(np.ones((n, n))) for n in (5, 7)]
        graph = otgraph.Graph.from_weights(sp.block_diag(pieces))
        modes = spiral.leading_modes(graph, 1)
        assert modes.determined
        np.testing.assert_allclose(np.ptp(modes.vectors[:5]), 0, atol=1e-12)
        np.testing.assert_allclose(np.ptp(modes.vectors[5:]), 0, atol=1e-12)
        assert modes.vectors[0] * modes.vectors[-1] < 0

    def test_too_many_pieces_determine_nothing(self):
        graph = otgraph.Graph.from_weights(sp.block_diag([sp.csr_matrix(np.ones((3, 3)))] * 6))
        assert not spiral.leading_modes(graph, 4).determined
        assert spiral.leading_modes(graph, 5).determined  # all six, without the constant

    def test_identity(self):
        modes = spiral.leading_modes(otgraph.Graph.from_weights(sp.identity(30)), 10)
        assert modes.vectors.shape == (30, 10)
        assert not modes.determined


# Scores of all methods for two seeds, such that every claim holds.
ANGLES = {
    QUADRATIC: (0.08, 0.09), HOLLOW: (0.08, 0.08), KNN_GAUSSIAN: (0.34, 0.35),
    MAGIC: (0.33, 0.36), ENTROPIC: (0.65, 0.66), HOLLOW_ENTROPIC: (0.1, 0.11),
    GAUSSIAN: (0.69, 0.68),
}  # fmt: skip
GAPS = dict.fromkeys(ANGLES, (0.8, 0.9)) | {KNN_GAUSSIAN: (2.0, 2.1), MAGIC: (1.8, 1.9)}
RADII = dict.fromkeys(ANGLES, (0.01, 0.02)) | {ENTROPIC: (0.2, 0.2), GAUSSIAN: (0.2, 0.2)}
SHARES = dict.fromkeys(ANGLES, (0.3, 0.3)) | {QUADRATIC: (0.6, 0.7), MAGIC: (0.2, 0.2)}
ORDER, COMPARABLE, NOISY, CIRCLE, DIAGONAL, AIM = range(6)


class TestClaims:
    def judged(self, angles=None, gaps=None, radii=None, kept=None):
        tables = {
            ANGLE: ANGLES | (angles or {}),
            RADIUS_VARIATION: RADII | (radii or {}),
            GAP_VARIATION: GAPS | (gaps or {}),
            KEPT: SHARES | (kept or {}),
        }
        worse = {ANGLE: (1.5, 1.5), RADIUS_VARIATION: (1, 1), GAP_VARIATION: (9, 9), KEPT: (0, 1)}
        rows = []
        for method in ANGLES:
            params = {"k": 5} if method == MAGIC else {"k": np.nan, "eps": 1.0}
            scores = {score: table[method] for score, table in tables.items()}
            rows += [(method, params, scores), (method, {**params, "eps": 9.0, "k": 9}, worse)]
        summary = spiral.summarize(frame(rows), None)
        assert all(claim.reason for claim in summary.claims)
        return verdicts(summary)

    def test_all_hold(self):
        assert self.judged() == [True] * 6

    def test_order_must_hold_in_every_seed(self):
        assert self.judged(angles={MAGIC: (0.085, 0.085)})[ORDER] is False  # better in one seed
        assert self.judged(angles={ENTROPIC: (0.65, 0.34)})[ORDER] is False

    def test_order_is_that_of_the_paper_with_loops(self):
        assert self.judged(angles={HOLLOW_ENTROPIC: (0.01, 0.01)})[ORDER] is True
        assert self.judged(angles={HOLLOW: (0.9, 0.9)})[ORDER] is True

    def test_comparable_is_relative_to_the_next_method(self):
        assert self.judged(angles={MAGIC: (0.30, 0.32)})[COMPARABLE] is True
        assert self.judged(angles={MAGIC: (0.27, 0.29)})[COMPARABLE] is False

    def test_noisy_region(self):
        assert self.judged(kept={QUADRATIC: (0.6, 0.15)})[NOISY] is False
        assert self.judged(kept={MAGIC: (0.2, 0.55)})[NOISY] is False  # keeps most of it

    def test_circle(self):
        assert self.judged(gaps={QUADRATIC: (0.8, 1.1)})[CIRCLE] is False
        assert self.judged(radii={QUADRATIC: (0.01, 0.06)})[CIRCLE] is False
        assert self.judged(gaps={MAGIC: (1.5, 0.9)})[CIRCLE] is False  # no longer the only one
        assert self.judged()[CIRCLE] is True  # though hollow entropic OT has one, too

    def test_diagonal(self):
        assert self.judged(angles={HOLLOW_ENTROPIC: (0.1, 0.07)})[DIAGONAL] is False
        assert self.judged(angles={HOLLOW_ENTROPIC: (0.1, 0.4)})[DIAGONAL] is False

    def test_aim(self):
        assert self.judged(angles={QUADRATIC: (0.1, 0.11)})[AIM] is False
        assert self.judged(angles={KNN_GAUSSIAN: (0.24, 0.25)})[AIM] is False  # more than a third


def test_undetermined_eigenvectors_are_marked():
    rows = [
        (method, {"eps": eps, "k": 5}, {ANGLE: (1.4, 1.4), DETERMINED: (1, float(eps > 1))})
        for method in spiral.SHOWN
        for eps in (1.0, 2.0)
    ]
    (ax,) = spiral._errors(frame(rows)).axes
    white = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata().tolist() for line in white] == [[1.0]] * len(spiral.WITH_EPS)
