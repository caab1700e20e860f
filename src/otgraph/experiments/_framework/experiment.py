"""The parts of an experiment, as plain data and four functions."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from otgraph.typing import Keywords

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Row = Keywords  # names and plain values: of a table, of keywords
Params = Row  # such as {"k": 5, "eps": 0.1}
Scored = tuple[Params, Mapping[str, float]]  # parameters of a graph, and its scores by name
Scores: TypeAlias = "DataFrame"  # one row per score; pandas is loaded by the first run
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

    table: list[Row]
    claims: list[Claim]


@dataclass(frozen=True)
class Picture:
    """A figure, the stem of its file names, and its caption."""

    name: str
    figure: Figure
    caption: str


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """An experiment: what to compute, how to judge it, and what to draw."""

    name: str  # short, for the command
    title: str  # one line
    source: str  # place in the paper; empty if there is none
    # Sizes and grids of the paper: a frozen dataclass of numbers, strings, None and tuples. They
    # are stored with the scores, so that scores of different parameters are never mixed.
    parameters: P
    quick: P  # smaller ones, for tests
    # The tasks of one sample in a variant: a method, and the part of the grid that it covers. Small
    # tasks spread better over the cores.
    tasks: Callable[[P, str], Iterable[tuple[str, Params]]]
    # Parameters and scores of every graph of a task, in a process with one thread (`n_jobs=1`).
    run: Callable[[Task, P], Iterable[Scored]]
    summarize: Callable[[Scores, P], Summary]  # table and claims from the scores of one variant
    draw: Callable[[Scores, P], Iterator[Picture]]  # and its pictures
    variants: tuple[str, ...] = ("text", "code")  # only "text" if the authors' code does not differ
    seeded: bool = True  # False if there is only one sample, with seed 0
    # Checks the user's data and genes, and gives parameters for them.
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
