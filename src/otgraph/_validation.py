"""Checks of arguments. Errors name the argument, what it must be, what came, and a way out."""

from __future__ import annotations

import numbers
import operator
import os
from collections import Counter
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from otgraph._optional import importing
from otgraph.exceptions import InfeasibleError, argument_error, invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from otgraph.typing import Array, FloatArray, Points, PointsLike, SparseMatrix, Values

# Bounds of positive numbers as arguments: their squares and inverses neither over- nor underflow.
SMALLEST, LARGEST = 1e-150, 1e150
# Relative asymmetry that rounding alone can leave in a matrix of costs or weights. More means
# directions, which only the caller can resolve.
SYMMETRY_RTOL = 1e-8


# Types of numpy that convert to numbers without being numbers.
NOT_NUMBERS = {"U": "text", "S": "bytes", "M": "dates", "m": "time differences", "V": "records"}
POWERS = (0.01, 100.0)  # of distances; a ratio of 1000 becomes at most 1e300
MOST_SEED = 2**31 - 1  # numpy's legacy generators take no larger seed


def check_points(
    X: PointsLike, *, name: str = "X", min_samples: int = 2, single: bool = False
) -> Any:
    """Points as a finite C-ordered float64 array, or as canonical float64 CSR if sparse.

    With ``single`` a dense float32 array stays float32.
    """
    if isinstance(X, np.memmap):
        X = np.asarray(X)
    if _is_plain(X, min_samples):  # by far the most frequent, and scikit-learn takes a while
        keep = single and np.asarray(X).dtype == np.float32
        plain = np.ascontiguousarray(X, dtype=np.float32 if keep else np.float64)
        check_finite(plain, name)
        return plain
    if sp.issparse(X):
        X = check_csr(X, name=name)
    check_kind(X, name)
    with importing():  # not needed for most points, and loading takes a second
        from sklearn.utils import check_array

    try:
        checked = check_array(
            X,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=min_samples,
            input_name=name,
        )
    except (ValueError, TypeError, OverflowError) as error:  # scikit-learn's words, with the name
        msg = f"`{name}` must hold points, one per row. {error}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise argument_error(kind, name, msg) from error
    check_finite(checked, name)
    return checked


def _is_plain(X: object, min_samples: int) -> TypeGuard[Array]:
    """Whether X is a table of numbers that scikit-learn would leave as it is."""
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32) or X.ndim != 2:
        return False
    return X.shape[0] >= min_samples and X.shape[1] > 0


def check_kind(X: object, name: str) -> None:
    """Refuse what converts to numbers but is none: text, dates, records, masked values.

    In a data frame also two columns of the same name.
    """
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        masked = np.ma.getmaskarray(X)
        first = int(np.argwhere(masked)[0, 0])
        msg = (
            f"has {int(masked.sum())} masked value(s), the first in row {first}; they count as "
            "missing. Drop or impute these rows first (sklearn.impute)."
        )
        raise invalid(name, msg)
    arrays: list[object] = [X]
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        frame: DataFrame = X
        _check_column_names(list(frame.columns), name)
        arrays = [np.asarray(frame[label]) for label in frame.columns] if _has_text(frame) else []
    elif isinstance(X, list | tuple):
        with suppress(ValueError, OverflowError):  # ragged: scikit-learn's words are better
            arrays = [np.asarray(X)]
    for array in arrays:
        if isinstance(array, np.ndarray) and (found := _no_numbers(array)):
            raise invalid(name, f"must hold numbers, got {found}. Convert them to numbers first.")


def _check_column_names(columns: list[object], name: str) -> None:
    counts = Counter(columns)
    twice = [column for column, count in counts.items() if count > 1]
    if twice:
        msg = (
            f"must have columns of different names, got {counts[twice[0]]} columns {twice[0]!r}. "
            f"Rename them, or pass `{name}.to_numpy()`."
        )
        raise invalid(name, msg)


