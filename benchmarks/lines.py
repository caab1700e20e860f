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

    ``at_most`` is time of ours over time of the fastest peer; ``memory_gb`` is the limit of our
    process's peak, data and libraries included.
    """

    name: str
    title: str
    ours: Contender
    peers: list[Contender]
    at_most: float
    memory_gb: float | None = None
    status: str = "exact"
    large: bool = False


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
]
