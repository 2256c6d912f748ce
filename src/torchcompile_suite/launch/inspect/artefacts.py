"""``python -m torchcompile_suite.launch.inspect.artefacts``: writes the artefacts of a compile.

Answers a `messages.Order` with a `Written`. Compiles the cell without caches and fills the folder:
the FX graphs (readable, runnable, transformed), the IR before and after fusion and the generated
code, as Inductor's debug trace writes them; the guards; the graph breaks; and ``index.md``, which
lists the source lines of each kernel.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from ...cell import Cell
from ...compiled import ARTEFACTS
from .. import messages

MODULE = "torchcompile_suite.launch.inspect.artefacts"


class Written(msgspec.Struct, frozen=True):
    """The kinds of artefacts that were written, or the error in one line."""

    kinds: list[str]
    error: str = ""


# Of each kernel, whose name is that of others in other graphs: its ATen operators, and source lines
# as ``file.py:line: code``.
Sources: TypeAlias = list[tuple[str, list[str], list[str]]]


def write(cell: Cell, folder: Path) -> list[str]:
    """Fill ``folder``. Returns the kinds of artefacts that were written, some of `ARTEFACTS`.

    Raises the errors of building and compiling the cell.
    """
    import torch

    from ... import workloads
    from .. import foreign
    from ..build import build
    from . import dynamo, inductor

    folder.mkdir(parents=True, exist_ok=True)
    subject = build(cell)
    if workloads.get(cell.workload).foreign:
        foreign.learn(subject, steady=False)
    dynamo.reset()
    sources: Sources = []
    scratch = messages.folder("artefacts")
    with (
        inductor.tracing_to(scratch),
        inductor.watch_sources(lambda kernel, nodes, _: _add(sources, kernel, nodes)),
        dynamo.GivenUp() as given_up,
    ):
        # In a thread of autograd's own the trace is off, since 2.12.
        with subject.context(), torch.autograd.set_multithreading_enabled(False):
            subject.compile()[0]()
            checks = dynamo.guard_texts(subject.module)
        graphs = sorted(scratch.glob("torchinductor/*"), key=_order)
        for number, graph in enumerate(graphs):
            shutil.copytree(graph, folder / f"graph-{number}", dirs_exist_ok=True)
    (folder / "guards.txt").write_text("\n\n".join(checks) + "\n")
    breaks = [*dynamo.graph_breaks(), *given_up.frames()]
    (folder / "graph_breaks.txt").write_text(
        "".join(f"{one.where or 'left to eager'}: {one.reason}\n" for one in breaks) or "none\n"
    )
    kinds = [kind for kind in ARTEFACTS if any(folder.glob(f"graph-*/{kind}.*"))]
    captured = dynamo.captures()
    (folder / "index.md").write_text(_index(cell, folder, sources, len(breaks), captured))
    return kinds


def _order(folder: Path) -> tuple[int, bool, str]:
    """Graph by graph as they were compiled, each backward pass after its forward pass: the names
    are such as ``model__10_backward_12.3``.
    """
    number = re.search(r"\d+", folder.name)
    return int(number[0]) if number else 0, "backward" in folder.name, folder.name


def _add(sources: Sources, kernel: str, nodes: Any) -> None:
    """Add the origin of a kernel, from the scheduler's nodes in it."""
    from .dynamo import innermost_line
    from .inductor import origins

    found = list(origins(nodes))
    operators = {str(origin.target) for origin in found}
    lines = {innermost_line(origin.meta.get("stack_trace") or "") for origin in found} - {""}
    sources.append((kernel, sorted(operators), sorted(lines)))


def _index(cell: Cell, folder: Path, sources: Sources, breaks: int, captured: int) -> str:
    import torch

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    parts = [
        f"# {cell}, torch {torch.__version__}\n",
        "## Which kernel came from which line\n",
    ]
    if not captured:
        parts.append("Nothing was compiled: 0 graphs.\n")
    elif not sources:
        parts.append("No kernel was generated: every operation is a call of a library.\n")
    for kernel, operators, lines in sources:
        parts.append(f"- `{kernel}`: {', '.join(operators)}")
        parts += [f"    - `{line}`" for line in lines]
    parts.append(f"\n## Graph breaks, and code left to eager: {breaks}\n")
    parts.append("See [graph_breaks.txt](graph_breaks.txt).\n")
    parts.append("## Files\n")
    parts += [
        f"- [{path.relative_to(folder)}]({path.relative_to(folder)})"
        for path in files
        if path.name != "index.md"
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write the artefacts of the order."""
    from .. import failures

    asking = messages.accept()
    order = msgspec.json.decode(asking.recv_bytes(), type=messages.Order)
    try:
        written = Written(write(order.cell, Path(order.folder)))
    except Exception as error:
        written = Written([], failures.said(error))
    asking.send_bytes(msgspec.json.encode(written))


if __name__ == "__main__":
    main()
