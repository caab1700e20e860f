"""``python -m otgraph`` is the command line."""

from __future__ import annotations

from otgraph.cli import main

main()
