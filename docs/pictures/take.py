"""Takes the pictures of the site in html/ for the documents, with the system's Chromium.

They show the machine that the site opens with, at the size of a desk and of a phone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
REPORT = HERE.parents[1] / "html" / "report"
SIZES = {"": (1100, 900), "-phone": (390, 844)}
CELL = "resnet18, batch 1, default"
# Picture: the page, what is chosen besides the machine, and the part at the top of the picture.
PAGES = {
    "landing": ("index.html", "", ""),
    "history": ("index.html", "", "since"),
    "cell": ("cell.html", f"&cell={CELL}", ""),
    "compare": ("compare.html", "", ""),
}


def drawn(page: Page) -> None:
    """Wait until the view and its pictures are drawn."""
    page.wait_for_selector("html[data-drawn]")
    page.wait_for_selector("#view[aria-busy=false]")
    page.wait_for_selector("figure:not([data-drawn])", state="detached")


def main() -> None:
    """Take every picture at every size."""
    if not REPORT.is_dir():
        raise SystemExit("html/ has no report; make it with: asv publish")
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for suffix, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            page.goto(f"{REPORT.as_uri()}/index.html")
            drawn(page)
            machine = page.evaluate(
                "Data.read('manifest', 'manifest').then(({ machines }) => machines[0].name)"
            )
            for name, (file, chosen, part) in PAGES.items():
                page.goto("about:blank")
                page.goto(f"{REPORT.as_uri()}/{file}#machine={machine}{chosen}")
                drawn(page)
                if part:
                    page.locator(f"#{part}").evaluate("(one) => one.scrollIntoView()")
                page.screenshot(path=HERE / f"{name}{suffix}.png")
                print(f"docs/pictures/{name}{suffix}.png: {page.title()}")
        browser.close()


if __name__ == "__main__":
    main()
