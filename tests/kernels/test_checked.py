"""Kernels with checked indices, and as plain Python: the same results, and never out of bounds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# Few points that take the ways of many, through every cost and every kernel.
SMALL = """
import importlib, json, pkgutil, warnings
from functools import partial
import numpy as np
import scipy.sparse as sp
import otgraph, otgraph._kernels, problems
from otgraph._kernels.aggregates import add_from_groups
from otgraph._kernels.blocks import pack_columns
from otgraph._kernels.euclidean import assign_in_groups, near_center
from otgraph._parallel import Workers
from otgraph.costs import between_points, branches
from otgraph.costs.clouds import check_clouds, cross_cost
from otgraph.costs.coarse import Coarsening, Entries
from otgraph.costs.near import NearSearch
from otgraph.costs.restricted import Hessian, SharedRows
from otgraph.costs.sizes import SearchSizes
from otgraph.distributed._blocks import by_block, forest, sorted_rows
from otgraph.graphs.cross import CrossProblem
from otgraph.graphs.products import Threaded
from otgraph.graphs.options import QuadraticOptions
from otgraph.solvers import scales
from otgraph.solvers.cg import conjugate_gradients
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
found["sums"] = [sums.tolist() for sums in plan.scaled_sums(rng.random(60))]
late = cost.restrict(some, np.full(60, np.inf)).late_plan(np.full(60, 0.4), 0.5)
found["late plan"] = late.entry_sums[:3].tolist()
cost = problems.cost_of(X[:60])
cost.neighbors(9)
some = cost.screen(np.full(60, 0.4), rows=np.arange(0, 60, 7)).pairs
found["some rows of few points"] = some.costs.tolist()
nearest = problems.cost_of(X).nearest_pairs(np.arange(0, 130, 7), 3)
found["nearest pairs of some rows"] = [part.tolist() for part in nearest]
entries = (*rng.integers(20, size=(2, 50)).astype(np.int32), rng.random(50))
blocks = by_block([entries], 20, 5, None).value
found["blocks"] = sorted_rows([blocks[1]], 5, 10)[2].tolist()
blocks = by_block([entries], 20, 5, None, both=True).value
kept, bounds = np.arange(12, dtype=np.int32), np.zeros(4, dtype=np.int64)
pack_columns(np.array([0, 4, 8]), np.array([2, 4, 11]), kept, bounds)
found["packed"] = kept[:5].tolist() + bounds.tolist()
found["pairs in blocks"] = sorted_rows([blocks[1]], 5, 10, both=True)[2].tolist()
A = C + np.diag(1.0 + C.sum(axis=1))
found["conjugate gradients"] = conjugate_gradients(
    A.dot, A.diagonal(), rng.random(40), rtol=1e-8, max_products=60
)[0].tolist()
both = pairs.maximum(pairs.T).tocsr()
begins = both.indptr.astype(np.int64)
groups = Coarsening.of(
    Entries(begins[:-1], begins[1:], both.indices, both.data), 1.0 + np.diff(begins)
)
changes = groups.solve(rng.random(40))
add_from_groups(groups.codes, changes, moved := np.zeros(40))
found["groups"] = changes.tolist() + moved.tolist()
near = np.empty(60, dtype=np.int64)
table, rough = (rng.normal(size=(n, 5)).astype(np.float32) for n in (90, 60))
rows = rng.normal(size=(60, 5)).astype(np.float32)
assign_in_groups(rows, rough, np.array([0, 1, 30, 64, 70, 90]), table, 2, near)
found["centers in groups"] = near.tolist()
some = np.arange(0, 60, 3, dtype=np.int32)
found["near a center"] = near_center(X, some, X[0], 1.0, np.abs(X[:, 0]), 0.5, 0.45).tolist()
found["forest"] = [ends.tolist() for ends in forest(20, entries[0], entries[1])]
found["products"] = (Threaded(graphs["cells"].weights) @ X).tolist()
ordered = Threaded(graphs["cells"].weights)
ordered._bring_together(rng.permutation(len(X)))
found["products in another order"] = (ordered @ X).tolist()
for name, few_points, error in (("dense", X[:50], None), ("cut off", X, 1e-4)):
    entropic = otgraph.entropic_ot_graph(few_points, 0.5, max_error=error, n_jobs=2)
    found["entropic, " + name] = entropic.weights.toarray().sum(axis=0).tolist()
found["entropic, new"] = entropic.extend(X[:9] + 0.1).toarray().sum(axis=0).tolist()
search = NearSearch(flat, Workers(2), tree)
found["nearest in a tree"] = search.nearest(5)[1].tolist()
scales.COARSEST, between_points.FEWEST_CHOSEN = 25, 1
sides = SearchSizes(
    most_tree_dimensions=3, fewest_tree_points=50, fewest_cell_points=50, near_share=0.55,
    plain_share=1.1, block_rows=64,
)
for name, points in (("tree", X[:, :3]), ("cells", X)):
    clouds = CrossProblem(
        (points[:70], points[70:] + 1.0), QuadraticOptions(tol=1e-6), mass=(None, None), n_jobs=2,
        check=check_clouds, make_cost=partial(cross_cost, sizes=sides),
    )
    plan = clouds.only_plan(None, 5.0)
    found["clouds, " + name] = plan.weights.toarray().sum(axis=0).tolist()
below_a_sample = otgraph.quadratic_ot_graph(rng.normal(size=(520, 5)), 0.2, n_jobs=2)
found["below a sample"] = below_a_sample.weights.toarray().sum(axis=0).tolist()
neighbors = otgraph.knn_gaussian_graph(X, 5, n_jobs=2)
found["nearest neighbors"] = neighbors.weights.toarray().sum(axis=0).tolist()
branches.FEWEST_ROWS = 0
ends = np.array([(0, 1), (1, 2), (0, 2), (0, 3), (0, 4), (4, 5)]).T  # a triangle with branches
trees = sp.csr_matrix((np.ones(12), (np.r_[ends[0], ends[1]], np.r_[ends[1], ends[0]])))
begins, degrees = trees.indptr.astype(np.int64), np.diff(trees.indptr).astype(float)
hessian = Hessian(begins[:-1], begins[1:], trees.indices, degrees, degrees,
                  SharedRows([(0, 6)], Workers(1)))
shift = np.full(6, 0.1)
found["branches"] = conjugate_gradients(
    hessian.shifted(shift), degrees + shift, rng.random(6), rtol=1e-8, max_products=9,
    branches=hessian.branches(shift),
)[0].tolist()
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
    for name, values in checked["found"].items():
        if name.startswith("entropic"):  # exp of the compiler rounds in its own way
            np.testing.assert_allclose(values, plain["found"][name], rtol=1e-13, atol=1e-15)
        else:
            assert values == plain["found"][name], name  # the same operations in the same order
