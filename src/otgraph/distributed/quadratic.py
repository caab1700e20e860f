"""Quadratically regularized optimal transport graphs on a Dask cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._memory import LARGE_BYTES, return_free_memory
from otgraph.distributed._blocks import shuffle
from otgraph.distributed._checkpoint import Checkpoint
from otgraph.distributed._checks import ask_workers, check_memory, choose_block_rows, find_client
from otgraph.distributed._cluster import Cluster
from otgraph.distributed._cost import CopiedCost
from otgraph.distributed._plan import DistributedPlan
from otgraph.distributed._points import share_points
from otgraph.distributed._shared import SharedCost
from otgraph.distributed._source import are_shared, find_source, read_rows, submit_cost
from otgraph.distributed._weights import join_weights, plan_entries
from otgraph.distributed.graph import DistributedGraph
from otgraph.exceptions import invalid
from otgraph.graphs.choice import auto_eps
from otgraph.graphs.keywords import shows
from otgraph.graphs.options import AUTO, QuadraticOptions
from otgraph.graphs.quadratic import check_goal
from otgraph.graphs.transport import TransportProblem, report_duplicates

if TYPE_CHECKING:
    import os
    from typing import Unpack

    from distributed import Client
    from numpy.typing import ArrayLike

    from otgraph._parallel import Workers
    from otgraph.distributed._source import ClusterPoints, Source
    from otgraph.graphs.options import Eps, QuadraticKeywords
    from otgraph.solvers import Solution
    from otgraph.typing import FloatArray, Keywords


@shows({"quadratic": QuadraticOptions})
def quadratic_ot_graph(
    X: ClusterPoints,
    eps: Eps | None = None,
    *,
    client: Client | None = None,
    block_rows: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    mean_degree: float | None = None,
    mass: ArrayLike | None = None,
    u0: ArrayLike | None = None,
    progress: bool = False,
    n_jobs: int | None = -1,
    **options: Unpack[QuadraticKeywords],
) -> DistributedGraph:
    """The graph of :func:`otgraph.quadratic_ot_graph`, computed by a Dask cluster.

    The workers search, screen and hold the rows of the problem; this process keeps a few
    numbers per point. On the same kind of processor the weights are bitwise the same for any
    number of blocks and workers. If a worker dies, Dask computes its results again, and the
    logger ``otgraph.distributed`` reports it.

    Parameters
    ----------
    X
        Points, one per row: a Dask array or data frame; the path or address of a .npy file, a zarr
        array or a parquet table that every worker can read; or an array or table in memory, which
        is sent to the workers.
    eps
        Regularization; larger values spread the mass over more neighbors. ``"auto"`` is chosen in
        this process, on a sample of the points. :func:`otgraph.quadratic_ot_graph` says more about
        all keywords that are not of the cluster.
    client
        A ``distributed.Client``; the current one by default. No cluster is ever started.
    block_rows
        Rows of a block, the unit of work and of memory. By default there are two blocks for each
        thread of a worker, and more where these would not fit into its memory, but of 16 384 rows
        or more each.
    checkpoint
        File in which this process keeps the current eps and potentials. If it exists when the same
        problem is solved again, because the scheduler or this process was lost, the solver goes on
        from there, and the logger ``otgraph.distributed`` says so. The graph is then the same to
        the tolerance, not to the last bit. The file stays when the graph is done.
    mean_degree
        Wanted mean number of neighbors, instead of `eps`; 15 if neither is given.
    mass
        Wanted row sums, ones by default.
    u0
        Potentials to start from, such as ``graph.potentials`` of a similar problem.
    progress
        Show progress bars in this process.
    n_jobs
        Ignored: each thread of a worker runs one task at a time.
    **options

    Returns
    -------
    DistributedGraph
        It stays on the workers; :meth:`~DistributedGraph.to_graph` copies it to this process.

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
    chosen = QuadraticOptions.of(quadratic_ot_graph, options)
    if chosen.collapse:
        msg = "must be False on a cluster; leave copies out and pass `mass`, the numbers of them."
        raise invalid("collapse", msg)
    cluster = Cluster(find_client(client), progress=bool(progress))
    with cluster.running():
        value, choice = _resolved(eps, X, chosen, mass, cluster)
        problem = TransportProblem(
            X, chosen, mass=mass, progress=progress, n_jobs=n_jobs,
            check=partial(find_source, cluster=cluster),
            make_cost=partial(_make_cost, cluster=cluster, block_rows=block_rows),
        )  # fmt: skip
        points = X.copy() if isinstance(X, np.ndarray) else None
        reached = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, problem)
            reached, problem.cost.on_improved = kept.load(), kept.save
        solution, found = problem.solve_goal(
            value, mean_degree, u0, chosen=bool(choice), reached=reached
        )
        solution = problem.freed(solution)  # as in `TransportProblem.only_graph`
        graph = _graph(problem, solution, points, **found, **choice)
        problem.report_components(graph)
        del problem, solution, reached
        return_free_memory(LARGE_BYTES)  # the caller's process lives on
        return graph


