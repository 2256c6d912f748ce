"""`asv publish`: sound files only, and the report beside ASV's own pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def publish(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Publish.run` on the sound files: ASV stops at the first broken one.

    The others are named and left out.
    """

    def run(cls: type[Publish], conf: Any, *arguments: Any, **options: Any) -> Any:
        add_nightlies(conf)
        with staged(conf, every=False) as stage:
            for problem in stage.problems:
                log.warning(printable(f"left out: {problem}"))
            Report.stage = stage
            return original(cls, conf, *arguments, **options)

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
        from . import pages

        html = Path(conf.html_dir)
        _leave_out_valueless(html, benchmarks, graphs)
        left_out = cls.stage.problems
        pages.localise(html, conf.project)
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
