"""Configuration of the documentation: ``make docs``."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # for `entries` and `mathml`

project = "otgraph"
author = "the otgraph developers"
release = version = version_of("otgraph")
copyright = author

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_nb",
    "entries",
    "mathml",
]
html_math_renderer = "mathml"
templates_path = ["_templates"]  # own members only: scikit-learn describes the inherited ones
exclude_patterns = ["results"]
html_theme = "furo"
html_title = f"otgraph {version}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
nb_ipywidgets_js: dict[str, object] = {}  # no page has widgets, and their scripts come from a CDN

# Pages are read on the project's site as well: links to files beside them stay as they are.
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links from docs/*.md to files outside docs/

# Tutorials are kept as text without results and run here; one that fails fails the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_execution_in_temp = True  # files that a tutorial writes do not stay
nb_merge_streams = True

autosummary_generate = True
# Signatures show names and defaults, lists of parameters their types.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
python_use_unqualified_type_names = True
maximum_signature_line_length = 80  # one parameter per line beyond
autodoc_member_order = "bysource"
# scikit-learn adds these to every estimator, with links into its own pages.
autodoc_default_options = {
    "exclude-members": ", ".join(
        f"set_{verb}_request" for verb in ("fit", "partial_fit", "predict", "score", "transform")
    )
}
napoleon_google_docstring = False
napoleon_use_rtype = True
