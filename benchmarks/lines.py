"""The benchmark table: what runs against what, and what must be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    ``memory_gb`` is the limit of our process's peak, data and libraries included.
    """

    name: str
    title: str
    ours: Contender
    peers: list[Contender]
    at_most: float
    memory_gb: float | None = None
    status: str = "exact"
    large: bool = False
    times: float = 1.0


def spec(job: str, data: str, n: int, **options: Any) -> dict[str, Any]:
    """What `benchmarks.jobs` measures."""
    return {"job": job, "data": data, "n": n, "options": options}


def _small(eps: float) -> Line:
    peers = [
        Contender("RegOT grssn", spec("regot", "manifold", 5000, eps=eps, solver="qrot_grssn"), 2),
        Contender("RegOT assn", spec("regot", "manifold", 5000, eps=eps, solver="qrot_assn")),
        Contender("POT smooth dual", spec("pot", "manifold", 5000, eps=eps), 2),
        Contender("TorchDR", spec("torchdr", "manifold", 5000, eps=eps, max_iter=100)),
    ]
    ours = Contender("otgraph", spec("otgraph", "manifold", 5000, eps=eps, search="exact"), 3)
    return Line(
        name=f"1 (eps {eps:g})",
        title=f"n = 5000, d = 50, eps = {eps:g}, exact, against dense solvers",
        ours=ours,
        peers=peers,
        at_most=1 / 100,
    )


def _against_neighbors(
    name: str, title: str, data: str, n: int, k: int, limit: float, *, large: bool = False
) -> Line:
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph kNN", spec("knn_graph", data, n, k=k), 2),
        peers=[Contender(f"scikit-learn k = {k}", spec("kneighbors_graph", data, n, k=k))],
        at_most=limit,
        large=large,
    )


def _from_file(n: int) -> dict[str, Any]:
    return spec("otgraph", "manifold_file", n, mean_degree=15, search="approximate")


def _kernel(name: str, title: str, function: str, limit: float, **options: Any) -> Line:
    ours = spec("kernel_graph", "manifold", 100_000, function=function, **options)
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph", ours),
        peers=[
            Contender("scikit-learn k = 15", spec("kneighbors_graph", "manifold", 100_000, k=15))
        ],
        at_most=limit,
        memory_gb=8.0,
    )


def _method(name: str, title: str, ours: str, peers: list[Contender], limit: float, memory: float,
            **options: Any) -> Line:  # fmt: skip
    return Line(
        name=name,
        title=title,
        ours=Contender("otgraph", spec(ours, "manifold", MILLION, **options)),
        peers=peers,
        at_most=limit,
        memory_gb=memory,
        large=True,
    )


MILLION = 1_000_000
_PATH_DATA = ("manifold", 20_000)

