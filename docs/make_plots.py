"""Make the pictures of the pages by running their code: ``python docs/make_plots.py [PAGE]``."""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl

FOLDER = Path(__file__).parent
PAGES = ("plots.md", "good_graph.md")
STEP = re.compile(
    r"```python\n(?P<code>(?:(?!```).)*)```\s+!\[[^]]*\]\((?P<image>[^)]+)\)", re.DOTALL
)
DPI = 100
COLORS = 128  # of a screenshot: a third of the size, and no visible difference
WINDOW = "1280,887"  # 1280 x 800 and what a browser takes for itself


def main() -> None:
    """Run all steps, in a directory that is thrown away, and save their pictures."""
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as scratch:
        for page in sys.argv[1:] or PAGES:
            names: dict[str, Any] = {}
            for code, image in steps(page):
                run(code.replace("arms.html", f"{scratch}/arms.html"), names, FOLDER / image)
                print(image)


def steps(page: str) -> list[tuple[str, str]]:
    """Pieces of code of a page and the images that they make."""
    text = (FOLDER / page).read_text("utf-8")
    return [(step["code"], step["image"]) for step in STEP.finditer(text)]


def run(code: str, names: dict[str, Any], image: Path) -> None:
    """Run a piece of code and save the figure, or the page, that it leaves behind."""
    import matplotlib.pyplot as plt

    exec(code, names)
    if plt.get_fignums():
        plt.gcf().savefig(image, dpi=DPI)
        plt.close("all")
    else:
        photograph(Path(names["page"]), image)


def photograph(page: Path, image: Path) -> None:
    """A page as a browser shows it."""
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={WINDOW}"):
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium") or ""
    service = webdriver.ChromeService(shutil.which("chromedriver"))  # else it is looked for online
    browser = webdriver.Chrome(options=options, service=service)
    try:
        browser.get(page.as_uri())
        reading = (By.CSS_SELECTOR, "[data-reading=mean_degree]")
        WebDriverWait(browser, 60).until(lambda b: b.find_element(*reading).text)
        screen = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
        screen.quantize(COLORS).save(image, optimize=True)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
