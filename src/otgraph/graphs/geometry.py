r"""Density and dimension from the weights of a plan, and the same graph without the density.

On a manifold of dimension d, the weights of a point x are a function of the distance s only:

* quadratic OT: :math:`(2v - s^w)_+ / \varepsilon`, a paraboloid for the power w = 2. The level v is
  the mean of :math:`(u_i + u_j) / 2` over the edges of the point. The plan determines these sums.
  It does not determine u itself, which may be negative or, in a bipartite component, arbitrary;
* entropic OT: :math:`e^{(2u - s^w)/\varepsilon}`, and a Gaussian kernel has u = 0.

The n points have the probability density p. A row then sums to :math:`m = n p \int` weights, and
this is solved for p. The mean cost of a row gives d. Entries on the diagonal say nothing about
other points and are left out. So are edges that exist only because of a minimum flow.

The graph with the weights :math:`V_{ij} = a_i \pi_{ij} a_j` has the Dirichlet form
:math:`\int p\, a^2 m h |\nabla f|^2`, up to a constant, where h is the squared radius of a
neighborhood. The density drops out for :math:`a^2 = 1 / (p m h)`. The row sums of V are then
:math:`1 / (p h)`. Multiplied by h they are 1 / p, the volume of a point, and

.. math:: \sum_j V_{ij} (f_i - f_j) = \lambda\, q_i f_i, \qquad q_i = \sum_j V_{ij} h_j

tends to the eigenvalue problem of Laplace-Beltrami. Loops bring the row sums of a graph to q, so
that its random walk solves this problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_choice, check_positive
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import entry_rows, without_loops

if TYPE_CHECKING:
    from otgraph.graphs.graph import Graph
    from otgraph.typing import FloatArray, IntArray, LongArray, SparseMatrix

# What methods do about the density of the points.
DENSITIES = KEPT, CORRECTED = "kept", "corrected"
# A weight that exceeds its minimum flow by less is that flow.
ROUNDING = 1e-9
# Logarithms of factors may spread so far: products of two stay far from overflow.
LARGEST_SPREAD = 300.0


@dataclass(frozen=True, eq=False)
class Rows:
    """What the rows of a plan have in common, however their weights fall with the distance."""

    power: float  # w: costs are powers of a Euclidean distance, locally
    scale: float  # of the costs
    eps: float
    mass: FloatArray  # row sums without loops and without minimum flows
    mean_cost: FloatArray  # of a row

    @property
    def known(self) -> LongArray:
        """Points with a neighbor."""
        return np.flatnonzero(self.mass > 0.0)

    def log_mass(self) -> FloatArray:
        """Logarithm of the row sums."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass))


@dataclass(frozen=True, eq=False)
class Paraboloids(Rows):
    """Neighborhoods of quadratic OT."""

    level: FloatArray  # v

    def dimension(self) -> float:
        """The dimension from d / (d + 2w), the mean cost over 2v."""
        w, of = self.power, self.known
        share = float(np.mean(self.mean_cost[of] / (2.0 * self.level[of])))
        return 2.0 * w * share / (1.0 - share)

    def log_relative_density(self, dim: float) -> FloatArray:
        """Logarithm of p up to a constant; -inf without neighbors. m ∝ p v^((w + d)/w)."""
        return self.log_mass() - (self.power + dim) / self.power * np.log(self.level)

    def log_constant(self, dim: float) -> float:
        """That constant, from the integral of the paraboloid."""
        w = self.power
        weights = np.log(w / (w + dim)) + (w + dim) / w * np.log(2.0) - np.log(self.eps)
        return -float(
            np.log(len(self.mass)) + _log_ball(dim) + weights + dim / w * np.log(self.scale)
        )

    def log_step(self) -> FloatArray:
        """Logarithm of h up to a constant: the squared radius is (2v)^(2/w)."""
        return np.asarray(2.0 / self.power * np.log(self.level))

    def log_unit(self, dim: float) -> float:
        """Logarithm of λ over the eigenvalue of Laplace-Beltrami: half the mean square step."""
        w = self.power
        moment = (dim + w) / (2.0 * (dim + 2.0) * (dim + 2.0 + w))
        return float(np.log(moment) + 2.0 / w * np.log(2.0 * self.scale))


@dataclass(frozen=True, eq=False)
class Exponentials(Rows):
    """Neighborhoods of entropic OT and of Gaussian kernels; methods as in `Paraboloids`."""

    potentials: FloatArray

    def dimension(self) -> float:
        """From d ε / w, the mean cost."""
        return float(self.power / self.eps * np.mean(self.mean_cost[self.known]))

    def log_relative_density(self, dim: float) -> FloatArray:
        """Rows sum to m ∝ p e^(2u/ε)."""
        return self.log_mass() - 2.0 * self.potentials / self.eps

    def log_constant(self, dim: float) -> float:
        """The integral of the kernel."""
        w = self.power
        weights = lgamma(1.0 + dim / w) + dim / w * np.log(self.eps * self.scale)
        return -float(np.log(len(self.mass)) + _log_ball(dim) + weights)

    def log_step(self) -> FloatArray:
        """Steps are the same everywhere."""
        return np.zeros(len(self.mass))

    def log_unit(self, dim: float) -> float:
        """Half the mean square step over d."""
        w = self.power
        moment = lgamma((dim + 2.0) / w) - lgamma(dim / w) - np.log(2.0 * dim)
        return float(moment + 2.0 / w * np.log(self.eps * self.scale))


Neighborhoods: TypeAlias = Paraboloids | Exponentials


def _log_ball(dim: float) -> float:
    """Logarithm of the volume of the unit ball."""
    return float(0.5 * dim * np.log(np.pi) - lgamma(0.5 * dim + 1.0))