def _has_text(frame: DataFrame) -> bool:
    """Whether some columns of a data frame are not numbers by their type."""
    numbers = ("float", "int", "uint", "bool", "double", "sparse", "decimal", "complex")
    kinds = [str(kind).lower() for kind in list(frame.dtypes)]
    return any(not kind.startswith(numbers) for kind in kinds)


def _no_numbers(array: Array) -> str | None:
    """What an array holds, if that is not numbers."""
    if array.dtype.kind in NOT_NUMBERS:
        return NOT_NUMBERS[array.dtype.kind]
    if array.dtype.kind != "O":
        return None
    wrong = (str, bytes, date, timedelta, np.datetime64, np.timedelta64)
    return next(
        (f"{type(value).__name__} {value!r}" for value in array.flat if isinstance(value, wrong)),
        None,
    )


def check_finite(X: Values, name: str, start: int = 0) -> None:
    """Raise with the count and the first row of what is not finite.

    Rows are numbered from ``start`` on.
    """
    values: Array = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore"):
        total = np.sum(values)
    if np.isfinite(total) or np.all(np.isfinite(values)):
        return
    bad = ~np.isfinite(values)
    kind = "NaN" if np.isnan(values[bad]).any() else "infinity"
    first = int(np.argwhere(bad)[0, 0])
    if not isinstance(X, np.ndarray):  # the row of the entry
        first = int(np.searchsorted(X.indptr, first, side="right")) - 1
    msg = (
        f"contains {kind}: {int(bad.sum())} value(s) that are not finite, the first in row "
        f"{start + first}. Drop or impute these rows first (sklearn.impute)."
    )
    raise invalid(name, msg)


def check_csr(X: SparseMatrix, *, name: str) -> SparseMatrix:
    """A scipy sparse matrix as canonical CSR; a broken one is refused, never read.

    Compiled code trusts the index arrays, so they are checked here. The caller's matrix is not
    changed.
    """
    if X.format in ("csr", "csc"):
        _check_compressed_arrays(X, name)
    csr = sp.csr_matrix(X, copy=X.format == "csr" and not X.has_canonical_format)
    csr.sum_duplicates()
    return csr


def _check_compressed_arrays(X: SparseMatrix, name: str) -> None:
    kind, of, along = ("CSR", "row", "column") if X.format == "csr" else ("CSC", "column", "row")
    n_major, n_minor = X.shape if kind == "CSR" else X.shape[::-1]
    indptr, indices, data = X.indptr, X.indices, X.data
    fault = None
    if len(indptr) != n_major + 1 or indptr[0] != 0 or np.any(np.diff(indptr) < 0):
        fault = f"its indptr does not rise from 0 in one step per {of}"
    elif indptr[-1] != len(indices) or len(indices) != len(data):
        fault = (
            f"indptr ends at {indptr[-1]} but {len(indices)} indices and {len(data)} values came"
        )
    elif len(indices) and (indices.min() < 0 or indices.max() >= n_minor):
        fault = f"it has {along} indices outside 0..{n_minor - 1}"
    if fault:
        raise invalid(name, f"must be a well-formed {kind} matrix, but {fault}.")


def check_cost_matrix(C: PointsLike, *, name: str = "X") -> Any:
    """A precomputed cost: square, symmetric, non-negative; dense float64 or canonical CSR."""
    C = check_points(C, name=name)
    if C.shape[0] != C.shape[1]:
        msg = f"must be a square cost matrix with metric='precomputed', got shape {C.shape}."
        raise invalid(name, msg)
    values = C.data if sp.issparse(C) else C
    if values.size and values.min() < 0:
        msg = f"must hold costs >= 0 with metric='precomputed', got {values.min():.6g}."
        raise invalid(name, msg)
    largest = float(values.max()) if values.size else 0.0
    asymmetry = _asymmetry(C)
    if asymmetry > SYMMETRY_RTOL * largest:
        msg = (
            f"must be symmetric with metric='precomputed', but |C - C.T| reaches {asymmetry:.6g}. "
            "Pass (C + C.T) / 2, or for neighbor distances C.maximum(C.T)."
        )
        raise invalid(name, msg)
    return C


