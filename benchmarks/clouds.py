"""Plans between two clouds beside other programs: ``python -m benchmarks.clouds PART ...``.

Parts: ``speed`` (POT and RegOT, which are dense), ``size`` (many points), ``shifts``
(labels of digits across a shift), ``batches`` (simulated cells of two batches), ``composition``
(clouds with different shares of the classes), ``both`` (shifted, too). Each prints a table for
`docs/clouds.md`. Speed and size run in processes of their own, with a limit of time; peers that are
not installed are left out.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

import otgraph

if TYPE_CHECKING:
    from collections.abc import Callable

    from otgraph.typing import FloatArray

SEEDS = range(5)
SECONDS = 110  # limit of one run
SECONDS_OF_A_MILLION = 1200
EPS = 1.0
SOFT = 0.6  # an outlier cost: more than what most points pay within their class


# Labels --------------------------------------------------------------------------------------


def plan_labels(X: Any, Y: Any, labels: Any, **goal: Any) -> Any:
    """Labels carried by a plan."""
    return otgraph.transport_graph(X, Y, n_jobs=1, **goal).transfer_labels(labels).labels


def neighbor_labels(X: Any, Y: Any, labels: Any, *, centered: bool = False) -> Any:
    """Labels of the five nearest points, after centering both clouds or as they are."""
    if centered:
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return KNeighborsClassifier(5).fit(Y, labels).predict(X)


def component_labels(X: Any, Y: Any, labels: Any) -> Any:
    """The rule of scanpy's ``tl.ingest``: 15 nearest cells on components of the reference.

    Its own search wants a pynndescent older than the one that scanpy installs today.
    """
    components = PCA(min(30, Y.shape[1] - 1), random_state=0).fit(Y)
    return (
        KNeighborsClassifier(15)
        .fit(components.transform(Y), labels)
        .predict(components.transform(X))
    )


def weighed_labels(X: Any, Y: Any, labels: Any) -> Any:
    """Labels by a plan whose masses give each class the share that nearest neighbors find in X."""
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    guessed = neighbor_labels(X, Y, labels)
    wanted = np.array([np.count_nonzero(guessed == each) for each in classes])
    mass_y = (np.maximum(wanted, 0.5) / counts)[codes]  # masses must be positive
    return plan_labels(X, Y, labels, mass_y=mass_y)


METHODS: dict[str, Callable[..., Any]] = {
    "plan, eps 1": lambda X, Y, labels: plan_labels(X, Y, labels, eps=EPS),
    "plan, 15 partners": plan_labels,
    "plan, classes weighed": weighed_labels,
    "soft plan, auto": lambda X, Y, labels: plan_labels(X, Y, labels, outlier_cost="auto"),
    "soft plan, 0.6": lambda X, Y, labels: plan_labels(X, Y, labels, outlier_cost=SOFT),
    "5-NN": neighbor_labels,
    "5-NN, centered": lambda X, Y, labels: neighbor_labels(X, Y, labels, centered=True),
    "ingest's rule": component_labels,
}


def accuracies(sample: Callable[[int], tuple[Any, Any, Any, Any]]) -> list[str]:
    """Mean and standard deviation of the accuracy of every method over the seeds."""
    cells = []
    samples = [sample(seed) for seed in SEEDS]
    for method in METHODS.values():
        scores = [
            100.0 * np.mean(method(X, Y, labels_y) == labels_x)
            for X, labels_x, Y, labels_y in samples
        ]
        cells.append(f"{np.mean(scores):.1f} ± {np.std(scores):.1f}")
    return cells


def digits(seed: int, shift: float = 0.0, kept: float = 1.0) -> tuple[Any, Any, Any, Any]:
    """600 digits to 600 others; the query is shifted, and has fewer of five classes."""
    rng = np.random.default_rng(seed)
    data = load_digits()
    X, labels = data.data, data.target
    order = rng.permutation(len(X))
    query, reference = order[: len(X) // 2], order[len(X) // 2 :][:600]
    few = np.isin(labels[query], rng.choice(10, 5, replace=False))
    query = query[~few | (rng.random(len(query)) < kept)][:600]
    direction = rng.normal(size=X.shape[1])
    length = shift * np.sqrt(X.var(axis=0).mean())  # in standard deviations of a pixel
    moved = X[query] + length * direction
    return moved, labels[query], X[reference], labels[reference]


def batches(seed: int, strength: float) -> tuple[Any, Any, Any, Any]:
    """Two batches of simulated cells: every gene of the query has an offset and a factor."""
    cells = otgraph.datasets.simulated_cells(1600, n_genes=1000, n_types=8, rarest=0.02,
                                             random_state=seed)  # fmt: skip
    rng = np.random.default_rng(seed)
    counts = cells.counts.toarray()
    values = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    labels = cells.labels
    order = rng.permutation(len(values))
    query, reference = values[order[:800]], values[order[800:]]
    spread = values.std(axis=0)
    query = query * np.exp(0.5 * strength * rng.normal(size=values.shape[1]))
    query = query + strength * spread * rng.normal(size=values.shape[1])
    components = PCA(30, random_state=0).fit(reference)
    return (
        components.transform(query), labels[order[:800]],
        components.transform(reference), labels[order[800:]],
    )  # fmt: skip


def _label_table(title: str, values: Any, sample: Callable[..., Any]) -> None:
    print(f"| {title} | " + " | ".join(METHODS) + " |")
    print("|---" * (1 + len(METHODS)) + "|")
    for value in values:
        cells = accuracies(lambda seed, value=value: sample(seed, value))
        print(f"| {value:g} | " + " | ".join(cells) + " |", flush=True)


def shifts() -> None:
    """Labels of digits across a shift."""
    _label_table("shift", (0.0, 1.0, 2.0, 3.0), digits)


def batch_effects() -> None:
    """Labels of simulated cells across a batch effect."""
    _label_table("strength", (0.0, 0.5, 1.0, 2.0), batches)


def composition() -> None:
    """Labels of digits where half of the classes are rare in the query."""
    _label_table("share kept", (1.0, 0.5, 0.25, 0.1, 0.0),
                 lambda seed, kept: digits(seed, kept=kept))  # fmt: skip


def both() -> None:
    """Labels of digits that are shifted, where half of the classes are rare in the query."""
    _label_table("shift", (0.0, 1.0, 2.0, 3.0),
                 lambda seed, shift: digits(seed, shift=shift, kept=0.25))  # fmt: skip


# Speed and size ------------------------------------------------------------------------------


def two_samples(n: int, d: int, kind: str, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Two clouds: of different shape, or two samples of a manifold of which one is moved."""
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.normal(size=(n, d)), 1.2 * rng.normal(size=(n, d)) + 1.0
    if kind == "same":
        return rng.normal(size=(n, d)), rng.normal(size=(n, d))
    if kind == "uniform":
        return rng.normal(size=(n, d)), rng.uniform(-3.0, 3.0, size=(n, d))
    if kind == "curved":  # of dimension 3, with different densities
        waves = np.random.default_rng(7).normal(size=(3, d))
        phases = np.random.default_rng(8).uniform(0.0, 6.0, size=d)
        samples = 0.7 * rng.normal(size=(n, 3)), rng.uniform(-1.2, 1.2, size=(n, 3))
        X, Y = (np.sin(each @ waves + phases) + 0.02 * rng.normal(size=(n, d)) for each in samples)
        return X, Y + 0.5
    X = otgraph.datasets.noisy_manifold(2 * n, dim=d).X[rng.permutation(2 * n)]
    return X[:n], X[n:] + 0.3


