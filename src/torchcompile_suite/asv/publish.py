"""`asv publish`: sound files only, and the report beside ASV's own pages.

These are changed to work without a network and to link to the report: ASV's page loads ten files
from three CDNs, and shows an error without a network. The same files are in ``assets/vendor``.
`vendor.toml` names their sources.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from asv import util
from asv.benchmarks import Benchmarks
from asv.commands.publish import Publish
from asv.console import log
from asv.publishing import OutputPublisher

from ..presentation.wording import printable
from .repository import add_nightlies, of_releases
from .staging import Staged, staged

# Of the checkout that is published.
STORIES = Path("docs", "stories")
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


def publish(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Publish.run` on the sound files: ASV stops at the first broken one.

    The others are named and left out. The site that is there stays until the new one is complete.
    """

    def run(cls: type[Publish], conf: Any, *arguments: Any, **options: Any) -> Any:
        add_nightlies(conf)
        html = Path(conf.html_dir)
        html.parent.mkdir(parents=True, exist_ok=True)
        with (
            staged(conf, every=False) as stage,
            tempfile.TemporaryDirectory(dir=html.parent, prefix=f".{html.name}-") as folder,
        ):
            for problem in stage.problems:
                log.warning(printable(f"left out: {problem}"))
            Report.stage = stage
            conf.html_dir = str(Path(folder, html.name))
            try:
                original(cls, conf, *arguments, **options)
                if html.exists():
                    shutil.rmtree(html)
                Path(conf.html_dir).replace(html)
            finally:
                conf.html_dir = str(html)

    return run


def sorted_paths(original: Callable[..., Any]) -> Callable[..., Any]:
    """`iter_results_paths` by machine and commit, not in the order of the disk.

    So what `asv publish` writes is the same everywhere.
    """

    def iter_results_paths(results: str) -> Iterator[tuple[str, str, str]]:
        yield from sorted(original(results))

    return iter_results_paths


class Report(OutputPublisher):  # type: ignore[misc]
    """A publisher of ASV's: makes ASV's pages work offline, and adds the report.

    ASV calls each publisher at ``asv publish``. This one is the last; then ASV writes its index of
    all benchmarks.
    """

    name = "report"
    button_label = "Report"
    description = "What the results say"
    order = 100
    # ASV passes no more than the configuration, whose folder has the sound files only.
    stage: Staged

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Benchmarks, graphs: Any, _: Any) -> None:
        """Write the report beside ASV's pages, and name each file that was left out."""
        # ASV's other commands do not need these.
        from ..site import axis, build

        html = Path(conf.html_dir)
        _leave_out_valueless(html, benchmarks, graphs)
        left_out = cls.stage.problems
        localise(html, conf.project)
        of = axis.Releases() if of_releases(conf) else axis.Commits(repo.clone)
        problems = build.build(cls.stage.results, html / "report", left_out, of, STORIES)
        for problem in problems[len(left_out) :]:
            log.warning(printable(f"left out: {problem}"))


def _leave_out_valueless(html: Path, benchmarks: Benchmarks, graphs: Any) -> None:
    """Take what has no value out of ASV's pages: its grid would have an empty picture of it."""
    valueless = [
        name
        for name in benchmarks
        if not any(graph.get_data() for graph in graphs.get_graph_group(name))
    ]
    for name in valueless:
        del benchmarks[name]
        for graph in html.glob(f"graphs/**/{name}.json"):
            graph.unlink()
    # The list of benchmarks fails for a name that is not in the index.
    for path in html.glob("graphs/**/summary.json"):
        rows = [row for row in util.load_json(str(path)) if row["name"] not in valueless]
        util.write_json(str(path), rows, compact=True)


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

    The page is known: another ASV is refused before (`patches.apply`). Raises OSError.
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
        file = known[name]
        source = f'"vendor/{file.name}" integrity="{file.integrity}"'
        if tag == "link":
            return f'<link rel="stylesheet" href={source}>'
        return f"<script src={source}>"

    page = _TAG.sub(local, _INLINE.sub("", page))
    page = page.replace(
        "<title>airspeed velocity</title>",
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"    <title>{escape(title)}: airspeed velocity</title>",
    )
    link = '<li id="nav-li-report"><a href="report/index.html">Report</a></li>'
    return _REGRESSIONS.sub(rf"\g<0>\n        {link}", page)
