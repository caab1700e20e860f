"""Potentials and eps in a file, from which a computation that lost its cluster goes on."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zipfile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from otgraph._atomic import replacing
from otgraph._validation import check_path
from otgraph.exceptions import invalid

if TYPE_CHECKING:
    from otgraph.graphs.transport import TransportProblem
    from otgraph.typing import FloatArray

logger = logging.getLogger("otgraph.distributed")

FORMAT = 1
# Options that do not change the problem, only how far and how it is solved.
OF_NO_CONCERN = ("tol", "max_iter", "on_failure", "max_missing", "search", "n_candidates")


class Reached(NamedTuple):
    """An eps and about its potentials, in the order of the cost."""

    eps: float
    u: FloatArray


class Checkpoint:
    """A file that holds the last eps and potentials of one problem, in the order of the input.

    The file is replaced in one step, so that it is complete whenever the process dies.
    """

    def __init__(self, path: str | os.PathLike[str], problem: TransportProblem) -> None:
        self.path = os.path.abspath(check_path(path, "checkpoint"))
        self._problem = problem
        self._print = _fingerprint(problem)

    def save(self, eps: float, u: FloatArray) -> None:
        """Replace the file."""
        potentials = self._problem.in_given_order(u)
        with replacing(self.path) as file:
            np.savez(file, format=FORMAT, problem=self._print, eps=eps, potentials=potentials)

    def load(self) -> Reached | None:
        """What the file holds, None if there is none; raises if it is of another problem."""
        if not os.path.exists(self.path):
            return None
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                number, name = int(stored["format"]), str(stored["problem"])
                reached = float(stored["eps"]), stored["potentials"]
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            msg = f"must be a file of this function or a new name; {self.path!r} is none: {error}."
            raise invalid("checkpoint", msg) from error
        if number != FORMAT or name != self._print:
            msg = (
                f"is {self.path!r}, which belongs to other points, masses or options. Remove it, "
                "or choose another name."
            )
            raise invalid("checkpoint", msg)
        eps, u = reached
        logger.warning("continues from %s, with the potentials for eps = %.6g", self.path, eps)
        return Reached(eps, u[self._problem.cost.order])


def _fingerprint(problem: TransportProblem) -> str:
    """A hash of the problem; points enter by the order into which they were sorted."""
    record = problem.options.record()
    options = {name: record[name] for name in sorted(record) if name not in OF_NO_CONCERN}
    cost = problem.cost
    facts = json.dumps([options, cost.n, cost.scale, cost.largest, problem.seed], default=str)
    digest = hashlib.sha256(facts.encode())
    for values in (cost.order, problem.mass):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
