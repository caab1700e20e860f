"""Positions in which the pull of edges and the push of all points balance.

The energy is that of springs along edges, a weak one to the origin, and charges of logarithmic
potential between all pairs:

    E(y) = 1/2 sum_ij W_ij |y_i - y_j|^2 / 2 + g/2 sum_i |y_i|^2 - 1/(2n) sum_ij log |y_i - y_j|

Springs are linear, so a step solves for them exactly and takes the push as it is: large steps are
stable, and a graph of thousands of points needs some fifty. The push of all points is computed on a
mesh: charges are spread over its corners, convolved with the field of one charge by fast Fourier
transforms, and read off at the points. The time of a step is that of the edges and of the mesh, and
not that of all pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.fft
import scipy.sparse as sp
from scipy.sparse.linalg import cg

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from otgraph.typing import FloatArray, SparseMatrix

MESH = 256  # cells along a side: points nearer than a cell push each other less
GRAVITY = 0.03  # keeps components that no edge connects in one picture
STEPS = 60
# Length of the first and last steps. Long ones unfold, short ones settle.
STEP_SIZES = (30.0, 0.3)
CG_TOLERANCE = 1e-3  # the next step corrects what a step has left


def balanced(weights: SparseMatrix, start: FloatArray) -> FloatArray:
    """Positions near a balance, from those at the start."""
    n = weights.shape[0]
    W = sp.csr_array(abs(weights), dtype=np.float64)
    W = W / max(W.sum() / n, np.finfo(float).tiny)
    springs = sp.diags_array(W.sum(axis=1)) - W + GRAVITY * sp.eye_array(n)
    field = _field_of_one_charge()
    positions = start
    for step in np.geomspace(*STEP_SIZES, STEPS):
        system = sp.eye_array(n) + step * springs
        right = positions + step * _push(positions, field) / n
        positions = np.column_stack(
            [
                cg(system, b, x0=x, rtol=CG_TOLERANCE)[0]
                for b, x in zip(right.T, positions.T, strict=True)
            ]
        )
    return positions


def _field_of_one_charge() -> NDArray[np.complex128]:
    """Transform of the field x / |x|^2 around one corner, for both directions."""
    offsets = scipy.fft.fftfreq(2 * MESH, 0.5 / MESH)
    x, y = np.meshgrid(offsets, offsets, indexing="ij")
    squared = x**2 + y**2
    squared[0, 0] = 1.0  # where x = y = 0: no push
    return scipy.fft.rfft2(np.stack([x, y]) / squared)


def _push(positions: FloatArray, field: NDArray[np.complex128]) -> FloatArray:
    """Push of all points on each."""
    low = positions.min(axis=0)
    cell = max(float(np.ptp(positions, axis=0).max()), np.finfo(float).tiny) / (MESH - 2)
    places = (positions - low) / cell
    corner = np.floor(places).astype(np.int64)
    right = places - corner
    # The four corners around a point, as places in the mesh, and the point's share of each.
    corners, shares = [], []
    for dx, dy in ((0, 0), (0, 1), (1, 0), (1, 1)):
        corners.append((corner[:, 0] + dx) * MESH + corner[:, 1] + dy)
        shares.append(np.abs(1 - dx - right[:, 0]) * np.abs(1 - dy - right[:, 1]))
    charge = np.bincount(
        np.concatenate(corners), np.concatenate(shares), minlength=MESH * MESH
    ).reshape(MESH, MESH)
    spectrum = scipy.fft.rfft2(charge, (2 * MESH, 2 * MESH)) * field
    push = scipy.fft.irfft2(spectrum, (2 * MESH, 2 * MESH))[:, :MESH, :MESH].reshape(2, -1)
    at_points = sum(share * push[:, at] for at, share in zip(corners, shares, strict=True))
    return np.asarray(at_points).T / cell
