"""What masses do to labels and clusters: ``python -m benchmarks.masses rare batches ...``.

``rare``     10 000 simulated cells, 15 of them of the rarest type: graphs with masses that count
             types or clusters alike, metacells, the default and kNN.
``large``    The same with 100 000 cells, 100 of the rarest type.
``batches``  90 % of the cells in one batch and 10 % in another, which is shifted.
``copies``   30 % of the points are there twice.
``metacells``  Whether small groups of cells hold one type, and how even they are.
``time``     What masses and copies cost: seconds of processor time, one thread.

Five seeds of the data; numbers are means ± standard deviations over them. Tables and JSON go to
out/masses/. Some twenty-five minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import otgraph
from benchmarks.usefulness_sets import COUNTS_PER_CELL, N_PCS, sets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

OUT = Path("out/masses")
SEEDS = range(5)
N_TYPES, LARGE_TYPES = 10, 12  # as in benchmarks/singlecell_cells.py
RAREST = 0.0015  # 15 of 10 000 cells
N_CELLS, N_LARGE = 10_000, 100_000
RAREST_LARGE = 0.001  # 100 of 100 000
LABELED = 0.01
DRAWS = 5  # of the labels, for each seed of the data
RESOLUTIONS = (0.5, 1.0, 2.0, 4.0)  # the best for each score is taken
FINE = 4.0  # resolution of the clusters that are weighed alike
CELLS_PER_METACELL, LARGE_METACELL = 10, 33
BLOCK = 5000  # cells that are dense at once
NEAR = 5  # neighbors that tell whether the points show a type
SMALL_BATCH = 0.1
SHIFT = 0.5  # of the small batch, in units of the standard deviation of all cells
COPIED = 0.3
N_TIMED = 20_000
COPY_SETS = ("table/iris", "table/wine", "table/digits", "toy/moons", "shape/flame", "shape/D31")
MAX_POINTS = 1000  # of the sets with copies

Row = dict[str, Any]


class Nodes(NamedTuple):
    """A graph, and its node for every cell; None if the cells are the nodes."""

    weights: Any
    of_cell: Any = None

    def labels(self, of_node: Any) -> Any:
        """Labels of the cells."""
        return of_node if self.of_cell is None else of_node[self.of_cell]


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", default=["rare"], choices=list(PARTS))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), help="of the data")
    parser.add_argument("--graphs", nargs="+", help="of `rare` and `large`; all by default")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for part in arguments.parts:
        with threadpool_limits(1):
            some = {"graphs": arguments.graphs} if part in ("rare", "large") else {}
            found = PARTS[part](arguments.seeds, **some)
        if not found:  # the cells were made, and no graph was asked for
            continue
        print(table(found), flush=True)
        (arguments.out / f"{part}.json").write_text(json.dumps(found, indent=1))
        (arguments.out / f"{part}.md").write_text(f"{table(found)}\n")


def table(found: dict[str, list[Row]]) -> str:
    """Means and standard deviations over seeds, one line per graph."""
    names = list(next(iter(found.values()))[0])
    lines = [f"| graph | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]
    for title, rows in found.items():
        cells = [_cell([row[name] for row in rows]) for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.3g}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"


def rare(
    seeds: Sequence[int],
    n: int = N_CELLS,
    rarest: float = RAREST,
    n_types: int = N_TYPES,
    graphs: Sequence[str] | None = None,
) -> dict[str, list[Row]]:
    """Graphs of cells with rare types."""
    found: dict[str, list[Row]] = {}
    for seed in seeds:
        X, y = cells(n, rarest, seed, n_types)
        for title, build in contenders(X, y, seed).items():
            if graphs and title not in graphs:
                continue
            nodes = build()
            found.setdefault(title, []).append(scores(nodes, X, y))
            print(seed, title, {k: round(v, 3) for k, v in found[title][-1].items()}, flush=True)
    return found


def large(seeds: Sequence[int], graphs: Sequence[str] | None = None) -> dict[str, list[Row]]:
    """One hundred of a hundred thousand cells."""
    return rare(seeds, N_LARGE, RAREST_LARGE, LARGE_TYPES, graphs)


def cells(n: int, rarest: float, seed: int, n_types: int = N_TYPES) -> tuple[Any, Any]:
    """Principal components of simulated cells, and their types; kept in a file."""
    file = OUT / f"cells_{n}_{n_types}_{rarest:g}_{seed}.npz"
    if not file.exists():
        X, y = simulated_components(n, rarest, seed, n_types)
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, X=X, y=y)
    with np.load(file) as found:
        return found["X"], found["y"]


def simulated_components(n: int, rarest: float, seed: int, n_types: int) -> tuple[Any, Any]:
    """Principal components of simulated cells, and their types; the last is the rarest."""
    simulated = otgraph.datasets.simulated_cells(
        n, n_types=n_types, rarest=rarest, random_state=seed
    )
    counts = sp.csr_matrix(simulated.counts, dtype=np.float32)
    scale = COUNTS_PER_CELL / np.asarray(counts.sum(axis=1)).ravel()
    logs = sp.csr_matrix(sp.diags(scale.astype(np.float32)) @ counts)
    logs.data = np.log1p(logs.data)
    mean = np.asarray(logs.mean(axis=0), dtype=np.float64).ravel()
    products = np.zeros((len(mean), len(mean)))
    for first in range(0, n, BLOCK):
        dense = logs[first : first + BLOCK].toarray()
        products += dense.T @ dense
    axes = np.linalg.eigh(products / n - np.outer(mean, mean))[1][:, -N_PCS:]
    return logs @ axes - mean @ axes, simulated.labels


def contenders(X: Any, y: Any, seed: int) -> dict[str, Callable[[], Nodes]]:
    """Graphs by name; the masses of some use the truth, to show what masses can do at best."""

    def plan(mass: Any = None) -> Nodes:
        return Nodes(otgraph.quadratic_ot_graph(X, mass=mass, n_jobs=1).weights)

    def clusters() -> Nodes:
        return plan(otgraph.balanced_mass(leiden(plan().weights, FINE), 0.5))

    def by_means() -> Nodes:
        group = k_means(X, len(X) // CELLS_PER_METACELL, seed)
        sizes = np.bincount(group)
        sums = sp.csr_matrix((np.ones(len(X)), (group, np.arange(len(X))))) @ X
        centers = sums / sizes[:, None]
        graph = otgraph.quadratic_ot_graph(centers, mass=sizes / sizes.mean(), n_jobs=1)
        return Nodes(graph.weights, group)

    def joined(*, rebuilt: bool) -> Nodes:
        found = otgraph.metacells(
            otgraph.quadratic_ot_graph(X, n_jobs=1), len(X) // CELLS_PER_METACELL
        )
        if not rebuilt:
            return Nodes(found.graph.weights, found.labels)
        mass = found.sizes / found.sizes.mean()
        graph = otgraph.quadratic_ot_graph(found.means(X), mass=mass, n_jobs=1)
        return Nodes(graph.weights, found.labels)

    built = {
        "kNN": lambda: Nodes(otgraph.knn_gaussian_graph(X, 15, n_jobs=1).weights),
        "default": plan,
        "types up, strength 0.25": lambda: plan(otgraph.balanced_mass(y, 0.25)),
        "types up, strength 0.5": lambda: plan(otgraph.balanced_mass(y, 0.5)),
        "types alike, strength 1": lambda: plan(otgraph.balanced_mass(y)),
        "clusters up, strength 0.5": clusters,
        "k-means of 10": by_means,
        "metacells of 10": lambda: joined(rebuilt=False),
        "metacells of 10, new graph": lambda: joined(rebuilt=True),
    }
    if len(X) > N_CELLS:  # each graph of many cells takes its time
        del built["clusters up, strength 0.5"], built["types alike, strength 1"]
        del built["k-means of 10"]
    return built


def k_means(X: Any, k: int, seed: int) -> Any:
    """Groups of near cells, the usual way."""
    labels = MiniBatchKMeans(k, random_state=seed, n_init=1).fit_predict(X)
    return np.unique(labels, return_inverse=True)[1]


def metacells(seeds: Sequence[int]) -> dict[str, list[Row]]:
    """Whether metacells hold cells of one type, and how even they are."""
    found: dict[str, list[Row]] = {}
    for seed in seeds:
        X, y = cells(N_CELLS, RAREST, seed)
        ours = otgraph.quadratic_ot_graph(X, n_jobs=1)
        nearest = otgraph.knn_gaussian_graph(X, 15, n_jobs=1)
        for size in (CELLS_PER_METACELL, LARGE_METACELL):
            k = len(X) // size
            groups = {
                "of our graph": otgraph.metacells(ours, k).labels,
                "of kNN": otgraph.metacells(nearest, max(k, nearest.n_connected)).labels,
                "k-means": k_means(X, k, seed),
            }
            for title, group in groups.items():
                found.setdefault(f"{size} cells, {title}", []).append(purity(group, y))
    return found


def purity(group: Any, y: Any) -> Row:
    """Share of the cells that are of the type of their metacell."""
    right = contingency_matrix(group, y).argmax(axis=1)[group] == y
    of_types = [right[y == kind].mean() for kind in range(y.max() + 1)]
    sizes = np.bincount(group)
    return {
        "right, all cells": right.mean(),
        "mean over types": np.mean(of_types),
        "rarest": of_types[-1],
        "second rarest": of_types[-2],
        "spread of sizes": sizes.std() / sizes.mean(),
        "largest": float(sizes.max()),
    }


def scores(nodes: Nodes, X: Any, y: Any) -> Row:
    """Clusters and labels of all types and of the rarest, which is the last."""
    last = int(y.max())
    by_resolution = []
    for resolution in RESOLUTIONS:
        found = nodes.labels(leiden(nodes.weights, resolution))
        f1 = best_f1(y, found)
        by_resolution.append((adjusted_rand_score(y, found), f1.mean(), f1[-2], f1[-1]))
    ari, mean_f1, second, rarest = np.max(by_resolution, axis=0)
    spread = np.mean([spreading(nodes, y, draw) for draw in range(DRAWS)], axis=0)
    is_last = y == last
    near = NearestNeighbors(n_neighbors=NEAR).fit(X).kneighbors(X[is_last], NEAR + 1)[1][:, 1:]
    return {
        "ARI": ari,
        "mean F1": mean_f1,
        "F1, second rarest": second,
        "F1, rarest": rarest,
        "accuracy": spread[0],
        "mean recall": spread[1],
        "recall, rarest": spread[2],
        "precision, rarest": spread[3],
        "degree, rarest": _degree(nodes, is_last),
        f"rarest among its {NEAR} nearest": float(np.mean(y[near] == last)),
    }


def leiden(weights: Any, resolution: float) -> Any:
    """Communities by modularity."""
    import igraph

    upper = sp.triu(weights, k=1, format="coo")
    network = igraph.Graph(n=weights.shape[0], edges=np.column_stack((upper.row, upper.col)))
    igraph.set_random_number_generator(random.Random(0))
    parts = network.community_leiden(
        "modularity", weights=upper.data.tolist(), resolution=resolution, n_iterations=2
    )
    return np.array(parts.membership)


def best_f1(y: Any, found: Any) -> Any:
    """For every type the F1 score of the cluster that fits it best."""
    counts = contingency_matrix(y, found)
    sums = counts.sum(axis=1, keepdims=True) + counts.sum(axis=0, keepdims=True)
    return (2 * counts / sums).max(axis=1)


def spreading(nodes: Nodes, y: Any, draw: int) -> list[float]:
    """Accuracy, mean recall of the types, recall and precision of the rarest; from 1 % labels."""
    known = otgraph.datasets.label_mask(y, LABELED, random_state=draw)
    seeds = np.where(known, y, -1)
    if nodes.of_cell is not None:  # a metacell has the label that most of its known cells have
        votes = np.zeros((nodes.weights.shape[0], y.max() + 1))
        np.add.at(votes, (nodes.of_cell[known], y[known]), 1.0)
        seeds = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    graph = otgraph.Graph.from_weights(nodes.weights)
    found = nodes.labels(otgraph.spread_labels(graph, seeds).labels)
    right, hidden = (found == y) & ~known, ~known
    recalls = [right[hidden & (y == kind)].mean() for kind in range(y.max() + 1)]
    called = max(1, int(np.count_nonzero(hidden & (found == y.max()))))
    precise = np.count_nonzero(right & (y == y.max())) / called
    return [float(right[hidden].mean()), float(np.mean(recalls)), float(recalls[-1]), precise]


def _degree(nodes: Nodes, cells: Any) -> float:
    return float(nodes.labels(np.diff(nodes.weights.indptr))[cells].mean())


def batches(seeds: Sequence[int]) -> dict[str, list[Row]]:
    """A small batch beside a large one, with and without equal weight."""
    found: dict[str, list[Row]] = {}
    for seed in seeds:
        X, y = cells(N_CELLS, 0.01, seed)
        rng = np.random.default_rng(seed)
        small = rng.random(N_CELLS) < SMALL_BATCH
        direction = rng.standard_normal(X.shape[1])
        X[small] += SHIFT * np.sqrt(X.var(axis=0).sum()) * direction / np.linalg.norm(direction)
        masses = {"default": None, "equal weight per batch": otgraph.balanced_mass(small)}
        masses["halfway (strength 0.5)"] = otgraph.balanced_mass(small, 0.5)
        graphs = {"kNN": otgraph.knn_gaussian_graph(X, 15, n_jobs=1).weights} | {
            title: otgraph.quadratic_ot_graph(X, mass=mass, n_jobs=1).weights
            for title, mass in masses.items()
        }
        for title, weights in graphs.items():
            found.setdefault(title, []).append(of_batches(weights, y, small))
        print(seed, {title: rows[-1] for title, rows in found.items()}, flush=True)
    return found


def of_batches(weights: Any, y: Any, small: Any) -> Row:
    """Mixing of the batches, and labels of the small one from the large one alone."""
    known = otgraph.datasets.label_mask(y, LABELED, random_state=0) & ~small
    graph = otgraph.Graph.from_weights(weights)
    labels = otgraph.spread_labels(graph, np.where(known, y, -1)).labels
    clusters = leiden(weights, 0.5)
    part = weights[np.flatnonzero(small)]
    degrees = np.diff(weights.indptr)
    return {
        "weight of the small batch that leaves it": float(part[:, ~small].sum() / part.sum()),
        "accuracy in it, labels from the other": float(np.mean(labels[small] == y[small])),
        "accuracy in the large one": float(np.mean((labels == y)[~small & ~known])),
        "ARI of clusters": adjusted_rand_score(y, clusters),
        "ARI in the small batch": adjusted_rand_score(y[small], clusters[small]),
        "neighbors, small batch": float(degrees[small].mean()),
        "neighbors, large batch": float(degrees[~small].mean()),
    }


def copies(seeds: Sequence[int]) -> dict[str, list[Row]]:
    """Sets in which some points are there twice, against the same sets without copies."""
    from sklearn.metrics import normalized_mutual_info_score

    from benchmarks.usefulness_scores import label_accuracy, spectral_labels

    found: dict[str, list[Row]] = {}
    chosen = sets(select=COPY_SETS, max_points=MAX_POINTS)
    for seed in seeds:
        rows: dict[str, list[Row]] = {}
        for one in chosen:
            rng = np.random.default_rng(seed)
            X, first = np.unique(one.X, axis=0, return_index=True)
            y, n = one.y[first], len(first)
            again = rng.choice(n, round(COPIED * n), replace=False)
            Z, z = np.vstack([X, X[again]]), np.append(y, y[again])
            alone = otgraph.quadratic_ot_graph(X, n_jobs=1)
            point = np.append(np.arange(n), again)
            graphs = {
                "kNN": otgraph.knn_gaussian_graph(Z, 15, n_jobs=1),
                "default": otgraph.quadratic_ot_graph(Z, n_jobs=1),
                "collapse": otgraph.quadratic_ot_graph(Z, collapse=True, n_jobs=1),
                "collapse, every point counts once": otgraph.quadratic_ot_graph(
                    Z, collapse=True, mass=otgraph.balanced_mass(point), n_jobs=1
                ),
            }
            rest = np.setdiff1d(np.arange(n), again)
            graphs["without the copies"] = alone
            for title, graph in graphs.items():
                truth = z[: graph.n]
                groups = spectral_labels(graph.weights, len(np.unique(y)), seed)
                rows.setdefault(title, []).append(
                    {
                        "NMI": normalized_mutual_info_score(truth, groups),
                        "accuracy": label_accuracy(graph.weights, truth, seed),
                        "edges of the rest kept": _same_edges(graph, alone, rest),
                        "weight between copies": _between(graph.weights, point[: graph.n]),
                        "components": graph.n_connected,
                    }
                )
        for title, of_sets in rows.items():
            mean = {key: float(np.mean([row[key] for row in of_sets])) for key in of_sets[0]}
            found.setdefault(title, []).append(mean)
    return found


def _same_edges(graph: Any, alone: Any, rest: Any) -> float:
    """Jaccard index of the edges between points without copies, with and without the copies."""
    one, other = (each.weights[rest][:, rest] > 0 for each in (graph, alone))
    return float(one.multiply(other).nnz / (one + other).nnz)


def _between(weights: Any, point: Any) -> float:
    """Share of the weight of points with copies that goes to their copies."""
    coo = weights.tocoo()
    copied = np.bincount(point)[point] > 1
    same = point[coo.row] == point[coo.col]
    return float(coo.data[same].sum() / coo.data[copied[coo.row]].sum()) if copied.any() else 0.0


def times(seeds: Sequence[int]) -> dict[str, list[Row]]:
    """Processor time of graphs with masses, and of points of which some are there twice."""
    found: dict[str, list[Row]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = otgraph.datasets.noisy_manifold(N_TIMED, dim=20, random_state=seed).X
        copied = np.concatenate((X, X[rng.random(N_TIMED) < COPIED]))
        batch = rng.random(N_TIMED) < SMALL_BATCH
        once = otgraph.balanced_mass(copied)
        ways: dict[str, tuple[Any, dict[str, Any]]] = {
            "default": (X, {}),
            "`mass=balanced_mass(batch)`": (X, {"mass": otgraph.balanced_mass(batch)}),
            "with copies": (copied, {}),
            "with copies, `collapse=True`": (copied, {"collapse": True}),
            "the same, every point counts once": (copied, {"collapse": True, "mass": once}),
        }
        for title, (points, options) in ways.items():
            began = time.process_time()
            graph = otgraph.quadratic_ot_graph(points, n_jobs=1, **options)
            row = {"seconds": time.process_time() - began, "mean degree": graph.mean_degree}
            found.setdefault(title, []).append(row)
    return found


PARTS: dict[str, Callable[..., dict[str, list[Row]]]] = {
    "rare": rare,
    "batches": batches,
    "copies": copies,
    "large": large,
    "metacells": metacells,
    "time": times,
}

if __name__ == "__main__":
    main()
