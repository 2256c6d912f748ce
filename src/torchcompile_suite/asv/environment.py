"""The environments that ASV measures in: one for releases, one for overlaid commits.

``environment_type`` in asv.conf.json and asv.commits.conf.json names one of these classes.
"""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from asv.console import log
from asv.environment import Environment, EnvironmentUnavailable
from asv.plugins.virtualenv import Virtualenv

from ..commits import overlay
from ..engine.launches import Refused
from ..engine.settings import PREFIX
from ..errors import SuiteError
from ..host.files import held
from ..presentation.wording import printable
from ..releases import catalogue, environments, ledger
from .errors import user_errors
from .repository import PyTorchClone, ReleaseLedger

DRIFT_VARIABLE = PREFIX + "ALLOW_NATIVE_DRIFT"


class _PublishedName:
    """Gives an environment the name that published result files have."""

    tool_name: str

    def __init__(self, *arguments: Any, **options: Any) -> None:
        # ASV finds the class by `tool_name`, and derives the names of environments, folders and
        # result files from it. A new name would begin a new series.
        self.tool_name = Virtualenv.tool_name
        super().__init__(*arguments, **options)


class ReleaseEnvironment(_PublishedName, Environment):  # type: ignore[misc]
    """The environment of the release that is measured.

    Every release has one of its own (`releases.environments`), so this object moves from folder to
    folder. A change of the release takes no time, and releases can be measured in turns. It is no
    Virtualenv, which needs its Python in PATH: a release's environment has one, or uv gets it.
    """

    tool_name = "torch-release"

    def __init__(self, conf: Any, python: str, requirements: Any, variables: Any) -> None:
        """Raises EnvironmentUnavailable unless ``python`` is a version such as 3.11."""
        if not re.fullmatch(r"3\.\d+", python):
            raise EnvironmentUnavailable(f"{python!r} is no version of Python such as 3.11")
        self._requirements = requirements  # part of the name, which ASV asks for first
        super().__init__(conf, python, requirements, variables)

    def create(self) -> None:
        """Create nothing: the release decides on the folder."""

    def install_project(self, _conf: Any, _repo: ReleaseLedger, commit_hash: str) -> None:
        """Move to the folder of the commit's release, which is made now if it is missing."""
        with user_errors():
            release = ledger.compute()[0].get(commit_hash)
            if release is None:
                raise SuiteError(
                    f"{commit_hash[:8]} is the commit of no release; name one: asv run v2.9^!"
                )
            python = environments.ready(release, self._python, say=log.info)
        self._path = str(python.parent.parent)
        self._global_env_vars["ASV_ENV_DIR"] = self._path
        self._set_build_dirs(None, None)
        self._set_commit_hash(commit_hash)

    def _get_installed_commit_hash(self) -> str | None:
        # ASV's own file in the folder is not read: a folder holds one release for ever.
        commit: str | None = self._global_env_vars.get("ASV_COMMIT")
        return commit

    def run(self, args: list[str], **options: Any) -> Any:
        """Run the environment's Python, as `Virtualenv.run`: for benchmarks that are not ours."""
        return self.run_executable("python", args, **options)


class OverlayEnvironment(_PublishedName, Virtualenv):  # type: ignore[misc]
    """An environment with the Python files of a commit over a release or nightly."""

    tool_name = "torch-commit"
    # Of the folder, until this process ends: another run would put its commit there.
    _lock: ExitStack | None = None

    def _install_requirements(self) -> None:
        if self._build_command:  # a full build needs what ASV installs
            Virtualenv._install_requirements(self)

    def _get_install_checksum(self) -> list[Any]:
        checksum: list[Any] = super()._get_install_checksum()
        if not self._build_command:
            # A commit that was refused is installed anew where drift is allowed now, and the
            # reverse; and where a build was added that it may descend from.
            with user_errors():
                builds = [release.version for release in catalogue.everything()]
            checksum = [*checksum, os.environ.get(DRIFT_VARIABLE) == "1", *builds]
        return checksum

    def _get_installed_commit_hash(self) -> str | None:
        # ASV installs nothing where the commit is there. Without the lock it may not stay there.
        if self._lock is None:
            return None
        commit: str | None = super()._get_installed_commit_hash()
        return commit

    def install_project(self, conf: Any, repo: PyTorchClone, commit_hash: str) -> None:
        """Put the commit over its base; with a build command, do what ASV does.

        Nothing is checked out: a work tree of PyTorch has gigabytes of submodules. A refused commit
        counts as installed. The environment's marker says so, so that the measurement records the
        reason, and ``asv find`` goes on to another commit.
        """
        if self._lock is None:
            busy = "another run measures commits here; run the same command when it has ended"
            lock = ExitStack()
            with user_errors():
                lock.enter_context(held(Path(f"{self._path}.lock"), busy))
            self._lock = lock
        if self._build_command:
            super().install_project(conf, repo, commit_hash)
            return
        self._set_commit_hash(commit_hash)
        self._set_build_dirs(None, None)
        if self.installed_commit_hash == commit_hash:
            return
        self._set_installed_commit_hash(None)
        log.info(f"Putting {repo.get_decorated_hash(commit_hash, 8)} over its base")
        allowed = os.environ.get(DRIFT_VARIABLE) == "1"
        folder = Path(self._path)
        with user_errors():
            try:
                overlay.install(repo.clone, commit_hash, folder, allow_native_drift=allowed)
            except Refused as refused:
                log.warning(printable(f"not measured: {refused}"))
        self._set_installed_commit_hash(commit_hash)
