"""The page in a real browser, offline and from a file: it says what Python computed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
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
    explore(path, file, labels=labels, names=[f"{NAUGHTY}{k}" for k in range(N)], title=NAUGHTY)
    browser.get(file.as_uri())
    return Reader(browser)


def test_loads_without_errors_or_network(page):
    assert page.errors() == []
    script = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert page.browser.execute_script(script) == []


def test_names_are_text_and_never_code(page):
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
        button.click()
        assert not panel.is_displayed()

    def test_both_rebuild_the_graph(self, page, path, X, tmp_path):
        page.browser.find_element(By.ID, "show-code").click()
        page.move_to(2)
        names = {"otgraph": otgraph, "X": X}
        exec(page.text("python"), names)
        self.assert_same(names["graph"].weights, path[2].weights)

        np.save(tmp_path / "points.npy", X)
        command = page.text("command").replace("POINTS", "points.npy")
        words = shlex.split(command)
        assert words[0] == "otgraph"
        subprocess.run(
            [sys.executable, "-m", *words], cwd=tmp_path, check=True, capture_output=True
        )
        self.assert_same(sp.load_npz(tmp_path / "graph.otg"), path[2].weights)

    @staticmethod
    def assert_same(rebuilt, weights):
        """Equal to the tolerance of the solver: the path started elsewhere."""
        assert abs(rebuilt - weights).max() < 1e-5
        heavy = weights > 1e-5
        assert (heavy != (rebuilt > 1e-5)).nnz == 0


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
