"""The ASV benchmark classes: one file for each subject.

ASV imports this package in each release's environment, where the suite is not installed. The suite
is imported from this checkout.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

if sys.argv[1:2] == ["run_server"]:
    # This process is ASV's fork server (`launch_method` in asv.conf.json). ASV does not end it when
    # ASV itself is killed.
    from torchcompile_suite.host.orphans import die_with_parent

    die_with_parent()