def _resolved(
    eps: Eps | None,
    X: ClusterPoints,
    options: QuadraticOptions,
    mass: ArrayLike | None,
    cluster: Cluster,
) -> tuple[float | None, dict[str, str]]:
    """The eps to solve for, and what the graph records of its choice."""
    if eps != AUTO:
        return eps, {}
    shape = find_source(X, options.metric, cluster=cluster).shape
    read = partial(read_rows, X, metric=options.metric, cluster=cluster)
    return auto_eps(shape, read, options, mass=mass, n_jobs=-1)


def _make_cost(
    source: Source, *, cluster: Cluster, block_rows: int | None, workers: Workers, **options: Any
) -> CopiedCost | SharedCost:
    """The cost on the workers; raises if they have too little memory."""
    n, d = source.shape
    facts = ask_workers(cluster)
    shared = are_shared(source, options["metric"])
    point_bytes = source.n_bytes if shared else 8 * n * d
    share = point_bytes // len(facts) if shared else point_bytes
    block_rows = choose_block_rows(n, block_rows, facts.values(), share)
    room = check_memory(facts, point_bytes, block_rows, shared=shared)
    cluster.n_threads = sum(fact.threads for fact in facts.values())
    cluster.task_bytes, cluster.input_bytes, cluster.ahead_bytes = room.task, room.input, room.ahead
    common: Keywords = {"block_rows": block_rows, "pair_bytes": room.pairs, "workers": workers}
    if not shared:
        return CopiedCost(cluster, submit_cost(cluster, source, **options), **common)
    exact = options.pop("exact")
    points = share_points(cluster, source, group_bytes=room.group, **options)
    return SharedCost(points, exact=exact, **common)


def _graph(
    problem: TransportProblem, solution: Solution, points: FloatArray | None, **params: Any
) -> DistributedGraph:
    """The plan in the order of the input, still on the workers."""
    plan = solution.plan
    assert isinstance(plan, DistributedPlan)  # a cost on a cluster gives a plan on a cluster
    blocks = plan.blocks
    loops = blocks.rows_of(plan.loops) if problem.options.self_loops else None
    block_rows = blocks.ranges[0][1]
    entries = blocks.each(
        "plan-entries", plan_entries, loops, block_rows, vector=problem.cost.order
    )
    flags, rows = shuffle(blocks.cluster, blocks.ranges, "weights", entries, join_weights)
    graph = DistributedGraph(
        params=problem.params_of(solution, params),
        certificate=solution.certificate,
        potentials=problem.in_given_order(solution.u),
        mass=problem.in_given_order(problem.mass),
        points=points,
        floors=problem.floors_of(solution),
        _rows=rows,
    )
    at_same_place, elsewhere = map(np.concatenate, zip(*flags, strict=True))
    if at_same_place.any() and not problem.cost.identical:
        report_duplicates(graph, problem.in_given_order(elsewhere))
    return graph
