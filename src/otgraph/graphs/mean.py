"""The mean of plans for several eps: one graph that holds all scales.

A convex mean of plans of the same points, pi = sum_k w_k pi_k, is symmetric, and its rows sum to
the masses. Each plan pi_k minimizes P_k(pi) = <c, pi> + eps_k/2 |pi|^2. Together they minimize
sum_k w_k P_k(pi_k), and the duality gap of that problem is sum_k w_k (P_k - D_k): relative to the
value it is a mean of the relative gaps, so at most the largest of them. And because P_k is strongly
convex, the mean is near the mean of the true plans,

    |pi - pi*| <= sum_k w_k |pi_k - pi_k*| <= sum_k w_k sqrt(2 (P_k - D_k) / eps_k).

The mean is the plan of no single eps: as a function of the cost its weights fall along a convex
polygon, steeply near a point and slowly far from it, while those of one plan fall on a line.

The plans themselves are not kept. Potentials, and the costs of the edges, give them again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from otgraph._validation import to_numbers
from otgraph.exceptions import invalid
from otgraph.graphs._canonical import entry_rows, row_sums, with_small_indices
from otgraph.graphs.copies import Copies
from otgraph.graphs.distances import edge_distances
from otgraph.graphs.graph import Graph, TransportGraph
from otgraph.solvers.certificate import Certificate, Status
from otgraph.solvers.verification import Verification, verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from otgraph.solvers.verification import Original
    from otgraph.typing import FloatArray, Keywords, LongArray, SparseMatrix

# From the strongest claim to none.
STATUSES = (Status.EXACT, Status.EXACT_ON_CANDIDATES, Status.NOT_CONVERGED)
# Stands for a cost of zero while matrices are joined, because sparse matrices drop zeros.
ZERO = np.finfo(np.float64).tiny
# Difference allowed between a weight and the sum of its parts, relative to potentials over eps.
PART_ROUNDING = 16.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class MeanCertificate(Certificate):
    """What was proved about the parts of a mean of plans, and so about the mean.

    It does not say that the mean is the plan of some ``eps``, which it is not.

    Parameters
    ----------
    status
        The weakest of the parts'. ``"exact"``: every part is optimal among all pairs.
    marginal_error
        Largest ``|row sum - mass| / mass`` of the mean.
    duality_gap
        The largest of the parts', which bounds that of all parts together.
    pairs_checked
        Pairs decided in every part.
    eps
        Geometric mean of the parts', by shares; it only describes the graph.
    missing_pairs, missing_pairs_bound
        Sums over the parts: a pair may be missing in several. All bounds hold together with a
        confidence of at least 100 % - 5 % for each part.
    violations, n_steps, n_screens, n_floors, history
        All parts together, as in :class:`otgraph.Certificate`.
    n_edges, floor_share, reason, evidence
        As in :class:`otgraph.Certificate`, for the mean.
    dropped_share, outlier_cost
        Zero and infinite: no part leaves pairs or mass out.
    parts
        The certificates of the parts, by increasing ``eps``.
    shares
        The share of every part in the mean.

    Examples
    --------
    >>> import otgraph
    >>> X = otgraph.datasets.noisy_spiral(n=200).X
    >>> certificate = otgraph.multiscale_graph(X, mean_degree=[5, 10]).certificate
    >>> certificate.status == "exact", len(certificate.parts)
    (True, 2)
    """

    parts: tuple[Certificate, ...] = ()
    shares: tuple[float, ...] = ()

    def record(self) -> Keywords:
        """The numbers as plain values, by name; those of the parts in a list."""
        values = super().record()
        return values | {"parts": [part.record() for part in self.parts]}

    def __str__(self) -> str:
        """Readable summary of a few lines."""
        values = ", ".join(f"{part.eps:.4g}" for part in self.parts)
        gap = max(self.duality_gap, 0.0)  # rounding may make it negative
        lines = [
            f"{self.status.value}: the mean of {len(self.parts)} plans; the weakest is "
            f"{self.status.meaning}{': ' if self.reason else ''}{self.reason.value}",
            f"  eps {values}; marginal error {self.marginal_error:.1e}, largest relative duality "
            f"gap {gap:.1e}",
            f"  {self.pairs_checked:,} pairs checked in every part, {self.violations:,} "
            f"violations, Newton steps: {self.n_steps}, passes over the pairs: {self.n_screens}",
        ]
        if self.status == Status.EXACT_ON_CANDIDATES:
            lines.append(f"  {self.missing_text}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MultiscaleGraph(Graph):
    """The mean of transport plans for several eps: rows sum to ``mass``, all scales in one graph.

    :func:`otgraph.multiscale_graph` builds one from points, and ``EpsPath.mean`` from a path.

    Parameters
    ----------
    weights
        The mean, in the form of :class:`otgraph.Graph`.
    params, points, edge_costs
        As in :class:`otgraph.Graph`.
    certificate
        What was proved about the parts.
    potentials
        The vectors u of the parts, by increasing ``eps``: one row per point, one column per part.
    mass
        Wanted row sums.
    floors
        Minimum flows of every part, or None for a part without.
    copies
        Number of the distinct point that every row is a copy of; None without copies.

    Examples
    --------
    >>> import otgraph
    >>> graph = otgraph.multiscale_graph(otgraph.datasets.noisy_spiral(n=200).X, mean_degree=20)
    >>> graph.n_parts, bool(abs(graph.weights.sum(axis=1) - 1).max() < 1e-6)
    (3, True)
    >>> graph.edge_eps.shape == graph.weights.data.shape
    True
    """

    certificate: MeanCertificate
    potentials: FloatArray
    mass: FloatArray
    floors: tuple[SparseMatrix | None, ...]
    copies: LongArray | None = None

    def __post_init__(self) -> None:
        """Give the certificate the graph that it describes."""
        certificate = replace(self.certificate, evidence=MeanEvidence(self))
        object.__setattr__(self, "certificate", certificate)

    @property
    def n_parts(self) -> int:
        """Number of plans in the mean."""
        return len(self.certificate.parts)

    @property
    def eps(self) -> FloatArray:
        """Regularizations of the parts, in increasing order."""
        return np.array([part.eps for part in self.certificate.parts])

    @property
    def shares(self) -> FloatArray:
        """Share of every part in the mean."""
        return np.array(self.certificate.shares)

    @cached_property
    def edge_eps(self) -> FloatArray:
        """The ``eps`` at which every edge appears: the smallest of the parts that use it.

        In the order of ``weights.data``. Edges of small ``eps`` join the nearest points; those that
        appear late reach over gaps.
        """
        found = np.full(self.weights.nnz, np.inf)
        for k in range(self.n_parts):
            np.minimum(found, self.eps[k], out=found, where=self._part_data(k) > 0.0)
        # An entry whose weight is within rounding of zero belongs to the widest part.
        return np.minimum(found, self.eps[-1])

    def part(self, k: int) -> TransportGraph:
        """One of the plans behind the mean, computed again from its potentials.

        Parameters
        ----------
        k
            Its number; ``eps`` increases with it. Negative numbers count from the end.
        """
        k = range(self.n_parts)[k]
        weights = self.weights.copy()
        weights.data = self._part_data(k)
        costs = self._costs[weights.data > 0.0]
        weights.eliminate_zeros()
        return TransportGraph(
            weights=weights,
            params=self.params | {"method": "quadratic", "eps": float(self.eps[k])},
            points=self.points,
            edge_costs=costs,
            certificate=self.certificate.parts[k],
            potentials=np.ascontiguousarray(self.potentials[:, k]),
            mass=self.mass,
            floors=self.floors[k],
            copies=self.copies,
        )

    def _part_data(self, k: int) -> FloatArray:
        """The weights of a part, in the order of those of the mean."""
        u, (rows, columns) = self.potentials[:, k], self._ends
        data = np.maximum((u[rows] + u[columns] - self._costs) / self.eps[k], 0.0)
        if self.copies is not None:
            shares = Copies(self.copies, self.mass).shares
            data *= shares[rows] * shares[columns]
        floors = self.floors[k]
        if floors is not None:
            listed = floors.tocoo()
            keys = rows * np.int64(self.n) + columns
            place = np.searchsorted(keys, listed.row * np.int64(self.n) + listed.col)
            data[place] = np.maximum(data[place], listed.data)
        return np.asarray(data)

    @property
    def _ends(self) -> tuple[LongArray, LongArray]:
        return entry_rows(self.weights), self.weights.indices

    @cached_property
    def _costs(self) -> FloatArray:
        """Costs of the edges; a graph from AnnData has to compute them."""
        if self.edge_costs is not None:
            return self.edge_costs
        power = float(self.params.get("power") or 2.0)
        return edge_distances(self) ** power / float(self.params.get("scale") or 1.0)


@dataclass(frozen=True, eq=False)
class MeanEvidence:
    """A mean of plans: every plan is compared with the points, and the mean with the plans."""

    graph: MultiscaleGraph

    def compared(self, certificate: Certificate, original: Original) -> Verification:
        """All parts compared with the points, and their mean with the weights."""
        graph, problems = self.graph, []
        total = np.zeros(graph.weights.nnz)
        rounding = np.zeros_like(total)
        rows, columns = graph._ends
        found = []
        for k, (eps, share) in enumerate(zip(graph.eps, graph.shares, strict=True)):
            found.append(verify(graph.part(k).certificate, original))
            problems += [f"eps {eps:.4g}: {problem}" for problem in found[-1].problems]
            total += share * graph._part_data(k)
            size = np.abs(graph.potentials[:, k])
            rounding += share / eps * (size[rows] + size[columns] + graph._costs)
        off = int(np.count_nonzero(np.abs(total - graph.weights.data) > PART_ROUNDING * rounding))
        if off:
            problems.append(f"{off:,} weights are not the mean of the parts.")
        return Verification(
            rows_checked=min(each.rows_checked for each in found),
            pairs_checked=sum(each.pairs_checked for each in found),
            marginal_error=_marginal_error(graph.weights, graph.mass),
            wrong_weights=off + sum(each.wrong_weights for each in found),
            missing_pairs=sum(each.missing_pairs for each in found),
            problems=tuple(problems),
        )


NOT_IN_A_MEAN = (
    "must be None for a mean of plans: each plan holds back another part of the masses, and the "
    "mean would be feasible for none of them."
)


def mean_graph(
    parts: Iterable[TransportGraph],
    shares: ArrayLike | None = None,
    *,
    count: int,
    params: Keywords | None = None,
) -> MultiscaleGraph:
    """The mean of ``count`` plans, which are added one at a time.

    Shares are in the order of the parts, and equal by default.
    """
    weight = checked_shares(shares, count)
    total = costs = None
    kept = []
    for share, part in zip(weight, parts, strict=True):
        if np.isfinite(part.certificate.outlier_cost):
            raise invalid("outlier_cost", NOT_IN_A_MEAN)
        certificate = replace(part.certificate, evidence=None)
        kept.append((certificate, float(share), part.potentials, part.floors, part.params))
        added, its_costs = part.weights * share, part.weights.copy()
        its_costs.data = np.maximum(_edge_costs(part), ZERO)
        total = added if total is None else total + added
        costs = its_costs if costs is None else costs.maximum(its_costs)
        last = part
    assert total is not None
    assert costs is not None
    kept.sort(key=lambda each: each[0].eps)
    certificates, sizes, potentials, floors, described = zip(*kept, strict=True)
    total, costs = with_small_indices(total), with_small_indices(costs)
    if costs.nnz != total.nnz:  # a weight has underflowed to zero
        costs = with_small_indices(costs.multiply(total > 0.0).tocsr())
    return MultiscaleGraph(
        weights=total,
        params=_params(described[-1], certificates) | (params or {}),
        points=last.points,
        edge_costs=np.where(costs.data <= ZERO, 0.0, costs.data),
        certificate=mean_certificate(certificates, sizes, total, last.mass),
        potentials=np.column_stack(potentials),
        mass=last.mass,
        floors=floors,
        copies=last.copies,
    )


def checked_shares(shares: ArrayLike | None, count: int) -> FloatArray:
    """Positive shares that sum to one."""
    if shares is None:
        return np.full(count, 1.0 / count)
    found = to_numbers(shares, "shares", f"be {count} positive numbers, one per graph")
    if found.shape != (count,) or not (np.isfinite(found).all() and (found > 0.0).all()):
        msg = f"must be {count} positive numbers, one per graph, got {shares!r}."
        raise invalid("shares", msg)
    found = found / found.max()  # whose sum is finite
    return np.asarray(found / found.sum())


def _edge_costs(part: TransportGraph) -> FloatArray:
    if part.edge_costs is None:
        raise invalid("graphs", "must be quadratic graphs that keep the costs of their edges.")
    return part.edge_costs


def mean_certificate(
    parts: Sequence[Certificate], shares: Sequence[float], weights: SparseMatrix, mass: FloatArray
) -> MeanCertificate:
    """The certificate of a mean, from those of its parts."""
    weakest = max(parts, key=lambda part: STATUSES.index(part.status))
    eps = np.array([part.eps for part in parts])
    n_loops = int(np.count_nonzero(weights.diagonal()))
    return MeanCertificate(
        status=weakest.status,
        marginal_error=_marginal_error(weights, mass),
        duality_gap=max(part.duality_gap for part in parts),
        pairs_checked=min(part.pairs_checked for part in parts),
        violations=sum(part.violations for part in parts),
        n_steps=sum(part.n_steps for part in parts),
        eps=float(np.exp(np.average(np.log(eps), weights=shares))),
        n_screens=sum(part.n_screens for part in parts),
        missing_pairs=float(sum(part.missing_pairs for part in parts)),
        missing_pairs_bound=float(sum(part.missing_pairs_bound for part in parts)),
        n_edges=(weights.nnz - n_loops) // 2,
        n_floors=sum(part.n_floors for part in parts),
        floor_share=float(np.average([part.floor_share for part in parts], weights=shares)),
        reason=weakest.reason,
        history=tuple(each for part in parts for each in part.history),
        parts=tuple(parts),
        shares=tuple(map(float, shares)),
    )


def _marginal_error(weights: SparseMatrix, mass: FloatArray) -> float:
    return float(np.max(np.abs(row_sums(weights) - mass) / mass))


def _params(widest: Keywords, certificates: Sequence[Certificate]) -> Keywords:
    """The parameters of the widest part, with a list of eps as text, because params are flat."""
    shown = ", ".join(repr(float(each.eps)) for each in certificates)
    shared = {name: value for name, value in widest.items() if name != "mean_degree"}
    return shared | {"method": "multiscale", "eps": shown}
