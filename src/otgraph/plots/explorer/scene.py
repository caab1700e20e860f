"""The contents of the page as compact arrays, for all values of eps.

Edges of all graphs are listed once. A table of small integers with one row per eps holds their
opacities, 0 for no edge. 2000 points at 15 values take about a megabyte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from otgraph._text import printable
from otgraph.methods import perplexity
from otgraph.plots.colors import GROUPS, groups_of
from otgraph.plots.degrees import common_bins
from otgraph.plots.explorer.rebuild import rebuilding
from otgraph.plots.graph import FULL_STRENGTH_QUANTILE
from otgraph.plots.layouts import positions_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from otgraph.graphs.graph import TransportGraph
    from otgraph.methods import Embedding
    from otgraph.typing import FloatArray, IntArray, LongArray

# Texts, numbers and arrays by the names that the script of the page uses.
Entry: TypeAlias = dict[str, Any]
LEVELS = 6  # of opacity: more cannot be told apart, and each is a layer of the picture
START_DEGREE = 15.0  # neighbors that many methods take by default: where a reader may begin
SEED = 0  # of the choice of points and edges to draw


@dataclass(frozen=True)
class Scene:
    """Arrays and texts of a page, with the names that its script uses."""

    x: FloatArray  # positions of the points that are drawn
    y: FloatArray
    rows: IntArray  # their row numbers in the data
    texts: list[str]  # of each point: its row, and its name and label if there are any
    # What else colors can show, each with its `name`: for numbers the `values` of the points, for
    # groups their `names` and `colors`, and `codes`, the group of each point.
    columns: list[Entry]
    degree: IntArray  # as the next two, one row per eps, one column per point
    component: IntArray  # 0 is the largest
    potential: NDArray[np.float32]
    edge_i: IntArray  # positions, in `x`, of the ends of all edges that are drawn for some eps
    edge_j: IntArray
    strength: NDArray[np.uint8]  # one row per eps: 0 for no edge, else its level of opacity
    values: list[Entry]  # texts and numbers for each eps; see `readings`
    start: int  # which eps to show first
    curve: Entry  # the choice of eps below the slider, as `curve_of` makes it


def scene_of(
    graphs: Sequence[TransportGraph],
    *,
    coordinates: ArrayLike | Embedding | None,
    layout: str,
    labels: NDArray[np.generic] | None,
    columns: Mapping[str, NDArray[np.generic]],
    names: NDArray[np.generic] | None,
    curve: Entry,
    max_points: int,
    max_edges: int,
    source: str,
) -> Scene:
    """The scene for graphs in the order of their eps."""
    n = graphs[0].n
    start = int(np.argmin([abs(graph.mean_degree - START_DEGREE) for graph in graphs]))
    positions = positions_of(graphs[start], coordinates, kind=layout)
    shown = _shown_points(n, max_points)
    pairs, strength = _edges(graphs, shown, n, max_edges)
    texts = [f"row {row}" for row in shown]
    if names is not None:
        texts = [f"row {row}: {printable(names[row])}" for row in shown]
    colorings = [_column(name, values, shown) for name, values in columns.items()]
    if labels is not None:
        groups = _groups("label", labels, shown)
        of_point = [groups["names"][code] for code in groups["codes"]]
        texts = [f"{text} ({name})" for text, name in zip(texts, of_point, strict=True)]
        colorings.insert(0, groups)
    return Scene(
        x=positions[shown, 0],
        y=positions[shown, 1],
        rows=shown.astype(np.int32),
        texts=texts,
        columns=colorings,
        degree=np.stack([graph.degrees[shown] for graph in graphs]),
        component=np.stack([_by_size(graph.component_labels)[shown] for graph in graphs]),
        potential=np.stack([graph.potentials.astype(np.float32)[shown] for graph in graphs]),
        edge_i=pairs[0],
        edge_j=pairs[1],
        strength=strength,
        values=[
            {
                **readings(graph),
                **rebuilding(graph, source),
                "n_drawn": int(np.count_nonzero(strength_of_one)),
            }
            for graph, strength_of_one in zip(graphs, strength, strict=True)
        ],
        start=start,
        curve=curve,
    )


def readings(graph: TransportGraph) -> Entry:
    """Texts and numbers about the whole graph, even if only a part of it is drawn."""
    certificate, degrees = graph.certificate, graph.degrees
    sizes = np.bincount(graph.component_labels)
    bins = common_bins([degrees])
    return {
        "n_points": graph.n,
        "n_edges": int(degrees.sum(dtype=np.int64)) // 2,
        "eps": float(certificate.eps),
        "eps_text": f"{certificate.eps:.6g}",
        "mean_degree": f"{graph.mean_degree:.2f}",
        "degree_range": f"{degrees.min()} to {degrees.max()}",
        "perplexity": f"{perplexity(graph):.2f}",
        "n_connected": graph.n_connected,
        "largest_component": f"{sizes.max() / graph.n:.1%}",
        "component_sizes": np.sort(sizes)[::-1][: len(GROUPS)].tolist(),
        "status": certificate.status.value,
        "meaning": certificate.status.meaning,
        "proof": f"marginal error {certificate.marginal_error:.0e}, "
        f"duality gap {abs(certificate.duality_gap):.0e}",  # a negative gap is rounding
        "bins": bins,
        "histogram": np.histogram(degrees, bins)[0].astype(np.float64),
    }


def _shown_points(n: int, max_points: int) -> LongArray:
    if n <= max_points:
        return np.arange(n)
    return np.sort(np.random.default_rng(SEED).choice(n, max_points, replace=False))


def _edges(
    graphs: Sequence[TransportGraph], shown: LongArray, n: int, max_edges: int
) -> tuple[tuple[IntArray, IntArray], NDArray[np.uint8]]:
    """Ends of the drawn edges, and their levels for every eps.

    If a graph has too many edges, a random choice is drawn. It prefers the same pairs at every
    eps, so edges do not flicker.
    """
    place = np.full(n, -1, dtype=np.int64)
    place[shown] = np.arange(len(shown))
    keys, levels = zip(*(_keyed_levels(graph, place) for graph in graphs), strict=True)
    every, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    priority = np.random.default_rng(SEED).permutation(len(every))
    strength = np.zeros((len(graphs), len(every)), dtype=np.uint8)
    borders = np.cumsum([0, *map(len, keys)])
    for row, level, start, end in zip(strength, levels, borders, borders[1:], strict=False):
        columns = inverse[start:end]
        if len(columns) > max_edges:
            kept = np.argpartition(priority[columns], max_edges)[:max_edges]
            columns, level = columns[kept], level[kept]
        row[columns] = level
    used = strength.any(axis=0)
    i, j = np.divmod(every[used], len(shown))
    ends = i.astype(np.int32), j.astype(np.int32)
    return ends, np.ascontiguousarray(strength[:, used])


def _keyed_levels(graph: TransportGraph, place: LongArray) -> tuple[LongArray, NDArray[np.uint8]]:
    """Edges between drawn points as single numbers, and their levels of opacity."""
    edges = graph.edges()
    full = np.quantile(edges.weight, FULL_STRENGTH_QUANTILE) if len(edges.weight) else 1.0
    i, j = place[edges.i], place[edges.j]
    drawn = (i >= 0) & (j >= 0)
    n_drawn = int(place.max()) + 1
    level = np.ceil(np.clip(edges.weight[drawn] / full, 0.0, 1.0) * LEVELS)
    return i[drawn] * n_drawn + j[drawn], np.maximum(level, 1.0).astype(np.uint8)


def _by_size(components: IntArray) -> IntArray:
    """Components numbered from the largest to the smallest."""
    order = np.argsort(-np.bincount(components), kind="stable")
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return np.asarray(rank[components])


def _column(name: str, values: NDArray[np.generic], shown: LongArray) -> Entry:
    """A column of numbers, or of groups if it holds words, truth values or objects."""
    if values.dtype.kind in "iuf":
        return {"name": printable(name), "values": values[shown].astype(np.float32)}
    return _groups(name, values, shown)


def _groups(name: str, labels: NDArray[np.generic], shown: LongArray) -> Entry:
    names, hues, codes = groups_of(labels)
    return {"name": printable(name), "names": names, "colors": hues, "codes": codes[shown]}
