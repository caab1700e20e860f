"""Random transport problems: one seed gives one problem, always the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

MODES = ("eps", "path", "mean_degree", "poor_start", "few_steps")
MODE_SHARES = (0.55, 0.15, 0.15, 0.1, 0.05)


@dataclass(frozen=True)
class Problem:
    """What is handed to the package, and the words by which results are counted."""

    seed: int
    X: np.ndarray
    mode: str
    cloud: str
    metric: str
    power: float
    normalize: bool
    self_loops: bool
    mass_kind: str
    mass: np.ndarray | None
    eps: float
    mean_degree: float
    candidates: np.ndarray | None  # mask of the allowed pairs, for sparse costs
    u0: np.ndarray
    max_iter: int
    outlier_cost: float | str | None

    @property
    def n(self):
        return len(self.X)

    def describe(self):
        return (
            f"seed {self.seed}: n={self.n} {self.cloud} d={self.X.shape[1]} {self.metric} "
            f"power={self.power} normalize={self.normalize} loops={self.self_loops} "
            f"mass={self.mass_kind} {self.mode} eps={self.eps:.4g} degree={self.mean_degree:.3g} "
            f"outlier_cost={self.outlier_cost}"
        )


def random_problem(seed, *, smallest=2, largest=150):
    rng = np.random.default_rng([20_261, seed])
    if smallest < 8 and rng.random() < 0.15:
        n = int(rng.choice([2, 3, 4, 5, 7]))
    else:
        n = int(np.exp(rng.uniform(np.log(max(smallest, 8)), np.log(largest))))
    cloud = str(rng.choice(list(CLOUDS)))
    X = CLOUDS[cloud](rng, n)
    kind = rng.random()
    metric, power, candidates = "euclidean", 2.0, None
    if kind < 0.15:
        metric = "cosine"
        power = 1.0
        X = X + 0.1 * rng.normal(size=X.shape)  # a row of zeros has no direction
    elif kind < 0.25:
        metric = str(rng.choice(["cityblock", "chebyshev"]))
        power = float(rng.choice([1.0, 2.0]))
    elif kind < 0.35:
        metric = "precomputed"
        X = _random_costs(rng, n)
        if rng.random() < 0.5:
            candidates = _random_candidates(rng, n)
    else:
        power = float(rng.choice([2.0, 2.0, 2.0, 0.5, 1.0, 1.5, 3.0]))
    mass_kind = str(rng.choice(list(MASSES), p=[0.4, 0.12, 0.12, 0.12, 0.12, 0.12]))
    mode = str(rng.choice(MODES, p=MODE_SHARES))
    return Problem(
        seed=seed,
        X=X,
        mode=mode,
        cloud=cloud,
        metric=metric,
        power=power,
        normalize=bool(rng.random() < 0.7),
        self_loops=bool(rng.random() < 0.35),
        mass_kind=mass_kind,
        mass=MASSES[mass_kind](rng, n),
        eps=float(10 ** rng.uniform(-6, 6)),
        mean_degree=float(np.exp(rng.uniform(0.0, np.log(max(n - 1, 1.0))))),
        candidates=candidates,
        u0=rng.normal(size=n) * 10 ** rng.uniform(-3, 3),
        max_iter=int(rng.integers(1, 30)),
        outlier_cost=_outlier_cost(rng, X, metric, power),
    )


def given(problem):
    """X as a user hands it over: sparse where only some pairs are allowed."""
    if problem.candidates is None:
        return problem.X
    rows, columns = np.nonzero(problem.candidates)
    return sp.csr_matrix((problem.X[rows, columns], (rows, columns)), shape=problem.X.shape)


def _outlier_cost(rng, X, metric, power):
    """None for most problems; otherwise "auto", or a price around the costs, or far from them."""
    if rng.random() < 0.7:
        return None
    if rng.random() < 0.3:
        return "auto"
    unit = float(np.mean(X)) if metric == "precomputed" else float(np.std(X)) ** power
    return float(10 ** rng.uniform(-4, 3)) * (unit or 1.0)


# Clouds ------------------------------------------------------------------------------


def _normal(rng, n):
    return rng.normal(size=(n, int(rng.integers(1, 12))))


def _many_dimensions(rng, n):
    return rng.normal(size=(n, 60))


def _clustered(rng, n):
    centers = 10 ** rng.uniform(0, 3) * rng.normal(size=(5, 3))
    return centers[rng.integers(5, size=n)] + rng.normal(size=(n, 3))


def _far_apart(rng, n):
    X = rng.normal(size=(n, 3))
    X[: n // 2, 0] += 1e6
    return X


def _collinear(rng, n):
    return np.outer(np.sort(rng.uniform(size=n)), rng.normal(size=3))


def _grid(rng, n):
    side = int(np.ceil(np.sqrt(n)))
    return np.stack(np.meshgrid(*2 * [np.arange(side, dtype=float)]), -1).reshape(-1, 2)[:n]


def _copies(rng, n):
    return rng.normal(size=(max(2, n // 5), 3))[rng.integers(max(2, n // 5), size=n)]


def _cauchy(rng, n):
    return rng.standard_cauchy(size=(n, 2))


def _outlier(rng, n):
    X = rng.normal(size=(n, 3))
    X[0] = 10 ** rng.uniform(1, 4)
    return X


def _star(rng, n):
    angle = 2 * np.pi * np.arange(n) / max(n - 1, 1)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[0] = 0.0
    return X


def _spiral(rng, n):
    t = np.linspace(1, 5, n)
    X = np.zeros((n, 20))
    X[:, 0], X[:, 1] = t * np.cos(t), t * np.sin(t)
    return X + 0.3 * rng.normal(size=X.shape)


CLOUDS = {
    function.__name__.lstrip("_"): function
    for function in (
        _normal, _many_dimensions, _clustered, _far_apart, _collinear, _grid, _copies, _cauchy,
        _outlier, _star, _spiral,
    )
}  # fmt: skip


def _random_costs(rng, n):
    C = rng.exponential(size=(n, n)) ** rng.choice([1.0, 3.0])
    C = np.triu(C, 1)
    return C + C.T


def _random_candidates(rng, n):
    """A mask that is connected by a cycle, plus random pairs; sometimes infeasible."""
    mask = rng.random((n, n)) < rng.uniform(0.02, 0.5)
    if rng.random() < 0.8:
        place = rng.permutation(n)
        mask[place, np.roll(place, 1)] = True
    mask |= mask.T
    np.fill_diagonal(mask, False)
    return mask


# Masses ------------------------------------------------------------------------------


def _ones(rng, n):
    return None


def _mild(rng, n):
    return rng.uniform(0.5, 1.5, size=n)


def _lognormal(rng, n):
    return rng.lognormal(size=n)


def _pareto(rng, n):
    return rng.pareto(1.5, size=n) + 1.0


def _six_orders(rng, n):
    return 10 ** rng.uniform(-3, 3, size=n)


def _one_heavy(rng, n):
    """One point nearly as heavy as all others together."""
    mass = rng.uniform(0.5, 1.5, size=n)
    mass[-1] = mass[:-1].sum() * (1 - 10 ** rng.uniform(-4, -0.3))
    return mass


MASSES = {
    function.__name__.lstrip("_"): function
    for function in (_ones, _mild, _lognormal, _pareto, _six_orders, _one_heavy)
}
