"""Properties that graphs in memory and on a cluster have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from otgraph.graphs._canonical import Param
    from otgraph.typing import IntArray


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
