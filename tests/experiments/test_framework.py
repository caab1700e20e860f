"""The framework, tried on an experiment that takes no time."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from otgraph.exceptions import ExperimentError
from otgraph.experiments import NAMES, reproduce
from otgraph.experiments._framework import runner
from otgraph.experiments._framework.experiment import (
    Claim,
    Experiment,
    Picture,
    Summary,
    Verdict,
)
from otgraph.experiments._framework.report import tally
from otgraph.experiments._framework.statistics import best_per_seed, spread, table_of_best


@dataclass(frozen=True)
class Grid:
    eps: tuple[float, ...] = (1.0, 2.0, 3.0)


class Toy:
    """Scores that are known beforehand; counts how often they were computed."""

    def __init__(self, name="toy"):
        self.calls = Counter()
        self.interrupt_before = None
        self.experiment = Experiment(
            name=name,
            title="A toy",
            source="nowhere",
            parameters=Grid(),
            quick=Grid((1.0,)),
            tasks=lambda grid, variant: [("plain", {}), ("near", {"k": 5})],
            run=self.run,
            summarize=self.summarize,
            draw=self.draw,
        )

    def run(self, task, grid):
        if task.key == self.interrupt_before:
            raise KeyboardInterrupt
        self.calls[task.key] += 1
        for eps in grid.eps:
            value = np.float64(eps * (task.seed + 1) / 3)  # does not end in decimals
            yield {"eps": eps}, {"size": value}

    def summarize(self, scores, grid):
        best = best_per_seed(scores, "size", largest=True)
        claim = Claim(
            "All is well.", True, f"It is {spread(best['value'])}.", reason="It had to be."
        )
        return Summary(table_of_best(best), [claim])

    def draw(self, scores, grid):
        assert scores["variant"].nunique() == 1  # called for each of them
        figure = Figure(figsize=(1, 1))
        figure.subplots().plot(scores["value"])
        yield Picture("line", figure, "A line.")


@pytest.fixture
def toy(monkeypatch):
    toys = {name: Toy(name) for name in ("toy", "later")}
    monkeypatch.setattr(runner, "NAMES", tuple(toys))
    monkeypatch.setattr(runner, "load", lambda name: toys[name].experiment)
    toys["toy"].later = toys["later"]
    return toys["toy"]


def run(out, name="toy", **options):
    return reproduce(name, out=out, n_jobs=1, **{"seeds": 2, **options})


def test_everything_is_written(toy, tmp_path):
    report = run(tmp_path, variant="both")
    folder = tmp_path / "toy"
    names = {file.name for file in report.files}
    assert names == {
        "scores.csv", "summary.json", "line.png", "line.pdf", "line-code.png", "line-code.pdf"
    }  # fmt: skip
    assert {file.name for file in folder.iterdir()} == names  # no checkpoint is left
    assert (folder / "line.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "line.pdf").read_bytes().startswith(b"%PDF")
    scores = pd.read_csv(folder / "scores.csv")
    assert list(scores) == ["experiment", "variant", "seed", "method", "eps", "k", "score", "value"]
    assert len(scores) == 2 * 2 * 2 * 3
    assert scores.loc[scores["method"] == "near", "k"].eq(5).all()
    assert ",5," in (folder / "scores.csv").read_text()  # not 5.0
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["claims"][0]["text"] == "All is well."
    assert summary["parameters"] == {"eps": [1.0, 2.0, 3.0]}
    assert summary["seeds"] == 2
    assert summary["table"][0]["mean"] == pytest.approx(1.5)
    assert [figure["name"] for figure in summary["figures"]] == ["line", "line-code"]
    assert "[confirmed, text] All is well." in str(report)
    assert "[confirmed, code] All is well." in str(report)
    assert "Why: It had to be." in str(report)


def test_runs_are_the_same_to_the_last_byte(toy, tmp_path):
    first, second = run(tmp_path / "a"), run(tmp_path / "b")
    for one, other in zip(first.files, second.files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_interrupted_run_continues(toy, tmp_path):
    whole = run(tmp_path / "whole")
    tasks = list(toy.calls)
    toy.calls.clear()
    toy.interrupt_before = tasks[2]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts")
    assert not (tmp_path / "parts" / "toy" / "scores.csv").exists()
    assert list(toy.calls) == tasks[:2]
    toy.interrupt_before = None
    resumed = run(tmp_path / "parts")
    assert toy.calls == Counter(tasks)  # none was computed twice
    for one, other in zip(whole.files, resumed.files, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_more_seeds_build_on_an_interrupted_run(toy, tmp_path):
    run(tmp_path / "whole")
    toy.interrupt_before = list(toy.calls)[-1]
    toy.calls.clear()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts")
    toy.interrupt_before = None
    run(tmp_path / "parts", seeds=3)
    assert set(toy.calls.values()) == {1}
    assert len(toy.calls) == 6


def test_complete_run_starts_afresh(toy, tmp_path):
    run(tmp_path)
    run(tmp_path)
    assert set(toy.calls.values()) == {2}


def test_all_keeps_what_is_complete(toy, tmp_path):
    run(tmp_path / "other", "later")
    toy.later.interrupt_before = list(toy.later.calls)[1]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "all")
    toy.later.interrupt_before = None
    report = run(tmp_path, "all")
    assert set(toy.calls.values()) == {1}
    assert report.title == "2 of 2 claims confirmed"
    assert [part.name for part in report.parts] == ["toy", "later"]
    assert not list(tmp_path.glob("*/*.jsonl"))


def test_line_cut_short_is_computed_again(toy, tmp_path):
    run(tmp_path / "whole")
    tasks = list(toy.calls)
    toy.interrupt_before = tasks[2]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    partial = tmp_path / "toy" / "scores.partial.jsonl"
    partial.write_text(partial.read_text()[:-9])
    toy.calls.clear()
    toy.interrupt_before = None
    run(tmp_path)
    assert list(toy.calls) == tasks[1:]


@pytest.mark.parametrize("change", ["quick", "grid"])
def test_scores_of_other_settings_are_not_mixed(toy, tmp_path, change):
    run(tmp_path / "whole")
    toy.interrupt_before = list(toy.calls)[1]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    toy.calls.clear()
    toy.interrupt_before = None
    if change == "grid":
        toy.experiment = replace(toy.experiment, parameters=Grid((1.0, 4.0)))
        runner.load = lambda name: toy.experiment  # restored with the fixture's monkeypatch
    run(tmp_path, quick=change == "quick")
    scores = pd.read_csv(tmp_path / "toy" / "scores.csv")
    assert set(scores["eps"]) == ({1.0} if change == "quick" else {1.0, 4.0})
    assert len(toy.calls) == 4


def test_quick_runs_judge_nothing_and_take_few_seeds(toy, tmp_path):
    report = run(tmp_path, quick=True, seeds=5)
    assert "quick run" in str(report)
    assert "[not judged, text] All is well." in str(report)
    assert "confirmed" not in str(report)
    assert "Why" not in str(report)
    summary = json.loads((tmp_path / "toy" / "summary.json").read_text())
    assert summary["claims"][0]["verdict"] == "not judged"
    assert run(tmp_path, "all", quick=True).title == "2 claims, none judged"
    assert pd.read_csv(tmp_path / "toy" / "scores.csv")["seed"].nunique() == runner.QUICK_SEEDS


def test_experiment_without_variants_runs_once(toy, tmp_path):
    toy.experiment = replace(toy.experiment, variants=("text",))
    runner.load = lambda name: toy.experiment
    for variant in ("code", "both"):
        run(tmp_path, variant=variant)
        assert set(pd.read_csv(tmp_path / "toy" / "scores.csv")["variant"]) == {"text"}


def test_names_are_those_of_the_paper_and_beyond():
    assert NAMES == (
        "curve", "spiral", "arms", "density", "cells", "mixture", "digits", "laplace"
    )  # fmt: skip


def test_verdicts():
    assert Claim("", False, "").verdict is Verdict.NOT_CONFIRMED
    assert (
        str(Claim("It is.", Verdict.TIE, "Half.", variant="code"))
        == "[a tie, code] It is.\n    Half."
    )
    assert not Claim("", Verdict.TIE, "").confirmed
    verdicts = (Verdict.CONFIRMED, Verdict.TIE, Verdict.NOT_CONFIRMED)
    assert tally(verdicts) == "1 of 3 claims confirmed, 1 a tie"


class TestBadInput:
    def test_unknown_experiment(self, tmp_path):
        with pytest.raises(ExperimentError, match=r"no experiment 'spirals': choose one of curve"):
            reproduce("spirals", out=tmp_path)

    def test_data_for_an_experiment_that_makes_its_own(self, tmp_path):
        with pytest.raises(ExperimentError, match="for the experiment 'cells'"):
            reproduce("spiral", out=tmp_path, genes=["VIM"])

    def test_folder_is_a_file(self, toy, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(ExperimentError, match="not a folder"):
            run(tmp_path / "file" / "below")
        assert not toy.calls

    def test_folder_without_permission(self, toy, tmp_path, monkeypatch):
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(ExperimentError, match="no permission"):
            run(tmp_path / "new")
        assert not toy.calls
        assert not (tmp_path / "new").exists()

    def test_full_disk_keeps_the_scores(self, toy, tmp_path, monkeypatch):
        def full(folder, contents):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(runner, "write_files", full)
        with pytest.raises(ExperimentError, match="No space left on device"):
            run(tmp_path)
        monkeypatch.undo()
        assert [file.name for file in (tmp_path / "toy").iterdir()] == ["scores.partial.jsonl"]

    @pytest.mark.parametrize(
        "options", [{"seeds": 0}, {"variant": "paper"}, {"seeds": 2.5}, {"seeds": "many"}]
    )
    def test_other_arguments(self, toy, tmp_path, options):
        with pytest.raises((ValueError, TypeError), match=next(iter(options))):
            run(tmp_path, **options)
