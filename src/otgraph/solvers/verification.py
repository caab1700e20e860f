"""Check a graph against its points, with code that is independent of the solver.

Costs come from scipy's distances in float64, one block of rows at a time. No cells, no float32
and no compiled kernel of this package are used. Small graphs are checked at every pair, large
ones at all pairs of some random rows. Symmetry and row sums are always checked in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from otgraph.solvers.certificate import Certificate
    from otgraph.typing import FloatArray, LongArray, Metric, PointsLike, SparseMatrix

MOST_POINTS = 5000  # up to this size all rows are compared with all points
SAMPLE_ROWS = 1000  # random rows that are compared above it
BLOCK_ENTRIES = 1 << 22
# Relative rounding error of a sum of two potentials and a cost.
ROUNDING = 16.0 * np.finfo(np.float64).eps
# Difference allowed between row sums that were added up in different orders.
SUM_RTOL = 1e-9
# Accuracy of the mean cost. It is checked only if all pairs are; the package may sample it above.
SCALE_RTOL = 1e-6
MISSING_MARGIN = 1.5  # a random sample may exceed the 95 % bound


class Original(NamedTuple):
    """What a graph is compared with: its points; between two clouds, Y holds the second."""

    X: PointsLike
    Y: PointsLike | None
    metric: Metric | None
    seed: int  # of the rows that are compared, if there are many


class Verifiable(Protocol):
    """What a certificate describes: a plan, or a graph that is made of plans."""

    def compared(self, certificate: Certificate, original: Original) -> Verification:
        """The comparison with the points."""
        ...


@dataclass(frozen=True)
class Evidence:
    """The plan that a certificate describes, its potentials, and how costs are computed.

    Between two clouds the columns have potentials and masses of their own.
    """

    method: str
    weights: SparseMatrix
    potentials: FloatArray
    mass: FloatArray
    floors: SparseMatrix | None
    metric: str
    power: float
    scale: float
    normalize: bool
    self_loops: bool
    column_potentials: FloatArray | None = None
    column_mass: FloatArray | None = None

    @property
    def across(self) -> bool:
        """Whether the plan is between two clouds."""
        return self.column_potentials is not None

    def compared(self, certificate: Certificate, original: Original) -> Verification:
        """The comparison with the points."""
        return _compared(self, certificate, original)


@dataclass(frozen=True)
class Verification:
    """Result of an independent check; true in a condition if it found no problem.

    Attributes
    ----------
    rows_checked
        Rows that were compared with all points.
    pairs_checked
        Pairs whose cost was computed.
    marginal_error
        Largest relative error of a row sum, over all rows; what a point holds back counts.
    wrong_weights
        Entries of the checked rows that differ from the weights of the potentials by more than
        rounding.
    missing_pairs
        Pairs of the checked rows that have no weight although the potentials give them one.
    problems
        One sentence for each contradiction to the certificate.
    """

    rows_checked: int
    pairs_checked: int
    marginal_error: float
    wrong_weights: int
    missing_pairs: int
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def __str__(self) -> str:
        """The result in one line, and one line per problem."""
        head = "verified" if self else "NOT verified"
        facts = (
            f"{head}: {self.rows_checked:,} rows against all points ({self.pairs_checked:,} "
            f"pairs), marginal error {self.marginal_error:.1e}, {self.wrong_weights:,} wrong "
            f"weights, {self.missing_pairs:,} missing pairs"
        )
        return "\n  ".join([facts, *self.problems])


def verify(certificate: Certificate, original: Original) -> Verification:
    """Compare a graph with its points; see `Certificate.verify`."""
    evidence = certificate.evidence
    if evidence is None:
        msg = "This certificate does not belong to a graph; use that of `graph.certificate`."
        raise ValueError(msg)
    return evidence.compared(certificate, original)


def _compared(evidence: Evidence, certificate: Certificate, original: Original) -> Verification:
    costs = _Costs(original, evidence)
    n, n_columns = evidence.weights.shape
    rows = np.arange(n)
    if n * n_columns > MOST_POINTS**2 and n > SAMPLE_ROWS:
        rows = np.sort(np.random.default_rng(original.seed).choice(n, SAMPLE_ROWS, replace=False))
    wrong = missing = checked = 0
    total = dropped = 0.0
    for some, cost, slack in costs.blocks(rows):
        expected, noise = _expected(evidence, certificate.eps, some, cost, slack)
        stored = evidence.weights[some].toarray()
        off = np.abs(stored - expected) > noise
        lacking = off & (stored == 0.0)
        if certificate.dropped_share:
            lack = np.sum(expected, axis=1, where=lacking) / evidence.mass[some]
            dropped = max(dropped, float(lack.max()))
        else:
            missing += int(np.count_nonzero(lacking))
        wrong += int(np.count_nonzero(off)) - int(np.count_nonzero(lacking))
        finite = np.isfinite(cost)
        checked += int(np.count_nonzero(finite))
        total += float(np.sum(cost, where=finite))
    error = _marginal_error(evidence, certificate.outlier_cost)
    problems = []
    if not evidence.across and (evidence.weights != evidence.weights.T).nnz:
        problems.append("The weights are not symmetric.")
    if abs(error - certificate.marginal_error) > SUM_RTOL + 0.01 * certificate.marginal_error:
        problems.append(
            f"Row sums are off by {error:.1e}; the certificate says "
            f"{certificate.marginal_error:.1e}."
        )
    if wrong:
        problems.append(f"{wrong:,} weights differ from those that the potentials give.")
    # Within one cloud each missing pair is found in both of its rows.
    everywhere = missing * n / len(rows) * (1.0 if evidence.across else 0.5)
    problems += _about_missing(certificate, missing, everywhere, len(rows))
    if dropped > certificate.dropped_share * (1.0 + SUM_RTOL):
        problems.append(
            f"Pairs that were left out have {dropped:.1e} of the mass of a row; the certificate "
            f"says {certificate.dropped_share:.1e}."
        )
    all_pairs = n * n_columns <= MOST_POINTS**2
    if all_pairs and evidence.normalize and costs.complete and total > 0.0:
        mean = total / (n * n_columns)
        if abs(mean - 1.0) > SCALE_RTOL:
            problems.append(f"The mean cost is {mean:.6g} and not 1: `normalize` does not hold.")
    pairs = checked
    if not evidence.across:  # a pair of two checked rows was counted twice
        pairs -= len(rows) * (len(rows) - 1) // 2
    return Verification(len(rows), pairs, error, wrong, missing, tuple(problems))


def _marginal_error(evidence: Evidence, outlier_cost: float) -> float:
    """Largest relative error of a row sum, or of a column sum between two clouds.

    What a point holds back is not in the graph: m_i u_i over half the outlier cost, for u_i > 0.
    """
    sides = [(evidence.mass, evidence.potentials)]
    if evidence.column_mass is not None and evidence.column_potentials is not None:
        sides.append((evidence.column_mass, evidence.column_potentials))
    errors = []
    for axis, (mass, u) in enumerate(sides):
        held = mass * np.maximum(u, 0.0) / (0.5 * outlier_cost)
        sums = np.asarray(evidence.weights.sum(axis=1 - axis)).ravel() + held
        errors.append(float(np.max(np.abs(sums - mass) / mass)))
    return max(errors)


def _about_missing(
    certificate: Certificate, missing: int, everywhere: float, rows: int
) -> list[str]:
    """A sentence, if more pairs are missing than the certificate allows."""
    if certificate.status == "not_converged":
        return []
    if everywhere <= MISSING_MARGIN * np.nan_to_num(certificate.missing_pairs_bound):
        return []
    return [f"{missing:,} pairs of {rows:,} rows are worth using and have no weight."]


def _expected(
    evidence: Evidence, eps: float, rows: LongArray, cost: FloatArray, slack: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights that the potentials give, and bounds of their rounding errors."""
    u = evidence.potentials[rows][:, None]
    v = evidence.potentials if evidence.column_potentials is None else evidence.column_potentials
    size = np.abs(u) + np.abs(v)
    finite = np.where(np.isfinite(cost), cost, 0.0)
    noise = (ROUNDING * (size + finite) + slack) / eps
    excess = (u + v - cost) / eps
    if evidence.method == "entropic":
        with np.errstate(under="ignore"):
            weights = np.exp(excess)
            return weights, weights * np.expm1(np.minimum(noise, 1.0)) + np.finfo(float).tiny
    least = 0.0 if evidence.floors is None else evidence.floors[rows].toarray()
    return np.maximum(excess, least), noise


