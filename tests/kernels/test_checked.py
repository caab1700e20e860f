"""Kernels with checked indices, and as plain Python: the same results, and never out of bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Few points that take the ways of many, through every cost and every kernel.
SMALL = """
import importlib, json, pkgutil, warnings
import numpy as np
import scipy.sparse as sp
import otgraph, otgraph._kernels, problems
from otgraph.costs.sizes import SearchSizes
from otgraph._kernels.blocks import pack_columns
from otgraph.distributed._blocks import by_block, sorted_rows
from otgraph.plots._pixel_lines import add_lines

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(130, 6))
flat, sparse = X[:, :2], sp.random(60, 30, density=0.3, format="csr", random_state=0)
C = np.square(X[:40, None] - X[:40]).sum(axis=-1)
chosen = np.argsort(C, axis=1)[:, 1:12]
rows = np.repeat(np.arange(40), 11)
pairs = sp.coo_matrix((C[rows, chosen.ravel()], (rows, chosen.ravel())), shape=C.shape).tocsr()
few = dict(n_jobs=2, tol=1e-6)
cells, tree = problems.CELLS, SearchSizes(fewest_tree_points=100)
apart = X + 50.0 * (np.arange(130) < 12)[:, None]
graphs = {
    "cells": problems.graph_with(cells, X, 0.5, **few),
    "cells, power 1": problems.graph_with(cells, X, 0.5, power=1.0, **few),
    "cells, approximate": problems.graph_with(
        problems.FEW_CELLS, X, 0.5, search="approximate", **few
    ),
    "cosine": problems.graph_with(cells, X, 0.5, metric="cosine", power=1.0, **few),
    "mean degree": problems.graph_with(cells, X, mean_degree=6, connect=True, **few),
    "lonely": problems.graph_with(cells, apart, mean_degree=6, connect=True, **few),
    "tree": problems.graph_with(tree, flat, 0.1, **few),
    "tree, power 1": problems.graph_with(tree, flat, 0.1, power=1.0, **few),
    "loosely": problems.graph_with(cells, X, 0.5, **few | {"tol": 0.01}),
    "sparse": otgraph.quadratic_ot_graph(sparse, 1.0, **few),
    "metric": otgraph.quadratic_ot_graph(X[:60], 1.0, metric="manhattan", **few),
    "matrix": otgraph.quadratic_ot_graph(C, 1.0, metric="precomputed", **few),
    "pairs": otgraph.quadratic_ot_graph(pairs.maximum(pairs.T), 5.0, metric="precomputed", **few),
    "loops": otgraph.quadratic_ot_graph(X[:80], 0.3, self_loops=True, **few),
}
found = {name: graph.weights.toarray().sum(axis=0).tolist() for name, graph in graphs.items()}
found |= {name + ", new": graph.extend(X[:9] + 0.1).toarray().sum(axis=0).tolist()
          for name, graph in graphs.items() if name.startswith(("cells", "cosine", "loops"))}
picture = np.zeros((9, 9))
ends = 9 * rng.random((2, 12))
index = np.arange(6)
add_lines(ends[0], ends[1], index, index + 6, np.ones(6), 0.7, picture)
found["lines"] = picture.ravel().tolist()
cost = problems.cost_of(X[:60], metric="manhattan")
some = cost.screen(np.full(60, 0.4), rows=np.arange(0, 60, 7)).pairs
plan = cost.restrict(some, np.full(60, np.inf)).plan(np.full(60, 0.4), 0.5)
found["some rows"] = some.costs.tolist() + plan.product(rng.random(60), np.ones(60)).tolist()
entries = (*rng.integers(20, size=(2, 50)).astype(np.int32), rng.random(50))
blocks = by_block([entries], 20, 5, None).value
found["blocks"] = sorted_rows([blocks[1]], 5, 10)[2].tolist()
blocks = by_block([entries], 20, 5, None, both=True).value
kept, bounds = np.arange(12, dtype=np.int32), np.zeros(4, dtype=np.int64)
pack_columns(np.array([0, 4, 8]), np.array([2, 4, 11]), kept, bounds)
found["packed"] = kept[:5].tolist() + bounds.tolist()
found["pairs in blocks"] = sorted_rows([blocks[1]], 5, 10, both=True)[2].tolist()
kernels = {
    f"{module.name}.{name}": kernel.signatures
    for module in pkgutil.iter_modules(otgraph._kernels.__path__)
    for name, kernel in vars(importlib.import_module(f"otgraph._kernels.{module.name}")).items()
    if hasattr(kernel, "signatures")
}
unused = sorted(name for name, signatures in kernels.items() if not signatures)
print(json.dumps({"found": found, "kernels": len(kernels), "unused": unused}))
"""


def results(tmp_path, **environment):
    done = subprocess.run(
        [sys.executable, "-c", SMALL], capture_output=True, text=True,
        cwd=Path(__file__).parents[1],
        # A folder of its own: kernels that are stored elsewhere may not have the checks.
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": ".", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.slow
def test_bounds_are_kept_and_plain_python_computes_the_same(tmp_path):
    checked = results(tmp_path, NUMBA_BOUNDSCHECK="1")
    assert checked["unused"] == []
    plain = results(tmp_path, NUMBA_DISABLE_JIT="1")
    assert plain["kernels"] == 0
    assert checked["found"] == plain["found"]  # the same operations in the same order