def _asymmetry(C: Points) -> float:
    if not isinstance(C, np.ndarray):
        difference = (C - C.T).tocsr()
        return float(np.abs(difference.data).max()) if difference.nnz else 0.0
    n, block = C.shape[0], 1024  # 1024 rows at a time: no second n x n array
    return max(
        float(np.abs(C[a : a + block] - C[:, a : a + block].T).max()) for a in range(0, n, block)
    )


def check_positive(value: object, name: str) -> float:
    """A positive, finite real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise invalid(name, f"must be a positive number, got {value!r}.", TypeError)
    try:
        number = float(value)
    except OverflowError:  # an integer
        number = np.inf
    if not np.isfinite(number) or number <= 0:
        raise invalid(name, f"must be a positive, finite number, got {value!r}.")
    if not SMALLEST <= number <= LARGEST:
        raise invalid(name, f"must be between {SMALLEST} and {LARGEST}, got {value!r}.")
    return number


def check_share(value: object, name: str) -> float:
    """A positive number below one."""
    share = check_positive(value, name)
    if share >= 1.0:
        raise invalid(name, f"must be a share, a number between 0 and 1, got {value!r}.")
    return share


def check_power(value: object, name: str) -> float:
    """A power of distances that does not overflow for distances of usual size."""
    power = check_positive(value, name)
    if not POWERS[0] <= power <= POWERS[1]:
        raise invalid(name, f"must be between {POWERS[0]} and {POWERS[1]:g}, got {value!r}.")
    return power


def check_count(value: Any, name: str, *, minimum: int = 1) -> int:
    """An integer of at least ``minimum``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise invalid(name, f"must be an integer, got {value!r}.", TypeError)
    if number < minimum:
        raise invalid(name, f"must be an integer >= {minimum}, got {value!r}.")
    return number


def check_seed(random_state: object, name: str = "random_state") -> int:
    """A seed from what scikit-learn takes: an integer, a generator to draw it from, or None."""
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(MOST_SEED))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(MOST_SEED))
    return check_count(random_state, name, minimum=0)


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """One of the given strings."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise invalid(name, f"must be one of {listed}, got {value!r}.")
    return value


def check_path(value: object, name: str = "path") -> str:
    """The name of a file. A number would be taken for a file that is open already."""
    try:
        return os.fsdecode(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise invalid(name, f"must be the path of a file, got {value!r}.", TypeError) from error


def to_numbers(value: object, name: str, wanted: str) -> FloatArray:
    """An array of numbers; the error says what is ``wanted``."""
    check_kind(value, name)
    try:
        return np.asarray(value, dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise invalid(name, f"must {wanted}. {error}", kind) from error


def check_vector(value: object, name: str, n: int) -> FloatArray:
    """``n`` finite numbers."""
    vector = to_numbers(value, name, f"hold one finite number per point, shape ({n},)")
    if vector.shape != (n,):
        msg = f"must hold one number per point, shape ({n},), got shape {vector.shape}."
        raise invalid(name, msg)
    if not np.all(np.isfinite(vector)):
        msg = f"`{name}` must be finite, got {vector[~np.isfinite(vector)][0]} at point "
        msg += f"{int(np.flatnonzero(~np.isfinite(vector))[0])}."
        raise argument_error(ValueError, name, msg)
    return vector


def check_mass(mass: ArrayLike | None, n: int, *, self_loops: bool) -> FloatArray:
    """Masses of the points, ones by default; infeasible ones are named."""
    if mass is None:
        return np.ones(n)
    vector = check_vector(mass, "mass", n)
    if vector.min() <= 0:
        i = int(vector.argmin())
        raise invalid("mass", f"must be positive, got {vector[i]!r} at point {i}.")
    heaviest = int(vector.argmax())
    if not self_loops and vector[heaviest] > vector.sum() - vector[heaviest]:
        msg = (
            f"of point {heaviest} ({vector[heaviest]:.6g}) exceeds that of all the others "
            "together, and without self-loops it can only be shared with them. Lower it, or pass "
            "`self_loops=True` or an `outlier_cost`."
        )
        raise invalid("mass", msg, InfeasibleError)
    return vector
