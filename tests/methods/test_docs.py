"""The examples of docs/methods.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL))
def test_example_runs(example):
    names: dict[str, object] = {}
    exec(example, names)
    assert names.keys() - {"__builtins__"}  # an empty example would pass unseen


def test_every_command_is_there():
    for module in re.findall(r"python -m ([\w.]+)", PAGE):
        assert (Path(__file__).parents[2] / f"{module.replace('.', '/')}.py").exists()
