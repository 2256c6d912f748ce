"""The generated code as files, for people."""

from __future__ import annotations

from pathlib import Path

from ...cell import Cell
from ...generated import Generated
from .recorder import Recorder


def write(folder: Path, cell: Cell, generated: Generated, recorder: Recorder, torch: str) -> None:
    """Fill ``folder``: a module for each graph and pass, and ``index.md``. Raises OSError."""
    names = []
    for direction, modules in recorder.modules().items():
        for number, text in enumerate(modules):
            name = f"{direction}-{number}.py"
            (folder / name).write_text(text, encoding="utf-8")
            names.append(name)
    lines = [
        f"# {cell}, torch {torch}",
        "",
        "Generated without the device. Nothing here was run, and no time is claimed.",
        "",
        *(f"- [{name}]({name})" for name in names),
    ]
    for direction, code in (("Forward", generated.forward), ("Backward", generated.backward)):
        if code is None:
            continue
        lines += ["", f"## {direction}: {code.launches} launches a call", ""]
        for kernel in code.kernels:
            size = ""
            if kernel.registers is not None:
                size = (
                    f"; {kernel.registers} registers, {kernel.spilled_bytes} bytes spilled, "
                    f"{kernel.shared_bytes} bytes shared, occupancy {kernel.occupancy:.0%}"
                    + (f" ({kernel.limited_by})" if kernel.limited_by else "")
                )
            lines.append(
                f"- `{kernel.name}`, {kernel.launches} times: {', '.join(kernel.operators)}{size}"
            )
        lines.append(f"- calls of libraries: {code.library_launches}")
    lines += ["", f"## Graph breaks: {len(generated.graph_breaks)}", ""]
    lines += [f"- {one.where}: {one.reason}" for one in generated.graph_breaks]
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
