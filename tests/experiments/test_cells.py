from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import otgraph
from otgraph.datasets import _downloads
from otgraph.exceptions import ExperimentError
from otgraph.experiments import reproduce
from otgraph.experiments._cells_data import Parameters, with_data
from otgraph.experiments._framework.methods import ENTROPIC, HOLLOW, MAGIC
from otgraph.experiments.cells import (
    COMPONENTS,
    DEGREES,
    DIMENSION,
    DISTANCES,
    EXPERIMENT,
    GENE_CORRELATION,
    HUB_SHARE,
    LAZY,
    LOW_CORRELATION,
    LOWEST_CORRELATION,
    MATCHED,
    OWN_SHARE,
    PERPLEXITY,
    RAW,
    VARIANCE,
    WIDER,
    compare,
    gene_correlations,
    graph,
    lazy,
)
from small_experiments import run_small

EMT = Path(__file__).parents[3] / "shared" / "data" / "emt_subset.csv"


@pytest.fixture
def table(tmp_path, rng):
    """Counts of cells along a line: two genes fall and rise, the others are noise."""
    position = np.linspace(0, 1, 60)
    rates = np.column_stack([800 * (1 - position), 800 * position, np.full((60, 8), 100.0)])
    names = ["Mpo", "Klf1", "Ifitm1", *(f"g{i}" for i in range(7))]
    path = tmp_path / "counts.csv"
    pd.DataFrame(rng.poisson(rates), columns=names).to_csv(path)
    return path


@pytest.fixture
def offline(monkeypatch, tmp_path):
    monkeypatch.setenv("OTGRAPH_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(_downloads.REMOTE_FILES, "bmmc", "http://127.0.0.1:9/BMMC.csv.gz")


def test_counts_are_prepared(table):
    parameters = with_data(Parameters(), str(table), ("Mpo", "Klf1", "Ifitm1"))
    assert (parameters.n_cells, parameters.n_genes) == (60, 10)
    assert parameters.eps is None  # distances of another size than the paper's
    scores, summary, pictures = run_small(EXPERIMENT, parameters, seeds=1)
    assert pictures == ["progression", "correlations"]
    assert len(summary.claims) == 4
    assert all(
        "counts.csv (not the paper's cells: 60 cells, 10 genes)" in claim.sentence
        for claim in summary.claims
    )
    table = {row["method"]: row for row in summary.table}
    assert table[MAGIC][GENE_CORRELATION] == "1 / 1 / 1"  # t = 1, 3, 5
    assert table[RAW][PERPLEXITY] is None
    values = scores.set_index(["method", "score", "t"])["value"]
    assert values[MAGIC, GENE_CORRELATION, 3] == pytest.approx(1)
    assert values[RAW, VARIANCE, 5] == pytest.approx(1)
    # Noise goes, and quadratic OT finds the direction that MAGIC finds.
    assert values[HOLLOW, GENE_CORRELATION, 3] > values[RAW, GENE_CORRELATION, 3]
    assert values[HOLLOW, DIMENSION, 3] < values[RAW, DIMENSION, 3]
    assert values[HOLLOW, OWN_SHARE, 0] == 0 < values[MAGIC, OWN_SHARE, 0] < 1
    assert values[LAZY, OWN_SHARE, 0] == pytest.approx(values[MAGIC, OWN_SHARE, 0])
    # Mass balance: six of sixty cells get a tenth of the weight, more of it in MAGIC's graph.
    assert values[HOLLOW, HUB_SHARE, 0] == pytest.approx(0.1, rel=1e-5)
    assert values[MAGIC, HUB_SHARE, 0] > 0.1
    assert values[MATCHED, PERPLEXITY, 0] == pytest.approx(values[HOLLOW, PERPLEXITY, 0], rel=0.02)
    assert values[ENTROPIC, "eps", 0] == pytest.approx(values[HOLLOW, "eps", 0] / 60)


def test_a_copy_of_the_papers_file(table):
    copy = table.rename(table.with_name("BMMC_myeloid.csv.gz"))
    copy.write_bytes(gzip.compress(copy.read_bytes()))
    parameters = with_data(Parameters(), str(copy), None)
    assert (parameters.eps, parameters.entropic_eps) == (30.0, 0.5)
    assert parameters.genes == ("Mpo", "Klf1", "Ifitm1")


def test_settings_of_the_paper(rng):
    X = 10 * rng.standard_normal((40, 5))
    quadratic = graph(HOLLOW, X, Parameters())
    assert (quadratic.params["eps"], quadratic.params["power"]) == (30.0, 1.0)
    assert quadratic.params["normalize"] is False
    assert quadratic.weights.diagonal().max() == 0
    entropic = graph(ENTROPIC, X, Parameters())
    assert entropic.params["eps"] == 0.5
    same = otgraph.entropic_ot_graph(X, 0.5, power=1, normalize=False)
    np.testing.assert_allclose(entropic.weights.toarray(), same.weights.toarray(), atol=1e-5)


def test_scores_by_hand():
    A = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 5.0], [2.0, -1.0, 5.0]])
    B = np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [4.0, 3.0, 3.0]])
    np.testing.assert_allclose(gene_correlations(A, B), [1, -1, 0])
    found = compare(A, A, 2 * A)
    assert found[VARIANCE] == pytest.approx(0.25)
    assert found[DIMENSION] == pytest.approx(1)  # points on a line
    assert found[DISTANCES] == pytest.approx(1)


