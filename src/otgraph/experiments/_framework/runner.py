"""Run experiments: compute, judge, draw, write."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib import Parallel, delayed
from tqdm.auto import tqdm

import otgraph
from otgraph._optional import require
from otgraph._parallel import thread_count
from otgraph._validation import check_choice, check_count, check_path
from otgraph.exceptions import DisconnectedWarning, ExperimentError
from otgraph.experiments._framework.checkpoint import Checkpoint
from otgraph.experiments._framework.experiment import Experiment, P, Picture
from otgraph.experiments._framework.report import (
    Report,
    as_json,
    rendered,
    score_table,
    write_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from otgraph.experiments._framework.experiment import Row, Scored, Scores, Task

NAMES = ("curve", "spiral", "arms", "density", "cells", "mixture", "digits", "laplace")
WITH_DATA = "cells"  # the one experiment that takes data of the user
OFFLINE_DATA = "pbmc68k_reduced"  # cells that come with scanpy
VARIANTS = ("text", "code", "both")
# A quick run needs no statistics; two seeds show that different seeds work.
QUICK_SEEDS = 2


def reproduce(
    name: str,
    *,
    out: str | os.PathLike[str] = "out/reproduce",
    seeds: int = 5,
    quick: bool = False,
    variant: str = "text",
    data: str | os.PathLike[str] | None = None,
    genes: Sequence[str] | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
) -> Report:
    """Repeat an experiment of the paper and judge its claims.

    Writes ``out/NAME/scores.csv`` (every single score), ``summary.json``, and the figures as PNG
    and PDF. An interrupted run continues with the stored scores, also with ``name="all"``. After a
    complete run, the next one computes everything again and replaces the files.

    Parameters
    ----------
    name
        One of ``otgraph.experiments.NAMES``, or ``"all"``.
    out
        Folder for the results, one folder per experiment in it; made if it does not exist.
    seeds
        Number of samples: seeds 0, 1, ...
    quick
        Small samples, coarse grids and at most two seeds, to test that it runs. No claim is
        judged.
    variant
        ``"text"``: as the paper describes it. ``"code"``: as the authors' scripts do it where
        they differ. ``"both"``: one after the other. Experiments without a difference run once.
    data
        Counts for ``cells``, instead of the paper's data. These are downloaded; without a network
        ``name="all"`` warns and uses cells that come with scanpy.
    genes
        Three genes for ``cells``.
    progress
        Show a progress bar.
    n_jobs
        Number of processes; all cores by default. Scores do not depend on it.

    Returns
    -------
    Report
        With ``claims`` and ``files``.

    Raises
    ------
    ExperimentError
        Before anything is computed or written, if there is no such experiment, nothing
        can be written to `out`, or the data do not fit.

    Examples
    --------
    >>> from otgraph.experiments import reproduce
    >>> report = reproduce("spiral", quick=True)  # doctest: +SKIP
    >>> print(report)  # doctest: +SKIP
    """
    check_choice(variant, "variant", VARIANTS)
    seeds = check_count(seeds, "seeds")
    n_processes = thread_count(n_jobs)
    names = _chosen(name)
    if (data is not None or genes is not None) and WITH_DATA not in names:
        msg = f"`data` and `genes` are for the experiment {WITH_DATA!r}; {name!r} makes its data."
        raise ExperimentError(msg)
    root = _checked_folder(Path(check_path(out, "out")))
    for module, extra in (("pandas", "data"), ("matplotlib", "plots")):
        require(module, extra)  # checked before hours of computing
    own = (
        None if data is None else check_path(data, "data"),
        None if genes is None else tuple(genes),
    )
    runs = []
    for each in names:
        experiment = load(each)
        parameters = experiment.quick if quick else experiment.parameters
        if experiment.with_data is not None:
            parameters = _with_data(experiment, parameters, *own, warn_offline=name == "all")
        wanted = ("text", "code") if variant == "both" else (variant,)
        runs.append(_prepared(experiment, parameters, root / each, wanted, seeds, quick=quick))
    reports = [run.execute(n_processes, progress=progress) for run in runs]
    for run in runs:  # at the end: an interrupted `all` keeps complete experiments
        run.checkpoint.remove()
    return Report.of_all(reports) if name == "all" else reports[0]


def load(name: str) -> Experiment[Any]:
    """The experiment of that name; imports its module."""
    experiment: Experiment[Any] = importlib.import_module(f"otgraph.experiments.{name}").EXPERIMENT
    return experiment


def _chosen(name: str) -> tuple[str, ...]:
    if name == "all":
        return NAMES
    if name not in NAMES:
        msg = f"There is no experiment {name!r}: choose one of {', '.join(NAMES)}, or all."
        raise ExperimentError(msg)
    return (name,)


def _checked_folder(folder: Path) -> Path:
    """The folder as an absolute path, after checking that it can be written to."""
    folder = folder.expanduser().absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        why = "it is not a folder" if not existing.is_dir() else "no permission"
        msg = f"Cannot write to {str(existing)!r} ({why}): choose another folder for the results."
        raise ExperimentError(msg)
    return folder


@dataclass(frozen=True)
class _Run:
    """An experiment with checked settings."""

    experiment: Experiment[Any]
    parameters: Any
    folder: Path
    tasks: list[Task]
    about: Row
    checkpoint: Checkpoint

    def execute(self, n_processes: int, *, progress: bool) -> Report:
        """Compute what is missing, then summarize, draw and write."""
        with _clear_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.checkpoint.start()
        self._compute(n_processes, progress=progress)
        experiment, parameters = self.experiment, self.parameters
        scores = score_table(experiment.name, self.tasks, self.checkpoint.finished)
        with _expected_warnings():
            summary = experiment.summarize_all(scores, parameters)
            pictures = list(self._pictures(scores))
        claims = summary.claims
        if self.about["quick"]:
            claims = [claim.without_verdict() for claim in claims]
        figures = [{"name": picture.name, "caption": picture.caption} for picture in pictures]
        contents = {
            "scores.csv": scores.to_csv(index=False).encode(),
            "summary.json": as_json(claims, **self.about, table=summary.table, figures=figures),
            **rendered(pictures),
        }
        with _clear_errors(self.folder):
            files = write_files(self.folder, contents)
        return Report(experiment.name, experiment.title, claims, files, quick=self.about["quick"])

    def _pictures(self, scores: Scores) -> Iterator[Picture]:
        """Pictures of the first variant, then those of the second with other names."""
        for variant, mine in scores.groupby("variant", sort=False):
            for picture in self.experiment.draw(mine, self.parameters):
                if variant == self.about["variants"][0]:
                    yield picture
                else:
                    caption = f"{picture.caption} Variant: {variant}."
                    yield Picture(f"{picture.name}-{variant}", picture.figure, caption)

    def _compute(self, n_processes: int, *, progress: bool) -> None:
        missing = [task for task in self.tasks if task.key not in self.checkpoint.finished]
        calls = (delayed(_run_task)(self.experiment.run, task, self.parameters) for task in missing)
        pool = Parallel(n_processes, return_as="generator_unordered", batch_size=1)
        bar = tqdm(
            pool(calls),
            desc=self.experiment.name,
            total=len(self.tasks),
            initial=len(self.tasks) - len(missing),
            unit="task",
            disable=not progress,
        )
        for task, rows in bar:
            self.checkpoint.add(task, rows)


def _with_data(
    experiment: Experiment[P],
    parameters: P,
    data: str | None,
    genes: tuple[str, ...] | None,
    *,
    warn_offline: bool,
) -> P:
    """Parameters for the data of the user; without a network, for cells that need none."""
    assert experiment.with_data is not None
    try:
        return experiment.with_data(parameters, data, genes)
    except ExperimentError as error:
        # The other experiments need no network; its absence must not stop them.
        if not (warn_offline and isinstance(error.__cause__, ConnectionError)):
            raise
        msg = f"{error} Until then {experiment.name!r} runs on {OFFLINE_DATA}."
        warnings.warn(msg, UserWarning, stacklevel=3)
        return experiment.with_data(parameters, OFFLINE_DATA, genes)


def _prepared(
    experiment: Experiment[Any], parameters: Any, folder: Path, wanted: Iterable[str], seeds: int,
    *, quick: bool,
) -> _Run:  # fmt: skip
    # If both variants are the same, one result stands for both.
    variants = [each for each in wanted if each in experiment.variants] or experiment.variants[:1]
    seeds = min(seeds, QUICK_SEEDS) if quick else seeds
    settings = {
        "experiment": experiment.name,
        "otgraph": otgraph.__version__,
        "quick": quick,
        "parameters": json.loads(json.dumps(asdict(parameters))),  # as they are read back
    }
    about = {
        "title": experiment.title,
        "source": experiment.source,
        "variants": list(variants),
        "seeds": seeds if experiment.seeded else 1,
        **settings,
    }
    tasks = experiment.all_tasks(parameters, variants, seeds)
    return _Run(experiment, parameters, folder, tasks, about, Checkpoint(folder, settings))


def _run_task(
    run: Callable[[Task, P], Iterable[Scored]], task: Task, parameters: P
) -> tuple[Task, list[Row]]:
    """Scores of a task, one row each, without numpy scalars."""
    with _expected_warnings():
        return task, [
            {**params, "score": score, "value": getattr(value, "item", lambda v=value: v)()}
            for params, scores in run(task, parameters)
            for score, value in scores.items()
        ]


@contextlib.contextmanager
def _expected_warnings() -> Iterator[None]:
    """Ignore warnings about disconnected graphs, which extreme parameters cause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DisconnectedWarning)
        yield


@contextlib.contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        msg = (
            f"Cannot write to {str(folder)!r}: {error.strerror or error}. Scores that were stored "
            "there are kept; make room or choose another folder, and start again."
        )
        raise ExperimentError(msg) from error
