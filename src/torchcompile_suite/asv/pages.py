"""ASV's own pages, made to work anywhere: its scripts beside them, and a way to the report.

ASV copies its page, which loads ten files from three CDNs and shows an error without a network.
The same files lie in ``assets/vendor`` (`vendor.toml` says where they are from).
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from functools import cache
from pathlib import Path

import msgspec

from ..errors import SuiteError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VENDOR = Path(__file__).with_name("assets") / "vendor"
FONTS = VENDOR.with_name("fonts")
LIST = Path(__file__).with_name("vendor.toml")
# ASV's scripts set styles; nothing but them may run, and nothing be asked of another host.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
_TAG = re.compile(r'<(script|link)\b[^>]*?\b(?:src|href)="https?://[^"]*/([^"/]+)"[^>]*>')
_INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>.*?</script>\s*", re.DOTALL)
_REGRESSIONS = re.compile(r'<li id="nav-li-regressions">.*?</li>')


class SiteError(SuiteError):
    """The site cannot be made; the message says what to do."""


class Vendored(msgspec.Struct, forbid_unknown_fields=True):
    """A file of somebody else's: its ``package`` and the ``member`` of it; its own hash."""

    name: str
    replaces: str
    package: str
    member: str
    integrity: str


@cache
def vendored() -> tuple[Vendored, ...]:
    """The files, by the names of those they replace."""
    return msgspec.convert(tomllib.loads(LIST.read_text())["file"], tuple[Vendored, ...])


def localise(folder: Path, title: str, *, report: bool = True) -> None:
    """Mend ASV's page in ``folder``: scripts from beside it, a policy, a link to the report if
    there is one.

    Raises SiteError where ASV's page is not the one this was written for, and OSError.
    """
    shutil.copytree(VENDOR, folder / "vendor")
    # Where the style sheet looks for its icons; of all formats the one that every browser has.
    shutil.copytree(FONTS, folder / "fonts")
    file = folder / "index.html"
    file.write_text(_mended(file.read_text(encoding="utf-8"), title, report), encoding="utf-8")
    # Its one purpose was to say that a CDN could not be reached.
    (folder / "error.html").unlink(missing_ok=True)


def _mended(page: str, title: str, report: bool) -> str:
    known = {each.replaces: each for each in vendored()}

    def local(match: re.Match[str]) -> str:
        tag, name = match.groups()
        if name not in known:
            raise SiteError(
                f"ASV's page loads {name}, which the site does not have; install asv 0.6.6"
            )
        file = known[name]
        where = f'"vendor/{file.name}" integrity="{file.integrity}"'
        return f'<link rel="stylesheet" href={where}>' if tag == "link" else f"<script src={where}>"

    page = _TAG.sub(local, _INLINE.sub("", page))
    page = page.replace(
        "<title>airspeed velocity</title>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"    <title>{html.escape(title)}: airspeed velocity</title>",
    )
    link = '<li id="nav-li-report"><a href="report/index.html">Report</a></li>' if report else ""
    if link:
        page = _REGRESSIONS.sub(rf"\g<0>\n        {link}", page)
    for wanted in (POLICY, link, *(each.name for each in vendored())):
        if wanted not in page:
            raise SiteError(
                f"ASV's page has changed ({wanted!r} found no place); install asv 0.6.6"
            )
    return page
