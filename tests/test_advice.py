"""Advice from recorded measurements, without torch."""

from __future__ import annotations

import msgspec
import pytest

from torchcompile_suite.analysis import advice
from torchcompile_suite.compiled import Compiled, GraphBreak

from . import examples


def recompiled(*guards: str) -> list[str]:
    """What is said of a model that was compiled again because of these guards, in one place."""
    reasons = [GraphBreak(f"0/{number}: {text}", "m.py:3") for number, text in enumerate(guards, 1)]
    measurement = examples.measurement("model", mode="default")
    cold, *warm = measurement.launches
    cold = msgspec.structs.replace(cold, compiled=Compiled(recompile_reasons=reasons))
    told = advice.advice(
        [msgspec.structs.replace(measurement, launches=[cold, *warm])],
        came_training=False,
        varying=False,
    )
    return [each.what for each in told if each.what.startswith("recompiled")]


@pytest.mark.parametrize(
    "guards",
    [
        ("self.seen == 1", "self.seen == -12"),
        ("L['self'].scale == 0.5", "L['self'].scale == 1e-05"),
        (
            "tensor 'L['x']' size mismatch at index 2. expected 4, actual 5",
            "tensor 'L['x']' size mismatch at index 2. expected 4, actual 16",
        ),
        ("2 <= L['x'].size()[0] <= 9", "2 <= L['x'].size()[0] <= 17"),
        ("size == [4]", "size == [5]"),
    ],
)
def test_guards_that_differ_in_a_value_are_one_advice(guards: tuple[str, str]) -> None:
    assert recompiled(*guards) == [f"recompiled 2 times: {guards[0]}"]


@pytest.mark.parametrize(
    "guards",
    [
        ("size mismatch at index 2", "size mismatch at index 3"),
        ("tensor 'L['x1']' rank mismatch", "tensor 'L['x2']' rank mismatch"),
        ("L['x'].size()[0] == 8", "L['x'].size()[1] == 8"),
        ("L['xs'][0] is None", "L['xs'][-1] is None"),
        ("L['self']._modules['0'].seen == 1", "L['self']._modules['1'].seen == 1"),
    ],
)
def test_guards_of_two_inputs_or_dimensions_are_two(guards: tuple[str, str]) -> None:
    assert recompiled(*guards) == [f"recompiled: {guard}" for guard in guards]
