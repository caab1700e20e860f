"""An experiment on parameters of a test's own, and claims on made-up scores."""

from __future__ import annotations

import io

import pandas as pd

from otgraph.experiments._framework.report import score_table
from otgraph.experiments._framework.runner import _expected_warnings, _run_task


def run_small(experiment, parameters, *, seeds=2, variant="text"):
    """Scores, summary and the names of the pictures, which were rendered."""
    tasks = experiment.all_tasks(parameters, (variant,), seeds)
    finished = {task.key: _run_task(experiment.run, task, parameters)[1] for task in tasks}
    scores = score_table(experiment.name, tasks, finished)
    with _expected_warnings():
        pictures = list(experiment.draw(scores, parameters))
    for picture in pictures:
        assert picture.caption
        picture.figure.savefig(io.BytesIO(), format="png", dpi=40)
    names = [picture.name for picture in pictures]
    return scores, experiment.summarize_all(scores, parameters), names


def frame(rows):
    """Scores for two seeds: a method, its parameters, and pairs of values for each score."""
    columns = [
        {"variant": "text", "seed": seed, "method": method, **params, "score": score,
         "value": values[seed]}
        for method, params, scores in rows
        for score, values in scores.items()
        for seed in range(2)
    ]  # fmt: skip
    return pd.DataFrame(columns)


def verdicts(summary):
    return [claim.confirmed for claim in summary.claims]
