"""One measurement in a process of its own: ``python -m benchmarks.jobs '{"job": ...}'``.

Prints one JSON line with the time of the call and the peak memory of the process. Kernels
are compiled on a small problem first, for peers as for us: compilation has its own line.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import bounds, data, methods, small

if TYPE_CHECKING:
    from collections.abc import Callable


def otgraph_graph(X: Any, **options: Any) -> dict[str, Any]:
    """Quadratic OT graph."""
    import otgraph

    graph = otgraph.quadratic_ot_graph(X, **options)
    certificate = graph.certificate
    return {
        "status": str(certificate.status),
        "marginal_error": certificate.marginal_error,
        "duality_gap": certificate.duality_gap,
        "eps": certificate.eps,
        "mean_degree": graph.mean_degree,
        "n_steps": certificate.n_steps,
        "missing_pairs": certificate.missing_pairs,
        "missing_pairs_bound": certificate.missing_pairs_bound,
        "n_edges": graph.weights.nnz // 2,
    }


def solve_only(X: Any, **options: Any) -> dict[str, Any]:
    """The solve on candidates that are there already: no search, no screen."""
    import otgraph
    from otgraph.graphs.options import QuadraticOptions
    from otgraph.graphs.transport import TransportProblem

    eps = otgraph.quadratic_ot_graph(X, **options).certificate.eps
    problem = TransportProblem(X, QuadraticOptions(search=options["search"], min_degree=0))
    start = problem.solve(1.5 * eps).state  # candidates of a larger eps, potentials too high
    began = time.perf_counter()
    problem.solve(eps, start=start)
    return {"seconds": time.perf_counter() - began}


def otgraph_path(X: Any, **options: Any) -> dict[str, Any]:
    """Path of 25 graphs."""
    import otgraph

    low, high = options.pop("log_eps")
    began = time.perf_counter()
    path = otgraph.eps_path(X, np.logspace(low, high, 25), **options)
    seconds = time.perf_counter() - began  # without the components, which the table counts
    table = path.table()
    return {
        "seconds": seconds,
        "status": "/".join(sorted(set(table["status"]))),
        "mean_degree": [float(table["mean_degree"].min()), float(table["mean_degree"].max())],
    }


def kneighbors_graph(X: Any, **options: Any) -> dict[str, Any]:
    """scikit-learn's kNN graph."""
    from sklearn.neighbors import kneighbors_graph

    graph = kneighbors_graph(X, options["k"], n_jobs=-1)
    return {"mean_degree": graph.nnz / graph.shape[0]}


def knn_graph(X: Any, **options: Any) -> dict[str, Any]:
    """Our exact kNN graph, symmetrized."""
    import otgraph

    graph = otgraph.knn_gaussian_graph(X, options["k"])
    return {"mean_degree": graph.mean_degree}


def kernel_graph(X: Any, **options: Any) -> dict[str, Any]:
    """Gaussian or entropic graph without the weights that do not matter."""
    import otgraph

    graph = getattr(otgraph, options.pop("function"))(X, **options)
    result = {"mean_degree": graph.mean_degree}
    if hasattr(graph, "certificate"):
        result["status"] = str(graph.certificate.status)
        result["marginal_error"] = graph.certificate.marginal_error
    return result


def extend(X: Any, **options: Any) -> dict[str, Any]:
    """Rows of the second half of the points on a graph of the first half."""
    import otgraph

    half = len(X) // 2
    graph = otgraph.quadratic_ot_graph(X[:half], mean_degree=15)
    began = time.perf_counter()
    rows = graph.extend(X[half:])
    return {"seconds": time.perf_counter() - began, "mean_degree": rows.nnz / rows.shape[0]}


def kneighbors(X: Any, **options: Any) -> dict[str, Any]:
    """scikit-learn's neighbors of the second half among the first half."""
    from sklearn.neighbors import NearestNeighbors

    half = len(X) // 2
    search = NearestNeighbors(n_neighbors=options["k"], n_jobs=-1).fit(X[:half])
    began = time.perf_counter()
    search.kneighbors(X[half:])
    return {"seconds": time.perf_counter() - began, "mean_degree": float(options["k"])}


def nn_descent(X: Any, **options: Any) -> dict[str, Any]:
    """pynndescent's approximate neighbors."""
    from pynndescent import NNDescent

    indices, _ = NNDescent(X, n_neighbors=options["k"], random_state=0).neighbor_graph
    return {"mean_degree": indices.shape[1]}


def _cost(X: Any) -> Any:
    from sklearn.metrics.pairwise import euclidean_distances

    C = euclidean_distances(X.astype(np.float64), squared=True)
    return C / C.mean()


def _hollow(C: Any) -> Any:
    np.fill_diagonal(C, 1e3)  # larger than any useful cost: nobody keeps mass
    return C


def _row_error(plan: Any) -> float:
    return float(np.abs(np.asarray(plan).sum(axis=1) - 1.0).max())


def regot_plan(X: Any, **options: Any) -> dict[str, Any]:
    """RegOT's quadratic solver on the dense cost; making the cost is not timed."""
    import regot

    C = np.asfortranarray(_hollow(_cost(X)))
    ones = np.ones(len(C))
    solver = getattr(regot, options["solver"])
    began = time.perf_counter()
    result = solver(C, ones, ones, options["eps"], tol=1e-6 * len(C) ** 0.5, max_iter=1000)
    return {"seconds": time.perf_counter() - began, "marginal_error": _row_error(result.plan)}


def pot_plan(X: Any, **options: Any) -> dict[str, Any]:
    """POT's smooth dual solver on the dense cost; making the cost is not timed."""
    import ot

    C = _hollow(_cost(X))
    ones = np.ones(len(C))
    began = time.perf_counter()
    plan = ot.smooth.smooth_ot_dual(ones, ones, C, reg=options["eps"], stopThr=1e-9)
    return {"seconds": time.perf_counter() - began, "marginal_error": _row_error(plan)}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "otgraph": otgraph_graph,
    "otgraph_path": otgraph_path,
    "solve_only": solve_only,
    "kneighbors_graph": kneighbors_graph,
    "nn_descent": nn_descent,
    "regot": regot_plan,
    "pot": pot_plan,
    "knn_graph": knn_graph,
    "kernel_graph": kernel_graph,
    "extend": extend,
    "kneighbors": kneighbors,
    **methods.JOBS,
    "small": small.turns,
    "rates": bounds.rates,
}
# Peers that compile, or load libraries, on their first call.
WARM_UP = {
    "otgraph", "otgraph_path", "solve_only", "nn_descent", "kneighbors_graph",
    "knn_graph", "kernel_graph", "extend", "kneighbors", *methods.JOBS,
}  # fmt: skip
# Threads of BLAS wait for more work for a while after the data are made, and take a core from the
# call that is measured: 5000 points take 74 ms right then, 57 ms later.
SETTLE_SECONDS = 1.0


def run(spec: dict[str, Any]) -> dict[str, Any]:
    """Measure what ``spec`` asks for."""
    warnings.simplefilter("ignore")
    job, options = JOBS[spec["job"]], spec.get("options", {})
    if spec["job"] in WARM_UP:
        for n in (200, 2000, 10_000):  # small and large take different ways
            job(data.make(spec["data"], n, dim=spec.get("dim")), **options.copy())
    X = data.make(spec["data"], spec["n"], dim=spec.get("dim"))
    time.sleep(SETTLE_SECONDS)
    began = time.perf_counter()
    result = job(X, **options)
    result.setdefault("seconds", time.perf_counter() - began)
    result["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return result


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
