"""What was proved about a solution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from otgraph.solvers.verification import Original, verify

if TYPE_CHECKING:
    from otgraph.solvers.verification import Verifiable, Verification
    from otgraph.typing import Metric, PointsLike


class Status(StrEnum):
    """What was proved; members compare equal to their plain strings."""

    EXACT = "exact"
    EXACT_ON_CANDIDATES = "exact_on_candidates"
    NOT_CONVERGED = "not_converged"

    @property
    def meaning(self) -> str:
        """The status as a sentence."""
        return _MEANING[self]


_MEANING = {
    Status.EXACT: "optimal among all pairs of points: marginals hold and no pair is missing",
    Status.EXACT_ON_CANDIDATES: "optimal among the candidate pairs; not all others were checked",
    Status.NOT_CONVERGED: "not proved optimal",
}


class Reason(StrEnum):
    """Why a solution is not proved optimal, and what may help; empty if it is proved."""

    NONE = ""
    OUT_OF_STEPS = "the limit of Newton steps was reached; raise `max_iter`"
    NO_PROGRESS = "Newton steps no longer reduced the error; try a larger `eps` or a start `u0`"
    ROUNDING = "`tol` is below the rounding errors of a row sum at this `eps`; raise `tol` or `eps`"
    CANDIDATES_CHANGE = (
        "pairs were still missing after the last round; try a larger `eps` or `n_candidates`"
    )
    MASS_LEFT_OVER = (
        "some points have more mass than their partners can take; change `mass`, or pass "
        "`self_loops=True`"
    )
    NO_FEASIBLE_PLAN = (
        "row sums are within `tol`, but no plan with exact row sums was found, so the duality "
        "gap is unknown; lower `tol` or raise `max_iter`"
    )


@dataclass(frozen=True)
class Certificate:
    """Computed evidence for an optimal transport graph.

    A certificate cannot contradict itself. If the status is not ``"not_converged"``, the
    constructor raises an error unless the gap is finite and there are no violations.

    Parameters
    ----------
    status
        ``"exact"``, ``"exact_on_candidates"`` or ``"not_converged"``.
    marginal_error
        Largest ``|row sum - mass| / mass`` of the plan that is returned. With `outlier_cost`, what
        the potentials let a point hold back counts as a part of its row sum.
    duality_gap
        Primal value of a plan with the exact marginals (with none above the masses, if points may
        hold mass back) minus the dual value of the potentials, relative to the primal value. With
        status ``"exact_on_candidates"`` it is the gap among the candidate pairs. Infinite if no
        such plan was found.
    pairs_checked
        Pairs (each counted once) for which ``u_i + u_j <= c_ij`` was decided or proved.
    violations
        Pairs outside the candidates, among those checked, with ``u_i + u_j > c_ij``.
    n_steps
        Newton steps in all rounds together.
    eps
        Regularization of the solved problem.
    n_screens
        Passes over all pairs after the search for neighbors; zero if that search, or the pass for
        an earlier ``eps`` of a path, was enough.
    missing_pairs
        Estimated number of pairs that the full solution uses and the candidates lack; zero when
        the status is ``"exact"``, ``nan`` when it is unknown.
    missing_pairs_bound
        Upper end of the one-sided 95 % confidence interval of that number.
    n_edges
        Number of pairs with positive weight, to compare ``missing_pairs`` with.
    n_floors
        Number of pairs with a minimum flow. The graph is optimal among all graphs in which these
        pairs carry at least that.
    floor_share
        Share of the total mass that the minimum flows carry.
    dropped_share
        Largest share of the mass of a row that the pairs without a weight would have at these
        potentials, a proven bound; zero if all pairs were kept. Only entropic plans leave pairs
        out. Above the tolerance the status is ``"exact_on_candidates"``.
    outlier_cost
        Price at which points may hold mass back in the solved problem; infinite if they may not.
    reason
        Why the status is ``"not_converged"`` and what may help; empty otherwise.
    history
        Marginal errors, one tuple per round: at its start and after every Newton step. Rounds
        may have different candidates, so the error can jump between them.
    evidence
        The plan that this certificate describes, set by its graph; see :meth:`verify`.
    """

    status: Status
    marginal_error: float
    duality_gap: float
    pairs_checked: int
    violations: int
    n_steps: int
    eps: float
    n_screens: int = 0
    missing_pairs: float = 0.0
    missing_pairs_bound: float = 0.0
    n_edges: int = 0
    n_floors: int = 0
    floor_share: float = 0.0
    dropped_share: float = 0.0
    outlier_cost: float = math.inf
    reason: Reason = Reason.NONE
    history: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    evidence: Verifiable | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raise if the status contradicts the numbers."""
        if self.status == Status.NOT_CONVERGED:
            return
        finite = math.isfinite(self.marginal_error) and math.isfinite(self.duality_gap)
        if not finite or self.violations:
            msg = (
                f"A certificate with status {self.status.value!r} needs a finite marginal error "
                f"and gap and no violations, got {self.marginal_error!r}, {self.duality_gap!r} "
                f"and {self.violations!r}."
            )
            raise ValueError(msg)

    def verify(
        self,
        X: PointsLike,
        Y: PointsLike | None = None,
        *,
        metric: Metric | None = None,
        random_state: int = 0,
    ) -> Verification:
        """Check the graph of this certificate against its points, with independent code.

        Costs are computed again from ``X`` with scipy. Every weight is compared with the
        weight that the potentials give, missing pairs are counted, and rows are summed. Up to
        5000 points all rows are checked against all points, above that 1000 random rows.

        Parameters
        ----------
        X
            The points, or costs, that the graph was built from.
        Y
            The second cloud, for a graph between two.
        metric
            The metric function, if the graph was built with one; files cannot store it.
        random_state
            Seed of the random rows.

        Examples
        --------
        >>> import numpy as np, otgraph
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> graph = otgraph.quadratic_ot_graph(X, eps=1.0)
        >>> bool(graph.certificate.verify(X))
        True
        >>> bool(graph.certificate.verify(X + 0.01 * X**2))
        False
        """
        return verify(self, Original(X, Y, metric, random_state))

    def record(self) -> dict[str, Any]:
        """The numbers as plain values, by name."""
        names = [item.name for item in fields(self) if item.name != "evidence"]
        return {name: getattr(self, name) for name in names} | {
            "status": self.status.value,
            "reason": self.reason.value,
        }

    @property
    def missing_share(self) -> float:
        """Estimated missing pairs, relative to the edges of the graph."""
        return self.missing_pairs / max(self.n_edges, 1)

    def __str__(self) -> str:
        """Readable summary of a few lines."""
        restricted = self.status == Status.EXACT_ON_CANDIDATES
        meaning = f"{self.status.meaning}{': ' if self.reason else ''}{self.reason.value}"
        lines = [
            f"{self.status.value}: {meaning}",
            f"  eps {self.eps:.6g}, marginal error {self.marginal_error:.1e}, "
            f"relative duality gap {'on the candidates ' if restricted else ''}"
            f"{max(self.duality_gap, 0.0):.1e}",  # rounding may make it negative
            f"  {self.pairs_checked:,} pairs checked, {self.violations:,} violations, "
            f"Newton steps: {self.n_steps}, passes over the pairs: {self.n_screens}",
        ]
        if self.dropped_share:
            lines.append(
                f"  pairs that were left out have at most {_percent(self.dropped_share)} of the "
                "mass of a row"
            )
        elif restricted:
            lines.append(f"  {self.missing_text}")
        if self.n_floors:
            lines.append(
                f"  subject to {self.n_floors:,} minimum flows, which carry "
                f"{_percent(self.floor_share)} of the mass"
            )
        if self.outlier_cost < math.inf:
            lines.append(f"  points may hold mass back: outlier cost {self.outlier_cost:.6g}")
        return "\n".join(lines)

    @property
    def missing_text(self) -> str:
        """How many pairs the candidates lack, as a sentence."""
        if math.isnan(self.missing_pairs):
            return "missing pairs unknown: only the given candidates are allowed"
        return (
            f"about {self.missing_pairs:,.0f} pairs missing ({_percent(self.missing_share)} of "
            f"the edges; 95 % bound {self.missing_pairs_bound:,.0f})"
        )


def _percent(share: float) -> str:
    """A share in percent: two digits below 100 %, whole numbers above."""
    percent = 100.0 * share
    return f"{percent:.2g} %" if percent < 100.0 else f"{percent:,.0f} %"
