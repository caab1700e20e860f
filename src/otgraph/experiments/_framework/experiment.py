"""The parts of an experiment, as plain data and four functions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Params = Mapping[str, Any]  # such as {"k": 5, "eps": 0.1}
Scored = tuple[Params, Mapping[str, float]]  # parameters of a graph, and its scores by name
Scores = Any  # a pandas data frame, one row per score; pandas is loaded by the first run
P = TypeVar("P")  # the dataclass with the sizes and grids of an experiment


@dataclass(frozen=True)
class Task:
    """The unit of work: one method on one sample."""

    variant: str  # "text": as the paper describes it; "code": as the authors' scripts do it
    seed: int  # number of the sample
    method: str  # name of the graph, as it appears in tables and legends
    params: Params = field(default_factory=dict)  # part of the grid that this task covers

    @property
    def key(self) -> str:
        """Identifies a task of an experiment, in memory and in files."""
        return json.dumps([self.variant, self.seed, self.method, dict(self.params)])


class Verdict(StrEnum):
    """The result of a run for a claim."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    TIE = "a tie"  # the difference is within the spread over the samples
    NOT_JUDGED = "not judged"  # quick runs give no verdict


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, or an aim, and the result of the run.

    A run sets the variant if the experiment has several.
    """

    text: str  # in the paper's words if they are short enough
    verdict: Verdict | bool  # True and False mean confirmed and not confirmed
    sentence: str  # what was measured, with mean and spread, without a verdict
    reason: str = ""  # of the verdict: the criterion and the numbers
    variant: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.verdict, Verdict):
            verdict = Verdict.CONFIRMED if self.verdict else Verdict.NOT_CONFIRMED
            object.__setattr__(self, "verdict", verdict)

    @property
    def confirmed(self) -> bool:
        """Whether the verdict is "confirmed"."""
        return self.verdict is Verdict.CONFIRMED

    def without_verdict(self) -> Claim:
        """The claim with what was measured, without a verdict."""
        return dataclasses.replace(self, verdict=Verdict.NOT_JUDGED, reason="")

    def __str__(self) -> str:
        verdict = "NOT confirmed" if self.verdict is Verdict.NOT_CONFIRMED else str(self.verdict)
        where = f", {self.variant}" if self.variant else ""
        why = f"\n    Why: {self.reason}" if self.reason else ""
        return f"[{verdict}{where}] {self.text}\n    {self.sentence}{why}"


@dataclass(frozen=True)
class Summary:
    """Summary of the scores: a small table, and the claims.

    Rows of the table hold plain values under the same keys. A key ``"mean"`` is printed together
    with ``"std"``. Claims are reported in their order.
    """

    table: list[dict[str, Any]]
    claims: list[Claim]


@dataclass(frozen=True)
class Picture:
    """A figure, the stem of its file names, and its caption."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """An experiment: what to compute, how to judge it, and what to draw.

    Attributes
    ----------
    name, title, source
        Short name for the command, one line, and the place in the paper (empty if none).
    parameters, quick
        Sizes and grids of the paper, and smaller ones for tests: a frozen dataclass of numbers,
        strings, None and tuples. They are stored with the scores. Scores of different parameters
        are therefore never mixed.
    tasks
        ``tasks(parameters, variant)`` gives the tasks of one sample: a method, and the part of the
        grid that it covers. Small tasks spread better over the cores.
    run
        ``run(task, parameters)`` gives the parameters and the scores of every graph of a task. It
        runs in a process of its own with one thread (``n_jobs=1``).
    summarize, draw
        ``summarize(scores, parameters)`` gives table and claims, and ``draw(scores, parameters)``
        the pictures, from the scores of one variant.
    variants
        The variants to run; ``("text",)`` if the authors' code does not differ.
    seeded
        False if there is only one sample, with seed 0.
    with_data
        ``with_data(parameters, data, genes)`` checks the user's data and gives parameters for
        them; None if the experiment makes its data.
    """

    name: str
    title: str
    source: str
    parameters: P
    quick: P
    tasks: Callable[[P, str], Iterable[tuple[str, Params]]]
    run: Callable[[Task, P], Iterable[Scored]]
    summarize: Callable[[Scores, P], Summary]
    draw: Callable[[Scores, P], Iterator[Picture]]
    variants: tuple[str, ...] = ("text", "code")
    seeded: bool = True
    with_data: Callable[[P, str | None, tuple[str, ...] | None], P] | None = None

    def all_tasks(self, parameters: P, variants: Iterable[str], seeds: int) -> list[Task]:
        """All tasks of a run."""
        return [
            Task(variant, seed, method, params)
            for variant in variants
            for seed in range(seeds if self.seeded else 1)
            for method, params in self.tasks(parameters, variant)
        ]

    def summarize_all(self, scores: Scores, parameters: P) -> Summary:
        """The summaries of all variants as one; claims tell their variant if there are several."""
        table, claims = [], []
        for variant, mine in scores.groupby("variant", sort=False):
            summary = self.summarize(mine, parameters)
            table += summary.table
            named = {"variant": variant} if len(self.variants) > 1 else {}
            claims += [dataclasses.replace(claim, **named) for claim in summary.claims]
        return Summary(table, claims)
