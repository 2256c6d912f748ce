"""Takes the pictures of the site in html/ for the documents, with the system's Chromium.

They show the machine that the site opens with.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
REPORT = HERE.parents[1] / "html" / "report"
# Of the browser.
NAMES = ("chromium", "chromium-browser", "google-chrome")
SIZE = {"width": 1100, "height": 900}
PAGES = {
    "landing": "index.html",
    "model": "cell.html#model=resnet18",
    "release": "release-2.9.html",
}


def main() -> None:
    """Take every picture."""
    if not REPORT.is_dir():
        raise SystemExit("html/ has no report; make it with: asv publish")
    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, address in PAGES.items():
            page = browser.new_page(viewport=SIZE)
            page.goto(f"{REPORT.as_uri()}/{address}")
            page.wait_for_selector("html[data-drawn]")
            page.wait_for_selector("figure:not([data-drawn])", state="detached")
            page.screenshot(path=HERE / f"{name}.png")
            print(f"docs/pictures/{name}.png: {page.title()}")
        browser.close()


if __name__ == "__main__":
    main()
