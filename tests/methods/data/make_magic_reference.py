"""Reference values of MAGIC itself, written once to magic_reference.npz beside this file.

The package magic-impute 3.0.0 needs pandas < 2.1 and numpy < 2, so that it lives in an
environment of its own:

    python3.11 -m venv magic && magic/bin/pip install \
        "pandas==2.0.3" "numpy<2" "scipy<1.13" "scikit-learn<1.5" "magic-impute==3.0.0"
    magic/bin/python tests/methods/data/make_magic_reference.py

Stored: the data, the kernel that MAGIC built on it, and what MAGIC made of the data with t = 1,
with t = 3, and with the t that it chose. No principal components, exact solver.
"""

from pathlib import Path

import numpy as np


def expression(n: int = 100, genes: int = 8) -> np.ndarray:
    """Genes that switch on one after the other along a path, with noise and without ties."""
    rng = np.random.default_rng(3)
    time = rng.uniform(0, 3, n)
    peaks = np.linspace(0, 3, genes)
    mean = 2 * np.exp(-((time[:, None] - peaks) ** 2))
    return rng.gamma(2.0, mean / 2.0).astype(np.float32).astype(np.float64)


def main() -> None:
    import magic  # here, so that the tests can look at this file without it

    X = expression()
    results = {"X": X}
    for t in (1, 3, "auto"):
        operator = magic.MAGIC(knn=4, decay=1, n_pca=None, t=t, solver="exact", verbose=0)
        results[f"t_{t}"] = np.asarray(operator.fit_transform(X))
    kernel = operator.graph.kernel.tocsr()
    kernel.sort_indices()
    results |= {name: getattr(kernel, name) for name in ("data", "indices", "indptr")}
    np.savez_compressed(Path(__file__).with_name("magic_reference.npz"), **results)


if __name__ == "__main__":
    main()
