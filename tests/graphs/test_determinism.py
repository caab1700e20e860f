"""Same input, same bits: whatever the threads, the run, the process."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import problems
from otgraph import eps_path, quadratic_ot_graph
from otgraph.costs.restricted import BLOCK_ROWS
from otgraph.costs.sizes import SearchSizes

with_cells = partial(problems.graph_with, problems.CELLS)


def digest(graph):
    W = graph.weights
    arrays = (W.indptr, W.indices, W.data, graph.potentials)
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


OPTIONS = [
    {"eps": 1.0},
    {"eps": 0.1, "self_loops": True},
    {"mean_degree": 10},
    {"eps": 1.0, "search": "approximate"},
    {"eps": 1.0, "power": 1},
    {"eps": 1.0, "metric": "cosine"},
    {"eps": 1.0, "metric": "manhattan"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_threads_and_runs(rng, options):
    """With cells, and with enough rows for two threads to share."""
    X = problems.clustered(rng, BLOCK_ROWS + 200)
    one = with_cells(X, n_jobs=1, **options)
    for n_jobs in (1, 2, 3, None, -1):
        again = with_cells(X, n_jobs=n_jobs, **options)
        assert digest(again) == digest(one)
        assert again.certificate == one.certificate
        assert again.params == one.params


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_threads_above_the_real_threshold(rng, search):
    X = problems.random(rng, SearchSizes.fewest_cell_points + 200)
    one, two = (quadratic_ot_graph(X, 0.3, search=search, n_jobs=n) for n in (1, 2))
    assert digest(one) == digest(two)


def test_precomputed(rng):
    X = problems.random(rng, 300)
    C = ((X[:, None] - X) ** 2).sum(axis=-1)
    one, two = (quadratic_ot_graph(C, 1.0, metric="precomputed", n_jobs=n) for n in (1, 2))
    assert digest(one) == digest(two)


def test_path(rng):
    X = problems.random(rng, BLOCK_ROWS + 200)
    one, two = (eps_path(X, [0.1, 1.0, 3.0], n_jobs=n) for n in (1, 2))
    assert [digest(g) for g in one] == [digest(g) for g in two]


def test_another_process():
    """Also under another hash seed and another number of BLAS threads."""
    code = """
import hashlib
import numpy as np
from otgraph import quadratic_ot_graph
X = np.random.default_rng(7).normal(size=(700, 20))
digests = set()
for n_jobs in (1, 2):
    graph = quadratic_ot_graph(X, 0.5, n_jobs=n_jobs)
    W = graph.weights
    arrays = (W.indptr, W.indices, W.data, graph.potentials)
    digests.add(hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest())
print(*digests)
"""
    here = digest(quadratic_ot_graph(np.random.default_rng(7).normal(size=(700, 20)), 0.5))
    for threads in ("1", "2"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            env=_environment(OPENBLAS_NUM_THREADS=threads, PYTHONHASHSEED=threads),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert there.stdout.split() == [here]


def test_memory_layout_of_the_input(rng):
    X = problems.random(rng, 200)
    expected = digest(quadratic_ot_graph(X, 1.0))
    assert digest(quadratic_ot_graph(np.asfortranarray(X), 1.0)) == expected
    assert digest(quadratic_ot_graph(np.repeat(X, 2, axis=0)[::2], 1.0)) == expected


def test_concurrent_calls(rng):
    """Four threads at once, each with its own pool: the serial results."""
    clouds = [problems.random(rng, 400 + 10 * i) for i in range(8)]
    expected = [digest(with_cells(X, 0.5, n_jobs=1)) for X in clouds]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda X: digest(with_cells(X, 0.5, n_jobs=2)), clouds))
    assert found == expected


def test_seed_changes_the_cells_but_not_the_plan(rng):
    X = problems.clustered(rng, 800)
    one, other = (with_cells(X, 1.0, random_state=seed, tol=1e-9) for seed in (0, 1))
    assert abs(one.weights - other.weights).max() <= 1e-7


def _environment(**variables):
    import os

    return {**os.environ, **variables}
