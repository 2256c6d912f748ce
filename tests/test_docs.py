"""The documents: examples run, links lead somewhere, commands and files exist, numbers are ours."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner

from torchcompile_suite import __version__, workloads
from torchcompile_suite.analysis import summary
from torchcompile_suite.cli.app import app
from torchcompile_suite.presentation import sheets
from torchcompile_suite.releases import catalogue
from torchcompile_suite.results import records

from .conftest import ROOT, ReleaseEnvironment

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "stories").glob("*.md")),
    ROOT / "docs" / "schemas" / "README.md",
    ROOT / "evidence" / "README.md",
]
FENCE = re.compile(
    r"(?:<!-- (?P<mark>test|test: slow) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    """A fenced block: its page and line, its mark (empty, test, or test: slow), and its code."""

    page: Path
    line: int
    mark: str
    language: str
    code: str

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a console block, without comments."""
        if self.language != "console":
            return []
        lines = (shlex.split(line, comments=True) for line in self.code.splitlines())
        return [line for line in lines if line]


def examples() -> Iterator[Example]:
    for page in PAGES:
        text = page.read_text("utf-8")
        for found in FENCE.finditer(text):
            line = text.count("\n", 0, found.start("code")) + 1
            yield Example(page, line, found["mark"] or "", found["language"], found["code"])


EXAMPLES = list(examples())
COMMANDS = [
    pytest.param(command, id=f"{example.name} {shlex.join(command)}")
    for example in EXAMPLES
    if example.mark == "test"
    for command in example.commands
]
SCRIPTS = [
    pytest.param(example.code, id=example.name)
    for example in EXAMPLES
    if example.mark == "test" and example.language == "python"
]
SLOW = [
    pytest.param(example.code, id=example.name)
    for example in EXAMPLES
    if example.mark == "test: slow"
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what a clone has for these examples: the configuration and the results."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "asv.conf.json", folder)
    shutil.copytree(ROOT / "results", folder / "results")
    for name in ("benchmarks", "html", "src"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(clone: Path, *command: str) -> str:
    """Run the command as a new user on a machine without results; what it prints."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TORCHCOMPILE_SUITE_", "ASV_"))
    }
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{kept['PATH']}"
    variables = {**kept, "PATH": path, "HOME": str(clone), "TORCHCOMPILE_SUITE_MACHINE": "nobody"}
    done = subprocess.run(
        command, cwd=clone, env=variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_as_the_documents_have_it(command: list[str], clone: Path) -> None:
    assert run(clone, *command).strip()


@pytest.mark.parametrize("code", SCRIPTS)
def test_a_script_runs_as_the_documents_have_it(code: str, clone: Path) -> None:
    run(clone, sys.executable, "-c", code)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("code", SLOW)
def test_an_example_with_torch_runs(code: str, newest: ReleaseEnvironment, tmp_path: Path) -> None:
    """As in a project's own tests: pytest, torch and the suite in one environment."""
    # Nobody reads the figures, so that the first precise look ends the measurement.
    (tmp_path / "test_example.py").write_text(code.replace("budget_s=30", "budget_s=1"))
    # This environment has what the suite needs, the other one has torch.
    here = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    done = newest.run(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_example.py"),
        env=newest.variables(PYTHONPATH=here),
        cwd=tmp_path,
    )
    tests = len(re.findall(r"^def test_", code, re.MULTILINE))
    assert f"{tests} passed" in done.stdout, done.stdout + done.stderr


def test_every_page_of_a_task_has_an_example_that_runs() -> None:
    pages = {page.name for page in PAGES if "docs" in page.parts} - {"README.md", "glossary.md"}
    assert {example.page.name for example in EXAMPLES if example.mark} == pages


# Names


def all_commands() -> Iterator[tuple[str, list[str]]]:
    """Every command in a console block, and in the running text (between backticks)."""
    for example in EXAMPLES:
        for command in example.commands:
            yield example.name, command
    for page in PAGES:
        text = FENCE.sub("", page.read_text("utf-8"))
        for code in re.findall(r"`((?:torchcompile-suite|asv|nox) [^`]+)`", text):
            yield str(page.relative_to(ROOT)), shlex.split(code.replace("\n", " "), comments=True)


def test_the_commands_and_options_of_the_suite_exist() -> None:
    names = 0
    for place, (program, *arguments) in all_commands():
        if program != "torchcompile-suite":
            continue
        command: click.Command | None = app
        while isinstance(command, click.Group) and arguments and arguments[0][:1] != "-":
            command = command.get_command(click.Context(command), arguments.pop(0))
        assert command is not None, place
        known = {"--help", *(name for option in command.params for name in option.opts)}
        options = {argument.split("=")[0] for argument in arguments if argument.startswith("-")}
        assert options <= known, f"{place}: {options - known}"
        names += 1
    assert names > 20


def test_the_commands_of_asv_exist() -> None:
    # In a process of its own: another test may have loaded the plugin, which adds commands to ASV.
    help_text = subprocess.run(
        [sys.executable, "-m", "asv", "--help"], capture_output=True, text=True, check=True
    ).stdout
    (choices,) = re.findall(r"\{(.+?)\}", help_text)[:1]
    for place, (program, *arguments) in all_commands():
        if program == "asv":
            if arguments[0] == "--config":
                assert (ROOT / arguments[1]).is_file(), place
                arguments = arguments[2:]
            assert arguments[0] in choices.split(","), place


def test_the_sessions_of_nox_and_the_scripts_of_the_evidence_exist() -> None:
    sessions = re.findall(r"^def ([a-z]\w*)\(session", (ROOT / "noxfile.py").read_text(), re.M)
    for place, (program, *arguments) in all_commands():
        if program == "nox" and arguments:
            own, _, passed = " ".join(arguments).partition(" -- ")
            assert set(own.removeprefix("-s ").split()) <= set(sessions), place
            if "evidence" in own and passed not in ("", "NAME"):
                assert (ROOT / "evidence" / f"{passed}.py").is_file(), place
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / ".pre-commit-config.yaml"]
    called = re.findall(
        r"(?:run|entry): (?:nox -s|\.ci/run) ([a-z_ ]+?)(?: --.*)?$",
        "\n".join(file.read_text() for file in workflows),
        re.M,
    )
    assert "tests_all" in called
    assert {name for names in called for name in names.split()} <= set(sessions)


def test_the_variables_exist() -> None:
    code = "\n".join(file.read_text() for file in (ROOT / "src").rglob("*.py"))
    known = set(re.findall(r'PREFIX \+ "(\w+)"|TORCHCOMPILE_SUITE_(\w+)', code))
    names = {name for pair in known for name in pair if name}
    for page in PAGES:
        for name in re.findall(r"\bTORCHCOMPILE_SUITE_(\w+)", page.read_text("utf-8")):
            assert name in names, f"{page.relative_to(ROOT)}: {name}"


def headings(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text("utf-8"))):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in headings(target), link


