"""The benchmark table: what runs against what, and what must be reached.

The last argument of a line is the work that it cannot avoid, for the lower bound beside its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.bounds import NOT_EXCLUDED, Least, graph_of, neighbors_of, products_of

MILLION = 1_000_000
STOP = 240.0  # seconds after which a peer is stopped; the ratio is then at most what is written
# Share of the pairs that cells of the usual number leave at a million points: 1.8 % were measured
# with as many cells (3000) at 100 000 points.
NOT_EXCLUDED_OF_MILLION = 0.018


@dataclass(frozen=True)
class Contender:
    """A measurement of one line: a job with its data and options."""

    label: str
    spec: dict[str, Any]
    repeat: int = 1


@dataclass(frozen=True)
class Line:
    """Ours against peers on the same data: the ratio that must be reached.

    ``at_most`` is time of ours over time of the fastest peer, which counts ``times`` times;
    ``memory_gb`` is the limit of our process's peak, data and libraries included. ``least`` is
    the work that cannot be avoided.
    """

    name: str
    title: str
    ours: Contender
    peers: list[Contender]
    at_most: float
    least: Least
    memory_gb: float | None = None
    status: str = "exact"
    large: bool = False
    times: float = 1.0


def spec(
    job: str, data: str, n: int, *,
    dim: int | None = None, environment: str | None = None, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """What `benchmarks.jobs` measures, in the environment of the package or in another one."""
    made = {"job": job, "data": data, "n": n, "options": options}
    others = {"dim": dim, "environment": environment}
    return made | {key: value for key, value in others.items() if value is not None}


def _dense(eps: float) -> Line:
    peers = [
        Contender("RegOT grssn", spec("regot", "manifold", 5000, eps=eps, solver="qrot_grssn"), 2),
        Contender("RegOT assn", spec("regot", "manifold", 5000, eps=eps, solver="qrot_assn")),
        Contender("POT smooth dual", spec("pot", "manifold", 5000, eps=eps), 2),
    ]
    ours = Contender("otgraph", spec("otgraph", "manifold", 5000, eps=eps, search="exact"), 3)
    return Line(
        name=f"1 (eps {eps:g})",
        title=f"n = 5000, d = 50, eps = {eps:g}, exact, against dense solvers",
        ours=ours,
        peers=peers,
        at_most=1 / 100,
        least=graph_of(5000, 50, 1.0),
    )


def _neighbors(
    data: str, n: int, k: int = 15, dim: int | None = None, repeat: int = 1
) -> Contender:
    made = spec("kneighbors_graph", data, n, dim=dim, k=k)
    return Contender(f"scikit-learn k = {k}", made, repeat)


def _isotropic(dim: int) -> Line:
    n = 20_000
    ours = spec("otgraph", "gaussian", n, dim=dim, mean_degree=15, search="exact")
    return Line(
        name=f"3 (d = {dim})",
        title=f"n = 20 000, d = {dim}, isotropic Gaussian, mean degree 15, exact, against kNN",
        ours=Contender("otgraph", ours, 2),
        peers=[_neighbors("gaussian", n, dim=dim, repeat=2)],
        at_most=2.0,
        least=graph_of(n, dim, 1.0),
    )


def _hundred_thousand(name: str, title: str, data: str) -> Line:
    n = 100_000
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph", spec("otgraph", data, n, mean_degree=15, search="exact"), 2),
        peers=[_neighbors(data, n)],
        at_most=0.12,
        least=graph_of(n, 50, NOT_EXCLUDED),
        memory_gb=2.0,
    )


def _million(
    name: str, title: str, data: str, search: str, limit: float, memory: float | None = 1.7
) -> Line:
    return Line(
        name=name,
        title=f"n = 1 000 000, d = 50, mean degree 15, {title}, against approximate neighbors",
        ours=Contender("otgraph", spec("otgraph", data, MILLION, mean_degree=15, search=search)),
        peers=[Contender("pynndescent k = 30", spec("nn_descent", data, MILLION, k=30))],
        at_most=limit,
        least=graph_of(MILLION, 50, NOT_EXCLUDED_OF_MILLION if search == "exact" else 0.0),
        memory_gb=memory,
        status="exact" if search == "exact" else "exact_on_candidates",
        large=True,
    )


def _against_neighbors(
    name: str, title: str, data: str, n: int, d: int, k: int, limit: float, share: float, *,
    large: bool = False,
) -> Line:  # fmt: skip
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph kNN", spec("knn_graph", data, n, k=k), 2),
        peers=[_neighbors(data, n, k)],
        at_most=limit,
        least=neighbors_of(n, d, k, share),
        large=large,
    )


def _from_file(n: int) -> dict[str, Any]:
    return spec("otgraph", "manifold_file", n, mean_degree=15, search="approximate")


def _kernel(name: str, title: str, function: str, limit: float, **options: Any) -> Line:
    n = 100_000
    ours = spec("kernel_graph", "manifold", n, function=function, **options)
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph", ours),
        peers=[_neighbors("manifold", n)],
        at_most=limit,
        least=neighbors_of(n, 50, 15, NOT_EXCLUDED),
        memory_gb=8.0,
    )


def _method(name: str, title: str, ours: str, peers: list[Contender], limit: float, memory: float,
            least: Least, **options: Any) -> Line:  # fmt: skip
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph", spec(ours, "manifold", MILLION, **options)),
        peers=peers,
        at_most=limit,
        least=least,
        memory_gb=memory,
        large=True,
    )


_PATH_DATA = ("manifold", 20_000)
# At 0.01 a point has 2200 neighbors, and the graph takes 8.5 GB.
KERNEL_EPS = 0.002
# MAGIC needs a pandas that was built for numpy 1, so that it cannot be installed beside us.
MAGIC_ENVIRONMENT = ".venv-magic"

LINES = [
    _dense(0.1),
    _dense(1.0),
    _hundred_thousand(
        "2", "n = 100 000, d = 50, mean degree 15, exact, against a kNN graph", "manifold"
    ),
    Line(
        name="3",
        title="n = 25 000, d = 250, isotropic Gaussian, eps = 1, exact, against a kNN graph",
        ours=Contender("otgraph", spec("otgraph", "gaussian", 25_000, eps=1.0, search="exact"), 2),
        peers=[_neighbors("gaussian", 25_000, 50, repeat=2)],
        at_most=3.0,
        least=graph_of(25_000, 250, 1.0, degree=57.0),
    ),
    *[_isotropic(dim) for dim in (30, 100, 500)],
    _hundred_thousand(
        "3c", "n = 100 000, d = 50, clusters of uneven size and width, mean degree 15, exact",
        "clusters",
    ),
    _million("4", "approximate", "manifold", "approximate", 1.4),
    _million("4b", "exact", "manifold", "exact", 1.0),
    _million("4c", "clusters of uneven width, exact", "clusters", "exact", 1.5, None),
    Line(
        name="4d",
        title="n = 10 000 000, d = 50, from a file, approximate, against ten times a million",
        ours=Contender("otgraph", _from_file(10 * MILLION)),
        peers=[Contender("otgraph, a million", _from_file(MILLION))],
        at_most=1.15,
        least=graph_of(10 * MILLION, 50, 0.0),
        memory_gb=14.0,
        status="exact_on_candidates",
        large=True,
        times=10.0,
    ),
    Line(
        name="5",
        title="n = 1 000 000, d = 3, mean degree 15, exact, against a k-d tree",
        ours=Contender(
            "otgraph", spec("otgraph", "spiral", MILLION, mean_degree=15, search="exact")
        ),
        peers=[_neighbors("spiral", MILLION)],
        at_most=1.5,
        least=graph_of(MILLION, 3, 0.0),
        large=True,
    ),
    Line(
        name="6",
        title="path of 25 values, n = 20 000, against one cold solve of the middle value",
        ours=Contender("eps_path", spec("otgraph_path", *_PATH_DATA, log_eps=[-1.5, 0.5]), 2),
        peers=[Contender("one solve", spec("otgraph", *_PATH_DATA, eps=10**-0.5), 3)],
        at_most=2.0,
        least=Least(
            "three Newton steps of five products and an evaluation for each value",
            bytes=15.3e6 * 8.0 * 3 * 5 + 30.5e6 * 12.0 * 4,
        ),
    ),
    Line(
        name="7",
        title="mean_degree = 15, n = 20 000, against the solve at the eps it finds",
        ours=Contender("by degree", spec("otgraph", *_PATH_DATA, mean_degree=15), 3),
        peers=[Contender("by eps", spec("otgraph", *_PATH_DATA, eps="found"), 3)],
        at_most=2.0,
        least=graph_of(20_000, 50, NOT_EXCLUDED),
    ),
    _against_neighbors(
        "10a", "exact kNN graph, n = 100 000, d = 50, manifold", "manifold", 100_000, 50, 15, 0.2,
        NOT_EXCLUDED,
    ),
    _against_neighbors(
        "10b", "exact kNN graph, n = 100 000, d = 50, clusters of uneven width", "clusters",
        100_000, 50, 15, 0.2, NOT_EXCLUDED,
    ),
    _against_neighbors(
        "10c", "exact kNN graph, n = 25 000, d = 250, isotropic Gaussian", "gaussian", 25_000, 250,
        50, 1.0, 1.0,
    ),
    _against_neighbors(
        "10d", "exact kNN graph, n = 1 000 000, d = 3, against a k-d tree", "spiral", MILLION, 3,
        15, 1.0, 0.0, large=True,
    ),
    Line(
        name="11",
        title="rows of 100 000 new points on a graph of 100 000, d = 50, against kNN of the same",
        ours=Contender("extend", spec("extend", "manifold", 200_000), 2),
        peers=[Contender("scikit-learn k = 15", spec("kneighbors", "manifold", 200_000, k=15))],
        at_most=0.5,
        least=neighbors_of(100_000, 50, 15, NOT_EXCLUDED),
    ),
    _kernel(
        "12a", f"Gaussian graph, n = 100 000, d = 50, eps = {KERNEL_EPS}, max_error = 1e-6",
        "gaussian_graph", 1.0, eps=KERNEL_EPS, max_error=1e-6,
    ),
    _kernel(
        "12b", f"entropic graph, n = 100 000, d = 50, eps = {KERNEL_EPS}, max_error = 1e-6",
        "entropic_ot_graph", 3.0, eps=KERNEL_EPS, max_error=1e-6,
    ),
    # As many products as eigenmaps and label spreading took when they were last counted.
    _method(
        "13a", "ten eigenvectors of a graph of a million points", "eigenmaps",
        [Contender("scipy eigsh", spec("scipy_eigenvectors", "manifold", MILLION, k=10))],
        1.0, 3.0, products_of(MILLION, 15, 663), k=10,
    ),
    _method(
        "13b", "ten classes spread on a graph of a million points", "spread_labels",
        [Contender("scikit-learn", spec("label_spreading", "manifold", MILLION))], 1.0, 3.0,
        products_of(MILLION, 15, 28, 10),
    ),
    _method(
        "13c", "2000 sparse genes, three steps, on a graph of a million points", "denoise",
        [Contender("scipy", spec("scipy_products", "manifold", MILLION, genes=2000))], 1.0, 4.0,
        products_of(MILLION, 15, 3, 2000), genes=2000,
    ),
    Line(
        name="13d",
        title="100 000 cells, 2000 genes: components, graph and three steps, against MAGIC",
        ours=Contender("otgraph", spec("denoised_cells", "cells", 100_000)),
        peers=[
            Contender(
                "MAGIC",
                spec("magic_impute", "cells", 100_000, environment=MAGIC_ENVIRONMENT),
            ),
        ],
        at_most=1.0,
        least=products_of(100_000, 15, 3, 2000),
    ),
]  # fmt: skip
