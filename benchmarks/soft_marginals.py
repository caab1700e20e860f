"""Outliers that drop out: ``python -m benchmarks.soft_marginals [groups] [rule] [scores] [time]``.

    groups   three groups of 150 points in ten dimensions among uniform points: who is dropped, and
             what spectral clustering finds in the rest, against minimum flows and nearest neighbors
    rule     rules for the outlier cost: points that they drop, with uniform points and without
    scores   how well scores rank outliers (area under the ROC curve), against isolation forest, LOF
             and the distance to the 15th neighbor
    time     what it costs

Mean and standard deviation over five seeds. All together take some fifteen minutes on one core.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets as toy
from sklearn.ensemble import IsolationForest
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

import otgraph
from benchmarks.usefulness_scores import spectral_labels
from benchmarks.usefulness_sets import sets
from otgraph.graphs.outliers import chosen_outlier_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SEEDS = range(5)
SIZE, DIMENSION = 150, 10  # of a group
APART, CLOSE = 4.0, 2.0  # spread of the centers of groups, in each dimension
MARGIN = 2.0  # uniform points fill the box of the groups, and this much around it
SHARE = 0.05  # of uniform points added to a labeled set
SET_MARGIN = 0.1  # the box around a labeled set, relative to its sides
MOST_POINTS = 400  # of a labeled set
NEIGHBORS = 15
LOF_NEIGHBORS = 20  # default of scikit-learn
SIZES_TIME, FAR_SHARE, EPS_TIME = (5000, 50_000), 0.02, 0.5
FAR = 3.0  # how far these are, in standard deviations of a coordinate


def main() -> None:
    """Print the tables that are asked for."""
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or TABLES:
        print(f"\n{name}\n", flush=True)
        TABLES[name]()


# Samples ------------------------------------------------------------------------------


def groups(n_outliers: int, seed: int, spread: float = APART) -> tuple[Any, Any]:
    """Three groups and uniform points, and which group they are from; 3 is none."""
    rng = np.random.default_rng(seed)
    centers = spread * rng.normal(size=(3, DIMENSION))
    X = np.repeat(centers, SIZE, axis=0) + rng.normal(size=(3 * SIZE, DIMENSION))
    low, high = X.min(axis=0) - MARGIN, X.max(axis=0) + MARGIN
    outliers = rng.uniform(low, high, size=(n_outliers, DIMENSION))
    return np.vstack([X, outliers]), np.repeat(range(4), [SIZE] * 3 + [n_outliers])


def with_uniform(X: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Points with uniform ones among and around them, and a mask of these."""
    rng = np.random.default_rng(seed)
    sides = np.ptp(X, axis=0)
    low, high = X.min(axis=0) - SET_MARGIN * sides, X.max(axis=0) + SET_MARGIN * sides
    added = rng.uniform(low, high, size=(int(share * len(X)), X.shape[1]))
    return np.vstack([X, added]), np.arange(len(X) + len(added)) >= len(X)


def rare_class(name: str, seed: int) -> tuple[Any, Any]:
    """Some classes of a table that comes with scikit-learn, and a few points of the others."""
    load, usual, n_others = {
        "breast_cancer": (toy.load_breast_cancer, (1,), 20),
        "digits": (toy.load_digits, (1, 4, 8), 25),
        "wine": (toy.load_wine, (1, 2), 6),
    }[name]
    X, y = load(return_X_y=True)
    others = np.flatnonzero(~np.isin(y, usual))
    others = np.random.default_rng(seed).choice(others, n_others, replace=False)
    chosen = np.concatenate([np.flatnonzero(np.isin(y, usual)), others])
    X = X[chosen].astype(np.float64)
    spread = X.std(axis=0) if name != "digits" else np.ones(X.shape[1])  # pixels have one unit
    outlier = np.arange(len(chosen)) >= len(chosen) - n_others
    return X / np.where(spread > 0.0, spread, 1.0), outlier


# Groups -------------------------------------------------------------------------------

GRAPHS: dict[str, Callable[[Any, float], Any]] = {
    "hard marginals": lambda X, eps: otgraph.quadratic_ot_graph(X, eps),
    "min_degree=4": lambda X, eps: otgraph.quadratic_ot_graph(X, eps, min_degree=4),
    "connect=True": lambda X, eps: otgraph.quadratic_ot_graph(X, eps, connect=True),
    "15 nearest neighbors": lambda X, eps: otgraph.knn_gaussian_graph(X, NEIGHBORS),
    "outlier_cost=0.1": lambda X, eps: otgraph.quadratic_ot_graph(X, eps, outlier_cost=0.1),
    'outlier_cost="auto"': lambda X, eps: otgraph.quadratic_ot_graph(X, eps, outlier_cost="auto"),
}


