"""What graphs in memory and graphs on a cluster share: size, degrees, components, masses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from otgraph.graphs._canonical import Param
    from otgraph.solvers.certificate import Certificate
    from otgraph.typing import BoolArray, FloatArray, IntArray


class BaseGraph(ABC):
    """Size, degrees and connected components of a weighted graph."""

    params: dict[str, Param]

    @property
    @abstractmethod
    def degrees(self) -> IntArray:
        """Number of neighbors of every point; the point itself does not count."""

    @property
    @abstractmethod
    def _components(self) -> tuple[int, IntArray]:
        """Number of components, and the component of every point."""

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.degrees)

    @property
    def mean_degree(self) -> float:
        """Mean of :attr:`degrees`."""
        return float(self.degrees.mean())

    @property
    def n_connected(self) -> int:
        """Number of connected components; an isolated point is a component."""
        return self._components[0]

    @property
    def component_labels(self) -> IntArray:
        """Component of every point, numbered from 0 in the order of first appearance."""
        return self._components[1]

    @property
    def dropped(self) -> BoolArray:
        """Mask of the outliers that were let go, if the graph was built with `outlier_cost`."""
        return np.zeros(self.n, dtype=np.bool_)

    def __repr__(self) -> str:
        """Size and origin on one line."""
        parts = [
            f"n={self.n}",
            f"edges={int(self.degrees.sum(dtype=np.int64)) // 2}",
            f"mean_degree={self.mean_degree:.4g}",
        ]
        parts += [f"{key}={self.params[key]!r}" for key in ("method",) if key in self.params]
        eps = self.params.get("eps")
        if isinstance(eps, float):
            parts.append(f"eps={eps:.6g}")
        if certificate := getattr(self, "certificate", None):
            parts.append(f"status={certificate.status.value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


class BaseTransportGraph(BaseGraph):
    """What every transport plan knows about the mass of its points."""

    certificate: Certificate
    potentials: FloatArray
    mass: FloatArray

    @abstractmethod
    def _row_sums(self) -> FloatArray:
        """Sum of the weights of every point."""

    @abstractmethod
    def _times(self, v: FloatArray) -> FloatArray:
        """Weights times a vector."""

    @property
    def mass_kept(self) -> FloatArray:
        """Mass that a point has in the graph: its row sum, between 0 and ``mass``.

        It is ``mass`` unless the graph was built with `outlier_cost`.
        """
        if self.certificate.outlier_cost == np.inf:
            return self.mass
        return np.minimum(self._row_sums(), self.mass)

    @property
    def outlier_scores(self) -> FloatArray:
        """What a point pays for its edges: large for points that are far from all others.

        The price of an edge is u_i + u_j, and a point pays the mean over its edges, by their
        weights. With `outlier_cost` it is the unit, and scores are between 0 and 1, which is the
        score of points without any edge. Otherwise the unit is that of the costs.
        """
        sums = self._row_sums()
        price = self.certificate.outlier_cost
        unit = price if price < np.inf else 1.0
        there = self.degrees > 0
        others = np.divide(self._times(self.potentials), sums, out=np.zeros(self.n), where=there)
        return np.where(there, np.maximum(self.potentials + others, 0.0) / unit, 1.0)

    @property
    def dropped(self) -> BoolArray:
        """Mask of the outliers that were let go, if the graph was built with `outlier_cost`.

        They have no neighbors. Without self-loops they hold all their mass back.
        """
        return np.asarray((self.degrees == 0) & (self.certificate.outlier_cost < np.inf))


def wanted_sums(
    mass: FloatArray, potentials: FloatArray, params: Mapping[str, Param]
) -> FloatArray:
    """Row sums that a plan should have: the masses without what points hold back."""
    price = params.get("outlier_cost")
    if price is None:
        return mass
    return np.asarray(mass * np.clip(1.0 - 2.0 * potentials / float(price), 0.0, 1.0))
