"""The axes are fixed, the core touches everything, and a workload is one file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import pytest

from torchcompile_suite import matrix, workloads
from torchcompile_suite.asv import export
from torchcompile_suite.cell import Cell, Protocol, Shapes, Start, Way
from torchcompile_suite.modes import EAGER
from torchcompile_suite.results import records

from .conftest import ROOT


def benchmarks() -> dict[str, list[list[str]]]:
    """Every benchmark as ASV would discover it: its name, and the repr of its axes' values."""
    code = (
        "import importlib, json, pkgutil, sys; sys.argv = ['x']; import benchmarks;"
        "found = {};"
        "modules = [m.name for m in pkgutil.iter_modules(benchmarks.__path__)];"
        "[found.update({f'{name}.{cls.__name__}.{method}': [list(map(repr, a)) for a in cls.params]"
        " for method in dir(cls) if method.startswith('track_')})"
        " for name in modules"
        " for cls in vars(importlib.import_module('benchmarks.' + name)).values()"
        " if isinstance(cls, type) and not cls.__name__.startswith('_')"
        " and cls.__module__.endswith(name)];"
        "print(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def names(found: dict[str, list[list[str]]]) -> list[str]:
    import itertools

    return [
        f"{name}({', '.join(point)})"
        for name, params in found.items()
        for point in itertools.product(*params)
    ]


def test_every_class_is_a_question_and_every_question_a_class() -> None:
    found = {name.rpartition(".")[0] for name in benchmarks()}
    assert found == set(matrix.QUESTIONS)


def test_a_class_shows_the_axes_of_its_question() -> None:
    for name in benchmarks():
        method: Any = export.method_of(ROOT / "benchmarks", name)
        owner = method.__self__
        question = matrix.find(name)
        assert question is not None
        assert owner.question is question
        axes = dict(zip(owner.param_names, map(list, owner.params), strict=True))
        assert axes == {key: list(values) for key, values in question.axes.items()}, name


def test_the_core_patterns_select_the_core_and_nothing_else() -> None:
    wanted = set()
    for question in matrix.QUESTIONS.values():
        for point in question.points:
            if question.in_core(*point):
                wanted.add(f"{question.name}({', '.join(map(repr, point))})")
    patterns = [re.compile(pattern) for pattern in matrix.core_patterns()]
    selected = {
        name for name in names(benchmarks()) if any(pattern.search(name) for pattern in patterns)
    }
    assert {re.sub(r"\.track_\w+\(", "(", name) for name in selected} == wanted


def test_the_core_touches_every_family_and_every_question() -> None:
    families = {workloads.get(cell.workload).family for cell in matrix.core_cells()}
    # Of Hugging Face nothing: each takes minutes, and the core of a release an hour already. So of
    # the other large models.
    assert families | {"hf", "diffusion", "detection"} == {
        workloads.get(name).family for name in workloads.names()
    }
    # What divides calls is in no core: it takes too long.
    own = {matrix.ATTRIBUTION, matrix.TRAINING_ATTRIBUTION}
    for question in set(matrix.QUESTIONS.values()) - own:
        assert any(question.in_core(*point) for point in question.points), question.name


def test_no_workload_is_ever_removed() -> None:
    """A family may grow; a workload with published results stays."""
    families = Counter(workloads.get(name).family for name in workloads.names())
    least = {
        "timm": 23,
        "vit": 3,
        "neural_operator": 4,
        "relevance": 3,
        "fusion": 6,
        "control_flow": 3,
        "decoder": 2,
        "overhead": 9,
        "attention": 15,
        "linear": 1,
        "hf": 39,
        "diffusion": 1,
        "detection": 1,
    }
    assert {family: families[family] for family in least if families[family] < least[family]} == {}
    found = records.read(ROOT / "results")
    assert found.problems == []
    published = {record.measurement.cell.workload for record in found.records}
    assert published <= set(workloads.names())
    assert {"resnet50", "convmixer_1536_20"} <= set(workloads.names())


def test_each_policy_of_the_axis_is_a_value_that_records_may_hold() -> None:
    assert {"static", *matrix.POLICIES} == set(get_args(Shapes))
    # These are no mistakes: each is a question of its own.
    mistakes = set(get_args(Protocol)) - {"many-calls", "divided"}
    assert set(matrix.PROTOCOLS) - {matrix.WARM_UP_MIXED} == mistakes
    assert {"", *matrix.STARTS} == set(get_args(Start))


def test_each_tag_puts_some_cell_into_the_core() -> None:
    """Except for `tracing`, which adds to the record of a cell and makes none."""
    by_point = {tag for question in matrix.QUESTIONS.values() for tag in question.core.values()}
    assert by_point == set(workloads.TAGS) - {"tracing"}
    # No workload of the suite's has this one; a user's can.
    assert {tag for tag in workloads.TAGS if not workloads.tagged(tag)} <= {"batch5"}


def test_a_point_of_a_question_is_one_cell_and_the_baseline_says_what_it_pairs() -> None:
    for question in matrix.QUESTIONS.values():
        cells = [question.cell(*point) for point in question.points]
        # Only the guards' changes, and the mistake worked out from the right cell, share one.
        if question not in (matrix.GUARDS, matrix.PROTOCOL):
            assert len(set(cells)) == len(cells), question.name
    assert matrix.PRECISION.cell("operator_stochastic", 1, EAGER).baseline == "eager-float32"
    assert matrix.PROTOCOL.cell("resnet18", matrix.WARM_UP_MIXED) == Cell("resnet18", 1, "default")


def test_values_of_the_axes_never_change() -> None:
    """ASV keeps results under these values. A new value is only added at the end."""
    assert list(matrix.INFERENCE.axes["batch_size"][:3]) == [1, 8, 5]
    assert list(matrix.INFERENCE.axes["mode"][:4]) == [
        "eager",
        "default",
        "reduce-overhead",
        "max-autotune",
    ]
    assert matrix.POLICIES[:5] == ["recompile", "automatic", "dynamic", "marked", "buckets"]
    assert matrix.POLICIES[5:7] == ["unbacked", "oblivious"]
    assert matrix.FREEZING_WAYS[:2] == ["whole", "freezing"]
    assert matrix.REGIONAL_WAYS[:3] == ["whole", "regional", "nested-region"]
    # Only a user's model is compiled as given.
    ways = {*matrix.FREEZING_WAYS, *matrix.REGIONAL_WAYS, "as-given"}
    assert ways == set(get_args(Way))
    assert matrix.BACKENDS[:4] == ["eager", "aot_eager", "cudagraphs", "inductor"]
    assert matrix.ALLOCATORS[:3] == ["libc", "tcmalloc", "jemalloc"]
    assert matrix.CHANGES[:6] == ["repeat", "dtype", "device", "requires_grad", "size", "stride"]


# As the README shows it.
NEW_WORKLOAD = """
from torchcompile_suite.workloads import workload


@workload("mlp", family="mine", core=("inference",))
def mlp(batch_size):
    import torch

    layers = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU())
    return layers, (torch.randn(batch_size, 512),)
"""


def test_a_new_workload_in_one_file_takes_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(NEW_WORKLOAD)
    before = set(names(benchmarks()))
    monkeypatch.setenv(workloads.VARIABLE, str(file))
    added = set(names(benchmarks())) - before
    questions = {name.split(".track_")[0] for name in added}
    assert questions == {
        "inference.Inference",
        "compilation.Compilation",
        "graphs.Graphs",
        "kernels.Kernels",
        "warm_up.WarmUp",
        "allocator.Allocator",
        "codegen.Codegen",
        "attribution.Attribution",
    }
    assert all("'mlp'" in name for name in added)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise ValueError('no')", "fails: ValueError: no"),
        ("from torchcompile_suite.workloads import workload\n"
         "workload('x', family='f', core=('speed',))(lambda n: n)", "no tag speed"),
        ("from torchcompile_suite.workloads import workload\n"
         "workload('x', family='f', also=('tracing',))(lambda n: n)", "needs cases="),
        ("from torchcompile_suite.workloads import workload\n"
         "workload('resnet18', family='f')(lambda n: n)", "registered twice"),
        *(("from torchcompile_suite.workloads import workload\n"
           f"workload('{name}', family='f')(lambda n: n)", "begin with a letter or a digit")
          for name in ("a/b", "a b", "_a", "a" * 81, "")),
    ],
)  # fmt: skip
def test_a_faulty_workload_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "faulty.py"
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "torchcompile_suite", "open", "x"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, workloads.VARIABLE: str(file), "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert done.returncode == 1
    assert message in done.stderr
    assert str(file) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_an_installed_package_takes_part_by_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "somebodys.py").write_text(NEW_WORKLOAD)
    info = tmp_path / "somebodys-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{workloads.ENTRY_POINTS}]\nmine = somebodys\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert workloads.files()[-1] == tmp_path / "somebodys.py"
    # ASV's plugin names it by another path.
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.setenv(workloads.VARIABLE, str(tmp_path / "link" / "somebodys.py"))
    assert workloads.files() == [tmp_path / "somebodys.py"]
    # A package that does not import is told, and not that what it needs is missing.
    (tmp_path / "somebodys.py").write_text("import nowhere_at_all\n")
    (info / "entry_points.txt").write_text(f"[{workloads.ENTRY_POINTS}]\nmine = somebodys.part\n")
    message = (
        "entry point mine: somebodys.part does not import (ModuleNotFoundError: No module named "
        "'nowhere_at_all'); mend or uninstall its package"
    )
    with pytest.raises(workloads.WorkloadError, match=re.escape(message)):
        workloads.files()


def test_a_benchmark_named_alone_is_narrowed_to_the_core() -> None:
    name = "inference.Inference.track_latency"
    pattern = re.compile(matrix.narrowed(name))
    assert pattern.search(f"{name}('resnet18', 1, 'default')")
    assert not pattern.search(f"{name}('resnet18', 8, 'max-autotune')")
    assert not pattern.search("inference.Inference.track_time_ratio('resnet18', 1, 'default')")
    for other in (rf"{name}\('resnet18', 1, 'default'\)", "Inference.*resnet18", ".", "a.b.c"):
        assert matrix.narrowed(other) == other
