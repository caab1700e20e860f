"""A transport plan between two clouds, and what can be carried along it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from otgraph._labels import decode_labels, encode_labels
from otgraph._validation import check_points
from otgraph.exceptions import invalid
from otgraph.solvers.verification import Evidence

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from otgraph.graphs._canonical import Param
    from otgraph.solvers.certificate import Certificate
    from otgraph.typing import (
        Array,
        BoolArray,
        FloatArray,
        IntArray,
        Points,
        PointsLike,
        SparseMatrix,
    )


class Both(NamedTuple):
    """One array for each of two clouds.

    Parameters
    ----------
    x
        The array of X.
    y
        The array of Y.

    Examples
    --------
    >>> import otgraph
    >>> plan = otgraph.transport_graph([[0.0], [1.0]], [[5.0], [6.0], [7.0]], eps=1.0)
    >>> plan.mass.y.round(3)
    array([0.667, 0.667, 0.667])
    """

    x: Array
    y: Array


@dataclass(frozen=True, eq=False)
class LabelTransfer:
    """Labels that came from another cloud, with probabilities.

    Attributes
    ----------
    labels
        Most probable class of every point; -1, or None among strings and objects, where no known
        label arrives.
    probabilities
        One row per point that sums to one, one column per class; uniform where no label arrives.
    classes
        The classes in sorted order.
    known
        Share of the mass of every point that comes from labeled points.

    Examples
    --------
    >>> import otgraph
    >>> plan = otgraph.transport_graph([[0.0], [1.0]], [[5.0], [6.0]], eps=0.01)
    >>> carried = plan.transfer_labels(["left", None])
    >>> carried.labels.tolist(), carried.known.tolist()
    (['left', None], [1.0, 0.0])
    """

    labels: Array
    probabilities: FloatArray
    classes: Array
    known: FloatArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrossGraph:
    """A transport plan between two clouds X and Y: a bipartite graph with a certificate.

    Parameters
    ----------
    weights
        The plan: CSR matrix of shape (n, m), float64, sorted indices, no stored zeros. Rows sum to
        ``mass.x`` and columns to ``mass.y``; with `outlier_cost` to ``mass_kept``.
    params
        What built the plan, a flat dictionary of plain values.
    certificate
        What was proved about the plan. Its ``verify`` takes both clouds.
    potentials
        The vectors behind the plan, ``potentials.x`` and ``potentials.y``: a weight is
        ``(x_i + y_j - c_ij)_+ / eps``. A constant may be moved from one to the other; here both
        have the same mean, weighted by the masses. With `outlier_cost` they are unique, and a
        point holds back the share ``2 x_i / outlier_cost`` of its mass.
    mass
        Wanted row sums ``mass.x`` and column sums ``mass.y``.
    points
        The clouds as they were given; None for precomputed costs.

    Examples
    --------
    >>> import otgraph
    >>> plan = otgraph.transport_graph([[0.0], [1.0]], [[5.0], [6.0]], eps=0.01)
    >>> plan
    CrossGraph(n=2, m=2, edges=2, mean_degree=1, eps=0.01, status='exact')
    >>> plan.weights.toarray().round(6)
    array([[1., 0.],
           [0., 1.]])
    """

    weights: SparseMatrix
    params: dict[str, Param] = field(default_factory=dict)
    certificate: Certificate
    potentials: Both
    mass: Both
    points: tuple[Points, Points] | None = None

    def __post_init__(self) -> None:
        """Give the certificate the plan that it describes."""
        params = self.params
        evidence = Evidence(
            method="quadratic",
            weights=self.weights,
            potentials=self.potentials.x,
            mass=self.mass.x,
            floors=None,
            metric=str(params.get("metric", "euclidean")),
            power=float(params.get("power") or 2.0),
            scale=float(params.get("scale") or 1.0),
            normalize=bool(params.get("normalize")),
            self_loops=False,
            column_potentials=self.potentials.y,
            column_mass=self.mass.y,
        )
        object.__setattr__(self, "certificate", replace(self.certificate, evidence=evidence))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points of X and of Y."""
        n, m = self.weights.shape
        return int(n), int(m)

    @property
    def eps(self) -> float:
        """Regularization of the plan."""
        return self.certificate.eps

    @cached_property
    def degrees(self) -> Both:
        """Number of partners of every point of X, and of every point of Y."""
        return Both(
            np.diff(self.weights.indptr).astype(np.int32),
            np.bincount(self.weights.indices, minlength=self.shape[1]).astype(np.int32),
        )

    @property
    def mass_kept(self) -> Both:
        """Mass that the points have in the plan, between 0 and ``mass``.

        It is ``mass`` unless the plan was built with `outlier_cost`.
        """
        if self.certificate.outlier_cost == np.inf:
            return self.mass
        return Both(*(
            np.minimum(np.asarray(self.weights.sum(axis=1 - axis)).ravel(), mass)
            for axis, mass in enumerate(self.mass)
        ))  # fmt: skip

    @property
    def dropped(self) -> Both:
        """Masks of the points without partners, which only a plan with `outlier_cost` has."""
        return Both(*(degrees == 0 for degrees in self.degrees))

    @property
    def mean_degree(self) -> float:
        """Mean number of partners of a point, over both clouds."""
        return 2.0 * self.weights.nnz / sum(self.shape)

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        from scipy.sparse.csgraph import connected_components  # a tenth of a second

        both = sp.bmat([[None, self.weights], [self.weights.T, None]], format="csr")
        count, labels = connected_components(both, directed=False)
        return int(count), labels.astype(np.int32, copy=False)

    @property
    def n_connected(self) -> int:
        """Number of connected components; each carries as much mass of X as of Y."""
        return self._components[0]

    @property
    def component_labels(self) -> Both:
        """Component of every point of X, and of every point of Y."""
        n = self.shape[0]
        return Both(self._components[1][:n], self._components[1][n:])

    @property
    def T(self) -> CrossGraph:  # as in numpy
        """The same plan from Y to X."""
        return CrossGraph(
            weights=sp.csr_matrix(self.weights.T),
            params=self.params,
            certificate=replace(self.certificate, evidence=None),
            potentials=Both(self.potentials.y, self.potentials.x),
            mass=Both(self.mass.y, self.mass.x),
            points=None if self.points is None else (self.points[1], self.points[0]),
        )

    def transition(self) -> SparseMatrix:
        """The plan with rows that sum to one: where a point of X goes; ``.T`` for Y.

        The row of a point that was dropped is empty.
        """
        transition = self.weights.copy()
        sums = np.asarray(transition.sum(axis=1)).ravel()
        transition.data /= np.repeat(sums, np.diff(transition.indptr))
        return transition

    def barycentric_map(self, values: PointsLike | None = None) -> FloatArray:
        """Every point of X mapped to the mean of its partners.

        Parameters
        ----------
        values
            What to take means of, one row per point of Y: coordinates, genes, an embedding. By
            default the points of Y that the plan was built from.

        Returns
        -------
        Array with one row per point of X; not a number for points that were dropped.

        Examples
        --------
        >>> import otgraph
        >>> plan = otgraph.transport_graph([[0.0], [1.0]], [[5.0], [6.0]], eps=0.01)
        >>> plan.barycentric_map().round(6)
        array([[5.],
               [6.]])
        """
        if values is None:
            if self.points is None:
                msg = "must hold one row per point of Y: this plan was built without points."
                raise invalid("values", msg, TypeError)
            values = self.points[1]
        checked = check_points(values, name="values", min_samples=1)
        if checked.shape[0] != self.shape[1]:
            msg = f"must have {self.shape[1]} rows, one per point of Y, got {checked.shape[0]}."
            raise invalid("values", msg)
        mapped = self.transition() @ checked
        mapped = np.asarray(mapped.toarray() if sp.issparse(mapped) else mapped)
        mapped[self.dropped.x] = np.nan
        return mapped

    def transfer_labels(self, labels: ArrayLike) -> LabelTransfer:
        """Labels of Y carried to X.

        A point of X gets the classes of its partners, in proportion to the mass that it shares
        with them. Unknown labels do not count.

        Parameters
        ----------
        labels
            One label per point of Y, numbers or strings; -1 or None means unknown.

        Examples
        --------
        >>> import otgraph
        >>> plan = otgraph.transport_graph([[0.0], [1.0]], [[5.0], [6.0]], eps=0.01)
        >>> plan.transfer_labels(["left", "right"]).labels.tolist()
        ['left', 'right']
        """
        encoded = encode_labels(labels, self.shape[1])
        shares = self.transition() @ encoded.one_hot()
        known = shares.sum(axis=1)
        undecided: BoolArray = known == 0.0
        shares[undecided] = 1.0
        probabilities = shares / shares.sum(axis=1, keepdims=True)
        best = probabilities.argmax(axis=1)
        names = decode_labels(encoded.classes, best, undecided)
        return LabelTransfer(names, probabilities, encoded.classes, known)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        include_points: bool = True,
        overwrite: bool = True,
    ) -> None:
        """Write the plan to one file, which :meth:`load` reads.

        Parameters
        ----------
        path
            The file; ``.otg`` is customary. An existing file is replaced in one step at the end.
        include_points
            False makes the file smaller.
        overwrite
            False raises ``FileExistsError`` if there is a file.
        """
        from otgraph.graphs.io import save_graph  # circular import: io imports this

        save_graph(self, path, include_points=include_points, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CrossGraph:
        """Plan from a file that :meth:`save` wrote.

        A file that is damaged, foreign or newer than this version raises
        :class:`otgraph.exceptions.FormatError`, which says what is wrong.

        Parameters
        ----------
        path
            The file.
        """
        from otgraph.graphs.io import load_cross_graph  # circular import: io imports this

        return load_cross_graph(path)

    def __repr__(self) -> str:
        """Size and origin on one line."""
        n, m = self.shape
        return (
            f"CrossGraph(n={n}, m={m}, edges={self.weights.nnz}, "
            f"mean_degree={self.mean_degree:.4g}, eps={self.eps:.6g}, "
            f"status={self.certificate.status.value!r})"
        )
