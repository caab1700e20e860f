"""Is the mean of plans better than one plan: ``python -m benchmarks.multiscale``.

Graphs of the labeled sets of ``benchmarks.usefulness``, at equal mean degrees: the mean of plans
whose widest has that degree, the single plan, kNN and kNN with Gaussian weights; and the plan with
``eps="auto"``. Spectral clustering (NMI) and labels spread from 3 % of the points (accuracy), each
for five seeds: of k-means, and of the choice of labels. ``shortfall`` is how far a graph is, on
average, below the best of the single plans with 4 to 64 neighbors, set by set: the price of not
knowing the scale. Ten minutes on one core; tables and JSON go to out/multiscale/.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from threadpoolctl import threadpool_limits

import otgraph
from benchmarks.usefulness import grouped
from benchmarks.usefulness_graphs import CONTENDERS, DEFAULT_ONLY
from benchmarks.usefulness_scores import grouped_rows, label_accuracy, leading_vectors
from benchmarks.usefulness_sets import FILE, MAX_POINTS, LabeledSet, from_file, sets

OUT = Path("out/multiscale")
DEGREES = (15.0, 60.0)
GRAPHS = ("ours multiscale", "ours", "kNN", "kNN+Gaussian")
SINGLE_DEGREES = (4.0, 8.0, 16.0, 32.0, 64.0)  # of the plans that the best is taken of
LARGEST_SHARE = 0.4  # of the points; smaller sets have no graph of so many neighbors
SEEDS = range(5)
N_TIMED, TIMED_SEEDS = 20_000, 5
SCORES = {"nmi": "NMI", "accuracy": "accuracy"}

Row = dict[str, Any]


def main() -> None:
    """Parse the command line, run, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", default=FILE, help="archive of public sets")
    parser.add_argument("--sets", nargs="+", default=[], help="kinds or KIND/NAME; all in the file")
    parser.add_argument("--max-points", type=int, default=MAX_POINTS, help="0: all points")
    parser.add_argument("--time", action="store_true", help="only the time, on more points")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    if arguments.time:
        print(timing())
        return
    select = arguments.sets or sorted({one.kind for one in from_file(Path(arguments.file))})
    rows = []
    for one in sets(arguments.file, select=select, max_points=arguments.max_points):
        began = time.perf_counter()
        rows += of_set(one)
        print(f"{one.title}: {len(one.y)} points, {time.perf_counter() - began:.0f} s", flush=True)
    text = report(rows)
    print(text)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "results.json").write_text(json.dumps(rows, indent=1))
    (arguments.out / "table.md").write_text(f"{text}\n")


def timing() -> str:
    """Seconds of processor time of one plan and of means, on noisy manifolds; over the seeds."""
    builds = {
        "one plan, mean degree 15": otgraph.quadratic_ot_graph,
        "mean of 3 plans, 15 to 3.75": otgraph.multiscale_graph,
        "one plan, mean degree 60": partial(otgraph.quadratic_ot_graph, mean_degree=60),
        "mean of 5 plans, 60 to 3.75": partial(otgraph.multiscale_graph, mean_degree=60),
    }
    seconds: dict[str, list[float]] = {title: [] for title in builds}
    for build in builds.values():  # loads the kernels
        build(otgraph.datasets.noisy_manifold(N_TIMED // 10, dim=20).X, n_jobs=1)
    for seed in range(TIMED_SEEDS):
        X = otgraph.datasets.noisy_manifold(N_TIMED, dim=20, random_state=seed).X
        for title, build in builds.items():
            began = time.process_time()
            build(X, n_jobs=1)
            seconds[title].append(time.process_time() - began)
    lines = [f"| {title} | {np.mean(s):.2f} ± {np.std(s):.2f} |" for title, s in seconds.items()]
    return "\n".join(["| graph | seconds |", "|---|---|", *lines])


def of_set(one: LabeledSet) -> list[Row]:
    """Scores of all graphs of a set, and the best of the single plans."""
    most = LARGEST_SHARE * len(one.y)
    built: dict[tuple[str, float | None], Row] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of components, which cost what they cost
        CONTENDERS["ours multiscale"](one.X, min(DEGREES[0], most))  # compiles the kernels
        wanted: list[tuple[str, float | None]] = [
            (name, min(degree, most)) for degree in DEGREES for name in GRAPHS
        ]
        wanted += [("ours", min(degree, most)) for degree in SINGLE_DEGREES]
        wanted += [(name, None) for name in DEFAULT_ONLY]
        for name, degree in wanted:
            if (name, degree) not in built:
                built[name, degree] = _scored(one, name, degree)
    singles = [built["ours", min(degree, most)] for degree in SINGLE_DEGREES]
    best = {key: np.max([each[key] for each in singles], axis=0) for key in SCORES}
    rows = []
    for (name, degree), found in built.items():
        asked = "auto" if degree is None else next(
            (f"{each:g}" for each in (*DEGREES, *SINGLE_DEGREES) if degree == min(each, most)), ""
        )  # fmt: skip
        shortfall = {f"{key} shortfall": (best[key] - found[key]).tolist() for key in SCORES}
        scores = {key: found[key].tolist() for key in SCORES}
        labels = {"kind": one.kind, "set": one.title, "degree": asked, "graph": name}
        rows.append(labels | scores | shortfall | {k: found[k] for k in ("seconds", "neighbors")})
    return rows


def _scored(one: LabeledSet, name: str, degree: float | None) -> Row:
    began = time.perf_counter()
    weights = CONTENDERS[name](one.X, degree)
    seconds = time.perf_counter() - began
    k = len(np.unique(one.y))
    vectors = leading_vectors(weights, k)
    groups = [grouped_rows(vectors, k, seed) for seed in SEEDS]
    return {
        "nmi": np.array([normalized_mutual_info_score(one.y, found) for found in groups]),
        "accuracy": np.array([label_accuracy(weights, one.y, seed) for seed in SEEDS]),
        "seconds": seconds,
        "neighbors": weights.nnz / len(one.y),
    }


def report(rows: list[Row]) -> str:
    """Means over sets and seeds; ± is the standard deviation over the seeds of the mean of sets."""
    columns = [*SCORES.values(), *(f"shortfall, {title}" for title in SCORES.values())]
    lines = [
        f"| sets | degree | graph | {' | '.join(columns)} | neighbors | seconds |",
        "|---" * (5 + len(columns)) + "|",
    ]
    kinds = grouped(rows, "kind")
    for kind, of_kind in [*kinds.items(), *([("all", rows)] if len(kinds) > 1 else [])]:
        for degree, of_degree in grouped(of_kind, "degree").items():
            for graph, found in grouped(of_degree, "graph").items():
                keys = [*SCORES, *(f"{key} shortfall" for key in SCORES)]
                cells = [_mean(np.array([row[key] for row in found])) for key in keys]
                cells += [f"{np.mean([row[key] for row in found]):.1f}" for key in ("neighbors",)]
                cells.append(f"{np.mean([row['seconds'] for row in found]):.2f}")
                title = f"{kind} ({len(found)})"
                lines.append(f"| {title} | {degree} | {graph} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(values: Any) -> str:
    """Mean over sets and seeds of an array (sets, seeds), and its spread over seeds."""
    return f"{values.mean():.3f} ± {values.mean(axis=0).std(ddof=1):.3f}"


if __name__ == "__main__":
    main()
