"""The front page: the newest answer for each machine, and links to the other pages."""

from __future__ import annotations

from .. import paths
from ..content import Content, label
from ..page import Link, Page, Section, Table, Value
from . import changes, claims, common, compiler, compiling, payoff

QUESTION = "Does torch.compile pay, on this hardware, for this model, in this mode, since when?"


def pages(content: Content) -> list[Page]:
    """The front page."""
    if not content.machines:
        nothing = ["Nothing was measured yet. Start with: nox -s bench"]
        return [Page(paths.OVERVIEW, "overview", QUESTION, nothing)]
    sections = []
    data = []
    for machine in content.machines:
        release = machine.releases[-1]
        rows = payoff.asked(machine, release)
        answer = payoff.answer(rows, release, machine.name) + common.older_method(machine)
        links: list[list[Value]] = [
            ["Does it pay?", Link("by model and mode", payoff.path(machine, release))],
            ["Since when?", Link("history by release", paths.history(machine.name))],
            ["What does it cost?", Link("compile times", compiling.path(machine))],
            ["What does the compiler make?", Link("graphs and kernels", compiler.path(machine))],
            ["Are the claims true?", Link("claims of documents", claims.path(machine))],
            ["Can I trust it?", Link("noise, coverage, failures", paths.trust(machine.name))],
        ]
        if len(machine.releases) > 1:
            before, after = map(label, machine.releases[-2:])
            where = Link(f"{before} to {after}", changes.path(machine))
            links.insert(2, ["What changed?", where])
        table = Table(f"Answers for {machine.name}.", ["question", "page"], frozenset(), links)
        sections.append(Section(machine.name, paths.slug(machine.name), answer, tables=[table]))
        data.append({"machine": machine.name, "newest_release": release, **machine.facts})
    names = ", ".join(machine.name for machine in content.machines)
    first, last = content.machines[0].releases[0], content.machines[0].releases[-1]
    answer = [
        f"Measured on {names}, PyTorch {label(first)} to {label(last)}. Each time and ratio has a "
        "95 % interval over launches. Each gap has a reason. Each cell has "
        "the command that measures it again."
    ]
    return [Page(paths.OVERVIEW, "overview", QUESTION, answer, [], sections, data)]
