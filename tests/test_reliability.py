"""The table of faults in docs/reliability.md names tests that exist, and every test of faults."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
FAULTS = (ROOT / "tests" / "graphs" / "test_faults.py").read_text()


def test_every_test_of_faults_is_in_the_table():
    assert set(re.findall(r"def (test_fault_\w+)", FAULTS)) == set(
        re.findall(r"`(test_fault_\w+)`", PAGE)
    )


def test_tests_of_other_files_exist():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert named
    missing = [
        f"{path}::{name}" for path, name in named if f"def {name}(" not in (ROOT / path).read_text()
    ]
    assert not missing
