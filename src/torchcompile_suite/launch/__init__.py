"""One measuring process, with torch.

`measure.measure` turns a `cell.Request` into a `cell.Launch`. ``python -m
torchcompile_suite.launch`` does the same with JSON on standard input and output. This package knows
nothing of ASV, of other cells or of the place of the results, so it can run on any machine.
"""
