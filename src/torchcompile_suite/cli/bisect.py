"""``torchcompile-suite bisect`` on the command line."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from .. import matrix, workloads
from ..analysis.statistics import Interval, formatted
from ..cell import DEFAULT_HEAP, Cell
from ..commits import overlay
from ..commits.bisection import Result, Step, bisect
from ..commits.clone import Clone
from ..commits.judge import Side
from ..commits.measuring import METRICS, Measuring
from ..engine import settings
from ..engine.series import conditions_here
from ..errors import SuiteError, cannot_write, similar
from ..host import machine
from ..host.files import held, write_or_say
from ..host.places import cache_folder
from ..measurement import Launch
from ..modes import MODES
from ..presentation.terminal import Output, Progress
from ..presentation.wording import written
from ..releases import catalogue
from .options import PATH

CACHE = cache_folder() / "commits"
# Beside a clone of the suite: the same place as in asv.commits.conf.json.
REPO = Path("../pytorch")
T = TypeVar("T")


@click.command()
@click.argument("good", help="The good end: a commit, tag or branch of the clone.")
@click.argument("bad", help="The bad end: a later commit, tag or branch.")
@click.option(
    "--cell", required=True, help="A cell as the suite prints it: 'resnet18, batch 1, default'."
)
@click.option("--metric", default="ratio", help=f"One of: {', '.join(METRICS)}.")
@click.option("--repo", type=PATH, default=REPO, help="Path of a clone of PyTorch.")
@click.option(
    "--allow-native-drift", is_flag=True, help="Also try commits whose compiled bindings differ."
)
@click.option("--resume", is_flag=True, help="Continue a search that Ctrl-C interrupted.")
@click.option(
    "--json", "json_file", type=PATH, help="Write the result and all launches to this file."
)
def bisect_command(
    good: str,
    bad: str,
    cell: str,
    metric: str,
    repo: Path,
    allow_native_drift: bool,
    resume: bool,
    json_file: Path | None,
) -> None:
    """Find the commit that made a cell slower (or faster), in a clone of PyTorch.

    Nothing is built. The Python files of each commit are overlaid on the release or nightly that
    the commit descends from. Each commit is measured until it belongs to good or to bad. A commit
    that does not import, does not compile or computes wrong results is skipped, and the reason is
    printed.

    Exit status: 0 found, 1 not found or a wrong value, 2 no such option, 130 interrupted.

    Example: torchcompile-suite bisect v2.9.0 v2.9.1 --cell 'gpt_decode, batch 1, default'
    """
    wanted = cell_named(cell)
    if metric not in METRICS:
        raise SuiteError(f"no metric {metric!r}; there are: {', '.join(METRICS)}")
    measured = _with_figure(wanted, metric)
    clone = Clone(repo)
    first, last = clone.resolve(good), clone.resolve(bad)
    commits = [first, *clone.between(first, last)]
    # Launches of two conditions make no interval.
    here = conditions_here({})
    # A build that was added, or drift that is allowed: other binaries.
    builds = [release.version for release in catalogue.everything()]
    binaries = ("drift" * allow_native_drift, *builds)
    question = "\0".join((str(repo.resolve()), first, last, str(wanted), metric, here, *binaries))
    kept = CACHE / f"{hashlib.sha256(question.encode()).hexdigest()[:20]}.jsonl"
    progress = Progress()

    def search() -> tuple[Result, Measuring]:
        if not resume:
            kept.unlink(missing_ok=True)
        elif not kept.exists():
            progress.say(
                "nothing is kept for these commits, cell, metric, releases and conditions: it "
                "begins anew"
            )
        measuring = Measuring(
            clone,
            measured,
            metric,
            CACHE,
            kept,
            allow_native_drift=allow_native_drift,
            repeats=settings.Settings.from_environment().repeats,
            report=progress.say,
        )
        progress.say(f"{len(commits) - 1} commits, {metric} of {wanted}")
        found = bisect(commits, measuring, lambda step: progress.say(_line(step, clone, metric)))
        return found, measuring

    result, measuring = _alone(search)
    check = (
        f"torchcompile-suite bisect {result.before[:12]} {result.suspects[-1][:12]} "
        f"--cell '{wanted}' --metric {metric} --repo {shlex.quote(str(repo))}"
        + (" --allow-native-drift" if allow_native_drift else "")
    )
    _show(Output(), clone, result, metric, check)
    if json_file is not None:
        remedy = "correct this, then repeat the same command with --resume"
        write_or_say(json_file, as_json(result, measured, metric, measuring), remedy)


def _alone(search: Callable[[], T]) -> T:
    """Search while no other process does: there is one environment, and both would be disturbed."""
    try:
        with held(CACHE / "lock", f"another bisection is running in {CACHE}; wait for it"):
            return search()
    except KeyboardInterrupt:
        click.echo("interrupted; to continue: the same command with --resume", err=True)
        raise SystemExit(130) from None
    except OSError as error:
        raise cannot_write(error, "a file", "correct this, then continue with --resume") from None


def _with_figure(cell: Cell, metric: str) -> Cell:
    """The cell whose launches have the metric: on a CPU, only a default heap has a memory."""
    if metric == "memory" and cell.device == "cpu" and cell.allocator == "system":
        return msgspec.structs.replace(cell, allocator=DEFAULT_HEAP)
    return cell


def cell_named(text: str) -> Cell:
    """The cell that the suite prints as ``text``, on this machine's device.

    The name of a workload stands for its plain cell. Raises SuiteError, which names similar cells.
    """
    plain = " ".join(text.split())
    device = machine.device_kind()
    known = {str(cell): cell for each in matrix.QUESTIONS.values() for cell in each.by_cell}
    known |= {name: Cell(name, 1, "default") for name in workloads.names()}
    if plain not in known:
        raise SuiteError(
            f"no cell {plain!r}{similar(plain, known)}. Write it as the report does: "
            f"'resnet18, batch 1, default' (modes: {', '.join(MODES)})"
        )
    if not known[plain].timed:
        raise SuiteError(f"{plain} times no pairs, so there is nothing to compare; name another")
    return msgspec.structs.replace(known[plain], device=device)


class Bisected(msgspec.Struct):
    """The result of ``torchcompile-suite bisect``; see `commits.bisection.Result`.

    ``launches``: of each commit that was measured.
    """

    cell: Cell
    metric: str
    before: str
    suspects: list[str]
    factor: Interval
    again: Interval
    steps: list[Step]
    launches: dict[str, list[Launch]]


def as_json(result: Result, cell: Cell, metric: str, measuring: Measuring) -> bytes:
    """The result for programs, with every launch."""
    return written(Bisected(cell, metric, *result, measuring.launches))


def _line(step: Step, clone: Clone, metric: str) -> str:
    text = f"{step.commit[:10]} {step.side.value}"
    if step.values:
        text += f" {_values(step.values, metric)}"
    return f"{text} ({step.reason or clone.subject(step.commit)})"


def _values(values: list[float], metric: str) -> str:
    if metric == "memory":
        return " ".join(f"{value / 2**20:,.0f} MiB" for value in values)
    if metric in ("latency", "eager"):
        return " ".join(formatted(value * 1e3, ".3g") for value in values) + " ms"
    return " ".join(f"{value:.3g}" for value in values) + " s" * (metric != "ratio")


def _show(out: Output, clone: Clone, result: Result, metric: str, check: str) -> None:
    one_of = " one of" if len(result.suspects) > 1 else ""
    out.say(f"the first bad commit is{one_of}", bold=True)
    for commit in result.suspects:
        out.say(f"  {commit} {clone.subject(commit)}")
    out.say(f"the last good commit is {result.before} {clone.subject(result.before)}")
    ends = (result.before, result.suspects[-1])
    good, bad = (overlay.base_of(clone, commit)[0].version for commit in ends)
    if good != bad:
        out.say(
            f"they lie on the binaries of two builds, {good} and {bad}: what changed may be in "
            "compiled code or in Triton, in any commit between the builds",
            bold=True,
        )
    counts = {side: sum(step.side is side for step in result.steps) for side in Side}
    out.say(
        f"{metric}, bad over good: {result.factor:.3f}; commits: {counts[Side.GOOD]} good, "
        f"{counts[Side.BAD]} bad, {counts[Side.UNKNOWN]} skipped",
    )
    said = "in turns at the end, the last of them over the last good commit"
    if result.confirmed:
        out.say(f"{said}: {result.again:.3f}")
    else:
        out.say(f"not confirmed: {said} is {result.again:.3f}", bold=True)
    out.say(f"to check it: {check}")
