"""The report of a command: text, or JSON; errors in one line."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from otgraph._memory import format_bytes, peak_bytes
from otgraph._text import plain
from otgraph.cli.columns import MOST_COLUMNS, shortened
from otgraph.cli.preparation import RECORD, recorded_preparation
from otgraph.cli.terminal import say_rows, say_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from otgraph.cli.columns import Column
    from otgraph.cli.options import RunOptions
    from otgraph.cli.reading import Points
    from otgraph.cli.writing import Target
    from otgraph.graphs import CrossGraph, Graph, LabelTransfer
    from otgraph.methods import LabelSpread
    from otgraph.solvers import Certificate

LABEL_WIDTH = 12  # of the longest label, and a space
# The library writes `name` and `name=value` for its arguments.
ARGUMENT = re.compile(r"`(\w+)(?:=([^`]+))?`")
# What the library raises for bad input, and readers for bad files.
EXPECTED = (str, Warning, OSError, ValueError, TypeError, ImportError, MemoryError, RuntimeError)


@dataclass
class Report:
    """Report that a command fills while it runs, printed at its end."""

    command: str
    run: RunOptions
    rows: list[tuple[str, str]] = field(default_factory=list)  # label, or none, and text
    brief: list[str] = field(default_factory=list)  # for the single line printed to a pipe
    facts: dict[str, object] = field(default_factory=dict)  # of the JSON object
    body: str | None = None  # text that is the result; printed unless ``--json`` is given
    description: list[tuple[str, str]] = field(default_factory=list)  # rows that are the result
    columns: list[Column] = field(default_factory=list)  # of a table, before the description
    streamed: bool = False  # whether the result went to standard output; the report does not then
    not_converged: bool = False  # whether a solver did not reach its tolerance
    written: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)  # of each part of the work

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the time of a part of the work."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    @contextlib.contextmanager
    def writing(self, *places: Target) -> Iterator[None]:
        """Measure the time of writing, and list the files."""
        with self.stage("write"):
            yield
        self.written += [place.path for place in places]

    def row(self, label: str, text: str) -> None:
        """Add a row to the text."""
        self.rows.append((label, text))

    def describe_points(self, points: Points) -> None:
        """Add size and origin of the points, and what was done to them."""
        self.row("points", str(points))
        self.facts["points"] = points.source
        if points.preparation is not None:
            self.row("prepared", str(points.preparation))
            self.brief.append(str(points.preparation))
            self.facts[RECORD] = points.preparation.record()

    def describe(self, graph: Graph) -> None:
        """Add certificate, parameters, degrees and components of a graph."""
        from otgraph.graphs.graph import TransportGraph  # when a command has loaded it anyway

        degrees, certificate = graph.degrees, getattr(graph, "certificate", None)
        n_edges = int(degrees.sum(dtype=np.int64)) // 2
        n_loops = int(np.count_nonzero(graph.weights.diagonal()))
        if certificate is not None:
            self._describe_certificate(certificate)
        else:
            self.row("graph", _listed_params(graph))
        done = recorded_preparation(graph.params)
        if done is not None:
            self.row("prepared", done)
            self.brief.append(done)
        if "choice" in graph.params:
            from otgraph.graphs.choice import EpsChoice

            self.row("chosen eps", EpsChoice.from_params(graph.params).summary())
        loops = f", and {n_loops:,} self-loops" if n_loops else ""
        self.row("edges", f"{n_edges:,}{loops}")
        degree = {
            "min": int(degrees.min()),
            "median": float(np.median(degrees)),
            "mean": float(degrees.mean()),
            "max": int(degrees.max()),
        }
        self.row(
            "degrees",
            f"{degree['min']} / {degree['median']:.0f} / {degree['mean']:.1f} / {degree['max']} "
            f"({' / '.join(degree)})",
        )
        isolated = int(np.count_nonzero(degrees == 0))
        alone = f", {isolated:,} of them single points" if isolated else ""
        self.row("components", f"{graph.n_connected:,}{alone}")
        dropped = int(np.count_nonzero(graph.dropped))
        if isinstance(graph, TransportGraph) and graph.certificate.outlier_cost < np.inf:
            held = 1.0 - float(np.sum(graph.mass_kept) / np.sum(graph.mass))
            self.row(
                "outliers",
                f"{dropped:,} dropped; {100.0 * held:.2g} % of the mass is held back",
            )
            self.brief.append(f"{dropped:,} outliers dropped")
        self.brief += [
            f"{graph.n:,} points",
            f"{n_edges:,} edges",
            f"mean degree {degree['mean']:.1f}",
            f"{graph.n_connected:,} component(s)",
        ]
        self.facts |= {
            "n_points": graph.n,
            "n_edges": n_edges,
            "n_self_loops": n_loops,
            "degree": degree,
            "n_connected": graph.n_connected,
            "n_isolated": isolated,
            "n_dropped": dropped,
            "params": dict(graph.params),
            "certificate": None if certificate is None else certificate.record(),
        }

    def describe_plan(self, plan: CrossGraph) -> None:
        """Add certificate, partners and components of a plan between two clouds."""
        n, m = plan.shape
        self._describe_certificate(plan.certificate)
        self.row("edges", f"{plan.weights.nnz:,} between {n:,} and {m:,} points")
        partners = [f"{each.mean():.1f}" for each in plan.degrees]
        self.row("partners", f"{partners[0]} of a point, {partners[1]} of the reference (mean)")
        self.row("components", f"{plan.n_connected:,}")
        self.brief += [f"{n:,} and {m:,} points", f"mean degree {plan.mean_degree:.1f}"]
        kept = float(np.sum(plan.mass_kept.x) / np.sum(plan.mass.x))  # the same share in both
        dropped = [int(np.count_nonzero(each)) for each in plan.dropped]
        if plan.certificate.outlier_cost < np.inf:
            self.row(
                "outliers",
                f"{dropped[0]:,} points and {dropped[1]:,} of the reference dropped; "
                f"{100.0 * (1.0 - kept):.2g} % of the mass is held back",
            )
            self.brief.append(f"{dropped[0]:,} points dropped")
        self.facts |= {
            "n_points": n,
            "n_reference": m,
            "n_edges": plan.weights.nnz,
            "mean_degree": plan.mean_degree,
            "n_connected": plan.n_connected,
            "n_dropped": dropped[0],
            "n_reference_dropped": dropped[1],
            "mass_kept": kept,
            "params": dict(plan.params),
            "certificate": plan.certificate.record(),
        }

    def _describe_certificate(self, certificate: Certificate) -> None:
        self.row("certificate", str(certificate).replace("\n", f"\n{' ' * LABEL_WIDTH}"))
        self.brief.append(certificate.status.value)
        self.not_converged |= certificate.status == "not_converged"

    def describe_labels(self, found: LabelSpread | LabelTransfer) -> None:
        """Add the number of points of every class."""
        counts = {str(name): int(np.sum(found.labels == name)) for name in found.classes}
        self.row("labels", ", ".join(f"{name} {count:,}" for name, count in counts.items()))
        self.facts["classes"] = counts

    def finish(self, seconds: float, heard: list[str], not_converged: bool) -> None:
        """Add time, memory, warnings and files, which every report has."""
        peak = peak_bytes()
        self.not_converged = not_converged
        self.brief.append(f"{seconds:.1f} s")
        stages = ", ".join(f"{name} {part:.2f}" for name, part in self.seconds.items())
        self.row("time", f"{seconds:.2f} s" + (f" ({stages})" if stages else ""))
        if peak is not None:
            self.row("memory", f"{format_bytes(peak)} at most")
        if self.written:
            self.row("written", ", ".join(self.written))
        if not_converged:
            self.row("", "NOT CONVERGED: see the warning; exit code 3")
        self.facts = {
            "command": self.command,
            **self.facts,
            "written": self.written,
            "converged": not not_converged,
            "warnings": heard,
            "seconds": {**self.seconds, "total": seconds},
            "peak_memory_bytes": peak,
        }

    def show(self) -> None:
        """Print the report in the chosen form."""
        run = self.run
        if run.json:
            print(json.dumps(plain(self.facts)))
            return
        if self.body is not None:
            print(self.body)
        if self.columns:
            say_columns(self.columns)
        if self.description:
            say_rows(self.description, LABEL_WIDTH, sys.stdout)
        stream = sys.stderr if self.streamed else sys.stdout
        if run.verbose or (run.verbose is None and stream.isatty()):
            say_rows(self.rows, LABEL_WIDTH, stream)
        elif run.verbose is None and not (self.body or self.description or self.streamed):
            state = ["NOT CONVERGED"] if self.not_converged else []
            where = ", ".join(self.written) or self.command
            print(f"{where}: {', '.join([*state, *self.brief])}", file=stream)


def say_columns(columns: list[Column]) -> None:
    """Print the columns of a table: types, ranges, missing and distinct values."""
    header = ["column", "type", "range", "missing", "distinct"]
    rows = [
        [
            shortened(column.name), column.type, column.range, f"{column.missing:,}",
            f"{column.distinct:,}",
        ]
        for column in columns[:MOST_COLUMNS]
    ]  # fmt: skip
    say_table(header, rows, right=(3, 4), stream=sys.stdout)
    if len(columns) > MOST_COLUMNS:
        print(f"and {len(columns) - MOST_COLUMNS:,} more; --json lists all")


def _listed_params(graph: Graph) -> str:
    return ", ".join(
        f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in graph.params.items()
        if value is not None and name != RECORD
    )


@contextlib.contextmanager
def blaming(**typed: str) -> Iterator[None]:
    """In errors and warnings, replace names of arguments by what the user typed.

    ``blaming(X="cells.csv:")`` turns "`X` contains NaN" into "cells.csv: contains NaN".
    """

    def reworded(text: object) -> str:
        return re.sub(r"`(\w+)`", lambda found: typed.get(found[1], found[0]), str(text))

    show = warnings.showwarning
    try:
        warnings.showwarning = lambda message, *rest, **more: show(reworded(message), *rest, **more)
        yield
    except Exception as error:
        if getattr(error, "argument", None) not in typed:
            raise
        raise ValueError(reworded(error.args[0])) from error
    finally:
        warnings.showwarning = show


def one_line(error: object, options: Collection[str] = ()) -> str:
    """An exception, a warning or a text as one line, without a traceback.

    Arguments that are ``options`` of the command are written as options.
    """
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror[:1].lower() + error.strerror[1:]
        return f"{error.filename}: {reason}" if error.filename else reason
    if isinstance(error, MemoryError) and not str(error):
        return "not enough memory"
    # str(KeyError) puts quotes around the message.
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    message = " ".join(str(text).split())
    if not (isinstance(error, EXPECTED) or hasattr(error, "argument")):
        kind = type(error).__name__
        message = f"unexpected {kind}: {message} (--debug shows where; please report it)"
    return ARGUMENT.sub(lambda match: _as_option(match, options), message)


def _as_option(match: re.Match[str], options: Collection[str]) -> str:
    name, value = match.groups()
    if name not in options:
        return match.group(0)
    flag = name.replace("_", "-")
    if value in (None, "True"):
        return f"--{flag}"
    return f"--no-{flag}" if value == "False" else f"--{flag} {value.strip(chr(39))}"
