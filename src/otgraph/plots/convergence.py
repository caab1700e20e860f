"""Plot the error of the solver against its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from otgraph._optional import require
from otgraph.exceptions import argument_error
from otgraph.graphs.path import EpsPath
from otgraph.plots._axes import by_name, finish, new_axes
from otgraph.plots.colors import INK, line_styles
from otgraph.solvers.certificate import Certificate, Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from otgraph.typing import FloatArray

SMALLEST = 1e-17  # shown instead of an error of zero on a logarithmic axis


def plot_convergence(
    graphs: Any,
    *,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Axes with the marginal error after every step of the solver.

    There is one line per graph. It has a gap where the candidate pairs changed: the solver first
    solves loosely on a few pairs, then adds the missing ones. The horizontal line is the
    tolerance. A cross marks the end of a computation that did not reach it.

    Parameters
    ----------
    graphs
        An optimal transport graph or its certificate, a list of them, a dictionary of names
        and graphs, or a path of :func:`otgraph.eps_path`.
    names
        Names for the legend; by default the keys, or how each graph was built.
    ax
        Where to draw; a new figure by default.
    title
        Title of the axes.

    Examples
    --------
    >>> import numpy as np, otgraph
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> ax = otgraph.plots.plot_convergence(otgraph.quadratic_ot_graph(X, eps=1.0))
    """
    named = [(name, item, _certificate(item, name)) for name, item in by_name(graphs, names)]
    styles = line_styles(len(named), ordered=isinstance(graphs, EpsPath))
    ax = new_axes(ax)
    for (name, _, certificate), (color, dash) in zip(named, styles, strict=True):
        steps, errors = _curve(certificate)
        ax.plot(
            steps, errors, color=color, linestyle=dash, marker="o", markersize=3, label=name,
        )  # fmt: skip
        if certificate.status == Status.NOT_CONVERGED:
            ax.plot(steps[-1:], errors[-1:], "x", color=color, markersize=10, markeredgewidth=2)
    for tol in sorted({float(item.params["tol"]) for _, item, _ in named if _has_tol(item)}):
        ax.axhline(tol, color=INK, linewidth=0.8)
        ax.annotate(
            f"tolerance {tol:.0e}", (0.0, tol), (3, 2), color=INK, fontsize="small",
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip
    ax.xaxis.set_major_locator(require("matplotlib.ticker", "plots").MaxNLocator(integer=True))
    return finish(
        ax, xlabel="step", ylabel="marginal error", yscale="log", title=title,
        entries=len(named) if len(named) > 1 else 0,
    )  # fmt: skip


def _certificate(item: Any, name: str) -> Certificate:
    certificate = item if isinstance(item, Certificate) else getattr(item, "certificate", None)
    if certificate is None:
        msg = (
            f"`graphs` must be optimal transport graphs or their certificates; {name!r} "
            f"({type(item).__name__}) has none. Kernels are computed without iteration."
        )
        raise argument_error(TypeError, "graphs", msg)
    if not certificate.history:
        msg = f"The certificate of {name!r} holds no history: an older version made it."
        raise ValueError(msg)
    return certificate


def _curve(certificate: Certificate) -> tuple[FloatArray, FloatArray]:
    """Steps and errors of all rounds; NaN makes a gap between rounds."""
    steps: list[float] = []
    errors: list[float] = []
    done = 0
    for round_errors in certificate.history:
        if errors and errors[-1] != round_errors[0]:
            steps.append(np.nan)
            errors.append(np.nan)
        steps += range(done, done + len(round_errors))
        errors += round_errors
        done += len(round_errors) - 1
    return np.array(steps), np.maximum(np.array(errors), SMALLEST)


def _has_tol(item: Any) -> bool:
    return "tol" in (getattr(item, "params", None) or {})