def otgraph_run(X: Any, Y: Any, *, unequal: bool = False, **goal: Any) -> dict[str, Any]:
    """The plan of this package; unequal masses differ by factors up to ten."""
    if unequal:
        goal["mass_x"], goal["mass_y"] = (
            10.0 ** np.random.default_rng(seed).uniform(size=len(points))
            for seed, points in enumerate((X, Y))
        )
    plan = otgraph.transport_graph(X, Y, **goal)
    certificate = plan.certificate
    return {
        "status": str(certificate.status), "error": certificate.marginal_error, "eps": plan.eps,
        "degree": plan.mean_degree, "gap": certificate.duality_gap, "steps": certificate.n_steps,
        "dropped": [int(np.count_nonzero(each)) for each in plan.dropped],
    }  # fmt: skip


def _dense(X: Any, Y: Any) -> Any:
    from sklearn.metrics.pairwise import euclidean_distances

    costs = euclidean_distances(X, Y, squared=True)
    return costs / costs.mean()


def pot_run(X: Any, Y: Any, eps: float) -> dict[str, Any]:
    """POT's smooth dual; making the cost is not timed."""
    import ot

    costs, ones = _dense(X, Y), np.ones(len(X))
    began = time.perf_counter()
    plan = ot.smooth.smooth_ot_dual(ones, ones, costs, reg=eps, stopThr=1e-9, numItermax=5000)
    return {"seconds": time.perf_counter() - began, "error": _error(plan)}


