"""For notebooks: two releases compared by the recorded results, as ``report`` compares them."""

from __future__ import annotations

from ..analysis import change
from ..errors import SuiteError
from ..presentation import sheets, wording
from ..presentation.terminal import html
from . import recorded, report


class Comparison(change.Comparison):
    """What `compare_releases` returns. A notebook shows what changed."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        drawn = [sheets.changed(self), sheets.gaps(self), sheets.means(self)]
        return html([wording.judgement(self)], drawn)


def compare_releases(before: str, after: str, *, machine: str | None = None) -> Comparison:
    """Compare two releases by the results of this folder, or else by the published ones.

    - ``before``, ``after``: such as "v2.4" and "v2.9".
    - ``machine``: a folder of results/. Default: as for ``torchcompile-suite report``.

    Raises SuiteError for one release twice, NoResultsError where no machine has both, and
    ModuleNotFoundError without the packages of ``torchcompile-suite[suite]``.
    """
    versions = [recorded.version_named(name) for name in (before, after)]
    if versions[0] == versions[1]:
        raise SuiteError(f"name each release once: {before}, {after}")
    selection = recorded.select(machine, versions)
    if machine is None:
        selection = recorded.assembled(selection, versions)
    return Comparison(*report.compare_releases(selection.records, *versions))
