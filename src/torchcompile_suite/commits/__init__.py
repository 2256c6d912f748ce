"""Upstream commits: measured as an overlay over a release's binary, and bisected.

- `clone` reads a clone of PyTorch.
- `overlay` installs a commit over a release. `base` chooses the release, `differences` the files;
  `journal` applies them, `gate` proves the result.
- `measuring` measures commits, through `torchcompile_suite.engine.launches` in the environment.
- `search` chooses the next commit, `judge` decides what the values mean, `bisection` combines them.
"""
