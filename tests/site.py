"""A static web host, and a visitor that records what a page must not do."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Response

DESKTOP = {"width": 1280, "height": 800}


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a static web host for the folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Visit:
    """A browser page; ``faults`` lists its errors, failed responses and requests to other hosts."""

    def __init__(self, page: Page, inside: str) -> None:
        self.page = page
        self.faults: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda asked: self._asked(asked.url, inside))
        self.dialogs: list[str] = []
        page.on("dialog", self._dismiss)
        page.on("response", self._answered)

    def _said(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.faults.append(said.text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _answered(self, got: Response) -> None:
        if got.status >= 400:
            self.faults.append(got.url)

    def _asked(self, url: str, inside: str) -> None:
        # A download is made in the browser.
        if not url.startswith((inside, "data:", "blob:")):
            self.faults.append(f"request to {url}")

    def open(self, url: str) -> Page:
        self.page.goto(url)
        if "/report/" not in url:
            # ASV's pages load their data by script.
            self.page.wait_for_load_state("networkidle")
        return self.page


@contextlib.contextmanager
def visited(chromium: Browser, inside: str) -> Iterator[Visit]:
    """A browser page that can load only files and addresses below ``inside``."""
    context = chromium.new_context(viewport=DESKTOP)
    allowed = (inside, "file:", "blob:")
    context.route(lambda url: not url.startswith(allowed), lambda route: route.abort())
    yield Visit(context.new_page(), inside)
    context.close()
