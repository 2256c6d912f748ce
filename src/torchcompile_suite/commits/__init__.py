"""Upstream commits: measured as an overlay over a release's binary, and bisected.

- `clone` reads a clone of PyTorch.
- `overlay` installs a commit over a release: it chooses the release and the files, and `journal`
  applies them.
- `measuring` measures commits, through `torchcompile_suite.engine.launches` in the environment.
- `judge` decides what the values mean, `bisection` chooses the next commit.
"""
