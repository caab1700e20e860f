"""How far apart two subspaces are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import subspace_angles

from otgraph.exceptions import argument_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.methods.spectral import Embedding
    from otgraph.typing import FloatArray


def subspace_angle(A: ArrayLike | Embedding, B: ArrayLike | Embedding) -> float:
    """Mean principal angle between the spans of two sets of columns, in radians.

    Zero if one span contains the other, π/2 if they are orthogonal. It compares eigenvectors
    of two graphs on the same points. Signs, order and mixing of eigenvectors with nearly equal
    eigenvalues do not matter (Knyazev and Argentati 2002; Matsumoto et al. 2022, section 3.1).

    Parameters
    ----------
    A, B
        Columns with one row per point, or an :class:`otgraph.methods.Embedding`. The numbers
        of columns may differ; there are as many angles as the smaller span has dimensions.

    Examples
    --------
    >>> import otgraph
    >>> round(otgraph.subspace_angle([[1.0], [0.0]], [[1.0], [1.0]]), 4)
    0.7854
    """
    A, B = _columns(A, "A"), _columns(B, "B")
    if len(A) != len(B):
        msg = f"`A` and `B` must have the same rows, got {len(A)} and {len(B)}."
        raise argument_error(ValueError, "A", msg)
    return float(subspace_angles(A, B).mean())


def _columns(value: object, name: str) -> FloatArray:
    columns = np.asarray(getattr(value, "coordinates", value), dtype=np.float64)
    if columns.ndim != 2 or not columns.size:
        msg = f"`{name}` must be a matrix with one row per point, got shape {columns.shape}."
        raise argument_error(ValueError, name, msg)
    if not np.isfinite(columns).all():
        msg = f"`{name}` must be finite, got {columns[~np.isfinite(columns)][0]}."
        raise argument_error(ValueError, name, msg)
    if not columns.any():
        msg = f"`{name}` must have a column that is not zero, got zeros only."
        raise argument_error(ValueError, name, msg)
    return columns
