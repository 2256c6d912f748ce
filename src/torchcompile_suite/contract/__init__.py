"""The compile contract: what torch.compile makes of a user's models, kept in a file and checked.

- ``counting``: counts what a block of code compiles, with ``launch.inspect``
- ``counts``: these counts, and when two of them are the same
- ``file``: the contract, a TOML file, which counts are held to
- ``judging``: what changed, where, and what helps
- ``markdown``: what a check found, for the summary of a CI job
- ``plugin``: the fixture and the mark of pytest, and whether compiling pays in a test; ``calls``:
  what ``check`` calls
- ``factory``: the models that ``torchcompile-suite contract`` names, each in a process of its own

Only a process that counts imports torch.
"""
