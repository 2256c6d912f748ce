"""Takes the README's pictures of the site in html/, in the system's Chromium."""

from __future__ import annotations

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
REPORT = HERE.parents[1] / "html" / "report"
WIDTH, HEIGHT = 1100, 900


def newest(pattern: str) -> Path:
    """The page of the newest release; of a pair of releases, the newest against the oldest."""
    found = sorted(REPORT.glob(pattern), key=lambda file: _age(file.stem))
    if not found:
        raise SystemExit(f"html/ has no {pattern}; make it with: asv publish")
    return found[-1]


def _age(name: str) -> tuple[list[int], list[int]]:
    before, _, after = name.rpartition("..")
    return _version(after), [-part for part in _version(before)]


def _version(name: str) -> list[int]:
    return [int(part) for part in name.partition("-")[0].split(".") if part.isdecimal()]


def main() -> None:
    """One picture a page, light."""
    pages = {
        "verdict": newest("*/verdict/*-batch1.html"),
        "history": newest("*/history.html"),
        "changes": newest("*/changes/*.html"),
    }
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, file in pages.items():
            page.goto(file.as_uri())
            page.screenshot(path=HERE / f"{name}.png")
            print(f"docs/pictures/{name}.png: {file.relative_to(REPORT)}")
        browser.close()


if __name__ == "__main__":
    main()
