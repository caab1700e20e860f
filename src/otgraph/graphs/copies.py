"""Identical rows as one point that has the mass of all of them.

A set of points with masses is a measure, and the measure does not say how many rows a place has.
With ``collapse=True`` the graph depends on the measure alone: the problem is solved on the distinct
points a, with masses M_a summed over their copies, and the plan P is shared out,

    pi_ij = s_i s_j P_ab,    s_i = m_i / M_a,    for i a copy of a and j a copy of b.

Rows sum to the masses: sum_j pi_ij = s_i sum_b P_ab = s_i M_a = m_i. Copies have the same neighbors
in the same proportions. Without self-loops there is no edge between them, because a point must not
keep its mass. The plan is optimal, too: it minimizes sum c pi + eps/2 sum pi_ij^2 / (s_i s_j).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from otgraph._memory import require_bytes
from otgraph._validation import check_mass
from otgraph.costs import check_input
from otgraph.costs.metrics import is_precomputed
from otgraph.exceptions import InfeasibleError, invalid
from otgraph.graphs._canonical import entry_rows, index_type
from otgraph.solvers.verification import verify

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.graphs.graph import TransportGraph
    from otgraph.graphs.options import QuadraticOptions
    from otgraph.solvers import Certificate, Verification
    from otgraph.solvers.verification import Original
    from otgraph.typing import Array, FloatArray, LongArray, Points, SparseMatrix

ENTRY_BYTES = 60  # of a weight, its cost and the indices on the way to them
# Relative difference allowed between a weight and the product that it was computed from.
SPREAD_RTOL = 16.0 * np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class Copies:
    """Which rows are copies of which distinct point.

    Attributes
    ----------
    group
        The distinct point of every row; points are numbered in the order of first appearance.
    mass
        Mass of every row.
    """

    group: LongArray
    mass: FloatArray

    @cached_property
    def first(self) -> LongArray:
        """The first row of every distinct point."""
        return np.unique(self.group, return_index=True)[1].astype(np.int64)

    @cached_property
    def masses(self) -> FloatArray:
        """Masses of the distinct points."""
        return np.asarray(np.bincount(self.group, weights=self.mass), dtype=np.float64)

    @cached_property
    def shares(self) -> FloatArray:
        """The share of every row in the mass of its point."""
        return self.mass / self.masses[self.group]

    def spread_graph(self, graph: TransportGraph) -> TransportGraph:
        """A graph of the distinct points as one of all rows."""
        weights, entries = self.spread(graph.weights)
        costs, floors = graph.edge_costs, graph.floors
        return replace(
            graph,
            weights=weights,
            edge_costs=None if costs is None else costs[entries],
            potentials=graph.potentials[self.group],
            mass=self.mass,
            floors=None if floors is None else self.spread(floors)[0],
            copies=self.group,
        )

    def distinct_graph(self, graph: TransportGraph) -> TransportGraph:
        """The graph of the distinct points behind one of all rows."""
        first, points, floors = self.first, graph.points, graph.floors
        return replace(
            graph,
            weights=self._between_first(graph.weights),
            points=None if points is None else points[first],
            edge_costs=None,
            potentials=graph.potentials[first],
            mass=self.masses,
            floors=None if floors is None else self._between_first(floors),
            copies=None,
        )

    def _between_first(self, matrix: SparseMatrix) -> SparseMatrix:
        """The matrix between distinct points of a matrix that was spread."""
        part = sp.csr_matrix(matrix[self.first][:, self.first])
        part.sort_indices()
        shares = self.shares[self.first]
        part.data = part.data / (shares[entry_rows(part)] * shares[part.indices])
        return part

    def spread(self, matrix: SparseMatrix) -> tuple[SparseMatrix, LongArray]:
        """A matrix between distinct points as one between rows, and the entry behind every entry.

        Exactly symmetric if the matrix is: both shares are multiplied first.
        """
        n, sizes, shares = len(self.group), np.bincount(self.group), self.shares
        ones = np.ones(matrix.nnz, dtype=np.int64)
        per_point = sp.csr_matrix((ones, matrix.indices, matrix.indptr), matrix.shape) @ sizes
        counts = per_point[self.group]
        nnz = int(counts.sum())
        advice = "Drop the copies and pass `mass` instead."
        require_bytes(ENTRY_BYTES * nnz, f"The edges of {n:,} points with copies", advice)
        wide, columns = self._columns(matrix, sizes)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        starts = np.concatenate(([0], np.cumsum(per_point)))[:-1]
        taken = np.arange(nnz) + np.repeat(starts[self.group] - indptr[:-1], counts)
        kind = index_type(max(nnz, n))
        entries = sp.csr_matrix(
            (wide[taken], columns[taken].astype(kind), indptr.astype(kind)), shape=(n, n)
        )
        entries.sort_indices()
        rows = np.repeat(np.arange(n), counts)
        data = matrix.data[entries.data] * (shares[rows] * shares[entries.indices])
        result = sp.csr_matrix((data, entries.indices, entries.indptr), shape=(n, n))
        result.has_sorted_indices = result.has_canonical_format = True
        return result, entries.data

    def _columns(self, matrix: SparseMatrix, sizes: LongArray) -> tuple[LongArray, LongArray]:
        """Every entry once for each copy of its column: the entry, and that copy."""
        members = np.argsort(self.group, kind="stable")
        before = np.concatenate(([0], np.cumsum(sizes)))[:-1]
        repeats = sizes[matrix.indices]
        entry = np.repeat(np.arange(matrix.nnz), repeats)
        ends = np.cumsum(repeats)
        within = np.arange(len(entry)) - np.repeat(ends - repeats, repeats)
        return entry, members[before[matrix.indices[entry]] + within]

    def spread_rows(self, rows: SparseMatrix) -> SparseMatrix:
        """Rows of new points against distinct points as rows against all points."""
        n = len(self.group)
        parts = (self.shares, (self.group, np.arange(n)))
        found = sp.csr_matrix(rows @ sp.csr_matrix(parts, shape=(len(self.first), n)))
        found.sort_indices()
        return found


def collapsed(
    X: Points, options: QuadraticOptions, mass: ArrayLike | None
) -> tuple[Points, ArrayLike | None, Copies | None]:
    """The distinct ones of checked points, their masses, and the copies, if options ask for it."""
    if not options.collapse:
        return X, mass, None
    if is_precomputed(options.metric):
        msg = (
            "must be False with precomputed costs, which do not tell whether two points are "
            "copies; leave copies out and pass `mass`."
        )
        raise invalid("collapse", msg)
    n, group = X.shape[0], distinct_rows(X)
    if len(np.unique(group)) == n:
        return X, mass, None
    copies = Copies(group, check_mass(mass, n, self_loops=True))
    masses = copies.masses
    if len(masses) == 1:
        msg = "must be False for points that are all identical: a graph needs two points."
        raise invalid("collapse", msg)
    heaviest = int(masses.argmax())
    keeps = options.self_loops or options.outlier_cost is not None
    if not keeps and masses[heaviest] > masses.sum() - masses[heaviest]:
        msg = (
            f"makes row {copies.first[heaviest]} and its copies one point with more mass than "
            "all others together, which cannot take it. Pass `self_loops=True`, so that it can "
            "keep mass, or a smaller `mass` for copies."
        )
        raise invalid("collapse", msg, InfeasibleError)
    return X[copies.first], masses, copies


def distinct_rows(points: Points) -> LongArray:
    """The number of the distinct point of every row, in the order of first appearance.

    Zeros of both signs are equal, as they are for every metric.
    """
    _, first, group = np.unique(_row_keys(points), return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[group.ravel()]


def _row_keys(points: Points) -> Array:
    """One key per row, equal for equal rows."""
    if not isinstance(points, np.ndarray):
        csr = sp.csr_matrix(points, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        numbers: dict[bytes, int] = {}
        keys = np.empty(csr.shape[0], dtype=np.int64)
        for i in range(len(keys)):
            part = slice(csr.indptr[i], csr.indptr[i + 1])
            row = csr.indices[part].tobytes() + csr.data[part].tobytes()
            keys[i] = numbers.setdefault(row, len(numbers))
        return keys
    dense = np.ascontiguousarray(points) + 0.0  # no zeros with a sign
    return dense.view(np.dtype((np.void, dense.dtype.itemsize * dense.shape[1]))).ravel()


@dataclass(frozen=True, eq=False)
class CollapsedEvidence:
    """A graph whose copies were collapsed: the plan between distinct points, shared out."""

    graph: TransportGraph

    def compared(self, certificate: Certificate, original: Original) -> Verification:
        """The plan between distinct points compared with them, and what every copy has of it."""
        graph = self.graph
        assert graph.copies is not None
        copies = Copies(graph.copies, graph.mass)
        points = check_input(original.X, "euclidean")
        if points.shape[0] != graph.n:
            msg = f"must have {graph.n} rows, one per point, got shape {points.shape}."
            raise invalid("X", msg)
        distinct = copies.distinct_graph(graph)
        found = verify(distinct.certificate, original._replace(X=points[copies.first]))
        problems = list(found.problems)
        if not np.array_equal(distinct_rows(points), copies.group):
            problems.append("Other rows are copies of each other than in the graph.")
        again = copies.spread(distinct.weights)[0]
        off = abs(again - graph.weights) > SPREAD_RTOL * graph.weights.maximum(again)
        if off.nnz:
            problems.append(f"{off.nnz:,} weights are not those that copies share.")
        return replace(found, wrong_weights=found.wrong_weights + off.nnz, problems=tuple(problems))
