"""The page: bokeh figures, a template for the layout, and a script."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from otgraph._optional import require
from otgraph.plots.colors import GROUPS, UNKNOWN
from otgraph.plots.explorer.figures import degree_figure, graph_figure, path_figure, point_size
from otgraph.plots.explorer.scene import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

    from otgraph.plots.explorer.scene import Scene

# Above this many lines their opacity is lower, so that they do not merge into a dark area.
EDGES_AT_FULL_STRENGTH = 3000
NUMBERS = 64  # colors of the scale for numbers
SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)
POLICY_MARK = "policy-of-the-page"  # replaced once the scripts are known
FRAME_HEIGHT = 800  # of the page within a notebook, in pixels


@dataclass(frozen=True)
class Page(os.PathLike[str]):
    """A self-contained page; a notebook shows it, and it can be used as a path.

    Parameters
    ----------
    html
        The whole page.
    path
        The file, or None if none was written.
    """

    html: str
    path: Path | None = None

    def __fspath__(self) -> str:
        if self.path is None:
            msg = "This page was not written to a file; pass `out` to `explore`."
            raise TypeError(msg)
        return str(self.path)

    def __repr__(self) -> str:
        where = "not written" if self.path is None else str(self.path)
        return f"Page({where}, {len(self.html.encode()) / 1e6:.1f} MB)"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="otgraph explorer" '
            f'style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'
        )


def page_html(scene: Scene, title: str) -> str:
    """The complete HTML of the page."""
    html_of_all = _html(scene, title)
    return html_of_all.replace(POLICY_MARK, _policy(html_of_all), 1)


def _policy(page: str) -> str:
    """What the page may do: run its own scripts, which have these hashes, and nothing else.

    No script that came in with the data would run, and nothing can be loaded or sent. Bokeh
    compiles the script of the page from text, hence ``unsafe-eval``; it sets styles, and its icons
    are images in the page.
    """
    scripts = [content for kind, content in SCRIPT.findall(page) if "application/json" not in kind]
    hashes = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts
    ]
    allowed = " ".join(f"'sha256-{digest}'" for digest in dict.fromkeys(hashes))
    return (
        f"default-src 'none'; script-src 'unsafe-eval' {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _html(scene: Scene, title: str) -> str:
    models = require("bokeh.models", "plots")
    document = require("bokeh.document", "plots").Document()
    graph, parts = graph_figure(scene)
    degrees, parts["histogram"] = degree_figure()
    path, parts["cursor"] = path_figure(scene)
    # Values of the choices are fixed words or numbers: names of columns are only shown.
    columns = [(f"column {k}", column["name"]) for k, column in enumerate(scene.columns)]
    of_graph = [(name, name) for name in ("degree", "component", "potential")]
    labeled = bool(columns) and columns[0][1] == "label"
    colorings = columns[:labeled] + of_graph + columns[labeled:]
    palette = {
        "groups": list(GROUPS),
        "others": UNKNOWN,
        "numbers": list(require("bokeh.palettes", "plots").viridis(NUMBERS)),
        "first": colorings[0][0],
        "size": point_size(len(scene.x)),
    }
    arguments = {
        "scene": vars(scene),
        "palette": palette,
        "coarse": EDGES_AT_FULL_STRENGTH,
        "n_levels": LEVELS,
        **parts,
    }
    for root in (graph, degrees, path):
        document.add_root(root)
    document.js_on_event(
        "document_ready", models.CustomJS(args=arguments, code=_shipped("explore.js"))
    )
    return str(
        require("bokeh.embed", "plots").file_html(
            document,
            require("bokeh.resources", "plots").Resources("inline", log_level="error"),
            title=title,
            template=_shipped("page.html"),
            template_variables={
                "css": _shipped("explore.css"),
                "n_values": len(scene.values),
                "start": scene.start,
                "colorings": colorings,
                "policy": POLICY_MARK,
                "curve_text": scene.curve["text"],
            },
        )
    )


def _shipped(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="utf-8")
