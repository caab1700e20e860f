"""Every command and example of docs/cli.md, start.md, index.md and the README runs, in order."""

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

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text()
START = (ROOT / "docs" / "start.md").read_text()


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


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/start.md"])
def test_a_newcomer_can_follow(page, cli):
    """Code and commands in the order of the page; what it writes, the next piece may read."""
    import matplotlib.pyplot as plt

    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    done = []
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", text, flags=re.DOTALL):
        if language == "python":
            exec(block, names)
            continue
        for line in block.replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(line, comments=True) or [""]
            if program == "otgraph":
                result = cli(*arguments)
                assert result.code == 0, (line, result)
                done.append(arguments[0])
            else:  # installs and builds, which other tests and the release check do
                assert program in ("", "pip", "make"), line
    plt.close("all")
    assert len(done) >= 3
    for file in Path().iterdir():
        assert file.stat().st_size > 0


def test_the_table_of_the_page_is_labeled_well(cli):
    """The page promises growers of all wines from one in ten."""
    (table,) = re.findall(r"```python\n(import numpy.*?)```", START, flags=re.DOTALL)
    names: dict = {}
    exec(table, names)
    (command,) = re.findall(
        r"^otgraph labels .*?(?<!\\)$", START.replace("\\\n", " "), re.MULTILINE
    )
    assert cli(*shlex.split(command)[1:]).code == 0
    found = pd.read_csv("growers.csv")["label"]
    truth = names["wine"].target.map({0: "Amaro", 1: "Bruno", 2: "Conti"})
    assert (found == truth).mean() > 0.9
