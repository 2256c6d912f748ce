"""``torchcompile-suite bisect`` on the command line."""

from __future__ import annotations

import difflib
import hashlib
from pathlib import Path
from typing import Annotated

import msgspec
import platformdirs
import typer
from filelock import FileLock, Timeout
from rich.console import Console

from .. import matrix, workloads
from ..cell import Cell
from ..commits.bisection import BisectionError, Found, Step, bisect
from ..commits.clone import Clone
from ..commits.judge import Side
from ..commits.measuring import METRICS, Measuring
from ..host import machine
from ..host.files import write_atomically
from ..measuring import settings
from ..modes import MODES
from ..presentation.terminal import Progress, console, one_line_errors, say

CACHE = platformdirs.user_cache_path("torchcompile-suite") / "commits"
# Beside a clone of the suite, as asv.commits.conf.json has it.
REPO = Path("../pytorch")


def bisect_command(
    good: Annotated[str, typer.Argument(help="A commit, tag or branch of the clone.")],
    bad: Annotated[str, typer.Argument(help="A later one.")],
    cell: Annotated[
        str, typer.Option(help="As the suite prints it: 'resnet18, batch 1, default'.")
    ],
    metric: Annotated[str, typer.Option(help=f"{', '.join(METRICS)}.")] = "ratio",
    repo: Annotated[Path, typer.Option(help="A clone of PyTorch.")] = REPO,
    allow_native_drift: Annotated[
        bool,
        typer.Option("--allow-native-drift", help="Try commits whose bindings differ, too."),
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where Ctrl-C ended it.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all of it here.")] = None,
) -> None:
    """Find the commit since which a cell is slower (or faster), in a clone of PyTorch.

    Nothing is built: each commit's Python is laid over the release or nightly it descends from, and
    must import, compile and compute right before it is measured. Each step is measured until it
    surely belongs to good or to bad; commits that cannot be measured are skipped, with the reason.

    Exit status: 0 found, 1 not found, 2 a wrong command line, 130 interrupted.

    Example: torchcompile-suite bisect v2.9.0 v2.9.1 --cell 'gpt_decode, batch 1, default'
    """
    with one_line_errors():
        wanted = cell_named(cell)
        if metric not in METRICS:
            raise BisectionError(f"no metric {metric!r}; there are: {', '.join(METRICS)}")
        clone = Clone(repo)
        first, last = clone.resolve(good), clone.resolve(bad)
        commits = [first, *clone.between(first, last)]
        question = "\0".join((str(repo.resolve()), first, last, str(wanted), metric))
        kept = CACHE / f"{hashlib.sha256(question.encode()).hexdigest()[:20]}.jsonl"
        if not resume:
            kept.unlink(missing_ok=True)
        telling = Progress()

        def hear(step: Step) -> None:
            telling.say(_line(step, clone, metric))

        try:
            CACHE.mkdir(parents=True, exist_ok=True)
            # One environment, one after the other: two at once would disturb each other anyway.
            with FileLock(CACHE / "lock", timeout=0):
                measuring = Measuring(
                    clone,
                    wanted,
                    metric,
                    CACHE,
                    kept,
                    allow_native_drift=allow_native_drift,
                    repeats=settings.Settings.from_environment().repeats,
                    tell=telling.say,
                )
                telling.say(f"{len(commits) - 1} commits, {metric} of {wanted}")
                found = bisect(commits, measuring, hear)
        except Timeout:
            raise BisectionError(f"another bisection is at work in {CACHE}; wait for it") from None
        except KeyboardInterrupt:
            typer.echo("interrupted; go on with the same command and --resume", err=True)
            raise typer.Exit(130) from None
        except OSError as error:
            raise BisectionError(
                f"cannot write {error.filename or 'a file'}: {error.strerror}; mend it and go on "
                "with --resume"
            ) from None
        check = (
            f"torchcompile-suite bisect {found.before[:12]} {found.suspects[-1][:12]} "
            f"--cell '{wanted}' --metric {metric} --repo {repo}"
        )
        _show(console(), clone, found, metric, check)
        if json_file is not None:
            write_atomically(json_file, as_json(found, wanted, metric, measuring))


def cell_named(text: str) -> Cell:
    """The cell that the suite prints so, on this machine's device; a workload alone is its plain
    one. Raises BisectionError naming what comes near.
    """
    plain = " ".join(text.split())
    device = machine.device_kind()
    known = {
        str(each): each
        for question in matrix.QUESTIONS.values()
        for each in (question.cell(*point) for point in question.points)
    }
    known |= {name: Cell(name, 1, "default") for name in workloads.names()}
    if plain not in known:
        near = difflib.get_close_matches(plain, known, 3, 0.5)
        hint = f"; near it: {'; '.join(near)}" if near else ""
        raise BisectionError(
            f"no cell {plain!r}{hint}. Write it as the report does: 'resnet18, batch 1, default' "
            f"(modes: {', '.join(MODES)})"
        )
    return msgspec.structs.replace(known[plain], device=device)


def as_json(found: Found, cell: Cell, metric: str, measuring: Measuring) -> bytes:
    """All of it for programs: one object, every launch included."""
    content = {
        "cell": cell,
        "metric": metric,
        "before": found.before,
        "suspects": found.suspects,
        "factor": list(found.factor),
        "steps": [step._asdict() for step in found.steps],
        "launches": measuring.launches,
    }
    return msgspec.json.format(msgspec.json.encode(content))


def _line(step: Step, clone: Clone, metric: str) -> str:
    said = f"{step.commit[:10]} {step.side.value}"
    if step.values:
        said += f" {_values(step.values, metric)}"
    return f"{said} ({step.reason or clone.subject(step.commit)})"


def _values(values: list[float], metric: str) -> str:
    if metric == "memory":
        return " ".join(f"{value / 2**20:,.0f} MiB" for value in values)
    if metric in ("latency", "eager"):
        return " ".join(f"{value * 1e3:.3g}" for value in values) + " ms"
    return " ".join(f"{value:.3g}" for value in values) + " s" * (metric != "ratio")


def _show(out: Console, clone: Clone, found: Found, metric: str, check: str) -> None:
    one_of = " one of" if len(found.suspects) > 1 else ""
    say(out, f"the first bad commit is{one_of}", "bold")
    for commit in found.suspects:
        say(out, f"  {commit} {clone.subject(commit)}")
    say(out, f"the last good one is {found.before} {clone.subject(found.before)}")
    counts = {side: sum(step.side is side for step in found.steps) for side in Side}
    say(
        out,
        f"{metric}, bad over good: {found.factor:.3f}; {counts[Side.GOOD]} commits good, "
        f"{counts[Side.BAD]} bad, {counts[Side.UNKNOWN]} skipped",
    )
    say(out, f"to check it: {check}")
