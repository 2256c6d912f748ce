"""The published site: ASV's pages made self-contained, and a report that answers questions.

`build.build` writes everything. ``pages/`` makes the content of each page in plain values.
``charts`` draws. ``render`` turns a page into HTML, CSV and JSON. No page has a script, so pages
open from any host, from a file, and under the strictest Content-Security-Policy.
"""