def test_the_files_of_the_table_in_contributing_exist() -> None:
    rows = re.findall(r"^\| .+\? \| (.+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert len(rows) > 25
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row):
            if "/" in name or "." in name:
                folders = (ROOT, ROOT / "src" / "torchcompile_suite")
                assert any((folder / name).exists() for folder in folders), name


@pytest.mark.parametrize(
    ("line", "name", "none"),
    [
        ("torchcompile-suite try resnet1", "resnet18", "resnet50"),
        ("torchcompile-suite why resnet1", "resnet18", "resnet50"),
        ("torchcompile-suite try resnet18 --mode max", "max-autotune", "default"),
    ],
)
def test_bash_completes_models_and_modes(line: str, name: str, none: str) -> None:
    words = line.split()
    variables = {"_TORCHCOMPILE_SUITE_COMPLETE": "bash_complete", "COMP_WORDS": line}
    variables["COMP_CWORD"] = str(len(words) - 1)
    done = CliRunner().invoke(app, prog_name="torchcompile-suite", env=variables)
    assert done.exit_code == 0, done.output
    assert f"plain,{name}" in done.stdout.splitlines()
    assert f"plain,{none}" not in done.stdout.splitlines()


# Content


def test_the_readme_is_one_screen_with_the_commands_of_a_new_user() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 90
    for command in (
        "nox -s bench",
        "nox -s tests",
        "asv run ",
        "asv compare v2.4 v2.9",
        "asv publish",
        "asv preview",
        "torchcompile-suite try ",
        "apt-get install git g++ python3-dev python3-venv pipx chromium",
    ):
        assert command in text


def test_the_table_of_the_readme_is_what_the_results_say() -> None:
    """Its command names the machine and the release. The row of a cell is found by its model, its
    mode and its batch size.
    """
    text = (ROOT / "README.md").read_text("utf-8")
    ((release, machine),) = re.findall(
        r"`torchcompile-suite report (\S+) --all --machine (\S+)`", text
    )
    shown = [
        [value.strip().replace("*", "") for value in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| \w+ \| default", line)
    ]
    version = catalogue.find(release).version
    sheet = sheets.measured(
        [
            row
            for row in summary.rows(records.read(ROOT / "results").records)
            if (row.machine, row.release, row.cell.target) == (machine, version, "")
        ]
    )
    lines = [dict(zip(sheet.columns, line, strict=True)) for line in sheet.lines]
    expected = {(line["model"], line["mode"], line["batch"]): line for line in lines}
    assert len(shown) >= 8
    for model, mode, eager, compiled, ratio, cold, pays in shown:
        how, _, batch = mode.partition(" at batch ")
        line = expected[model, how.replace(", ", ": "), batch or "1"]
        assert float(eager) == float(line["eager ms"]), model
        assert float(compiled) == float(line["compiled ms"]), model
        assert ratio == line["ratio [95 %]"], model
        assert cold == f"{line['compile s']} s", model
        assert pays == line["pays after"], model


def test_the_glossary_has_at_most_25_words_in_use() -> None:
    rows = re.findall(
        r"^\| \*\*(.+?)\*\* \|", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    assert 15 <= len(rows) <= 25
    files = [*PAGES, *(ROOT / "src").rglob("*.py")]
    others = "\n".join(file.read_text("utf-8") for file in files if file.name != "glossary.md")
    words = [word for row in rows for word in row.split(", ")]
    assert [word for word in words if not re.search(rf"\b{word}", others, re.IGNORECASE)] == []
    assert "docs/glossary.md" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_page_of_workloads_has_each_workload_once() -> None:
    page = (ROOT / "docs" / "workloads.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(listed) == sorted(workloads.names())


def test_the_citation_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(__version__)}$", text, re.MULTILINE)