LINES = [
    _small(0.1),
    _small(1.0),
    Line(
        name="2",
        title="n = 100 000, d = 50, mean degree 15, exact, against a kNN graph",
        ours=Contender(
            "otgraph", spec("otgraph", "manifold", 100_000, mean_degree=15, search="exact"), 2
        ),
        peers=[
            Contender("scikit-learn k = 15", spec("kneighbors_graph", "manifold", 100_000, k=15))
        ],
        at_most=0.35,
        memory_gb=2.0,
    ),
    Line(
        name="3",
        title="n = 25 000, d = 250, isotropic Gaussian, eps = 1, exact, against a kNN graph",
        ours=Contender("otgraph", spec("otgraph", "gaussian", 25_000, eps=1.0, search="exact"), 2),
        peers=[
            Contender("scikit-learn k = 50", spec("kneighbors_graph", "gaussian", 25_000, k=50), 2)
        ],
        at_most=3.0,
    ),
    Line(
        name="3c",
        title="n = 100 000, d = 50, clusters of uneven size and width, mean degree 15, exact",
        ours=Contender(
            "otgraph", spec("otgraph", "clusters", 100_000, mean_degree=15, search="exact")
        ),
        peers=[
            Contender("scikit-learn k = 15", spec("kneighbors_graph", "clusters", 100_000, k=15))
        ],
        at_most=0.35,
        memory_gb=2.0,
    ),
    Line(
        name="4",
        title="n = 1 000 000, d = 50, mean degree 15, approximate, against approximate neighbors",
        ours=Contender(
            "otgraph", spec("otgraph", "manifold", MILLION, mean_degree=15, search="approximate")
        ),
        peers=[Contender("pynndescent k = 30", spec("nn_descent", "manifold", MILLION, k=30))],
        at_most=1.4,
        memory_gb=4.0,
        status="exact_on_candidates",
        large=True,
    ),
    Line(
        name="4c",
        title="n = 10 000 000, d = 50, from a file, approximate, against ten times a million",
        ours=Contender("otgraph", _from_file(10 * MILLION)),
        peers=[Contender("otgraph, a million", _from_file(MILLION))],
        at_most=1.15,
        memory_gb=14.0,
        status="exact_on_candidates",
        large=True,
        times=10.0,
    ),
    Line(
        name="4b",
        title="n = 1 000 000, d = 50, mean degree 15, exact, against approximate neighbors",
        ours=Contender(
            "otgraph", spec("otgraph", "manifold", MILLION, mean_degree=15, search="exact")
        ),
        peers=[Contender("pynndescent k = 30", spec("nn_descent", "manifold", MILLION, k=30))],
        at_most=5.0,
        memory_gb=8.0,
        large=True,
    ),
    Line(
        name="5",
        title="n = 1 000 000, d = 3, mean degree 15, exact, against a k-d tree",
        ours=Contender(
            "otgraph", spec("otgraph", "spiral", MILLION, mean_degree=15, search="exact")
        ),
        peers=[Contender("scikit-learn k = 15", spec("kneighbors_graph", "spiral", MILLION, k=15))],
        at_most=3.0,
        large=True,
    ),
    Line(
        name="6",
        title="path of 25 values, n = 20 000, against one cold solve of the middle value",
        ours=Contender("eps_path", spec("otgraph_path", *_PATH_DATA, log_eps=[-1.5, 0.5]), 2),
        peers=[Contender("one solve", spec("otgraph", *_PATH_DATA, eps=10**-0.5), 3)],
        at_most=4.0,
    ),
    Line(
        name="7",
        title="mean_degree = 15, n = 20 000, against the solve at the eps it finds",
        ours=Contender("by degree", spec("otgraph", *_PATH_DATA, mean_degree=15), 3),
        peers=[Contender("by eps", spec("otgraph", *_PATH_DATA, eps="found"), 3)],
        at_most=2.0,
    ),
    _against_neighbors(
        "10a", "exact kNN graph, n = 100 000, d = 50, manifold", "manifold", 100_000, 15, 0.2
    ),
    _against_neighbors(
        "10b", "exact kNN graph, n = 100 000, d = 50, clusters of uneven width", "clusters",
        100_000, 15, 0.2,
    ),
    _against_neighbors(
        "10c", "exact kNN graph, n = 25 000, d = 250, isotropic Gaussian", "gaussian", 25_000, 50,
        1.0,
    ),
    _against_neighbors(
        "10d", "exact kNN graph, n = 1 000 000, d = 3, against a k-d tree", "spiral", MILLION, 15,
        1.0, large=True,
    ),
    Line(
        name="11",
        title="rows of 100 000 new points on a graph of 100 000, d = 50, against kNN of the same",
        ours=Contender("extend", spec("extend", "manifold", 200_000), 2),
        peers=[Contender("scikit-learn k = 15", spec("kneighbors", "manifold", 200_000, k=15))],
        at_most=0.5,
    ),
    _kernel(
        "12a", "Gaussian graph, n = 100 000, d = 50, eps = 0.01, max_error = 1e-6",
        "gaussian_graph", 1.0, eps=0.01, max_error=1e-6,
    ),
    _kernel(
        "12b", "entropic graph, n = 100 000, d = 50, eps = 0.01, max_error = 1e-6",
        "entropic_ot_graph", 3.0, eps=0.01, max_error=1e-6,
    ),
    _method(
        "13a", "ten eigenvectors of a graph of a million points", "eigenmaps",
        [Contender("scipy eigsh", spec("scipy_eigenvectors", "manifold", MILLION, k=10))],
        1.0, 3.0, k=10,
    ),
    _method(
        "13b", "ten classes spread on a graph of a million points", "spread_labels",
        [Contender("scikit-learn", spec("label_spreading", "manifold", MILLION))], 1.0, 3.0,
    ),
    _method(
        "13c", "2000 sparse genes, three steps, on a graph of a million points", "denoise",
        [Contender("scipy", spec("scipy_products", "manifold", MILLION, genes=2000))], 1.0, 4.0,
        genes=2000,
    ),
]  # fmt: skip
