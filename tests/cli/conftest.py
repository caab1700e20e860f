"""The command line in this process: fast, and with what it prints at hand."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import otgraph
from otgraph.cli.app import run


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict:
        return json.loads(self.out)


@pytest.fixture
def cli(capsys, monkeypatch, tmp_path):
    """Call as ``cli("graph", path, "-o", output)``, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, stdin: bytes | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def X(rng) -> np.ndarray:
    return rng.standard_normal((40, 3))


@pytest.fixture
def points(X, tmp_path):
    """The points in a file of the working directory."""
    np.save(tmp_path / "points.npy", X)
    return "points.npy"


@pytest.fixture
def graph(X):
    return otgraph.quadratic_ot_graph(X, eps=1.0)


@pytest.fixture
def table(X, tmp_path):
    """Points with names, and a column of words."""
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"r{i}" for i in range(40)])
    frame["kind"] = np.where(X[:, 0] > 0, "right", "left")
    frame.to_csv(tmp_path / "table.csv")
    return "table.csv"
