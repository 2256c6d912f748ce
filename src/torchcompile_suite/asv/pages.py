"""ASV's own pages, changed to work without a network and to link to the report.

ASV's page loads ten files from three CDNs, and shows an error without a network. The same files are
in ``assets/vendor``. `vendor.toml` names their sources.
"""

from __future__ import annotations

import html
import re
import shutil
from functools import cache
from pathlib import Path

import msgspec

from ..errors import SuiteError

VENDOR = Path(__file__).with_name("assets") / "vendor"
FONTS = VENDOR.with_name("fonts")
LIST = Path(__file__).with_name("vendor.toml")
# Only ASV's scripts may run (they set styles), and nothing is requested from another host.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'"
)
_TAG = re.compile(r'<(script|link)\b[^>]*?\b(?:src|href)="https?://[^"]*/([^"/]+)"[^>]*>')
_INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>.*?</script>\s*", re.DOTALL)
_REGRESSIONS = re.compile(r'<li id="nav-li-regressions">.*?</li>')


class Vendored(msgspec.Struct, forbid_unknown_fields=True):
    """A third-party file: its ``package``, its ``member`` path in the package, and its hash."""

    name: str
    replaces: str
    package: str
    member: str
    integrity: str


@cache
def vendored() -> tuple[Vendored, ...]:
    """All third-party files."""
    return msgspec.toml.decode(LIST.read_bytes(), type=dict[str, tuple[Vendored, ...]])["file"]


def localise(folder: Path, title: str) -> None:
    """Change ASV's page in ``folder``: local scripts, a content policy, a link to the report.

    Raises SuiteError where ASV's page is not the known one, and OSError.
    """
    shutil.copytree(VENDOR, folder / "vendor")
    # The style sheet loads its icons from this folder. Every browser reads this format.
    shutil.copytree(FONTS, folder / "fonts")
    file = folder / "index.html"
    file.write_text(_changed(file.read_text(encoding="utf-8"), title), encoding="utf-8")
    # This page only says that a CDN cannot be reached.
    (folder / "error.html").unlink(missing_ok=True)


def _changed(page: str, title: str) -> str:
    known = {file.replaces: file for file in vendored()}

    def local(match: re.Match[str]) -> str:
        tag, name = match.groups()
        if name not in known:
            raise SuiteError(
                f"ASV's page loads {name}, which the site does not have; install asv 0.6.6"
            )
        file = known[name]
        source = f'"vendor/{file.name}" integrity="{file.integrity}"'
        if tag == "link":
            return f'<link rel="stylesheet" href={source}>'
        return f"<script src={source}>"

    page = _TAG.sub(local, _INLINE.sub("", page))
    page = page.replace(
        "<title>airspeed velocity</title>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"    <title>{html.escape(title)}: airspeed velocity</title>",
    )
    link = '<li id="nav-li-report"><a href="report/index.html">Report</a></li>'
    page = _REGRESSIONS.sub(rf"\g<0>\n        {link}", page)
    for wanted in (POLICY, link, *(file.name for file in vendored())):
        if wanted not in page:
            raise SuiteError(
                f"ASV's page has changed (there is no place for {wanted!r}); install asv 0.6.6"
            )
    return page
