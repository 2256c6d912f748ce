"""All that happens inside one measuring process, with torch.

`measure.measure` turns a `cell.Request` into a `cell.Launch`; ``python -m
torchcompile_suite.launch`` wraps it as JSON in, JSON out. Knows nothing of ASV, of other cells or
of where results go, so that a fleet can run it anywhere.
"""
