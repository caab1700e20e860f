"""Masses that mean something: groups of points that count the same."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from otgraph._validation import check_points
from otgraph.exceptions import invalid
from otgraph.graphs.copies import distinct_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray, PointsLike


LARGEST_STRENGTH = 30.0  # the largest with which masses of a billion points are finite


def balanced_mass(groups: ArrayLike | PointsLike, strength: float = 1.0) -> FloatArray:
    """Masses with which groups of different sizes count the same; their mean is one.

    A point of a group with k points gets a mass proportional to k^(-strength). A point with more
    mass has more neighbors. Use it for batches of unequal size, or for copies that are the same
    measurement. It did not help to find rare types where we tried; see the page on masses.

    Parameters
    ----------
    groups
        One label per point, of any kind: batches, types or clusters. Or points, one per row: then
        identical rows are a group, and with ``collapse=True`` every distinct point counts once.
        Missing values (None or NaN) are an error, because they do not form a group.
    strength
        1 gives all groups the same total mass, 0 all points; 0.5 is halfway between. Negative
        values favor large groups.

    Returns
    -------
    One mass per point, for the keyword `mass` of the transport graphs.

    Examples
    --------
    >>> import otgraph
    >>> otgraph.balanced_mass(["a", "a", "a", "b"]).round(2)
    array([0.67, 0.67, 0.67, 2.  ])
    >>> otgraph.balanced_mass([[0.0, 1.0], [0.0, 1.0], [5.0, 1.0]])
    array([0.75, 0.75, 1.5 ])
    """
    if isinstance(strength, bool) or not isinstance(strength, numbers.Real):
        raise invalid("strength", f"must be a number, got {strength!r}.", TypeError)
    if not abs(strength) <= LARGEST_STRENGTH:
        msg = (
            f"must be a finite number between -{LARGEST_STRENGTH:g} and {LARGEST_STRENGTH:g}, got "
            f"{strength!r}."
        )
        raise invalid("strength", msg)
    labels: Any = groups if sp.issparse(groups) else np.asarray(groups)
    if labels.ndim == 2:
        labels = distinct_rows(check_points(groups, name="groups"))
    elif labels.ndim != 1 or not len(labels):
        msg = f"must be a list of labels, one per point, got an array of shape {labels.shape}."
        raise invalid("groups", msg)
    for i, each in enumerate(labels.tolist()):
        if each is None or each != each:
            raise invalid(
                "groups", f"must have a label for every point, got {each!r} at point {i}."
            )
    _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    mass = (sizes / sizes.max())[group.ravel()] ** -float(strength)
    return np.asarray(mass / mass.mean())
