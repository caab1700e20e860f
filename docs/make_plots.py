"""Make the pictures of the pages by running their code, and the page that shows them all.

``python docs/make_plots.py [PAGE]``; ``make docs`` does it first.
"""

from __future__ import annotations

import io
import re
import shutil
import sys
import tempfile
import warnings
from operator import itemgetter
from pathlib import Path
from typing import Any

import matplotlib as mpl

FOLDER = Path(__file__).parent
PAGES = (
    "plots.md", "good_graph.md", "choosing.md", "choosing_options.md", "choosing_graph.md",
    "geometry.md", "multiscale.md", "masses.md", "outliers.md", "clouds.md",
)  # fmt: skip
GALLERY = FOLDER / "gallery.md"
STEP = re.compile(
    r"```python\n(?P<code>(?:(?!```).)*)```(?:\s+!\[(?P<words>[^]]*)\]\((?P<image>[^)]+)\))?",
    re.DOTALL,
)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
CALL = re.compile(r"\b(?:plots|pl)\.(\w+)\(")
GALLERY_COLUMNS = 2
DPI = 100
COLORS = 128  # of a picture: a third of the size, and no visible difference
WINDOW = "1280,887"  # 1280 x 800 and what a browser takes for itself


def main() -> None:
    """Run all steps, in a directory that is thrown away, and save their pictures."""
    mpl.use("Agg")
    with tempfile.TemporaryDirectory() as scratch:
        for page in sys.argv[1:] or PAGES:
            names: dict[str, Any] = {}
            with warnings.catch_warnings():  # a page may say which ones it expects
                for code, image in steps(page):
                    code = code.replace("arms.html", f"{scratch}/arms.html")
                    run(code, names, FOLDER / image if image else None)
                    print(image or f"{page}: code without a picture")
    GALLERY.write_text(gallery(), encoding="utf-8")


def gallery() -> str:
    """The page of all pictures, each a link to the code that makes it."""
    text = (FOLDER / PAGES[0]).read_text("utf-8")
    cells = []
    for step in filter(itemgetter("image"), STEP.finditer(text)):
        heading = HEADING.findall(text[: step.start()])[-1]
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        words = " ".join(step["words"].split())
        functions = ", ".join(f"`{name}`" for name in dict.fromkeys(CALL.findall(step["code"])))
        picture = f"[![{words}]({step['image']})](plots.md#{anchor})"
        cells.append(f"{picture}<br>{heading}: {functions}")
    cells += [""] * (-len(cells) % GALLERY_COLUMNS)
    rows = [cells[k : k + GALLERY_COLUMNS] for k in range(0, len(cells), GALLERY_COLUMNS)]
    lines = [
        "# Gallery",
        "",
        "All pictures of [Plots](plots.md). Each leads to the code that makes it.",
        "",
        "| " * GALLERY_COLUMNS + "|",
        "|---" * GALLERY_COLUMNS + "|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def steps(page: str) -> list[tuple[str, str | None]]:
    """Pieces of code of a page, and the images that they make."""
    text = (FOLDER / page).read_text("utf-8")
    return [(step["code"], step["image"]) for step in STEP.finditer(text)]


def run(code: str, names: dict[str, Any], image: Path | None) -> None:
    """Run a piece of code and save the figure, or the page, that it leaves behind."""
    import matplotlib.pyplot as plt

    exec(code, names)
    if image is None:
        plt.close("all")
    elif plt.get_fignums():
        plt.gcf().savefig(file := io.BytesIO(), dpi=DPI)
        plt.close("all")
        save_small(file, image)
    else:
        photograph(Path(names["page"]), image)


def save_small(picture: io.BytesIO, image: Path) -> None:
    """Save a picture with few colors."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(COLORS).save(image, optimize=True)


def photograph(page: Path, image: Path) -> None:
    """A page as a browser shows it."""
    from selenium import webdriver
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        print(f"{image.name} is kept: no chromium and chromedriver to photograph the page")
        return
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
        save_small(io.BytesIO(browser.get_screenshot_as_png()), image)
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
