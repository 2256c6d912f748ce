"""One measuring process, with torch.

`__main__.work` is the process from its first step to its last; `messages` is what it says to its
driver, `engine.turns`. This package knows nothing of ASV, of other cells or of the place of the
results, so it can run on any machine.
"""
