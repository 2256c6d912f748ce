"""Takes the pictures of the site in html/ for the documents, with the system's Chromium.

They show the machine that the site opens with.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
OVERVIEW = HERE.parents[1] / "html" / "report" / "index.html"
WIDTH, HEIGHT = 1100, 900
# Picture: the link in the navigation of the site.
PAGES = {"verdict": "Does it pay?", "history": "History"}


def main() -> None:
    """Take one picture of each page."""
    if not OVERVIEW.exists():
        raise SystemExit("html/ has no report; make it with: asv publish")
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, link in PAGES.items():
            page.goto(OVERVIEW.as_uri())
            page.get_by_role("navigation", name="Site").get_by_role("link", name=link).click()
            page.screenshot(path=HERE / f"{name}.png")
            print(f"docs/pictures/{name}.png: {page.title()}")
        browser.close()


if __name__ == "__main__":
    main()
