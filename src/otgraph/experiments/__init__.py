"""The experiments of the paper and some beyond it, through public names only.

``reproduce(name)`` runs one: it computes every score, judges the paper's claims and draws its
figures. Each experiment is a module of its name with an ``EXPERIMENT``: parameters, what to run,
what is claimed, what to draw.
"""

from __future__ import annotations

from otgraph.experiments._framework.report import Report
from otgraph.experiments._framework.runner import NAMES, reproduce

__all__ = ["NAMES", "Report", "reproduce"]
