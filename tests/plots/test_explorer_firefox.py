"""The page in Firefox, driven by its own remote protocol: no driver is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time

import numpy as np
import pytest

import otgraph
from otgraph.plots import explore

websocket = pytest.importorskip("websocket")
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
pytestmark = pytest.mark.skipif(not FIREFOX, reason="needs firefox on the path")
SECONDS = 90  # the machine may be busy
N = 60
HOSTILE = [
    "</script><script>window.broken = 1; alert(1)</script>",
    "<img src=x onerror='window.broken = 2; alert(2)'>",
    "<svg onload='window.broken = 3; alert(3)'></svg>",
    "half \ud800 of a pair",
    "__proto__",
]


class Firefox:
    """A browser that answers WebDriver BiDi commands on a socket."""

    def __init__(self, profile) -> None:
        self.process = subprocess.Popen(
            [FIREFOX, "--headless", "--no-remote", "--profile", str(profile),
             "--remote-debugging-port", "0"],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for line in self.process.stderr:
            if found := re.search(r"listening on (ws://\S+)", line):
                break
        self.socket = websocket.create_connection(
            f"{found[1]}/session", timeout=SECONDS, suppress_origin=True
        )
        self.sent = 0
        self.events = []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded", "browsingContext.userPromptOpened"])
        self.tab = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method, **parameters):
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.sent:
                assert answer["type"] == "success", answer
                return answer["result"]
            self.events.append(answer)

    def open(self, file):
        self.events.clear()
        self.ask("browsingContext.navigate", context=self.tab, url=file.as_uri(), wait="complete")
        self.wait("document.querySelector('[data-reading=mean_degree]').textContent != ''")

    def run(self, expression):
        """The value of an expression, through JSON."""
        answer = self.ask(
            "script.evaluate", expression=f"JSON.stringify({expression})",
            target={"context": self.tab}, awaitPromise=False,
        )  # fmt: skip
        assert answer["type"] == "success", answer
        return json.loads(answer["result"].get("value", "null"))

    def wait(self, expression):
        end = time.monotonic() + SECONDS
        while not self.run(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.1)

    def complaints(self):
        """Errors in the console, and dialogs."""
        self.run("1")  # what came before has arrived
        return [
            event for event in self.events
            if event["method"] == "browsingContext.userPromptOpened"
            or event["params"].get("level") == "error"
        ]  # fmt: skip

    def close(self):
        self.socket.close()
        self.process.terminate()
        self.process.wait(SECONDS)
        self.process.stderr.close()


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    browser = Firefox(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def path():
    return otgraph.eps_path(np.random.default_rng(5).normal(size=(N, 3)), [0.1, 0.5, 2.0])


def words():
    return np.array(HOSTILE, dtype=object)[np.arange(N) % len(HOSTILE)]


def test_slider_shows_what_python_computed(firefox, path, tmp_path):
    explore(path, tmp_path / "page.html", columns={"depth": np.arange(N)})
    firefox.open(tmp_path / "page.html")
    for value in (2, 0):
        firefox.run(
            f"(() => {{ const slider = document.getElementById('eps'); slider.value = {value}; "
            "slider.dispatchEvent(new Event('input')); return 0 })()"
        )
        said = "document.querySelector('[data-reading={}]').textContent"
        assert firefox.run(said.format("mean_degree")) == f"{path[value].mean_degree:.2f}"
        assert firefox.run(said.format("n_connected")) == str(path[value].n_connected)
        edges = firefox.run(
            "Bokeh.documents[0].get_model_by_name('edges').data.xs.map((x) => x.length / 3)"
        )
        assert sum(edges) == path[value].weights.nnz // 2
    assert firefox.complaints() == []


def test_selection_lists_neighbors(firefox, path, tmp_path):
    explore(path, tmp_path / "page.html")
    firefox.open(tmp_path / "page.html")
    firefox.run("Bokeh.documents[0].get_model_by_name('points').selected.indices = [4]")
    value = firefox.run("Number(document.getElementById('eps').value)")
    neighbors = np.sort(path[value].weights[[4]].indices)
    expected = f"row 4; {len(neighbors)} neighbors: " + ", ".join(map(str, neighbors))
    assert firefox.run("document.getElementById('selected-list').textContent") == expected
    assert firefox.complaints() == []


def test_hostile_words_are_text(firefox, path, tmp_path):
    columns = {name: words() for name in HOSTILE}
    explore(
        path, tmp_path / "page.html", labels=words(), names=words(), columns=columns,
        title=" ".join(HOSTILE), source=" ".join(HOSTILE),
    )  # fmt: skip
    firefox.open(tmp_path / "page.html")
    for k in range(len(HOSTILE)):
        firefox.run(
            f"(() => {{ const color = document.getElementById('color'); "
            f"color.value = 'column {k}'; color.dispatchEvent(new Event('change')); return 0 }})()"
        )
    heading = firefox.run("document.querySelector('h1').textContent")
    assert heading == " ".join(HOSTILE).replace("\ud800", "\ufffd")
    assert firefox.run("window.broken === undefined")
    assert firefox.complaints() == []
