"""Every command and example of docs/cli.md runs, in the order of the page."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import otgraph

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


COMMANDS = [
    shlex.split(line)
    for block in blocks("sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.strip()
]


@pytest.fixture
def files(cli, rng):
    """The files that the page speaks of."""
    cells = otgraph.datasets.spiral_arms(40, n_arms=3, dim=5, random_state=0)
    frame = pd.DataFrame(cells.X, columns=[f"g{i}" for i in range(cells.X.shape[1])])
    frame.index = [f"cell{i}" for i in range(len(frame))]
    frame.to_csv("cells.csv")
    known = np.where(rng.random(len(frame)) < 0.3, cells.labels.astype(str), "")
    pd.DataFrame({"kind": known}).to_csv("known.csv", index=False)
    frame.assign(kind=known).to_csv("typed.csv")
    wine = load_wine()
    frame = pd.DataFrame(wine.data, columns=wine.feature_names)
    frame.iloc[3, 5] = np.nan
    frame.insert(0, "patient_id", 1000 + rng.permutation(len(frame)))
    frame["lab"] = rng.choice(["north", "south"], len(frame))
    frame["cultivar"] = np.where(rng.random(len(frame)) < 0.1, wine.target.astype(str), "")
    frame.to_csv("wine.csv", index=False)
    return cli


def test_commands_and_examples_run(files):
    assert len(COMMANDS) >= 10
    for program, *arguments in COMMANDS:
        assert program == "otgraph"
        if "-o" in arguments:  # the page writes some files more than once
            output = arguments[arguments.index("-o") + 1]
            Path(output).unlink(missing_ok=True)
        done = files(*arguments)
        assert done.code == 0, (arguments, done)
        if "wine.csv" in arguments:  # the page has done what warnings would advise
            assert done.err == ""
        if "-o" in arguments:
            assert os.path.getsize(output) > 0
    names: dict[str, object] = {}
    for example in blocks("python"):
        exec(example, names)
    assert names["rows"].shape == (1, otgraph.load_graph("wine.otg").n)
    assert names["graph"].n == 178
