"""Lower bounds become pins."""

from __future__ import annotations

import tomllib

import lowest
import pytest


def project(*dependencies, **extras):
    return {"name": "pkg", "dependencies": list(dependencies), "optional-dependencies": extras}


def test_bounds_of_the_package_and_its_extras():
    given = project(
        "numpy>=2.0",
        "scipy>=1.13,!=1.17.0",
        plots=["matplotlib>=3.9"],
        all=["pkg[plots,big]"],
        big=["dask[array]>=2024.12"],
        other=["unwanted>=1"],
    )
    assert lowest.pins(given, []) == ["numpy==2.0", "scipy==1.13"]
    assert lowest.pins(given, ["all"]) == [
        "dask[array]==2024.12",
        "matplotlib==3.9",
        "numpy==2.0",
        "scipy==1.13",
    ]


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3"])
def test_dependency_without_a_bound(requirement):
    with pytest.raises(ValueError, match="must have one lower bound, such as numpy>="):
        lowest.pins(project(requirement), [])


def test_two_bounds_for_one_package():
    given = project(cli=["pandas>=2.2"], data=["Pandas>=2.3"])
    with pytest.raises(ValueError, match="two lower bounds"):
        lowest.pins(given, ["cli", "data"])


def test_every_dependency_of_the_project_has_a_lower_bound():
    found = tomllib.loads(lowest.PYPROJECT.read_text())["project"]
    assert len(lowest.pins(found, list(found["optional-dependencies"]))) > 30