def table_of_groups() -> None:
    """Dropped and kept points, and clusters."""
    print("| spread | eps | outliers | graph | NMI of inliers: plain spectral | `cluster` "
          "| NMI of all: `cluster` | outliers dropped | inliers kept | components |")  # fmt: skip
    print("|---" * 10 + "|")
    for spread, eps, n_outliers in (
        (APART, 0.1, 20), (APART, 0.1, 60), (APART, 0.5, 20), (APART, 0.5, 60), (CLOSE, 0.1, 60),
        (CLOSE, 0.5, 60),
    ):  # fmt: skip
        for name, build in GRAPHS.items():
            rows = [_group_scores(build, eps, *groups(n_outliers, s, spread)) for s in SEEDS]
            cells = " | ".join(_spread(column) for column in zip(*rows, strict=True))
            print(f"| {spread:g} | {eps} | {n_outliers} | {name} | {cells} |", flush=True)


def _group_scores(build: Any, eps: float, X: Any, y: Any) -> tuple[float, ...]:
    graph, inlier = build(X, eps), y < 3
    kept = ~graph.dropped
    plain = np.full(len(y), -1)
    plain[kept] = spectral_labels(graph.weights[kept][:, kept].tocsr(), 3)
    found = otgraph.cluster(graph, 3).labels
    return (
        normalized_mutual_info_score(y[inlier], plain[inlier]),
        normalized_mutual_info_score(y[inlier], found[inlier]),
        normalized_mutual_info_score(y, found),
        graph.dropped[~inlier].mean(),
        kept[inlier].mean(),
        graph.n_connected - np.count_nonzero(graph.dropped),
    )


# Rule ---------------------------------------------------------------------------------


def quartile_rule(power: float) -> Callable[[Any], float]:
    """Twice the upper quartile times a power of the quotient of the quartiles."""

    def rule(u: Any) -> float:
        low, high = np.quantile(u, (0.25, 0.75))
        return float(2.0 * high * (high / low) ** power)

    return rule


def fence(u: Any) -> float:
    """Upper quartile plus three times the distance of the quartiles."""
    low, high = np.quantile(u, (0.25, 0.75))
    return float(2.0 * (high + 3.0 * (high - low)))


RULES = {
    "q3 (q3/q1)^0.5": quartile_rule(0.5),
    "q3 (q3/q1)": quartile_rule(1.0),
    "the same, and once more for the rest": chosen_outlier_cost,
    "q3 (q3/q1)^1.5": quartile_rule(1.5),
    "q3 (q3/q1)^2": quartile_rule(2.0),
    "q3 + 3 (q3 - q1)": fence,
    "3 times the median": lambda u: float(6.0 * np.median(u)),
}


