"""``otgraph reproduce``: the experiments of the paper."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from otgraph.cli.building import wants_progress
from otgraph.cli.frames import split_list
from otgraph.cli.options import RunOptions, option
from otgraph.cli.report import Report


class Variant(StrEnum):
    """Whose word is followed where the paper and its code differ."""

    text = "text"
    code = "code"
    both = "both"


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Experiment, or all; list names them.")
    ],
    out: Annotated[
        str, typer.Option("-o", "--out", help="Folder for scores and figures.")
    ] = "out/reproduce",
    seeds: Annotated[int, typer.Option(help="Number of samples.")] = 5,
    quick: Annotated[bool, option("Small samples: to see that it runs.", "--quick")] = False,
    variant: Annotated[
        Variant, typer.Option(help="As the paper is written, or as its code does it.")
    ] = Variant.text,
    data: Annotated[
        str | None, option("cells: counts to use instead of the paper's.", metavar="FILE")
    ] = None,
    genes: Annotated[
        list[str] | None, option("cells: three genes, with commas.", metavar="NAMES")
    ] = None,
    n_jobs: Annotated[int | None, option("Processes.", default="all cores")] = None,
    *,
    run: RunOptions,
) -> Report:
    """Repeat an experiment of the paper, judge its claims and draw its figures.

    What was interrupted continues where it stopped.
    """
    from otgraph import experiments

    report = Report("reproduce")
    if name == "list":
        report.body = "\n".join(experiments.NAMES)
        report.facts["names"] = list(experiments.NAMES)
        return report
    with report.stage("compute"):
        outcome = experiments.reproduce(
            name,
            out=out,
            seeds=seeds,
            quick=quick,
            variant=variant.value,
            data=data,
            genes=split_list(genes),
            progress=wants_progress(run),
            n_jobs=n_jobs,
        )
    report.body = str(outcome)
    report.wrote(*map(str, outcome.files))
    report.facts |= {
        "name": outcome.name,
        "title": outcome.title,
        "claims": [asdict(claim) for claim in outcome.claims],
    }
    return report
