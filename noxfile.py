"""``nox -s bench`` measures, ``nox -s tests`` proves, ``nox`` checks everything."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True
nox.needs_version = ">=2024.10.9"

# asv.conf.json measures on this one; see there.
PYTHON = "3.11"

SYSTEM_PACKAGES = "git g++ python3-dev chromium"


def _need(session: nox.Session, *programs: str) -> None:
    """Stop at once where a system package is missing: an hour later is a bad time to say it."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        session.error(
            f"not on PATH: {', '.join(missing)}; on Debian or Ubuntu: "
            f"apt-get install {SYSTEM_PACKAGES}"
        )


@nox.session(python=PYTHON)
def bench(session: nox.Session) -> None:
    """Measure a quick selection of cells on the newest release, or on those named after ``--``.

    ``nox -s bench -- v2.4 v2.9`` measures both and ends with ``asv compare``.
    """
    _need(session, "git", "g++")
    session.install("-e", ".")
    session.run("torchcompile-suite", "bench", *session.posargs)


@nox.session(python=PYTHON)
def tests(session: nox.Session) -> None:
    """Run all tests; ``nox -s tests -- -m 'not slow'`` runs those that take seconds."""
    _need(session, "git", "g++", "chromium")
    session.install("-e", ".", "--group", "tests")
    # Two at a time halves the wait; more would each need a torch of several gigabytes.
    session.run("pytest", "--numprocesses=2", "--dist=loadfile", *session.posargs)


@nox.session(python=PYTHON)
def site(session: nox.Session) -> None:
    """Build the site out of results/ and serve it; ``-- --port 8000`` as for ``asv preview``."""
    _need(session, "git")
    session.install("-e", ".")
    session.run("asv", "publish")
    session.run("asv", "preview", *session.posargs)


@nox.session(python=PYTHON)
def pictures(session: nox.Session) -> None:
    """Take the README's pictures of the site in html/."""
    _need(session, "chromium")
    session.install("playwright")
    session.run("python", "docs/pictures/take.py")


@nox.session(python=PYTHON)
def evidence(session: nox.Session) -> None:
    """Measure or print the evidence of docs/method.md: ``nox -s evidence -- coverage spread``."""
    known = sorted(
        file.stem for file in Path("evidence").glob("*.py") if "__main__" in file.read_text()
    )
    unknown = [name for name in session.posargs if name not in known]
    if unknown or not session.posargs:
        session.error(f"name some of: {', '.join(known)}")
    _need(session, "git", "g++")
    session.install("-e", ".")
    for name in session.posargs:
        session.run("python", "-m", f"evidence.{name}")


@nox.session(python=PYTHON)
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install("--group", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session(python=PYTHON)
def types(session: nox.Session) -> None:
    """Check types."""
    session.install("-e", ".", "--group", "types")
    session.run("mypy")
