"""A workload file that registers the model of ``torchcompile-suite try``.

A measuring process imports only the registry of workloads. ``TORCHCOMPILE_SUITE_WORKLOADS`` names
this file to the process, so the registry does not depend on this package.
"""

from torchcompile_suite.trial import build, target

if (_target := target.from_environment()) is not None:
    build.register(_target)
