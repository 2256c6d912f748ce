"""Pages as HTML, by Jinja2 with every string escaped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

# Only files that are published with the page. A page asks no other host for anything.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
STYLE = "site.css"

_environment = Environment(
    loader=PackageLoader("torchcompile_suite.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


class Kind(NamedTuple):
    """A kind of pages: its file, its name in the navigation, its question, and what it draws."""

    file: str
    name: str
    title: str
    script: str = ""


QUESTION = "Does torch.compile pay, on this hardware, for this model, in this mode, since when?"
ANSWERS = Kind("answers.html", "Questions", "What people ask", "answers")
GENERATED = Kind(
    "generated.html", "GPU code", "What is generated for a GPU that is not here?", "generated"
)
KINDS = (
    Kind("index.html", "Overview", QUESTION, "landing"),
    ANSWERS,
    Kind("models.html", "Models", "All models: does it pay?", "models"),
    Kind("cell.html", "Model", "One model, since when?", "cell"),
    Kind("compare.html", "Compare", "What changed?", "compare"),
    Kind("cost.html", "Cost", "What does compiling cost?", "cost"),
    Kind("compiler.html", "Compiler", "What does the compiler make?", "compiler"),
    GENERATED,
    Kind("claims.html", "Claims", "Are the claims true here?", "claims"),
    Kind("trust.html", "Trust", "Can I trust it?", "trust"),
)
TABLES = Kind("tables.html", "Tables", "The newest results as plain tables")
RELEASES = Kind("releases.html", "Releases", "Releases")


def page(template: str, kind: Kind, kinds: Sequence[Kind], **content: Any) -> str:
    """A page of that template. ``kinds``: those in the navigation."""
    return _environment.get_template(template).render(
        kind=kind, kinds=kinds, policy=POLICY, style=STYLE, **content
    )