def regot_run(X: Any, Y: Any, eps: float) -> dict[str, Any]:
    """RegOT's semismooth Newton method; making the cost is not timed."""
    import regot

    costs, ones = np.asfortranarray(_dense(X, Y)), np.ones(len(X))
    began = time.perf_counter()
    result = regot.qrot_grssn(costs, ones, ones, eps, tol=1e-6 * len(X) ** 0.5, max_iter=1000)
    return {"seconds": time.perf_counter() - began, "error": _error(result.plan)}


def _error(plan: Any) -> float:
    plan = np.asarray(plan)
    return float(max(np.abs(plan.sum(axis=axis) - 1.0).max() for axis in (0, 1)))


RUNS = {"otgraph": otgraph_run, "POT": pot_run, "RegOT": regot_run}


def measured(
    who: str, n: int, d: int, kind: str, *, seed: int = 0, limit: int = SECONDS, **goal: Any
) -> dict[str, Any]:
    """One run in a process of its own."""
    job = json.dumps({"who": who, "n": n, "d": d, "kind": kind, "seed": seed, "goal": goal})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.clouds", "run", job],
            capture_output=True, text=True, timeout=limit + 60, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit} s"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["?"])[-1][:80]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_job(job: str) -> None:
    """A run, after a small one that compiles the kernels."""
    warnings.simplefilter("ignore")
    given = json.loads(job)
    run = RUNS[given["who"]]
    small = two_samples(4000 if given["who"] == "otgraph" else 200, given["d"], given["kind"])
    goal = given["goal"]
    run(*small, **({"mean_degree": 5} if given["who"] == "otgraph" else goal))
    X, Y = two_samples(given["n"], given["d"], given["kind"], given.get("seed", 0))
    began, cpu = time.perf_counter(), time.process_time()
    result = run(X, Y, **goal)
    result.setdefault("seconds", time.perf_counter() - began)
    result["cpu"] = time.process_time() - cpu
    result["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps(result))


def speed(sizes: Any = (1000, 2000, 5000)) -> None:
    """Time of one plan over the seeds, beside dense solvers."""
    print("| n = m | " + " | ".join(f"{who}: s, GB, error" for who in RUNS) + " |")
    print("|---" * (1 + len(RUNS)) + "|")
    for n in sizes:
        ours = [measured("otgraph", n, 10, "normal", seed=s, mean_degree=15) for s in SEEDS]
        cells = [_cell(ours)]
        for who in ("POT", "RegOT"):
            theirs = [
                measured(who, n, 10, "normal", seed=s, eps=own["eps"])
                for s, own in zip(SEEDS, ours, strict=True)
            ]
            cells.append(_cell(theirs))
        print(f"| {n} | " + " | ".join(cells) + " |", flush=True)


def _cell(results: list[dict[str, Any]]) -> str:
    """Mean and standard deviation of the seconds, most memory, largest error."""
    failed = [result["failed"] for result in results if "failed" in result]
    if failed:
        return str(failed[0])
    seconds, memory, error = (
        [result[key] for result in results] for key in ("seconds", "memory", "error")
    )
    spread = f"{np.mean(seconds):.2f} ± {np.std(seconds):.2f}"
    return f"{spread}, {max(memory):.2f}, {max(error):.0e}"


LARGE = (
    ("same", 100_000, 2), ("uniform", 100_000, 3), ("uniform", 1_000_000, 3),
    ("same", 100_000, 10), ("normal", 100_000, 10), ("curved", 100_000, 10),
    ("curved", 1_000_000, 10), ("manifold", 100_000, 50),
)  # fmt: skip


def size(cases: Any = LARGE) -> None:
    """Time and memory of large plans."""
    print("| clouds | n = m | dimensions | s | processor s | GB | status | steps |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, n, d in cases:
        found = measured("otgraph", n, d, kind, mean_degree=15, limit=SECONDS_OF_A_MILLION)
        cells = [found["failed"]] if "failed" in found else [
            f"{found['seconds']:.0f}", f"{found['cpu']:.0f}", f"{found['memory']:.1f}",
            found["status"], found["steps"],
        ]  # fmt: skip
        print(f"| {kind} | {n:,} | {d} | " + " | ".join(map(str, cells)) + " |", flush=True)


PARTS: dict[str, Callable[..., None]] = {
    "speed": speed, "size": size, "shifts": shifts, "batches": batch_effects,
    "composition": composition, "both": both,
}  # fmt: skip


def main() -> None:
    """Print the tables of some parts."""
    parser = argparse.ArgumentParser(prog="benchmarks.clouds", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    warnings.simplefilter("ignore")
    for part in parser.parse_args().parts:
        PARTS[part]()
        print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run_job(sys.argv[2])
    else:
        main()
