"""Measurements as the suite writes them, for tests."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import get_args

import msgspec
from hypothesis import strategies as st

from torchcompile_suite import matrix
from torchcompile_suite.analysis.statistics import Interval
from torchcompile_suite.attribution import Attribution, Operator, Split, Step
from torchcompile_suite.cell import DEFAULT_HEAP, Cell, Shapes
from torchcompile_suite.conditions import Environment, Paging
from torchcompile_suite.generated import Code, Generated, Kernel
from torchcompile_suite.measurement import (
    METHOD,
    OK,
    Accuracy,
    Launch,
    Measurement,
    Outcome,
    Status,
)

SM90 = "cuda:sm90"


def environment(torch: str = "2.9.1+cu128", **packages: str) -> Environment:
    return Environment(
        torch=torch,
        torch_git="5811a8d7da873dd699ff6687092c225caffcf1bb",
        python="3.11.7",
        packages={"timm": "1.0.31", **packages},
        cpu="AMD EPYC",
        device_name="AMD EPYC",
        driver="",
        threads=2,
        interop_threads=2,
        allocator="glibc 2.36",
        compiler="g++ 12.2.0",
        kernel="Linux 6.1",
        variables={},
        load_1min=0.1,
        suite="0.1.0",
    )


def launch(
    kind: str = "cold", eager: float = 0.04, mode: float = 0.03, first: float = 30.0
) -> Launch:
    return Launch(
        kind=kind,  # type: ignore[arg-type]
        outcome=OK,
        pairs_s=[(eager, mode)] * 15,
        warm_up_s=[first] + [mode] * 10,
        steady=True,
        peak_memory_bytes=500_000_000,
        accuracy=Accuracy("float64", 1e-7, 1e-7, 1e-4),
        environment=environment(),
        process="forked",
    )


def measurement(
    workload: str = "resnet18",
    batch_size: int = 1,
    mode: str = "default",
    outcome: Outcome = OK,
    scale: float = 1.0,
) -> Measurement:
    made = [
        launch("cold", mode=0.030 * scale),
        launch("warm", mode=0.031 * scale, first=7.0),
        launch("warm", mode=0.029 * scale, first=8.0),
    ]
    # As a history makes them, so that the times of two releases are compared.
    launches = [
        msgspec.structs.replace(one, series="series", round=number)
        for number, one in enumerate(made, 1)
    ]
    return Measurement(
        cell=Cell(workload, batch_size, mode),
        outcome=outcome,
        launches=launches if outcome.ok else [Launch("cold", outcome)],
        started_at="2026-11-21T03:00:00+00:00",
        duration_s=60.0,
    )


def calibrated(measured: Measurement, taken_s: float, times: float = 1) -> Measurement:
    """The measurement with that time of the calibration loop, and all times so much longer."""
    launches = [
        msgspec.structs.replace(
            one,
            calibration_s=taken_s,
            pairs_s=[(eager * times, mode * times) for eager, mode in one.pairs_s],
        )
        for one in measured.launches
    ]
    return msgspec.structs.replace(measured, launches=launches)


def at(release: str, measured: Measurement) -> Measurement:
    """The measurement, as if it had been made with that release."""
    launches = [
        msgspec.structs.replace(one, environment=environment(f"{release}+cpu"))
        for one in measured.launches
    ]
    return msgspec.structs.replace(measured, launches=launches)


def twin(
    state: str, eager: float, mode: float, faults: tuple[float, float], release: str = "2.9.1"
) -> Measurement:
    """The same cell at one end of the heap: seconds and page faults a call of both sides."""
    made = measurement("m")
    launches = [
        msgspec.structs.replace(
            each,
            pairs_s=[(eager * wobble, mode * wobble)] * 15,
            environment=environment(f"{release}+cpu"),
            heap=state,
            method=METHOD,
            eager_paging=Paging(faults[0], 0.3),
            paging=Paging(faults[1], 0.1),
        )
        for each, wobble in zip(made.launches, (1.0, 1.01, 0.99), strict=True)
    ]
    allocator = DEFAULT_HEAP if state == "default" else "system"
    cell = Cell("m", 1, "default", allocator=allocator)
    return msgspec.structs.replace(made, cell=cell, launches=launches)


def code(triton: int = 3, library: int = 2, **fields: object) -> Code:
    """Generated code with so many launches of Triton kernels and of libraries."""
    plain = Code(
        triton_kernels=triton,
        triton_launches=triton,
        library_launches=library,
        host_launches=0,
        nodes_before=9,
        nodes_after=triton + library,
        bytes_before=4000,
        bytes_after=1000,
        cuda_graphs=None,
        outside_launches=None,
        source_lines=100,
        source_sha256="0" * 64,
        kernels=[Kernel(f"triton_poi_{number}", 1) for number in range(triton)],
    )
    return msgspec.structs.replace(plain, **fields)


def divided(release: str = "2.9.1", text: str = "conv", copy_s: float = 0.002) -> Measurement:
    """Calls of resnet18 that were divided, in three launches. ``text``: wherever there is text.
    ``copy_s``: seconds of a copy of weights.
    """
    operator = Operator(text, text, text, text, text)
    eager = Split(0.010, 0.0, [Step(text, "operator", [0], 0.009)], {"python": 0.001}, 0.0)
    steps = [Step(text, "copy", [0], copy_s, weights=True), Step(text, "library", [0], 0.009)]
    launches = [
        Launch(
            "warm" if number else "cold",
            OK,
            environment=environment(release),
            method=METHOD,
            series="fixed",
            round=number + 1,
            attribution=Attribution(
                [operator],
                eager,
                Split(0.010 + copy_s + number * 1e-5, 0.0, steps, {"guards": 0.001}, 0.0),
                {} if number else {f"0/{text}": text},
            ),
        )
        for number in range(3)
    ]
    cell = Cell("resnet18", 1, "default", protocol="divided")
    return Measurement(cell, OK, launches, "2026-11-27T03:00:00+00:00", 60.0, "fixed")


def generated(
    workload: str = "resnet18",
    mode: str = "default",
    forward: Code | None = None,
    backward: Code | None = None,
    release: str = "2.15.0",
    outcome: Outcome = OK,
    skips: tuple[str, ...] = (),
) -> Measurement:
    """A cell with a target, and what was generated for it."""
    result = Generated(1, 9, forward or code(), backward, cudagraph_skips=list(skips))
    launch = Launch(
        "cold",
        outcome,
        environment=environment(f"{release}+cu132"),
        generated=result if outcome.ok else None,
    )
    cell = matrix.CODEGEN.cell(workload, mode, SM90)
    return Measurement(cell, outcome, [launch], "2026-11-23T12:00:00+00:00", 5.0, "fixed")


def network(forward: str, more: str = "") -> str:
    """The source of a module `Net` with a convolution and a linear layer.

    ``forward``: its lines. ``more``: a line of ``__init__``.
    """
    return f"""
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)
        self.head = torch.nn.Linear(8, 4)
        {more}

    def forward(self, x):
{indent(dedent(forward).strip(), " " * 8)}
"""


positive = st.floats(0.01, 100)
intervals = st.builds(
    lambda value, reach: Interval(value, value / reach, value * reach),
    positive,
    st.floats(1.0001, 2),
)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,30}", fullmatch=True)
cells = st.builds(
    Cell,
    workload=names,
    batch_size=st.integers(1, 10**6),
    mode=names,
    phase=st.sampled_from(["inference", "training"]),
    dtype=names,
    device=names,
    shapes=st.sampled_from(get_args(Shapes)),
)
outcomes = st.builds(Outcome, status=st.sampled_from(Status), reason=st.text(max_size=300))
times = st.floats(0, 1e6)
launches = st.builds(
    Launch,
    kind=st.sampled_from(["cold", "warm"]),
    outcome=outcomes,
    pairs_s=st.lists(st.tuples(times, times), max_size=5),
    warm_up_s=st.lists(times, max_size=5),
    steady=st.booleans(),
    peak_memory_bytes=st.none() | st.integers(0, 2**50),
)
measurements = st.builds(
    Measurement,
    cell=cells,
    outcome=outcomes,
    launches=st.lists(launches, max_size=3),
    started_at=st.just("2026-11-21T03:00:00+00:00"),
    duration_s=times,
)
