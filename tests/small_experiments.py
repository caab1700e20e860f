"""An experiment on parameters of a test's own: everything but the files."""

from __future__ import annotations

from otgraph.experiments._framework.report import rendered, score_table
from otgraph.experiments._framework.runner import _run_task


def run_small(experiment, parameters, *, seeds=2):
    """Scores, summary and the rendered pictures by name."""
    tasks = experiment.tasks(parameters, experiment.variants[:1], seeds)
    finished = {task.key: _run_task(experiment.run, task, parameters)[1] for task in tasks}
    scores = score_table(experiment.name, tasks, finished)
    pictures = list(experiment.draw(scores, parameters))
    assert all(picture.caption for picture in pictures)
    return scores, experiment.summarize(scores, parameters), rendered(pictures)
