"""What was proved about a solution."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Status(StrEnum):
    """How much is known; members compare equal to their plain strings."""

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
    Status.NOT_CONVERGED: "stopped before the marginals reached the tolerance",
}


@dataclass(frozen=True)
class Certificate:
    """Computed evidence for a quadratic OT graph.

    Parameters
    ----------
    status
        ``"exact"``, ``"exact_on_candidates"`` or ``"not_converged"``.
    marginal_error
        Largest ``|row sum - mass| / mass``.
    duality_gap
        Primal value of a plan with the exact marginals minus the dual value of the
        potentials, relative to the primal value.
    pairs_checked
        Pairs (each counted once) for which ``u_i + u_j <= c_ij`` was decided or proved.
    violations
        Pairs outside the candidates, among those checked, with ``u_i + u_j > c_ij``.
    n_steps
        Newton steps in all rounds together.
    eps
        Regularization of the solved problem.
    n_screens
        Passes over all pairs; zero where the pass for an earlier ``eps`` of a path sufficed.
    missing_pairs
        Estimated number of pairs that the full solution uses and the candidates lack;
        zero when the status is ``"exact"``, ``nan`` when nothing was sampled.
    missing_pairs_bound
        Upper end of the one-sided 95 % confidence interval of that number.
    history
        Marginal errors on the way, a tuple for each round: at its start and after every step.
        A round may have other candidates than the one before, and then begins elsewhere.
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
    history: tuple[tuple[float, ...], ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """One paragraph for people."""
        return (
            f"{self.status.value}: {self.status.meaning}\n"
            f"  eps {self.eps:.6g}, marginal error {self.marginal_error:.1e}, "
            f"relative duality gap {self.duality_gap:.1e}\n"
            f"  {self.pairs_checked:,} pairs checked, {self.violations:,} violations, "
            f"{self.n_steps} Newton steps, {self.n_screens} screens"
        )
