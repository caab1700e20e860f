"""Laws that every graph obeys, on random problems over the whole public surface.

Two graphs of the same points may differ by what is known: rounding errors of their costs, and row
sums that are right to a tolerance. From these each comparison derives how far weights may be
apart. Where the problem multiplies them beyond use, the law is counted as not judged.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

import otgraph
from otgraph import estimators
from otgraph.exceptions import InfeasibleError

from . import oracle
from .oracle import UNIT
from .problems import CLOUDS

QUADRATIC_TOL, ENTROPIC_TOL = 1e-9, 1e-6
THRESH, DECAY = 1e-4, 2.0  # of MAGIC
EIGEN_TOL, MU, STEPS = 1e-10, 0.5, 3
COPIES = 3
LARGEST_BOUND = 0.1  # errors above are beyond a first-order bound
HOLDS, NOT_JUDGED = "", "not judged"


@dataclass(frozen=True)
class Case:
    """A construction with its options, and points for it."""

    kind: str
    X: np.ndarray
    metric: str
    power: float
    eps: float
    k: int
    self_loops: bool
    mass: np.ndarray | None
    rng: np.random.Generator = field(repr=False)

    @cached_property
    def costs(self):
        return oracle.cost_matrix(self.X, metric=self.metric, power=self.power, normalize=True)

    @cached_property
    def noise(self):
        """Bound of the rounding error of every cost; MAGIC has distances."""
        return oracle.cost_error(self.X, self.costs, metric=self.metric, power=self.power)

    @cached_property
    def graph(self):
        return self.built()

    @property
    def is_transport(self):
        return self.kind in ("quadratic", "entropic")

    def built(self, *, n_jobs=1, X=None):
        """The graph, with the same options for points that are given in another form."""
        X = self.X if X is None else X
        cost = {"metric": self.metric, "power": self.power}
        plan = {"mass": self.mass, "self_loops": self.self_loops}
        match self.kind:
            case "quadratic":
                options = {**cost, **plan, "tol": QUADRATIC_TOL}
                return otgraph.quadratic_ot_graph(X, self.eps, n_jobs=n_jobs, **options)
            case "entropic":
                options = {**cost, **plan, "tol": ENTROPIC_TOL}
                return otgraph.entropic_ot_graph(X, self.eps, n_jobs=n_jobs, **options)
            case "gaussian":
                options = {**cost, "self_loops": self.self_loops}
                return otgraph.gaussian_graph(X, self.eps, n_jobs=n_jobs, **options)
            case "knn":
                return otgraph.knn_gaussian_graph(X, self.k, self.eps, n_jobs=n_jobs, **cost)
            case _:
                options = {"decay": DECAY, "thresh": THRESH, "knn_max": len(X) - 1}
                return otgraph.magic_graph(X, self.k, metric=self.metric, n_jobs=n_jobs, **options)

    def of(self, X, rows=None):
        """The same for other points, some rows of these."""
        mass = self.mass if self.mass is None or rows is None else self.mass[rows]
        return replace(self, X=X, mass=mass)


def random_case(seed):
    rng = np.random.default_rng([161, seed])
    kind = KINDS[seed % len(KINDS)]
    n = int(rng.integers(8, 70))
    X = CLOUDS[str(rng.choice(list(CLOUDS)))](rng, n)
    metric, power = "euclidean", float(rng.choice([2.0, 2.0, 1.0, 0.5, 3.0]))
    if rng.random() < 0.3:
        metric, power = str(rng.choice(["cosine", "cityblock", "chebyshev"])), 1.0
    if metric == "cosine":
        X = X + 0.1 * rng.normal(size=X.shape)  # a row of zeros has no direction
    return Case(
        kind=kind, X=X, metric=metric, power=1.0 if kind == "magic" else power,
        eps=float(10 ** rng.uniform(-1.5, 1.5)), k=int(rng.integers(2, min(n - 1, 12))),
        self_loops=bool(rng.random() < 0.5),
        mass=rng.uniform(0.5, 1.5, size=n) if rng.random() < 0.5 else None, rng=rng,
    )  # fmt: skip


def judge_laws(seed):
    """One verdict for each law."""
    case = random_case(seed)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (law, kinds) in LAWS.items():
            if case.kind not in kinds:
                continue
            try:
                wrong = law(case)
            except InfeasibleError:
                wrong = NOT_JUDGED
            told = (
                f"law seed {seed}: n={len(case.X)} {case.metric} power={case.power} "
                f"eps={case.eps:.4g} k={case.k} loops={case.self_loops}"
            )
            if wrong in (HOLDS, NOT_JUDGED):
                found.append((f"{case.kind}: {name} {wrong or 'holds'}", ""))
            else:
                found.append((f"{case.kind}: {name} BROKEN", f"{wrong} | {told}"))
    return found


# Comparisons ----------------------------------------------------------------------------


def _apart(case, a, b, noise):
    """Whether two graphs of the same points differ by more than they may, with costs off by
    ``noise`` between them."""
    W, V = a.weights.toarray(), b.weights.toarray()
    return {
        "quadratic": _quadratic_apart,
        "entropic": _entropic_apart,
        "gaussian": _gaussian_apart,
        "magic": _magic_apart,
    }[case.kind](case, a, b, W, V, noise)


def _quadratic_apart(case, a, b, W, V, noise):
    """Of F: eps |plan(u) - plan(v)|² <= 2 <u - v, row sums of plan(u) - those of plan(v)>."""
    if not a.certificate.status == b.certificate.status == "exact":
        return NOT_JUDGED
    u, v, eps = a.potentials, b.potentials, a.eps
    size = np.abs(u)[:, None] + np.abs(u) + np.abs(v)[:, None] + np.abs(v) + case.costs
    off = (noise + 8 * UNIT * size) * ((W > 0) | (V > 0)) / eps
    sums = np.abs(W.sum(axis=1) - V.sum(axis=1)) + off.sum(axis=1)
    allowed = np.sqrt(2.0 * (np.abs(u - v) @ sums) / eps) + np.linalg.norm(off)
    return _above(np.linalg.norm(W - V), allowed)


def _entropic_apart(case, a, b, W, V, noise):
    """Of log(V / W) = d_i + d_j + noise: (diag(W1) + W) d is what the row sums differ by."""
    if not a.certificate.status == b.certificate.status == "exact":
        return NOT_JUDGED
    shift = (noise + 16 * UNIT * (np.abs(case.costs) + np.abs(a.potentials).max())) / a.eps
    sums = W.sum(axis=1)
    missing = np.abs(sums - V.sum(axis=1)) + (W * shift).sum(axis=1)
    root = np.sqrt(sums)
    least = np.linalg.eigvalsh(W / np.outer(root, root))[0]
    if least <= -1.0 + 1e-6:
        return NOT_JUDGED
    d = np.linalg.norm(missing / root) / (1.0 + least) / root
    logs = d[:, None] + d + shift
    if logs.max() > LARGEST_BOUND:
        return NOT_JUDGED
    return _above(np.abs(W - V), 2.0 * W * np.expm1(logs) + np.finfo(float).tiny)


def _gaussian_apart(case, a, b, W, V, noise):
    shift = (noise + 8 * UNIT * case.costs) / case.eps
    return _above(np.abs(W - V), W * np.expm1(shift) + 8 * UNIT * W + np.finfo(float).tiny)


def _magic_apart(case, a, b, W, V, noise):
    """Of exp(-(d/σ)^α): x^α exp(-x^α) <= 1/e; a weight at the threshold may be there or not."""
    C = case.costs
    inside = C > 0
    relative = float(np.max(noise[inside] / C[inside])) if inside.any() else 0.0
    if relative > LARGEST_BOUND:
        return NOT_JUDGED
    return _above(np.abs(W - V), 2 * DECAY * 2 * relative / np.e + 1.01 * THRESH)


def _above(found, allowed):
    over = np.max(np.asarray(found) - allowed)
    if over <= 0:
        return HOLDS
    return f"off by {np.max(found):.2e}, {over:.2e} more than may be"


def _neighbors_wrong(case, graph):
    """Pairs that are surely among the k nearest have their weight, those that surely are not none.

    Pairs within rounding of the k-th cost may be either.
    """
    C, noise, W = case.costs, case.noise, graph.weights.toarray()
    others = C + np.diag(np.full(len(C), np.inf))
    limit = np.sort(others, axis=1)[:, case.k - 1]
    unsure = noise + noise.max(axis=1)[:, None]
    surely = others < limit[:, None] - unsure
    surely_not = others > limit[:, None] + unsure
    there, missing = surely | surely.T, surely_not & surely_not.T
    expected = np.exp(-C / case.eps)
    if np.any(W[missing] > 0):
        return "a pair that is not among the nearest"
    off = expected * np.expm1((noise + 8 * UNIT * C) / case.eps) + 8 * UNIT + np.finfo(float).tiny
    return _above(np.abs(W - expected)[there], off[there]) if there.any() else HOLDS


# Laws of graphs -------------------------------------------------------------------------


def _form(case):
    graph = case.graph
    W = graph.weights
    if (W != W.T).nnz or not W.has_sorted_indices or not np.isfinite(W.data).all():
        return "not symmetric, sorted and finite"
    if W.nnz and W.data.min() <= 0:
        return "weights that are not positive"
    edges = graph.edges()
    dense = np.zeros(W.shape)
    dense[edges.i, edges.j] = edges.weight
    if np.any(dense + dense.T + np.diag(W.diagonal()) != W.toarray()):
        return "edges() are not those of the weights"
    sums = np.asarray(W.sum(axis=1)).ravel()
    walk = np.asarray(graph.transition().sum(axis=1)).ravel()
    rest = np.asarray(graph.laplacian().sum(axis=1)).ravel()
    n = graph.n
    return _above(np.abs(walk - 1.0), 2 * n * UNIT) or _above(np.abs(rest), 4 * n * UNIT * sums)


def _row_sums(case):
    graph = case.graph
    if graph.certificate.status != "exact":
        return NOT_JUDGED
    mass = np.ones(graph.n) if case.mass is None else case.mass
    tol = QUADRATIC_TOL if case.kind == "quadratic" else ENTROPIC_TOL
    sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    return _above(np.abs(sums - mass), mass * (tol + 4 * graph.n * UNIT))


def _permutation(case):
    order = case.rng.permutation(len(case.X))
    other = case.of(case.X[order], order)
    if case.kind == "knn":
        return _neighbors_wrong(other, other.graph)
    return _apart(case, case.graph, _reordered(other.graph, np.argsort(order)), 2 * case.noise)


def _reordered(graph, order):
    changes = {"weights": graph.weights[order][:, order]}
    if hasattr(graph, "potentials"):
        changes |= {"potentials": graph.potentials[order], "mass": graph.mass[order]}
    return replace(graph, edge_costs=None, **changes)


def _scale(case):
    factor = 2.0 ** int(case.rng.integers(-60, 60))
    return _moved(case, case.of(case.X * factor))


def _any_scale(case):
    return _moved(case, case.of(case.X * 10 ** case.rng.uniform(-6, 6)))


def _shift(case):
    if case.metric == "cosine":
        return NOT_JUDGED
    size = np.abs(case.X).max() * 10 ** case.rng.uniform(-2, 3)
    return _moved(case, case.of(case.X + size * case.rng.normal(size=case.X.shape[1])))


def _moved(case, other):
    if case.kind == "knn":
        return _neighbors_wrong(other, other.graph)
    return _apart(case, case.graph, other.graph, case.noise + other.noise)


def _copies(case):
    """To exchange two copies changes nothing."""
    rows = np.r_[np.arange(len(case.X)), np.arange(COPIES)]
    other = case.of(case.X[rows], rows)
    order = np.arange(len(rows))
    order[:COPIES], order[-COPIES:] = order[-COPIES:].copy(), order[:COPIES].copy()
    graph = other.graph
    return _apart(other, graph, _reordered(graph, order), 2 * other.noise)


def _same_bits(case):
    before = case.X.copy()
    frozen = np.asfortranarray(case.X)
    frozen.flags.writeable = False
    for again in (case.built(n_jobs=2), case.built(X=frozen), case.built(X=case.X.tolist())):
        if not _equal(again, case.graph):
            return "other bits"
    return HOLDS if np.array_equal(before, case.X) else "the input was changed"


def _equal(a, b):
    names = ("weights.data", "weights.indices", "weights.indptr")
    names += ("potentials", "mass", "edge_costs") if hasattr(a, "potentials") else ()
    return a.params == b.params and all(
        np.array_equal(_attribute(a, name), _attribute(b, name)) for name in names
    )


def _attribute(graph, name):
    for part in name.split("."):
        graph = getattr(graph, part)
    return np.zeros(0) if graph is None else graph


def _saved(case):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("a.otg", "b.otg")]
        case.graph.save(paths[0])
        loaded = otgraph.load_graph(paths[0])
        loaded.save(paths[1])
        if paths[0].read_bytes() != paths[1].read_bytes():
            return "saved again, it is another file"
        if len(os.listdir(folder)) != 2:
            return "hidden files are left"
    same = _equal(case.graph, loaded) and np.array_equal(loaded.points, case.X)
    return HOLDS if same else "loaded, it is another graph"


def _extended(case):
    """Points of the graph, passed again: their rows, where points may keep mass."""
    graph, options = case.graph, {}
    if case.is_transport:
        if graph.certificate.status != "exact" or not case.self_loops:
            return NOT_JUDGED
        options["mass"] = graph.mass
    rows, W = graph.extend(case.X, **options).toarray(), graph.weights.toarray()
    noise = 2 * case.noise
    if case.kind == "gaussian":
        np.fill_diagonal(W, 1.0)
        return _gaussian_apart(case, None, None, W, rows, noise)
    error = graph.certificate.marginal_error
    size = 8 * UNIT * (np.abs(graph.potentials).max() + case.costs)
    if case.kind == "quadratic":
        # The equation of a row has slope one at least: its own pair is active.
        off = (noise + size) / case.eps
        allowed = (graph.mass * error + off.sum(axis=1))[:, None] + off
        return _above(np.abs(rows - W), allowed)
    shift = error + 2 * ((noise + size) / case.eps).max(axis=1)[:, None]
    if shift.max() > LARGEST_BOUND:
        return NOT_JUDGED
    return _above(np.abs(rows - W), 2 * W * shift + np.finfo(float).tiny)


def _batches(case):
    """New points one at a time have the rows that they have together."""
    new = case.X[:6] + 0.1 * case.X.std(axis=0) * case.rng.normal(size=case.X[:6].shape)
    if case.kind == "magic":
        return NOT_JUDGED  # a weight at the threshold may be there or not
    graph = case.graph
    rows = graph.extend(new).toarray()
    alone = np.vstack([graph.extend(point[None]).toarray() for point in new])
    both = case.of(np.vstack([case.X, new]))
    off = 2 * float(both.noise.max()) * max(1.0, both.X.var() / max(case.X.var(), UNIT)) / case.eps
    if case.kind == "knn" or off > LARGEST_BOUND:
        return NOT_JUDGED
    mass = 1.0
    return _above(np.abs(rows - alone), len(case.X) * (4 * off + 64 * UNIT) * mass)


def _fixed_neighbors(case):
    graph, k = case.graph, case.k
    indices, distances = graph.to_knn(k)
    if np.any(np.diff(distances, axis=1) < 0):
        return "distances are not sorted"
    for i, row in enumerate(indices):
        own = set(graph.weights[[i]].indices) - {i}
        if i in row or len(set(row)) < k:
            return "a neighbor twice, or a point that is its own"
        if not (own <= set(row) if len(own) <= k else set(row) <= own):
            return "not the neighbors in the graph first"
    return HOLDS


def _path(case):
    graphs = otgraph.eps_path(
        case.X, [3 * case.eps, case.eps], metric=case.metric, power=case.power, mass=case.mass,
        self_loops=case.self_loops, tol=QUADRATIC_TOL, n_jobs=1,
    )  # fmt: skip
    found = next(graph for graph in graphs if graph.eps == case.eps)
    return _apart(case, case.graph, found, case.noise)


ESTIMATORS = {
    "quadratic": estimators.QuadraticOTTransformer,
    "entropic": estimators.EntropicOTTransformer,
    "gaussian": estimators.GaussianTransformer,
    "knn": estimators.KNNGaussianTransformer,
    "magic": estimators.MAGICTransformer,
}


def _estimator(case):
    """The estimator with the recorded parameters has the same graph."""
    kind = ESTIMATORS[case.kind]
    names = kind._get_param_names()
    options = {name: value for name, value in case.graph.params.items() if name in names}
    fitted = kind(**options).fit(case.X)
    if case.mass is not None and case.is_transport:
        return NOT_JUDGED  # masses belong to points, which estimators do not know beforehand
    same = np.array_equal(fitted.graph_.weights.data, case.graph.weights.data)
    return HOLDS if same else "other weights"


# Laws of methods ------------------------------------------------------------------------


def _embedding(case):
    graph = case.graph
    if graph.n_connected > 1:
        return NOT_JUDGED
    found = otgraph.eigenmaps(graph, 2, tol=EIGEN_TOL)
    sums = np.asarray(graph.weights.sum(axis=1)).ravel()
    Q = found.coordinates * np.sqrt(sums / sums.sum())[:, None]
    residual = graph.weights @ found.coordinates / sums[:, None] - found.coordinates * (
        found.eigenvalues
    )
    norms = np.linalg.norm(residual * np.sqrt(sums / sums.sum())[:, None], axis=0)
    lengths = np.linalg.norm(Q, axis=0)
    rounding = 16 * graph.n * UNIT
    return _above(norms, EIGEN_TOL + rounding) or _above(np.abs(lengths - 1.0), rounding)


def _walks_scale(case):
    """Weights times a power of four: the same walk, so the same bits everywhere."""
    graph = case.graph
    other = otgraph.Graph.from_weights(graph.weights * 4.0 ** int(case.rng.integers(-20, 20)))
    labels = _some_labels(case)
    pairs = [
        (otgraph.denoise(g, case.X, STEPS), otgraph.spread_labels(g, labels, MU).probabilities,
         otgraph.eigenmaps(g, 2).coordinates, otgraph.cluster(g, 2).labels)
        for g in (graph, other)
    ]  # fmt: skip
    names = ("denoise", "labels", "eigenmaps", "cluster")
    wrong = [n for n, a, b in zip(names, *pairs, strict=True) if not np.array_equal(a, b)]
    return f"other bits of {', '.join(wrong)}" if wrong else HOLDS


def _some_labels(case):
    labels = np.full(len(case.X), -1)
    labels[:6] = [0, 1, 2, 0, 1, 2]
    return labels


def _labels(case):
    graph, n = case.graph, len(case.X)
    labels = _some_labels(case)
    found = otgraph.spread_labels(graph, labels, MU)
    P = graph.transition().toarray()
    M = P + P.T
    known = np.eye(3)[labels] * (labels >= 0)[:, None]
    A = np.diag(M.sum(axis=1) + MU) - M
    Q = np.linalg.solve(A, MU * known)
    mass = Q.sum(axis=1)
    # The inverse has row sums 1/mu, so that rounding of the dense solution is at most this.
    off = n * UNIT * np.abs(A).sum(axis=1).max() / MU
    judged = (mass > 0) & ~found.unreachable & (off < LARGEST_BOUND * np.abs(mass))
    if not judged.any():
        return NOT_JUDGED
    expected = Q[judged] / mass[judged, None]
    allowed = found.error + 4 * off / mass[judged, None]
    sums = np.abs(found.probabilities.sum(axis=1) - 1.0)
    return _above(np.abs(found.probabilities[judged] - expected), allowed) or _above(sums, 8 * UNIT)


def _denoised(case):
    P, n = case.graph.transition().toarray(), len(case.X)
    expected = np.linalg.matrix_power(P, STEPS) @ case.X
    found = otgraph.denoise(case.graph, case.X, STEPS)
    return _above(np.abs(found - expected), 4 * STEPS * n * UNIT * np.abs(case.X).max())


def _clusters(case):
    graph = case.graph
    found = otgraph.cluster(graph, 2)
    if not set(found.labels.tolist()) <= {-1, 0, 1}:
        return "labels that do not exist"
    sizes = np.bincount(graph.component_labels)
    if len(sizes) != 2 or sizes.min() < len(case.X) // 4 or (found.labels < 0).any():
        return HOLDS
    agree = np.mean((found.labels == found.labels[0]) == (graph.component_labels == 0))
    return HOLDS if agree in (0.0, 1.0) else "two components are not the two clusters"


KINDS = ("quadratic", "entropic", "gaussian", "knn", "magic")
PLANS, COMPARED = KINDS[:2], ("quadratic", "entropic", "gaussian", "magic")
LAWS = {
    "form": (_form, KINDS),
    "row sums": (_row_sums, PLANS),
    "permutation": (_permutation, KINDS),
    "scale by a power of two": (_scale, KINDS),
    "any scale": (_any_scale, KINDS),
    "shift": (_shift, KINDS),
    "copies": (_copies, COMPARED),
    "same bits": (_same_bits, KINDS),
    "save and load": (_saved, KINDS),
    "extension": (_extended, (*PLANS, "gaussian")),
    "batches of new points": (_batches, KINDS),
    "fixed neighbors": (_fixed_neighbors, KINDS),
    "path": (_path, ("quadratic",)),
    "estimator": (_estimator, KINDS),
    "eigenmaps": (_embedding, KINDS),
    "scale of weights": (_walks_scale, KINDS),
    "labels": (_labels, KINDS),
    "denoising": (_denoised, KINDS),
    "clusters": (_clusters, KINDS),
}
