"""The questions, as ASV benchmark classes: one file a question.

ASV imports this package in each release's environment, where the suite is not installed; it is
always taken from this very checkout.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

if sys.argv[1:2] == ["run_server"]:
    # This is ASV's fork server (`launch_method` in asv.conf.json), from which it forks a process
    # for each value: torch is imported once a release and not once a value.
    from torchcompile_suite.measuring import processes

    processes.preload()