def wants_correction(density: str, dim: float | None) -> bool:
    """Whether the density is to be divided out, from the keywords of methods."""
    wanted = check_choice(density, "density", DENSITIES) == CORRECTED
    if dim is not None and not wanted:
        raise invalid("dim", f"is used with density={CORRECTED!r} only, got {dim!r}.")
    return wanted


def neighborhoods(graph: Graph) -> Neighborhoods:
    """The neighborhoods of a graph whose weights tell the density."""
    method = graph.params.get("method")
    u: FloatArray | None = getattr(graph, "potentials", None)
    if not (u is not None and method in ("quadratic", "entropic")) and method != "gaussian":
        msg = (
            f"is {method!r}, whose weights do not tell the density: build it with "
            "quadratic_ot_graph, entropic_ot_graph or gaussian_graph."
        )
        raise invalid("graph", msg)
    metric = graph.params.get("metric", "euclidean")
    # The power of the Euclidean distance; `costs/scaling.py` treats these as squared distances.
    given = float(graph.params.get("power") or 2.0)
    power = 2.0 * given if metric in ("cosine", "sqeuclidean") else given
    eps = float(graph.params["eps"])  # type: ignore[arg-type]
    scale = float(graph.params.get("scale") or 1.0)
    if metric == "cosine":  # 1 - cos is half the squared distance
        scale *= 2.0**given
    if u is None:
        u = np.zeros(graph.n)
    i, j, weight = _own_edges(graph)

    def sums(values: FloatArray) -> FloatArray:
        return np.bincount(i, weights=values, minlength=graph.n).astype(np.float64, copy=False)

    mass = sums(weight)
    per_mass = 1.0 / np.where(mass > 0.0, mass, 1.0)
    if method == "quadratic":
        # Costs are not negative, hence the bound, which rounding could violate.
        above = np.maximum(u[i] + u[j], eps * weight)
        level = np.where(mass > 0.0, 0.5 * per_mass * sums(weight * above), 1.0)
        cost = per_mass * sums(weight * (above - eps * weight))
        return Paraboloids(power, scale, eps, mass, cost, level)
    cost = per_mass * sums(weight * (u[i] + u[j] - eps * np.log(weight)))
    return Exponentials(power, scale, eps, mass, cost, u)


def _own_edges(graph: Graph) -> tuple[IntArray, IntArray, FloatArray]:
    """Entries that the potentials explain: no loops, and none that only a minimum flow holds."""
    entries = graph.weights.tocoo()
    own = entries.row != entries.col
    floors = getattr(graph, "floors", None)
    if floors is not None:
        flow = np.asarray(floors[entries.row, entries.col]).ravel()
        own &= entries.data > flow * (1.0 + ROUNDING)
    return entries.row[own], entries.col[own], entries.data[own]


def checked_dimension(around: Neighborhoods, dim: float | None) -> float:
    """The given dimension, or that of the neighborhoods."""
    if dim is not None:
        try:
            number = float(dim)  # of an `IntrinsicDimension`, too
        except (TypeError, ValueError) as error:
            raise invalid("dim", f"must be a positive number, got {dim!r}.", TypeError) from error
        return check_positive(number, "dim")
    if not len(around.known):
        msg = "must be given for a graph without edges: nothing else tells the dimension."
        raise invalid("dim", msg)
    return around.dimension()


def log_density(graph: Graph, dim: float | None) -> FloatArray:
    """See :meth:`Graph.log_density`."""
    around = neighborhoods(graph)
    dim = checked_dimension(around, dim)
    if graph.params.get("scale") in (0.0, np.inf):
        msg = "has costs beyond the range of float64, so that its unit is lost: rescale the points."
        raise invalid("graph", msg)
    return around.log_relative_density(dim) + around.log_constant(dim)


@dataclass(frozen=True, eq=False)
class Correction:
    """How the density was divided out of a graph: what new points and eigenvalues need."""

    dim: float
    rate: float  # eigenvalue of Laplace-Beltrami over 1 - λ of the random walk
    factors: FloatArray  # a
    steps: FloatArray  # h, such that 1 - λ is a mean step times the eigenvalue


def corrected(graph: Graph, dim: float | None) -> tuple[SparseMatrix, Correction]:
    """Weights without the density, with loops; see :meth:`Graph.without_density`."""
    around = neighborhoods(graph)
    dim = checked_dimension(around, dim)
    log_step = around.log_step()
    log_factors = -0.5 * (around.log_relative_density(dim) + around.log_mass() + log_step)
    log_factors[around.mass == 0.0] = np.nan
    log_factors -= np.nanmedian(log_factors) if len(around.known) else 0.0
    spread = float(np.nanmax(np.abs(log_factors), initial=0.0))
    if spread > LARGEST_SPREAD:
        msg = (
            f"is {dim:.3g}, in which the densities of the points differ by factors beyond "
            f"e^{spread:.0f}; pass a smaller one, or keep the density."
        )
        raise invalid("dim", msg)
    factors = np.where(np.isnan(log_factors), 1.0, np.exp(log_factors))
    weights = without_loops(graph.weights)
    weights.data *= factors[entry_rows(weights)] * factors[weights.indices]
    middle = float(np.median(log_step))
    steps = np.exp(log_step - middle)
    sums, volumes = weights @ np.ones(graph.n), weights @ steps
    linked = sums > 0.0
    smallest = float(np.min(volumes[linked] / sums[linked])) if linked.any() else 1.0
    loops = np.maximum(volumes / smallest - sums, 0.0)  # one is zero up to rounding
    weights = sp.csr_matrix(weights + sp.diags(loops, format="csr"))
    weights.eliminate_zeros()
    rate = float(np.exp(-around.log_unit(dim) - middle) / smallest)
    return weights, Correction(dim, rate, factors, steps / smallest)
