"""``nox -s bench`` measures, ``nox -s tests`` tests, ``nox`` runs all checks."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.needs_version = ">=2024.10.9"

# The Python that asv.conf.json measures with; see there.
PYTHON = "3.11"
# All that the suite itself runs with: `requires-python` of pyproject.toml, and newer ones.
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]

# The tests start hundreds of short processes, and each of them would compile all its imports where
# the environment forbids Python to write bytecode.
BYTECODE = {"UV_COMPILE_BYTECODE": "1", "PYTHONDONTWRITEBYTECODE": ""}

SYSTEM_PACKAGES = "git g++ python3-dev chromium"
# Other names of a program. GitHub's runners have Google Chrome, which does as well.
OTHER_NAMES = {"chromium": ("chromium-browser", "google-chrome")}

# Files that nothing runs here, and the schema of each.
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-actions": "action.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def _need(session: nox.Session, *programs: str) -> None:
    """Stop at once if a system package is missing, not after minutes of tests."""
    missing = [
        program
        for program in programs
        if not any(shutil.which(name) for name in (program, *OTHER_NAMES.get(program, ())))
    ]
    if missing:
        session.error(
            f"not on PATH: {', '.join(missing)}; on Debian: apt-get install {SYSTEM_PACKAGES}; "
            "on Ubuntu the same, with Google Chrome instead of chromium"
        )


@nox.session(python=PYTHON)
def bench(session: nox.Session) -> None:
    """Measure a quick selection of cells on the newest release, or on the releases after ``--``.

    ``nox -s bench -- v2.4 v2.9`` measures both and ends with ``asv compare``.
    """
    _need(session, "git", "g++")
    session.install("-e", ".[suite]")
    session.run("torchcompile-suite", "bench", *session.posargs)


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run what proves each change; ``nox -s tests -- -m 'not slow'`` runs what takes seconds."""
    _pytest(session, "-m", "not nightly", *session.posargs)


@nox.session(python=PYTHON)
def tests_all(session: nox.Session) -> None:
    """Run every test there is, as the nightly workflow does."""
    _pytest(session, "--hypothesis-profile=many", *session.posargs)


@nox.session(python=PYTHONS)
def quick(session: nox.Session) -> None:
    """Run the tests that take seconds: no torch, no browser, no cluster; small packages only."""
    _need(session, "git")
    session.install("-e", ".[suite]", "--group", "quick", env=BYTECODE)
    options = ("--numprocesses=2", "--dist=worksteal", "--durations=10", "-m", "not slow")
    session.run("pytest", *options, *session.posargs, env=BYTECODE)


@nox.session(python=PYTHONS)
def package(session: nox.Session) -> None:
    """Build the sdist and the wheel in dist/, check both, and install the wheel alone."""
    groups = ("--group", "quick", "--group", "package")
    session.install("-e", ".[suite]", *groups, env=BYTECODE)
    folder = Path("dist")
    session.run("uv", "build", "--quiet", "--clear", "--out-dir", str(folder))
    (wheel,) = map(str, folder.glob("*.whl"))
    session.run("twine", "check", "--strict", wheel, *map(str, folder.glob("*.tar.gz")))
    session.run("check-wheel-contents", wheel)
    # Without torch: tests_all has the test of a newcomer.
    options = ("-m", "not nightly", *session.posargs)
    tested = {**BYTECODE, "TESTED_WHEEL": str(Path(wheel).resolve())}
    session.run("pytest", "tests/test_package.py", *options, env=tested)


def _pytest(session: nox.Session, *arguments: str) -> None:
    _need(session, "git", "g++", "chromium")
    session.install("-e", ".[fleet]", "--group", "tests", env=BYTECODE)
    # Two processes: more would compete for the cores of a small machine. A file stays in one
    # process, for its fixtures; tests/conftest.py decides on the order of the files. A process that
    # is lost is not started anew: a test that hangs would hang again.
    distribution = ("--numprocesses=2", "--dist=loadfile", "--no-loadscope-reorder")
    # The slowest tests are named, for whoever wants the whole to be faster.
    options = (*distribution, "--max-worker-restart=0", "--durations=25", "--durations-min=10")
    session.run("pytest", *options, *arguments, env=BYTECODE)


@nox.session(python=PYTHON)
def site(session: nox.Session) -> None:
    """Build the site from results/ and serve it; takes options such as ``-- --port 8000``."""
    _need(session, "git")
    session.install("-e", ".[suite]")
    session.run("asv", "publish")
    session.run("asv", "preview", *session.posargs)


@nox.session(python=PYTHON)
def pictures(session: nox.Session) -> None:
    """Take the pictures of the site in html/ that the README and the docs show."""
    _need(session, "chromium")
    session.install("playwright")
    session.run("python", "docs/pictures/take.py")


@nox.session(python=PYTHON)
def evidence(session: nox.Session) -> None:
    """Write tables of evidence/README.md: ``nox -s evidence -- coverage spread``.

    ``--kept`` measures nothing and writes the tables from the kept data.
    """
    # These get their work from another script, or the Python of a release.
    others = {
        *("calls_runner", "ci_breaks_runner", "expected_runner"),
        *("gate_script", "turns_runner", "wrong_results"),
    }
    known = sorted(
        file.stem
        for file in Path("evidence").glob("*.py")
        if "__main__" in file.read_text() and file.stem not in others
    )
    names = list(itertools.takewhile(lambda one: not one.startswith("-"), session.posargs))
    options = session.posargs[len(names) :]  # an option may have a value
    if not names or set(names) - set(known):
        session.error(f"name some of: {', '.join(known)}")
    _need(session, "git", "g++")
    session.install("-e", ".[fleet]" if {"fleet", "raylet"} & set(names) else ".[suite]")
    for name in names:
        session.run("python", "-m", f"evidence.{name}", *options)


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style, formatting, the imports between rooms, and the workflow files."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache", env={"PYTHONPATH": "src"})
    for schema, pattern in SCHEMAS.items():
        files = sorted(map(str, Path().glob(pattern)))
        session.run("check-jsonschema", "--builtin-schema", schema, *files)
    session.run("zizmor", "--offline", "--quiet", ".github", "action.yml")


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".[suite]", "--group", "types")
    session.run("mypy")