def table_of_rules() -> None:
    """Points that rules for the outlier cost drop."""
    contenders = {**RULES, '`"auto"`: at 8 times the chosen cost': None}
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in contenders}
    for column, X, outlier, goal in _rule_cases():
        hard = otgraph.quadratic_ot_graph(X, min_degree=0, **goal)
        for name, rule in contenders.items():
            price = "auto" if rule is None else rule(hard.potentials)
            graph = otgraph.quadratic_ot_graph(X, hard.eps, outlier_cost=price)
            if outlier.any():
                found[name][f"{column}: outliers"].append(graph.dropped[outlier].mean())
            found[name][f"{column}: others"].append(graph.dropped[~outlier].mean())
    columns = list(next(iter(found.values())))
    print("| rule | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for name, values in found.items():
        cells = [f"{100 * np.mean(v):.1f} (worst {100 * np.max(v):.0f})" if "others" in c
                 else f"{100 * np.mean(v):.1f}" for c, v in values.items()]  # fmt: skip
        print(f"| {name} | {' | '.join(cells)} |")


def _rule_cases() -> Iterable[tuple[str, Any, Any, dict[str, float]]]:
    for seed in SEEDS:
        for n_outliers in (0, 60):
            X, y = groups(n_outliers, seed)
            for eps in (0.1, 0.5):
                yield f"groups + {n_outliers}", X, y == 3, {"eps": eps}
    for one in sets(select=("shape", "real"), max_points=MOST_POINTS):
        for share in (0.0, SHARE):
            X, outlier = with_uniform(one.X, share, 0)
            yield f"{one.kind} + {share:.0%}", X, outlier, {"mean_degree": NEIGHBORS}


# Scores -------------------------------------------------------------------------------


def table_of_scores() -> None:
    """Area under the ROC curve of scores."""
    found: dict[str, dict[str, list[list[float]]]] = {}
    for seed in SEEDS:
        per_seed: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for column, X, outlier in _score_cases(seed):
            for name, scores in _scores(X, seed).items():
                per_seed[name][column].append(roc_auc_score(outlier, scores))
        for name, columns in per_seed.items():
            for column, values in columns.items():
                found.setdefault(name, {}).setdefault(column, []).append(float(np.mean(values)))
    columns = list(next(iter(found.values())))
    print("| score | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for name, values in found.items():
        print(f"| {name} | {' | '.join(_spread(values[column]) for column in columns)} |")


def _score_cases(seed: int) -> Iterable[tuple[str, Any, Any]]:
    X, y = groups(60, seed)
    yield "groups", X, y == 3
    for one in sets(select=("shape", "real"), max_points=MOST_POINTS):
        yield one.kind, *with_uniform(one.X, SHARE, seed)
    for name in ("breast_cancer", "digits", "wine"):
        yield name, *rare_class(name, seed)


def _scores(X: Any, seed: int) -> dict[str, Any]:
    soft = otgraph.quadratic_ot_graph(X, outlier_cost="auto")
    hard = otgraph.quadratic_ot_graph(X, min_degree=0)
    forest = IsolationForest(random_state=seed).fit(X)
    factor = LocalOutlierFactor(LOF_NEIGHBORS).fit(X)
    distances, _ = NearestNeighbors(n_neighbors=NEIGHBORS).fit(X).kneighbors()
    return {
        '`outlier_scores`, `outlier_cost="auto"`': soft.outlier_scores,
        "`outlier_scores`, hard marginals": hard.outlier_scores,
        "1 - `mass_kept` / `mass`": 1.0 - soft.mass_kept / soft.mass,
        "isolation forest": -forest.score_samples(X),
        "LOF": -factor.negative_outlier_factor_,
        "distance to the 15th neighbor": distances[:, -1],
    }


# Time ---------------------------------------------------------------------------------


def table_of_times() -> None:
    """Seconds of processor time of graphs, with far points and without."""
    print("| points | options | seconds | Newton steps | mean degree | dropped |")
    print("|---" * 6 + "|")
    goals = {"eps": EPS_TIME}, {"mean_degree": NEIGHBORS}
    for goal in goals:  # compiles
        with_far_points(SIZES_TIME[0], 100, 0, outlier_cost="auto", **goal)
    for n, share, goal in itertools.product(SIZES_TIME, (0.0, FAR_SHARE), goals):
        n_far, (named,) = round(share * n), goal.items()
        runs = [_timed(n, n_far, seed, goal) for seed in SEEDS]
        for title in runs[0]:
            found = zip(*(run[title] for run in runs), strict=True)
            cells = [f"{n:,}, {n_far:,} far", f"{named[0]}={named[1]}, {title}"]
            print("|", " | ".join([*cells, *map(_spread, found)]), "|", flush=True)


def _timed(n: int, n_far: int, seed: int, goal: dict[str, float]) -> dict[str, tuple[float, ...]]:
    """Seconds, Newton steps, mean degree and dropped points by options."""
    automatic = with_far_points(n, n_far, seed, outlier_cost="auto", **goal)
    cost = automatic[1].params["outlier_cost"]
    found = {
        "min_degree=0": with_far_points(n, n_far, seed, min_degree=0, **goal),
        "outlier_cost: that of auto": with_far_points(n, n_far, seed, outlier_cost=cost, **goal),
        "outlier_cost=auto": automatic,
    }
    return {
        title: (seconds, graph.certificate.n_steps, graph.mean_degree, int(graph.dropped.sum()))
        for title, (seconds, graph) in found.items()
    }


def with_far_points(n: int, n_far: int, seed: int, **options: Any) -> tuple[float, Any]:
    """Processor time and graph of a noisy manifold in 50 dimensions, some points far away."""
    X = otgraph.datasets.noisy_manifold(n, dim=50, dtype=np.float32, random_state=seed).X
    rng = np.random.default_rng(seed)
    far = rng.choice(n, n_far, replace=False)
    X[far] += FAR * X.std() * rng.normal(size=(n_far, X.shape[1])).astype(X.dtype)
    begin = time.process_time()
    graph = otgraph.quadratic_ot_graph(X, n_jobs=1, **options)
    return time.process_time() - begin, graph


def _spread(values: Iterable[float]) -> str:
    """Mean and standard deviation; one number if all are equal."""
    found = np.array(list(values), dtype=np.float64)
    if np.ptp(found) < 5e-4:
        return f"{found[0]:.4g}"
    return f"{found.mean():.3f} ± {found.std():.3f}"


TABLES = {
    "groups": table_of_groups,
    "rule": table_of_rules,
    "scores": table_of_scores,
    "time": table_of_times,
}


if __name__ == "__main__":
    main()
