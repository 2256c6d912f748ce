"""The options that name one cell of any model: of ``why`` and ``open``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from ..cell import CHANNELS_LAST, MOST_BATCH
from ..host import machine
from ..modes import MODES
from ..presentation import answers
from ..trial import plan
from ..trial.plan import Trial
from .options import (
    channels_last_option,
    completing,
    device_option,
    dtype_option,
    training_option,
)
from .try_model import inputs_option, model_argument

_OPTIONS = (
    model_argument,
    inputs_option,
    click.option(
        "--batch-size",
        type=click.IntRange(min=1, max=MOST_BATCH),
        help="Default: that of the model's own inputs, or 1.",
    ),
    click.option(
        "--mode",
        default="default",
        shell_complete=completing(MODES.keys),
        help="A mode of torch.compile.",
    ),
    dtype_option,
    channels_last_option,
    device_option,
    training_option,
)


def of_one_cell(command: Callable[..., None]) -> Callable[..., None]:
    """Give the command these options. It gets them as ``trial``, which has one cell.

    Raises SuiteError for a wrong option, and if the text names no model.
    """

    @functools.wraps(command)
    def called(
        target: str,
        inputs: tuple[str, ...],
        batch_size: int | None,
        mode: str,
        dtype: str,
        channels_last: bool,
        device: str | None,
        training: bool,
        **others: Any,
    ) -> None:
        trial = Trial(
            workload=target,
            batch_sizes=(batch_size,) if batch_size else (),
            modes=(mode,),
            allocators=plan.SETTLED,
            dtype=dtype,
            layout=CHANNELS_LAST if channels_last else "contiguous",
            device=device or ("cpu" if others.get("gpu") else machine.device_kind()),
            training=training,
        )
        command(trial=plan.asked(target, inputs, trial, answers.names()), **others)

    return functools.reduce(lambda inner, option: option(inner), reversed(_OPTIONS), called)
