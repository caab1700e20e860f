"""The page in a real browser, offline and from a file: it says what Python computed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from bokeh.palettes import Viridis256

import otgraph
from otgraph.plots import explore
from otgraph.plots.colors import GROUPS, UNKNOWN

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the path"
)

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,800",
)  # fmt: skip
SECONDS = 60  # the machine may be busy
N = 60
NAUGHTY = "</script><script>window.broken = true</script><b>&amp;"


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(5).normal(size=(N, 3))


@pytest.fixture(scope="module")
def path(X):
    return otgraph.eps_path(X, [0.002, 0.1, 0.5, 2.0], metric="manhattan", power=1.5)


@pytest.fixture(scope="module")
def labels():
    return np.array(["a", NAUGHTY, "c"], dtype=object)[np.arange(N) % 3]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


class Reader:
    """The page as a person sees it, and the arrays behind it."""

    def __init__(self, browser) -> None:
        self.browser = browser
        WebDriverWait(browser, SECONDS).until(lambda _: self.reading("mean_degree"))

    def text(self, name):
        return self.browser.find_element(By.ID, name).text

    def reading(self, name):
        return self.browser.find_element(By.CSS_SELECTOR, f"[data-reading={name}]").text

    def column(self, source, name):
        """A column of a data source, once bokeh has it."""
        model = "Bokeh.documents[0].get_model_by_name(arguments[0])"
        script = f"return Array.from({model}.data[arguments[1]])"
        return self.browser.execute_script(script, source, name)

    def n_drawn(self):
        return sum(len(chain) for chain in self.column("edges", "xs")) // 3

    def move_to(self, value):
        """Move the slider with the keyboard."""
        slider = self.browser.find_element(By.ID, "eps")
        slider.send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * value)

    def color_by(self, name):
        Select(self.browser.find_element(By.ID, "color")).select_by_visible_text(name)

    def point_at(self, position):
        """Put the pointer on a dot; returns whether the page noticed."""
        x, y = self.browser.execute_script(
            """
            const view = [...Bokeh.index.roots].find((view) => view.model.name == "graph")
            const {left, top} = view.el.getBoundingClientRect()
            const {x, y} = Bokeh.documents[0].get_model_by_name("points").data
            const k = arguments[0]
            return [left + view.frame.x_scale.compute(x[k]), top + view.frame.y_scale.compute(y[k])]
            """,
            position,
        )
        chain = ActionChains(self.browser)
        chain.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        chain.perform()
        WebDriverWait(self.browser, SECONDS).until(lambda _: self.column("rings", "row"))

    def errors(self):
        return [m["message"] for m in self.browser.get_log("browser") if m["level"] == "SEVERE"]


@pytest.fixture(scope="module")
def page(browser, path, labels, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "page.html"
    explore(
        path, file, labels=labels, names=[f"{NAUGHTY}{k}" for k in range(N)], title=NAUGHTY,
        columns={"depth": np.where(np.arange(N) == 3, np.nan, np.arange(N)), NAUGHTY: labels},
    )  # fmt: skip
    browser.get(file.as_uri())
    return Reader(browser)


def test_loads_without_errors_or_network(page):
    assert page.errors() == []
    script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert page.browser.execute_script(script) == []


def test_names_are_text_and_never_code(page):
    assert (
        page.browser.find_element(By.CSS_SELECTOR, "meta[http-equiv]")
        .get_attribute("content")
        .startswith("default-src 'none'; script-src 'unsafe-eval' 'sha256-")
    )
    assert page.browser.execute_script("return window.broken") is None
    assert page.browser.find_element(By.TAG_NAME, "h1").text == NAUGHTY
    page.color_by("label")
    assert page.text("legend").split("\n") == [NAUGHTY, "a", "c"]


@pytest.mark.parametrize("value", [3, 0, 2, 1])
def test_slider_shows_what_python_computed(page, path, value):
    graph = path[value]
    page.move_to(value)
    assert page.text("eps-value") == f"{graph.params['eps']:.6g}"
    assert page.reading("mean_degree") == f"{graph.mean_degree:.2f}"
    assert page.reading("n_connected") == str(graph.n_connected)
    assert page.reading("n_edges") == f"{graph.weights.nnz // 2:,}"
    assert page.n_drawn() == graph.weights.nnz // 2
    assert page.reading("status") == graph.certificate.status.value
    assert page.reading("degree_range") == f"{graph.degrees.min()} to {graph.degrees.max()}"
    left, right = page.column("histogram", "left"), page.column("histogram", "right")
    expected = np.histogram(graph.degrees, [*left, right[-1]])[0]
    assert page.column("histogram", "count") == expected.tolist()
    assert expected.sum() == N
    assert page.text("drawn") == "All points and edges are drawn."


def test_edges_lie_between_their_points(page, path, X):
    page.move_to(1)
    places = np.column_stack([page.column("points", "x"), page.column("points", "y")])
    x = np.concatenate(page.column("edges", "xs")).astype(float).reshape(-1, 3)
    y = np.concatenate(page.column("edges", "ys")).astype(float).reshape(-1, 3)
    assert np.isnan(x[:, 2]).all()
    index = {tuple(place): row for row, place in enumerate(places.tolist())}
    drawn = {
        tuple(sorted((index[x[e, 0], y[e, 0]], index[x[e, 1], y[e, 1]]))) for e in range(len(x))
    }
    edges = path[1].edges()
    assert drawn == set(zip(edges.i.tolist(), edges.j.tolist(), strict=True))


class TestColors:
    def test_groups(self, page, labels):
        page.color_by("label")
        colors = np.array(page.column("points", "color"))
        for name, color in zip(sorted(set(labels)), GROUPS, strict=False):
            assert set(colors[labels == name]) == {color}

    def test_components(self, page, path):
        page.move_to(0)
        page.color_by("component")
        graph = path[0]
        assert graph.n_connected > len(GROUPS)
        sizes = np.bincount(graph.component_labels)
        largest = graph.component_labels == sizes.argmax()
        colors = np.array(page.column("points", "color"))
        assert set(colors[largest]) == {GROUPS[0]}
        assert (colors == UNKNOWN).sum() == N - np.sort(sizes)[::-1][: len(GROUPS)].sum()
        assert f"component 1: {sizes.max()} points" in page.text("legend")

    @pytest.mark.parametrize("name", ["degree", "potential"])
    def test_numbers(self, page, path, name):
        page.move_to(2)
        page.color_by(name)
        values = path[2].degrees if name == "degree" else path[2].potentials
        colors = page.column("points", "color")
        assert colors[values.argmin()] == Viridis256[0]
        assert colors[values.argmax()] == Viridis256[-1]
        words = page.text("legend").split("\n")
        assert words[0] == name
        np.testing.assert_allclose(
            [float(word) for word in words[1:]], [values.min(), values.max()], rtol=0.01
        )

    def test_column_of_numbers(self, page):
        page.color_by("depth")
        colors = page.column("points", "color")
        assert (colors[0], colors[N - 1], colors[3]) == (Viridis256[0], Viridis256[-1], UNKNOWN)
        assert page.text("legend").split("\n") == ["depth", "0", str(N - 1)]

    def test_column_of_groups(self, page, labels):
        page.color_by(NAUGHTY)
        by_column = page.column("points", "color")
        page.color_by("label")
        assert page.column("points", "color") == by_column


class TestSelection:
    def select(self, page, indices):
        model = "Bokeh.documents[0].get_model_by_name('points')"
        page.browser.execute_script(f"{model}.selected.indices = arguments[0]", indices)

    def test_lists_points_and_their_neighbors_at_every_eps(self, page, path, labels):
        page.move_to(1)
        assert not page.browser.find_element(By.ID, "selection").is_displayed()
        self.select(page, [4, 7])
        for value in (1, 3):
            page.move_to(value)
            assert page.text("selected-count") == "2 selected"
            lines = page.text("selected-list").split("\n")
            for line, row in zip(lines, (4, 7), strict=True):
                neighbors = np.sort(path[value].weights[[row]].indices)
                assert (
                    line
                    == (
                        f"row {row}: {NAUGHTY}{row} ({labels[row]}); {len(neighbors)} neighbors: "
                        + ", ".join(map(str, neighbors))
                    ).rstrip()
                )
        page.browser.find_element(By.ID, "clear-selection").click()
        assert not page.browser.find_element(By.ID, "selection").is_displayed()

    def test_a_box_selects(self, page):
        """With the pointer: choose the tool, drag over the picture."""
        self.choose_tool(page, "BoxSelectTool")
        plot = page.browser.find_element(By.CSS_SELECTOR, ".graph .plot")
        x, y = plot.rect["x"], plot.rect["y"]
        width, height = plot.rect["width"], plot.rect["height"]
        chain = ActionChains(page.browser)
        pointer = chain.w3c_actions.pointer_action
        pointer.move_to_location(round(x + 20), round(y + 20))
        pointer.pointer_down()
        pointer.move_to_location(round(x + 0.6 * width), round(y + 0.6 * height))
        pointer.move_to_location(round(x + width - 70), round(y + height - 20))
        pointer.pointer_up()
        chain.perform()
        WebDriverWait(page.browser, SECONDS).until(lambda _: page.text("selected-count"))
        assert page.text("selected-count") == f"{N} selected"
        assert len(page.text("selected-list").split("\n")) == N
        page.browser.find_element(By.ID, "clear-selection").click()
        self.choose_tool(page, "PanTool")

    @staticmethod
    def choose_tool(page, kind):
        page.browser.execute_script(
            """
            const graph = Bokeh.documents[0].get_model_by_name("graph")
            graph.toolbar.tools.find((tool) => tool.type == arguments[0]).active = true
            """,
            kind,
        )


class TestStrip:
    """The curve and the components below the slider."""

    def shape(self, page, name):
        return page.browser.find_element(By.CSS_SELECTOR, f"#curve .{name}")

    def test_error_of_predictions(self, page, path):
        keywords = {"metric": "manhattan", "power": 1.5}
        choice = otgraph.choose_eps(path[0].points, **keywords)
        assert f"smallest at ε = {choice.eps:.3g} (eps='auto')" in page.text("error")
        points = self.shape(page, "error").get_attribute("points").split()
        eps = np.array([graph.params["eps"] for graph in path])
        tried = np.union1d(choice.grid, eps)
        curve = otgraph.choose_eps(path[0].points, eps=tried, **keywords)
        inside = (tried >= eps[0]) & (tried <= eps[-1])
        assert len(points) == inside.sum() > len(eps)
        heights = [float(point.split(",")[1]) for point in points]
        assert np.argmax(heights) == np.argmin(curve.scores[inside])  # 0 is the upper end

    def test_components_and_the_current_value(self, page, path):
        for value in (0, 2):
            page.move_to(value)
            assert float(self.shape(page, "cursor").get_attribute("x1")) == 1000 * value / 3
            assert f"components: {path[value].n_connected}" in page.text("curve-text")
        points = self.shape(page, "components").get_attribute("points").split()
        assert len(points) == len(path)


class TestHovering:
    def lonely_rows(self, page, count):
        """Points farthest from all others: no dot covers theirs."""
        places = np.column_stack([page.column("points", "x"), page.column("points", "y")])
        distances = np.linalg.norm(places[:, None] - places, axis=2) + np.diag([np.inf] * N)
        return np.argsort(-distances.min(axis=1))[:count].tolist()

    @pytest.mark.parametrize("value", [1, 3])
    def test_marks_the_neighbors(self, page, path, labels, value):
        page.move_to(value)
        for row in self.lonely_rows(page, 3):
            page.point_at(row)
            marked = page.column("rings", "row")
            neighbors = path[value].weights[[row]].indices
            assert marked[0] == row
            assert sorted(marked[1:]) == sorted(neighbors.tolist())
            assert page.column("tag", "text") == [f"row {row}: {NAUGHTY}{row} ({labels[row]})"]
            assert f"Row {row}: " in page.text("hovered")
            assert f"{len(neighbors)} neighbors: " in page.text("hovered")

    def test_neighbors_follow_the_slider(self, page, path):
        (row,) = self.lonely_rows(page, 1)
        page.point_at(row)
        page.move_to(0)
        assert sorted(page.column("rings", "row")[1:]) == path[0].weights[[row]].indices.tolist()

    def test_nothing_is_marked_elsewhere(self, page):
        chain = ActionChains(page.browser)
        chain.w3c_actions.pointer_action.move_to_location(3, 3)
        chain.perform()
        WebDriverWait(page.browser, SECONDS).until(lambda _: not page.column("rings", "row"))
        assert "Point at a dot" in page.text("hovered")


class TestCode:
    def test_button_shows_and_hides(self, page):
        button = page.browser.find_element(By.ID, "show-code")
        panel = page.browser.find_element(By.ID, "code")
        assert not panel.is_displayed()
        button.click()
        assert panel.is_displayed()
        assert page.text("python").startswith("graph = otgraph.quadratic_ot_graph(X, eps=")
        assert page.text("python").endswith("graph.save('graph.otg')")
        button.click()
        assert not panel.is_displayed()

    def test_both_rebuild_the_graph(self, page, path, X, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        page.browser.find_element(By.ID, "show-code").click()
        page.move_to(2)
        names = {"otgraph": otgraph, "X": X}
        exec(page.text("python"), names)
        self.assert_same(names["graph"].weights, path[2].weights)
        (tmp_path / "graph.otg").unlink()

        np.save(tmp_path / "points.npy", X)
        command = page.text("command").replace("POINTS", "points.npy")
        words = shlex.split(command)
        assert words[0] == "otgraph"
        subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, check=True, capture_output=True
        )
        saved = otgraph.load_graph(tmp_path / "graph.otg")
        self.assert_same(saved.weights, path[2].weights)
        assert saved.certificate.status.value == page.reading("status")

    @staticmethod
    def assert_same(rebuilt, weights):
        """Equal to the tolerance of the solver: the path started elsewhere."""
        assert abs(rebuilt - weights).max() < 1e-5
        heavy = weights > 1e-5
        assert (heavy != (rebuilt > 1e-5)).nnz == 0


HOSTILE = [
    "</script><script>window.broken = 1; alert(1)</script>",
    "<img src=x onerror='window.broken = 2; alert(2)'>",
    "<svg onload='window.broken = 3'></svg>",
    "javascript:window.broken=4",
    "{{ 7 * 7 }} {% raw %}",
    "--><!--<script>window.broken = 5",
    "'\"`;window.broken=6//",
    "__proto__",
    "$\\frac{1}$",
    "\u202eright to left",
    "half \ud800 of a pair",
    "policy-of-the-page",
]


@pytest.fixture(scope="module")
def hostile_page(X, tmp_path_factory):
    """Names, labels, columns, title and source that try to become code."""
    file = tmp_path_factory.mktemp("hostile") / "page.html"
    words = np.array(HOSTILE, dtype=object)[np.arange(N) % len(HOSTILE)]
    columns = {name: words if k % 2 else np.arange(N) for k, name in enumerate(HOSTILE)}
    explore(
        X, file, eps=[0.5, 2.0], labels=words, names=words, columns=columns,
        title=" ".join(HOSTILE), source=" ".join(HOSTILE),
    )  # fmt: skip
    return file


def shown(text):
    return text.replace("\ud800", "\ufffd")


def test_hostile_words_are_text(browser, hostile_page):
    browser.get(hostile_page.as_uri())
    page = Reader(browser)
    for name in ("label", *HOSTILE):
        page.color_by(shown(name))
    page.point_at(0)
    page.browser.find_element(By.ID, "show-code").click()
    assert browser.find_element(By.TAG_NAME, "h1").text == " ".join(map(shown, HOSTILE))
    assert browser.execute_script("return window.broken") is None
    assert not browser.find_elements(By.CSS_SELECTOR, "img, svg[onload]")
    assert page.errors() == []


def test_policy_lets_only_the_scripts_of_the_page_run(page):
    """A script, a handler or a request that data brought in would be stopped."""
    page.browser.execute_script(
        """
        const script = document.createElement("script")
        script.textContent = "window.injected = 1"
        document.body.append(script)
        const image = document.createElement("div")
        image.innerHTML = "<img src='data:,' onerror='window.injected = 2'>"
        document.body.append(image)
        window.refused = "no"
        fetch("https://example.org").catch(() => { window.refused = "yes" })
        """
    )
    WebDriverWait(page.browser, SECONDS).until(
        lambda b: b.execute_script("return window.refused") == "yes"
    )
    assert page.browser.execute_script("return window.injected") is None
    assert any("Content Security Policy" in error for error in page.errors())


def test_thinned_page_says_so(browser, path, tmp_path):
    explore(path, tmp_path / "thin.html", max_points=40, max_edges=50)
    browser.get((tmp_path / "thin.html").as_uri())
    page = Reader(browser)
    page.move_to(3)
    total = path[3].weights.nnz // 2
    assert page.n_drawn() == 50
    assert page.reading("n_edges") == f"{total:,}"
    assert page.reading("mean_degree") == f"{path[3].mean_degree:.2f}"
    assert page.text("drawn").startswith(
        f"Drawn: 40 of {N} points and 50 of {total:,} edges, chosen at random."
    )
    page.point_at(0)
    assert "of them drawn" in page.text("hovered")
    assert page.errors() == []


def test_one_value_and_a_notebook(browser, path, tmp_path):
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<body>{explore(path[:1])._repr_html_()}</body>", encoding="utf-8")
    browser.get(notebook.as_uri())
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    page = Reader(browser)
    assert page.reading("mean_degree") == f"{path[0].mean_degree:.2f}"
    assert not browser.find_element(By.ID, "eps").is_enabled()
    assert page.errors() == []


def test_nothing_is_cut_off_on_small_screens(browser, path, tmp_path):
    explore(path, tmp_path / "page.html")
    browser.get((tmp_path / "page.html").as_uri())
    page = Reader(browser)
    for size in [(500, 900), (1000, 700), (1280, 800)]:
        browser.set_window_size(*size)

        def fits(_):  # once the page has been laid out anew
            wide, visible, drawn = browser.execute_script(
                """
                const {scrollWidth, clientWidth} = document.documentElement
                const view = [...Bokeh.index.roots].find((view) => view.model.name == "graph")
                return [scrollWidth, clientWidth, view.el.getBoundingClientRect().height]
                """
            )
            return wide <= visible and drawn > 300

        WebDriverWait(browser, SECONDS).until(fits, f"at {size}")
    assert page.errors() == []
