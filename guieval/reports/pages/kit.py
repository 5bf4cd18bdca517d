"""Pages from templates, with the styles and scripts that they share; every name from outside is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.errors import harmless, whole_text
from guieval.reports.tables.table import text

KIT = Path(__file__).parent
STYLE, MARKS = KIT / "kit.css", KIT / "marks.css"
"""The styles of every page, and those of what is drawn on a screen."""
NODES, THEME, SORTING, DRAWN, LOADING = (KIT / f"{name}.js" for name in ("build", "theme", "sorting", "marks", "loading"))
"""The scripts that build nodes, switch the colours, sort tables, draw actions on a screen, and load data files."""


def page(template: Path, **values: Any) -> str:
    """The page that a template makes of some values; it has the macros of ``kit.html.jinja``."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader([template.parent, KIT]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return harmless(whole_text(environment.get_template(template.name).render(text=text, **values)))


def whole_page(template: Path, styles: Iterable[Path], scripts: Iterable[Path], **values: Any) -> str:
    """A page with its style and script inside it, allowed by their hashes: a name with markup could do nothing."""
    style, script = joined(styles), joined_script(scripts)
    allowed = {"style_hash": _hash(style), "script_hash": _hash(script)}
    return page(template, style=style, script=script, **allowed, **values)


def joined(files: Iterable[Path]) -> str:
    """The parts of a page's style, or of its script, as one text."""
    return "\n".join(read_text(file) for file in files)


def joined_script(files: Iterable[Path]) -> str:
    """The parts of a page's script in one function around everything: the data files can access only window.guieval."""
    return f'"use strict";\n(() => {{\n{joined(files)}}})();\n'


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"
