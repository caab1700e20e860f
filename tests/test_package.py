"""The package as a whole: what importing it loads, and its public names."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import otgraph
from otgraph._optional import require

HEAVY = ("numba", "sklearn", "scipy", "pandas", "matplotlib", "anndata", "dask", "pynndescent")


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_loads_no_heavy_package():
    loaded = run_python(
        "import sys, otgraph; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert "otgraph" in loaded.split()
    assert not set(HEAVY) & set(loaded.split())


def test_import_takes_less_than_a_second():
    code = (
        "import time; start = time.perf_counter(); import otgraph; "
        "print(time.perf_counter() - start)"
    )
    assert float(run_python(code)) < 1.0


def test_building_graphs_loads_nothing_optional():
    code = (
        "import sys; from otgraph import Graph, quadratic_ot_graph; "
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    # Not pandas: scikit-learn itself loads it wherever it is installed.
    unwanted = {"matplotlib", "anndata", "dask", "pynndescent"}
    assert not unwanted & set(run_python(code).split())


def test_a_graph_loads_nothing_that_it_does_not_need():
    """A first graph should not wait for them; scikit-learn also loads pandas and scipy.stats."""
    code = (
        "import sys, otgraph, numpy as np; "
        "otgraph.quadratic_ot_graph(np.random.default_rng(0).normal(size=(50, 5)), 1.0, "
        "connect=False); print(*sys.modules)"
    )
    unwanted = {"sklearn", "pandas", "joblib", "tqdm", "scipy.stats", "scipy.spatial"}
    assert not unwanted & set(run_python(code).split())


@pytest.mark.parametrize("name", otgraph.__all__)
def test_public_name_resolves(name):
    assert getattr(otgraph, name) is not None
    assert name in dir(otgraph)


def test_type_checkers_see_the_same_names():
    (block,) = (
        node
        for node in ast.parse(Path(otgraph.__file__).read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imports = (node for node in block.body if isinstance(node, ast.ImportFrom))
    named = {alias.name for node in imports for alias in node.names}
    assert named | {"__version__"} == set(otgraph.__all__)


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'otgraph' has no attribute 'grpah'"):
        _ = otgraph.grpah


def test_version_is_that_of_the_project():
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())
    assert otgraph.__version__ == project["project"]["version"]


class TestRequire:
    def test_gives_the_module(self):
        assert require("xml.dom", "plots").__name__ == "xml.dom"

    def test_missing_package_says_how_to_install_it(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
        with pytest.raises(ImportError) as caught:
            require("matplotlib.pyplot", "plots")
        assert str(caught.value) == (
            'otgraph.plots needs matplotlib; install it with `pip install "otgraph[plots]"`'
        )

    def test_broken_package_is_not_called_missing(self, tmp_path, monkeypatch):
        (tmp_path / "otgraph_broken.py").write_text("import a_module_that_it_needs")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ModuleNotFoundError, match="a_module_that_it_needs"):
            require("otgraph_broken", "plots")
