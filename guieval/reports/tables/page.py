"""HTML pages from templates: every name from outside is escaped, and no value may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from guieval.errors import harmless
from guieval.steps import whole_text


def page(template: Path, **values: Any) -> str:
    """The page that a template makes of some values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return harmless(whole_text(environment.get_template(template.name).render(**values)))