def test_lazy_plan_keeps_the_share_and_the_masses(rng):
    X = rng.standard_normal((50, 4))
    plan, magic = otgraph.quadratic_ot_graph(X, 1.0), otgraph.magic_graph(X)
    found = lazy(plan, magic).transition().toarray()
    share = magic.transition().diagonal().mean()
    np.testing.assert_allclose(np.diag(found), share, rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(
        found - np.diag(np.diag(found)), (1 - share) * plan.weights.toarray(), atol=1e-6
    )


class TestClaims:
    def judged(self, lazy, wider, pieces=1):
        """The first claim at t = 1; all other scores are one half."""
        rows = [
            {"method": method, "t": t, "score": score, "value": 0.5}
            for method in (MAGIC, HOLLOW, LAZY, WIDER, ENTROPIC, MATCHED, RAW)
            for t, scores in (
                (0, (PERPLEXITY, OWN_SHARE, HUB_SHARE, *DEGREES, COMPONENTS)),
                (1, (GENE_CORRELATION, LOW_CORRELATION, LOWEST_CORRELATION, DISTANCES, VARIANCE,
                     DIMENSION)),
            )
            for score in scores
        ]  # fmt: skip
        scores = pd.DataFrame(rows).set_index(["method", "score", "t"]).sort_index()
        scores.loc[(LAZY, GENE_CORRELATION, 1), "value"] = lazy
        scores.loc[(WIDER, GENE_CORRELATION, 1), "value"] = wider
        scores.loc[(HOLLOW, COMPONENTS, 0), "value"] = pieces
        summary = EXPERIMENT.summarize(scores.reset_index(), Parameters(data="other.csv", t=(1,)))
        return summary.claims[0]

    def test_threshold_or_yardstick(self):
        assert self.judged(lazy=0.96, wider=0.99).confirmed
        assert self.judged(lazy=0.91, wider=0.90).confirmed
        assert not self.judged(lazy=0.90, wider=0.92).confirmed

    def test_a_failure_has_its_reason(self):
        claim = self.judged(lazy=0.5, wider=0.92, pieces=5)
        assert "MAGIC has hubs: a tenth of the cells receives 50 % of all weight" in claim.reason
        assert "in 5 pieces" in claim.reason
        assert "hubs" not in self.judged(lazy=0.96, wider=0.92).reason


def test_values_that_are_no_counts_stay(tmp_path, rng):
    path = tmp_path / "logs.csv"
    logs = rng.random((40, 5))
    pd.DataFrame(logs, columns=list("abcde")).to_csv(path, index=False)
    parameters = with_data(Parameters(), str(path), ("a", "b", "c"))
    assert parameters.total == pytest.approx(logs.sum())


@pytest.mark.parametrize(
    ("genes", "message"),
    [
        (None, "Name three genes"),
        (("Mpo", "Klf1"), "three different names, got Mpo, Klf1"),
        (("Mpo", "Klf1", "Mpo"), "three different names"),
        (("Mpo", "KLF1", "Ifitm1"), "no gene KLF1. For KLF1 there is Klf1"),
    ],
)
def test_genes_that_do_not_fit(table, tmp_path, genes, message):
    with pytest.raises(ExperimentError, match=message):
        reproduce("cells", data=table, genes=genes, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_few_cells(table, tmp_path):
    rows = table.read_text().splitlines()
    table.write_text("\n".join(rows[:20]))
    with pytest.raises(ExperimentError, match="has 19 cells; the experiment needs at least 30"):
        with_data(Parameters(), str(table), ("Mpo", "Klf1", "Ifitm1"))
    small = [rows[0], *(",".join([row.split(",")[0]] + ["1"] * 10) for row in rows[1:])]
    table.write_text("\n".join(small))
    with pytest.raises(ExperimentError, match=r"Only 0 of 60 cells .* library size"):
        with_data(Parameters(), str(table), ("Mpo", "Klf1", "Ifitm1"))


def test_no_such_file():
    with pytest.raises(ExperimentError, match=r"no file 'nowhere.csv'"):
        with_data(Parameters(), "nowhere.csv", ("a", "b", "c"))


@pytest.mark.usefixtures("offline")
def test_without_a_network(tmp_path):
    with pytest.raises(ExperimentError, match=r"could not be downloaded.*--data PATH"):
        reproduce("cells", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("offline")
def test_the_others_do_not_need_one():
    from otgraph.experiments._framework.runner import _with_data

    with pytest.warns(UserWarning, match="Until then 'cells' runs on pbmc68k_reduced"):
        parameters = _with_data(EXPERIMENT, EXPERIMENT.quick, None, None, warn_offline=True)
    assert parameters.data == "pbmc68k_reduced"
    assert parameters.n_cells == 200


@pytest.mark.skipif(not EMT.exists(), reason="the table of cells is not here")
def test_emt_time_course():
    parameters = with_data(Parameters(), str(EMT), None)
    assert parameters.genes == ("VIM", "CDH1", "ZEB1")  # known by the name of the file
    assert (parameters.n_cells, parameters.n_genes) == (500, 197)
