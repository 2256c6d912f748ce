"""A workload file, as `workloads.files` reads it: registers the model that ``try`` was given.

A measuring process imports only the registry of workloads. ``TORCHCOMPILE_SUITE_WORKLOADS`` names
this file to the process, so the registry does not need to know about trials.
"""

from torchcompile_suite.trial import target

if (_given := target.given()) is not None:
    target.register(_given)
