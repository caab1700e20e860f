"""Values of eps on the slider, and the curve of the choice of eps that is drawn below it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import invalid
from otgraph.graphs.choice import ALL_POINTS, EpsChoice
from otgraph.graphs.quadratic import quadratic_ot_graph
from otgraph.methods import choose_eps
from otgraph.plots.curves import MEANINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from otgraph.graphs.graph import TransportGraph
    from otgraph.plots.explorer.scene import Entry
    from otgraph.typing import FloatArray, Keywords, PointsLike

N_VALUES = 15
# Range of mean degrees. With three neighbors almost every graph is disconnected; with sixty the
# structure of most data is blurred.
SPARSEST, DENSEST = 3.0, 60.0
LARGEST_SHARE = 0.5  # of all other points as neighbors, where there are few points
SEARCH_TOL = 1e-2  # tolerance for the ends
DIGITS = 3  # digits of the values, which are then easy to type
# Parameters of a graph that change the choice of its eps.
OF_CHOICE = ("metric", "power", "normalize", "self_loops", "random_state")


def chosen_eps(X: PointsLike, options: Keywords) -> FloatArray:
    """Fifteen values, evenly spaced in log eps, from a sparse graph to a dense one.

    The options are keywords of :func:`otgraph.quadratic_ot_graph`.
    """
    n = (X.shape if hasattr(X, "shape") else np.shape(X))[0]
    dense = min(DENSEST, max(1.0, LARGEST_SHARE * (n - 1)))
    search = {**options, "tol": max(SEARCH_TOL, options.get("tol", 0.0))}
    ends = []
    for degree in (min(SPARSEST, dense), dense):
        with warnings.catch_warnings():  # the path repeats the warnings
            warnings.simplefilter("ignore", UserWarning)
            graph = quadratic_ot_graph(X, mean_degree=degree, **search)
        ends.append(float(graph.params["eps"] or 0.0))
    values = np.geomspace(min(ends), max(ends), N_VALUES)
    return np.unique([float(f"{value:.{DIGITS}g}") for value in values])


def curve_of(graphs: Sequence[TransportGraph], choice: EpsChoice | str | None) -> Entry:
    """What is drawn below the slider.

    ``at`` are places along the slider, 0 at its first value and 1 at its last, with the ``scores``
    there; ``best`` is the place of the choice, None if it is outside. ``text`` says what it is.
    Where there is no choice, only ``text`` is there, with the reason.
    """
    if isinstance(choice, str) and choice == "auto":
        choice = _chosen(graphs)
    if choice is None or isinstance(choice, str):
        return {"text": choice or ""}
    if not isinstance(choice, EpsChoice):
        msg = f"must come from `choose_eps`, or be 'auto' or None, got {choice!r}."
        raise invalid("choice", msg, TypeError)
    places = np.log([graph.certificate.eps for graph in graphs])
    if len(places) < 2:
        return {"text": f"Best prediction at ε = {choice.eps:.3g}."}
    positions = np.linspace(0.0, 1.0, len(places))
    inside = (np.log(choice.grid) >= places[0]) & (np.log(choice.grid) <= places[-1])
    within = places[0] <= np.log(choice.eps) <= places[-1]
    meaning = MEANINGS[choice.kind].partition("\n")[0]
    doubt = f", not to be trusted: {choice.doubt.value}" if choice.doubt else ""
    return {
        "at": np.interp(np.log(choice.grid[inside]), places, positions).tolist(),
        "scores": choice.scores[inside].tolist(),
        "best": float(np.interp(np.log(choice.eps), places, positions)) if within else None,
        "text": f"{meaning}, smallest at ε = {choice.eps:.3g} (eps='auto'){doubt}",
    }


def _chosen(graphs: Sequence[TransportGraph]) -> EpsChoice | str:
    """The choice for the points of the graphs, or why there is none.

    The search of the choice stops where the error has clearly risen. Of few points, the values of
    the page are tried as well: the curve is then as long as the slider.
    """
    graph = graphs[0]
    if graph.points is None:
        return "No curve of predictions: the graphs hold no points."
    keywords: Keywords = {name: graph.params[name] for name in OF_CHOICE if name in graph.params}
    try:
        with warnings.catch_warnings():  # the page shows the doubt
            warnings.simplefilter("ignore")
            found = choose_eps(graph.points, mass=graph.mass, **keywords)
            if graph.n > ALL_POINTS:
                return found
            eps = np.union1d(found.grid, [each.certificate.eps for each in graphs])
            longer = choose_eps(graph.points, mass=graph.mass, eps=eps, **keywords)
            return replace(longer, eps=found.eps, doubt=found.doubt)
    except (ValueError, TypeError) as error:
        return f"No curve of predictions: {error}"
