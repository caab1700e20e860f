"""Masses that mean something: groups of points that count the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from otgraph.typing import FloatArray


def balanced_mass(groups: ArrayLike, strength: float = 1.0) -> FloatArray:
    """Masses with which groups of different sizes count the same; their mean is one.

    A point of a group with k points gets a mass proportional to k^(-strength). A point with more
    mass has more neighbors, and so have those around it. Use it for batches of unequal size, for
    copies, or for types whose sizes are an accident of sampling.

    Parameters
    ----------
    groups
        One label per point, of any kind: batches, types or clusters. Missing values (None or NaN)
        are an error, because they are no group.
    strength
        1 gives all groups the same total mass, 0 all points; 0.5 is halfway between. Negative
        values favor large groups.

    Returns
    -------
    One mass per point, for the keyword `mass` of the transport graphs.

    Examples
    --------
    >>> import otgraph
    >>> otgraph.balanced_mass(["a", "a", "a", "b"])
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    labels = np.asarray(groups)
    if labels.ndim != 1 or not len(labels):
        msg = f"must be a list of labels, one per point, got an array of shape {labels.shape}."
        raise invalid("groups", msg)
    missing = np.array([each is None or each != each for each in labels.tolist()])
    if missing.any():
        i = int(missing.argmax())
        msg = f"must have a label for every point, got {labels[i]!r} at point {i}."
        raise invalid("groups", msg)
    if not (isinstance(strength, int | float | np.number) and np.isfinite(strength)):
        raise invalid("strength", f"must be a finite number, got {strength!r}.")
    _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    mass = (sizes / sizes.max())[group.ravel()] ** -float(strength)
    return np.asarray(mass / mass.mean())
