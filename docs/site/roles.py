"""An extension of Griffe, which mkdocstrings reads the code with: references in docstrings become links.

The docstrings name code by Sphinx' roles, e.g. :class:`guieval.actions.Click`, which Markdown does not know.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

ROLE = re.compile(r":(?:mod|class|func|meth|attr|data):`~?([\w.]+)`")


class Roles(Extension):
    """Rewrites the docstring of every module, class, function and attribute when it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = linked(obj.docstring.value, obj)


def linked(text: str, within: Object) -> str:
    """``text`` with each role as an optional cross-reference, which is code where nothing of that name has a page."""

    def link(found: re.Match[str]) -> str:
        name = found[1]
        try:
            target = within.resolve(name) if not name.startswith("guieval.") else name
        except Exception:  # griffe raises NameResolutionError, whose home has moved between its versions
            target = name
        return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'

    return ROLE.sub(link, text)
