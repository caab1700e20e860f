"""How useful graphs are on labeled points: ``python -m benchmarks.usefulness``.

Every contender builds a graph of every set at equal mean degrees, unless it chooses its own, and at
its own default. Each graph is scored by spectral clustering, by Leiden communities and by labels
spread from a few points. The tables and JSON go to out/usefulness/. Some ten minutes on one core.

    python -m benchmarks.usefulness --sets shape toy --degrees 5 15 --contenders ours kNN

From Python: ``from benchmarks.usefulness import sets, score``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.usefulness_graphs import CONTENDERS, DEFAULT_ONLY, NEEDS, RIVALS
from benchmarks.usefulness_scores import SCORES, score
from benchmarks.usefulness_sets import FILE, MAX_POINTS, LabeledSet, sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["CONTENDERS", "score", "sets"]

OUT = Path("out/usefulness")
DEFAULT = "default"
DEGREES = ("5", "10", "15", "30", DEFAULT)
TIE = 0.01  # differences of scores up to this are ties
COLUMNS = {
    "nmi": "spectral NMI",
    "leiden_ari": "Leiden ARI",
    "accuracy": "accuracy, 3 % labels",
    "components": "components",
    "fragments": "below 3 %",
    "min_degree": "smallest degree",
    "mean_degree": "mean degree",
}

Row = dict[str, Any]


def main() -> None:
    """Parse the command line, run, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", default=FILE, help="archive of public sets")
    parser.add_argument("--sets", nargs="+", default=[], help="kinds or KIND/NAME; all by default")
    parser.add_argument("--degrees", nargs="+", default=DEGREES, help="numbers, or default")
    parser.add_argument("--contenders", nargs="+", choices=CONTENDERS, default=available())
    parser.add_argument("--max-points", type=int, default=MAX_POINTS, help="0: all points")
    parser.add_argument("--jobs", type=int, default=1, help="sets at the same time")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    chosen = sets(arguments.file, select=arguments.sets, max_points=arguments.max_points)
    began = time.perf_counter()
    rows = run(chosen, arguments.degrees, arguments.contenders, n_jobs=arguments.jobs)
    text = report(rows)
    print(f"{text}\n\n{len(chosen)} sets, {time.perf_counter() - began:.0f} s")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(json.dumps(rows, indent=1))
    (arguments.out / "table.md").write_text(f"{text}\n")


def available() -> list[str]:
    """Contenders whose packages are installed."""
    return [name for name in CONTENDERS if importlib.util.find_spec(NEEDS.get(name, "otgraph"))]


def run(
    chosen: Iterable[LabeledSet],
    degrees: Sequence[str] = DEGREES,
    contenders: Sequence[str] = tuple(CONTENDERS),
    *,
    n_jobs: int = 1,
) -> list[Row]:
    """One row of scores for every set, degree and contender."""
    jobs = (delayed(of_set)(one, degrees, contenders) for one in chosen)
    return [row for rows in Parallel(n_jobs)(jobs) for row in rows]


def of_set(one: LabeledSet, degrees: Sequence[str], contenders: Sequence[str]) -> list[Row]:
    """Scores of all graphs of a set."""
    began = time.perf_counter()
    rows = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of disconnected graphs, which are counted
        for wanted in degrees:
            for name in contenders:
                if wanted != DEFAULT and name in DEFAULT_ONLY:
                    continue
                mean_degree = None if wanted == DEFAULT else float(wanted)
                graph = CONTENDERS[name](one.X, mean_degree)
                labels = {"kind": one.kind, "set": one.title, "degree": wanted, "graph": name}
                rows.append(labels | score(graph, one.y))
    print(f"{one.title}: {len(one.y)} points, {time.perf_counter() - began:.1f} s", flush=True)
    return rows


def report(rows: Sequence[Row]) -> str:
    """Means by kind and degree, then wins and losses."""
    parts = [means(rows), wins(rows)]
    if all(np.isnan(row["leiden_ari"]) for row in rows):
        parts.append("Leiden is left out: igraph is not installed.")
    return "\n\n".join(part for part in parts if part)


def means(rows: Sequence[Row]) -> str:
    """Table of means with standard errors over the sets of a kind."""
    lines = [
        f"| sets | degree | graph | {' | '.join(COLUMNS.values())} |",
        "|---" * (3 + len(COLUMNS)) + "|",
    ]
    kinds = grouped(rows, "kind")
    for kind, of_kind in [*kinds.items(), *([("all", rows)] if len(kinds) > 1 else [])]:
        for degree, of_degree in grouped(of_kind, "degree").items():
            for graph, found in grouped(of_degree, "graph").items():
                cells = [mean([row[key] for row in found], key) for key in COLUMNS]
                title = f"{kind} ({len(found)})"
                lines.append(f"| {title} | {degree} | {graph} | {' | '.join(cells)} |")
    return "\n".join(lines)


def mean(values: Sequence[float], key: str) -> str:
    """Mean of one column, with its standard error if it is a score."""
    center = np.mean(values)
    if key not in SCORES:
        return f"{center:.1f}"
    if len(values) == 1:
        return f"{center:.3f}"
    return f"{center:.3f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.3f}"


def wins(rows: Sequence[Row]) -> str:
    """How often we are better or worse than the better rival on the same set."""
    titles = [f"{COLUMNS[key]}: won / lost / tied" for key in SCORES]
    lines = [
        f"| degree | graph | {' | '.join(titles)} |",
        "|---" * (2 + len(SCORES)) + "|",
    ]
    for degree, of_degree in grouped(rows, "degree").items():
        graphs = grouped(of_degree, "graph")
        rivals = [{row["set"]: row for row in graphs[name]} for name in RIVALS if name in graphs]
        for name in [name for name in graphs if name.startswith("ours") and rivals]:
            cells = [_record(graphs[name], rivals, key) for key in SCORES]
            lines.append(f"| {degree} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _record(ours: Sequence[Row], rivals: Sequence[dict[str, Row]], key: str) -> str:
    gains = [row[key] - max(rival[row["set"]][key] for rival in rivals) for row in ours]
    won = sum(gain > TIE for gain in gains)
    lost = sum(gain < -TIE for gain in gains)
    return f"{won} / {lost} / {len(gains) - won - lost}"


def grouped(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    """Rows by one of their labels, in the order of appearance."""
    groups = defaultdict(list)
    for row in rows:
        groups[row[key]].append(row)
    return groups


if __name__ == "__main__":
    main()
