"""Upstream commits: measured by laying their Python over the nearest binary, and bisected.

`clone` asks a clone of PyTorch, `overlay` lays a commit over a release, `search` and `judge` decide
what is measured next and what it means, `measuring` measures, `bisection` puts them together.
"""
