"""Calls of the public functions, whose results are compared bit for bit."""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg  # noqa: F401  (loads its own BLAS, whose threads are counted too)
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

import otgraph
from otgraph.cli.app import ExitCode, run

FEATURES = 20
BLAS_THREADS = 2  # outside of our calls; with one there would be nothing to restore


@dataclass(frozen=True)
class Given:
    """Points, some new ones, labels, a graph of the points, and a number of threads."""

    X: np.ndarray
    new: np.ndarray
    labels: np.ndarray
    graph: otgraph.TransportGraph
    n_jobs: int | None
    folder: str


@functools.cache
def _given(n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, FEATURES)) + 3.0 * rng.normal(size=(5, FEATURES))[np.arange(n) % 5]
    labels = np.where(rng.random(n) < 0.1, np.arange(n) % 5, -1)
    labels[:5] = range(5)
    graph = otgraph.quadratic_ot_graph(X, mean_degree=10, n_jobs=1)
    return X, X[: n // 3] + 0.01, labels, graph


def call(name, n, n_jobs=1, folder=None):
    """A digest of everything that the call returns, or writes."""
    with tempfile.TemporaryDirectory() if folder is None else _kept(folder) as place:
        given = Given(*_given(n), n_jobs, place)
        return _digest(CALLS[name](given))


class _kept(str):
    """A folder that is not removed."""

    def __enter__(self):
        return str(self)

    def __exit__(self, *_):
        return None


@functools.cache
def _blas():
    """Found once: a process forked while another thread looks for libraries cannot look itself."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads():
    return [lib["num_threads"] for lib in _blas().info()]


def limited_blas():
    """Context, or a call for good, with the numbers of threads that the soak starts from."""
    return _blas().limit(limits=BLAS_THREADS)


def quietly():
    """For a whole process: warnings belong to the caller, and raced callers share their filters."""
    warnings.simplefilter("ignore")


def _digest(result):
    found = hashlib.sha256()
    for part in _parts(result):
        found.update(part)
    return found.hexdigest()


def _parts(result):
    match result:
        case bytes():
            yield result
        case np.ndarray():
            yield f"{result.dtype}{result.shape}".encode()
            yield np.ascontiguousarray(result).tobytes()
        case otgraph.Graph():
            yield from _parts(result.weights)
            yield from _parts(np.asarray(getattr(result, "potentials", ())))
        case _ if sp.issparse(result):
            for array in (result.indptr, result.indices, result.data):
                yield from _parts(array)
        case _:
            for part in result:
                yield from _parts(part)


def _threads(given):
    return {"n_jobs": given.n_jobs}


def _saved(given):
    path = os.path.join(given.folder, "g.otg")
    given.graph.save(path)
    return otgraph.load_graph(path), Path(path).read_bytes()


def _command(given):
    source, target = (os.path.join(given.folder, name) for name in ("x.npy", "w.npz"))
    np.save(source, given.X)
    options = ["--method", "knn", "-k", "9", "--force", "--quiet"]
    code = run(["graph", source, "-o", target, *options])
    if code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    assert code == 0, code
    return (sp.load_npz(target),)


def _path(given):
    return otgraph.eps_path(given.X, [3.0, 1.0, 0.3], **_threads(given))


def _embedding(given):
    found = otgraph.eigenmaps(given.graph, 5)
    return found.coordinates, found.eigenvalues


def _spread(given):
    found = otgraph.spread_labels(given.graph, given.labels)
    return found.probabilities, found.labels


# Dense graphs take a third of the points, so that all calls take about as long.
CALLS = {
    "quadratic": lambda g: otgraph.quadratic_ot_graph(g.X, 1.0, **_threads(g)),
    "mean degree": lambda g: otgraph.quadratic_ot_graph(g.X, mean_degree=12, **_threads(g)),
    "path": _path,
    "entropic": lambda g: otgraph.entropic_ot_graph(g.X[::3], 0.1, tol=1e-3, **_threads(g)),
    "gaussian": lambda g: otgraph.gaussian_graph(g.X[::3], 1.0, **_threads(g)),
    "knn": lambda g: otgraph.knn_gaussian_graph(g.X, 10, 1.0, **_threads(g)),
    "magic": lambda g: otgraph.magic_graph(g.X, 5, n_pca=8, **_threads(g)),
    "extend": lambda g: g.graph.extend(g.new),
    "fixed neighbors": lambda g: g.graph.to_knn(8),
    "eigenmaps": _embedding,
    "cluster": lambda g: otgraph.cluster(g.graph, 5).labels,
    "labels": _spread,
    "denoise": lambda g: otgraph.denoise(g.graph, g.X, "auto"),
    "choice": lambda g: otgraph.choose_eps(g.X[::3], **_threads(g)).scores,
    "soft": lambda g: otgraph.quadratic_ot_graph(g.X, outlier_cost="auto", **_threads(g)),
    "copies": lambda g: otgraph.quadratic_ot_graph(
        np.repeat(g.X[::3], 2, axis=0), 1.0, collapse=True, **_threads(g)
    ),
    "scales": lambda g: otgraph.multiscale_graph(g.X, [0.3, 1.0], **_threads(g)),
    "clouds": lambda g: (otgraph.transport_graph(g.X, g.new, 1.0, **_threads(g)).weights,),
    "dimension": lambda g: np.array([float(otgraph.intrinsic_dimension(g.X, **_threads(g)))]),
    "short gaussian": lambda g: otgraph.gaussian_graph(g.X, 0.05, max_error=1e-3, **_threads(g)),
    "short entropic": lambda g: otgraph.entropic_ot_graph(
        g.X[::3], 0.05, tol=1e-3, max_error=1e-3, **_threads(g)
    ),
    "without density": lambda g: (g.graph.without_density(5).weights,),
    "save": _saved,
    "command": _command,
}
