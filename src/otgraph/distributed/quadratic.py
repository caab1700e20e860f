"""Quadratically regularized optimal transport graphs on a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from otgraph.distributed._checks import find_client
from otgraph.distributed._cluster import Cluster
from otgraph.distributed._problem import ClusterProblem
from otgraph.graphs.options import QuadraticOptions
from otgraph.graphs.quadratic import check_goal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.distributed.graph import DistributedGraph
    from otgraph.graphs.options import Metric, OnFailure, Search
    from otgraph.typing import RandomState


def quadratic_ot_graph(
    X: Any,
    eps: float | None = None,
    *,
    client: Any = None,
    block_rows: int | None = None,
    mean_degree: float | None = None,
    metric: Metric = QuadraticOptions.metric,
    power: float = QuadraticOptions.power,
    normalize: bool = QuadraticOptions.normalize,
    mass: ArrayLike | None = None,
    self_loops: bool = QuadraticOptions.self_loops,
    tol: float = QuadraticOptions.tol,
    search: Search = QuadraticOptions.search,
    max_missing: float = QuadraticOptions.max_missing,
    n_candidates: int | None = QuadraticOptions.n_candidates,
    u0: ArrayLike | None = None,
    max_iter: int = QuadraticOptions.max_iter,
    on_failure: OnFailure = QuadraticOptions.on_failure,
    progress: bool = False,
    n_jobs: int | None = -1,
    random_state: RandomState = QuadraticOptions.random_state,
) -> DistributedGraph:
    """The graph of :func:`otgraph.quadratic_ot_graph`, computed by a Dask cluster.

    Search, screens and the rows of the problem are on the workers; this process keeps a few
    numbers per point. The weights are the same, bit for bit, on the same kind of processor,
    however many blocks and workers there are, and also after workers have died on the way: Dask
    computes what they held again, and the logger ``otgraph.distributed`` says what that was.

    Parameters
    ----------
    X
        Points, one per row: a Dask array; the path of a .npy file or a zarr array that every
        worker can read; or an array, which is sent to the workers.
    eps
        As in :func:`otgraph.quadratic_ot_graph`, like all parameters that are not listed here.
    client
        A ``distributed.Client``; the current one by default. No cluster is ever started.
    block_rows
        Rows of a block, the unit of work and of memory. By default a sixteenth of the points
        within reason: 16 384 to 65 536 rows. Choose less where workers have little memory.
    mean_degree, metric, power, normalize, mass, self_loops, tol, search, max_missing, \
n_candidates, u0
        As there; the metric must not be ``"precomputed"``.
    max_iter, on_failure, random_state
        As there.
    progress
        Show progress bars in this process.
    n_jobs
        Without effect: each thread of a worker runs one task at a time, so that the cluster
        decides.

    Returns
    -------
    DistributedGraph
        It stays on the workers; :meth:`~DistributedGraph.to_graph` makes it an ordinary one.

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from otgraph.distributed import quadratic_ot_graph
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     graph = quadratic_ot_graph(X, eps=1.0, client=client).to_graph()
    >>> graph.certificate.status == "exact"
    True
    """
    eps, mean_degree = check_goal(eps, mean_degree)
    options = QuadraticOptions(
        metric=metric, power=power, normalize=normalize, self_loops=self_loops, tol=tol,
        search=search, max_missing=max_missing, n_candidates=n_candidates, max_iter=max_iter,
        on_failure=on_failure, random_state=random_state,
    )  # fmt: skip
    cluster = Cluster(find_client(client), progress=bool(progress))
    with cluster.running():
        problem = ClusterProblem(
            X, options, cluster=cluster, block_rows=block_rows, mass=mass, progress=progress,
            n_jobs=n_jobs,
        )  # fmt: skip
        solution, found = problem.solve_goal(eps, mean_degree, u0)
        return problem.distributed_graph(solution, **found)