class _Costs:
    """Scaled costs of rows against all points, with bounds of their rounding errors."""

    def __init__(self, original: Original, evidence: Evidence) -> None:
        X, Y = original.X, original.Y
        self._evidence = evidence
        self._metric = self._metric_of(original.metric)
        self._precomputed = self._metric == "precomputed"
        self._sparse = sp.issparse(X)
        self._X = _numbers(X)
        self.n, n_columns = evidence.weights.shape
        self.complete = not (self._sparse and self._precomputed)
        if self._X.ndim != 2 or self._X.shape[0] != self.n:
            shape = self._X.shape
            raise invalid("X", f"must have {self.n} rows, one per point, got shape {shape}.")
        wanted = evidence.across and not self._precomputed
        if wanted != (Y is not None):
            wants = "the points of the second cloud" if wanted else "None: `X` is enough"
            raise invalid("Y", f"must be {wants}, got {type(Y).__name__}.", TypeError)
        self._Y = self._X if Y is None else _numbers(Y)
        if wanted and (self._Y.ndim != 2 or self._Y.shape[0] != n_columns):
            shape = self._Y.shape
            raise invalid("Y", f"must have {n_columns} rows, one per point, got shape {shape}.")
        if self._sparse and self._precomputed and not evidence.across:
            self._X = _both_directions(self._X)
        if not self._precomputed:
            self._spread = 2.0 * max(float(abs(part).max()) for part in (self._X, self._Y))

    def _metric_of(self, given: object) -> Any:
        recorded = self._evidence.metric
        if recorded.startswith("callable "):
            if not callable(given):
                msg = f"must be the function that the graph was built with ({recorded})."
                raise invalid("metric", msg)
            return given
        return {"l2": "euclidean", "l1": "cityblock", "manhattan": "cityblock"}.get(
            recorded, recorded
        )

    def blocks(self, rows: LongArray) -> Iterator[tuple[LongArray, FloatArray, FloatArray]]:
        """Rows, their costs to all points, and bounds of the rounding errors."""
        size = max(1, BLOCK_ENTRIES // self._evidence.weights.shape[1])
        for first in range(0, len(rows), size):
            some = rows[first : first + size]
            cost, slack = self._of_rows(some)
            if not self._evidence.across:
                diagonal = np.arange(len(some))
                cost[diagonal, some] = 0.0 if self._evidence.self_loops else np.inf
            yield some, cost, slack

    def _of_rows(self, rows: LongArray) -> tuple[FloatArray, FloatArray]:
        scale = self._evidence.scale
        if self._precomputed:
            if not self._sparse:
                cost = self._X[rows] / scale
                return cost, ROUNDING * cost
            part = self._X[rows]
            cost = np.full(part.shape, np.inf)
            here = np.repeat(np.arange(len(rows)), np.diff(part.indptr))
            cost[here, part.indices] = part.data / scale
            return cost, np.zeros_like(cost)
        distance = self._distances(rows)
        power = self._evidence.power
        if self._metric == "cosine":
            shift = np.sqrt(distance) * np.sqrt(self._X.shape[1]) + distance
        else:
            shift = self._X.shape[1] * (self._spread + distance)
        shift = ROUNDING * shift
        cost = distance**power
        above = (distance + shift) ** power - cost
        below = cost - np.maximum(distance - shift, 0.0) ** power
        return cost / scale, np.maximum(above, below) / scale + ROUNDING * cost / scale

    def _distances(self, rows: LongArray) -> FloatArray:
        from scipy.spatial.distance import cdist

        some, others = _dense(self._X[rows]), _dense(self._Y)
        if self._metric == "cosine":
            # Half the squared chord; 1 - cos would lose all digits for similar directions.
            some, others = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (some, others))
            return 0.5 * cdist(some, others, "sqeuclidean")
        keywords: dict[str, Any] = {}
        if self._metric in ("seuclidean", "mahalanobis"):
            parts = [self._X, self._Y] if self._evidence.across else [self._X]
            points = np.vstack([_dense(part) for part in parts])
            if self._metric == "seuclidean":
                keywords["V"] = np.var(points, axis=0, ddof=1)
            else:
                keywords["VI"] = np.linalg.inv(np.atleast_2d(np.cov(points.T))).T
        # scipy squares differences, so points are scaled to values near 1 first.
        unit = 1.0
        if self._metric in ("euclidean", "sqeuclidean"):
            unit = float(2.0 ** np.floor(np.log2(self._spread))) if self._spread else 1.0
            unit = unit if self._metric == "euclidean" else 1.0
        return np.asarray(cdist(some / unit, others / unit, self._metric, **keywords) * unit)


def _numbers(X: PointsLike) -> Any:
    return sp.csr_matrix(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else X


def _both_directions(matrix: SparseMatrix) -> SparseMatrix:
    """Candidate costs stored for (i, j) and (j, i); explicit zeros are kept."""
    coo = matrix.tocoo()
    apart = coo.row != coo.col
    i, j, c = coo.row[apart], coo.col[apart], coo.data[apart]
    n = matrix.shape[0]
    key = np.concatenate([i.astype(np.int64) * n + j, j.astype(np.int64) * n + i])
    key, place = np.unique(key, return_index=True)
    costs = np.concatenate([c, c])[place]
    indptr = np.searchsorted(key // n, np.arange(n + 1))
    return sp.csr_matrix((costs, key % n, indptr), shape=(n, n))
