"""Every launch of a point, with its environment and what the compiler made, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...analysis import statistics
from ...analysis.why import Why, compiled_against_eager
from ...compiled import Compiled
from ...conditions import Accelerator, Environment
from ...measurement import Launch
from ...presentation import why
from ...presentation.answers import pays
from ...presentation.wording import milliseconds, plural
from ...results.records import Record
from ..content import Entry, Machine
from ..packs import figure, figures, sheet, table

# JSON name of a field of `Compiled` -> the title of its column.
COMPILED = {
    "graphs": "graphs",
    "graph_breaks": "graph breaks",
    "recompiles": "recompiles",
    "operators": "operators",
    "guards": "guards",
    "kernels": "kernels",
    "launches": "kernel launches, each graph once",
    "eager_operators": "operators in eager",
    "nodes_before": "nodes before fusion",
    "nodes_after": "nodes after",
    "bytes_before": "bytes before fusion",
    "bytes_after": "bytes after",
    "eager_bytes": "bytes in eager",
}
# `Measurement.stopped` -> why there were no more launches.
STOPPED = {
    "fixed": "The number of launches was fixed.",
    "precise": "It ended because the interval was narrow enough.",
    "budget": "It ended because the time budget or the number of launches was used up.",
    "": "It failed.",
}
# The names of the data are published and do not change.
COLUMNS = [
    *("process", "start", "outcome", "reason", "set_aside", "eager_s", "mode_s", "ratio"),
    *("first_call_s", "compile_s", "calls_until_steady", "others_share", "yardstick_s"),
    *("eager_faults", "mode_faults", "peak_memory_bytes", "heap", "method", "calls_a_sample"),
    *("series", "round"),
]
# The pages have five colours.
MOST_BARS = 4
COMPILER_COLUMNS = ["cell", *COMPILED, "guard_check_s"]


def document(machine: Machine, point: str, bucket: int) -> dict[str, Any]:
    """The launches of each cell of a bucket. Environments are numbered, as most cells share one."""
    environments: dict[bytes, int] = {}
    made = {
        machine.ids[entry.row.cell]: _cell(machine, entry, environments)
        for entry in machine.of(point, bucket)
    }
    return {"environments": list(map(msgspec.json.decode, environments)), "cells": made}


def _cell(machine: Machine, entry: Entry, environments: dict[bytes, int]) -> dict[str, Any]:
    measurement = entry.measurement
    text = [
        f"Measured {measurement.started_at} in {measurement.duration_s:.0f} s, in "
        f"{plural(len(measurement.launches), 'launch')}. {STOPPED[measurement.stopped]}"
    ]
    if not measurement.outcome.ok:
        text.append(str(measurement.outcome))
    eager_single_s, single_s = entry.row.eager_single_s, entry.row.single_s
    if eager_single_s is not None and single_s is not None:
        text.append(
            f"A single call that is waited for takes {milliseconds(single_s)} ms, and in the "
            f"baseline {milliseconds(eager_single_s)} ms. The other times are of calls that follow "
            "one another."
        )
    if factor := machine.slowed.get((entry.row.release, measurement.cell)):
        text.append(
            f"During the measurement, {statistics.neighbour(factor)}. It should be measured again."
        )
    text += statistics.of_the_host(measurement.launches)
    command = machine.axis.command(measurement.cell, entry.row.release)
    if not command:
        text.append(
            "No command: the suite does not contain this workload, or does not know this "
            f"{machine.axis.noun}."
        )
    number = None
    if measurement.environment is not None:
        facts = msgspec.json.encode(_facts(measurement.environment))
        number = environments.setdefault(facts, len(environments))
    compiled = measurement.compiled
    row = entry.row
    divided = machine.divided.get((row.machine, row.release, measurement.cell))
    return {
        "text": [*text, *measurement.notes],
        "parts": None if divided is None else _parts(divided),
        "command": command,
        "environment": number,
        "compiled": None if compiled is None else _compiled(compiled),
        **table(COLUMNS, _launches(measurement.launches)),
    }


def _parts(record: Record) -> dict[str, Any] | None:
    """Where the time of the calls goes: sentences, remedies and a table of text."""
    launches = pays.divided(record)
    if not launches:
        return None
    found = compiled_against_eager(launches)
    names = why.EAGER_AND_COMPILED
    measurement = record.measurement
    source = (
        f"From {plural(len(measurement.launches), 'launch')} that only divide calls "
        f"({measurement.started_at[:10]})."
    )
    return {
        "sentences": [source, *why.sentences(found, names), *why.remedies(found)],
        "bars": table(["part", "eager_s", "compiled_s"], _bars(found)),
        **sheet(why.sheet(found, names)),
    }


def _bars(found: Why) -> list[list[Any]]:
    """Seconds of the parts that take most of either call; the last one is all the others."""
    times = [(one.what, one.before_s.value, one.after_s.value) for one in found.families]
    times.sort(key=lambda part: -max(part[1], part[2]))
    shown, others = times[:MOST_BARS], times[MOST_BARS:]
    if others:
        eager_s = math.fsum(eager for _, eager, _ in others)
        compiled_s = math.fsum(compiled for _, _, compiled in others)
        shown.append(("all others", eager_s, compiled_s))
    return [[what, *figures(max(0.0, each) for each in both)] for what, *both in shown]


def _launches(launches: Sequence[Launch]) -> Iterator[list[Any]]:
    elsewhere = set(map(id, statistics.elsewhere(launches)))
    for number, launch in enumerate(launches, 1):
        place = "the host ran the processors elsewhere" if id(launch) in elsewhere else ""
        yield _launch(number, launch, launch.disturbed or place)


def _launch(number: int, launch: Launch, set_aside: str) -> list[Any]:
    """A line; ``set_aside``: why the launch does not count, if it does not."""
    timed = launch.timed
    interference = launch.interference
    return [
        *(number, launch.kind, launch.outcome.status.value, launch.outcome.reason),
        set_aside,
        figure(statistics.eager_latency_of(launch) if timed else None),
        figure(statistics.latency_of(launch) if timed else None),
        figure(statistics.ratio_of(launch) if timed else None),
        figure(statistics.first_call_of(launch) if timed else None),
        figure(statistics.compile_cost_of(launch) if timed else None),
        statistics.calls_until_steady_of(launch) if timed else None,
        figure(interference.others_share if interference else None),
        figure(launch.calibration_s),
        figure(launch.eager_paging.faults if launch.eager_paging else None),
        figure(launch.paging.faults if launch.paging else None),
        *(launch.peak_memory_bytes, launch.heap, launch.method, launch.calls_a_sample),
        *(launch.series, launch.round),
    ]


def _compiled(compiled: Compiled) -> dict[str, Any]:
    return {
        "facts": table(
            ["property", "value", "why not known"],
            (
                [title, counted(compiled, name), compiled.unknown.get(name, "")]
                for name, title in COMPILED.items()
            ),
        ),
        "phases": {name: figure(seconds) for name, seconds in sorted(compiled.phases_s.items())},
        "breaks": [[one.where, one.reason] for one in compiled.graph_breaks],
        "recompiles": [[one.where, one.reason] for one in compiled.recompile_reasons],
        "skips": list(compiled.cudagraph_skips),
    }


def _facts(environment: Environment) -> dict[str, str]:
    """An environment in words."""
    facts = {
        "torch": environment.torch,
        "torch's git commit": environment.torch_git,
        "Python": environment.python,
        "CPU": environment.cpu,
        "device": environment.device_name,
        "driver": environment.driver,
        "threads": str(environment.threads),
        "allocator": environment.allocator,
        "compiler": environment.compiler,
        "kernel": environment.kernel,
        # Sorted: a segment has the keys in another order than a journal.
        "variables": ", ".join(map("=".join, sorted(environment.variables.items()))),
        "packages": ", ".join(map(" ".join, sorted(environment.packages.items()))),
        "suite": environment.suite,
        "overlaid commit": environment.overlay.commit if environment.overlay else "",
        **_accelerator(environment.accelerator),
    }
    return {name: value for name, value in facts.items() if value}


def _accelerator(accelerator: Accelerator | None) -> dict[str, str]:
    """An accelerator in words. What its driver does not say is left out."""
    if accelerator is None:
        return {}
    told = msgspec.to_builtins(accelerator)
    for name in ("libraries", "float32"):
        told[name] = ", ".join(f"{key} {value}" for key, value in sorted(told[name].items()))
    return {
        f"device: {name.replace('_', ' ')}": str(value)
        for name, value in told.items()
        if value not in (None, "")
    }


def counted(compiled: Compiled, name: str) -> int | None:
    """A count of the compiler; of a list its length. None if it is not known."""
    value = getattr(compiled, name)
    return len(value) if isinstance(value, list) else value


def compiler(machine: Machine, point: str) -> dict[str, Any]:
    """What the compiler made of every cell of a point."""
    made = [
        (machine.ids[entry.row.cell], compiled)
        for entry in machine.of(point)
        if (compiled := entry.measurement.compiled) is not None
    ]
    whole = sum(one.graphs == 1 and not one.graph_breaks and not one.skipped for _, one in made)
    broken = sum(1 for _, one in made if one.graph_breaks)
    sentence = f"No measurement of this {machine.axis.noun} says what was compiled."
    if made:
        sentence = (
            f"Of {plural(len(made), 'compiled cell')}, {whole} became one whole graph and "
            f"{broken} had graph breaks."
        )
    return {
        "sentence": sentence,
        "titles": list(COMPILED.values()),
        **table(
            COMPILER_COLUMNS,
            (
                [cell, *(counted(one, name) for name in COMPILED), figure(one.guard_check_s)]
                for cell, one in made
            ),
        ),
        "breaks": table(
            ["cell", "where", "reason"],
            ([cell, at.where, at.reason] for cell, one in made for at in one.graph_breaks),
        ),
        "skips": table(
            ["cell", "reason"],
            ([cell, reason] for cell, one in made for reason in one.cudagraph_skips),
        ),
    }
