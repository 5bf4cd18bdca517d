"""Reads users' YAML: numbers as in YAML 1.2, and no aliases, since a few lines of them can expand to gigabytes."""

from __future__ import annotations

import re
from typing import Any

import yaml

MOST_CHARACTERS = 1 << 20
"""A text of this length takes some seconds to read."""
_MOST_BITS = 1024  # as many as the largest float has


class AliasError(yaml.YAMLError, ValueError):
    """The text has an alias (``*name``) of an earlier part."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the alias *{name} is not accepted: write its value in full, or quote it if it is a text")


class _NoAliases(yaml.parser.Parser, yaml.composer.Composer):
    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) and event.anchor in self.anchors:
            raise AliasError(str(event.anchor))
        return super().compose_node(parent, index)


class _Loader(_NoAliases, yaml.SafeLoader):
    """YAML's safe loader, except that ``1e-3`` is a number, as in YAML 1.2."""


class _Texts(_NoAliases, yaml.BaseLoader):
    """Every scalar as text: a date keeps its spelling."""


def _whole_number(loader: Any, node: Any) -> int:
    number: int = yaml.SafeLoader.construct_yaml_int(loader, node)
    if number.bit_length() > _MOST_BITS:  # Python does not even print one of 4,300 digits
        raise ValueError(f"the number {node.value[:20]}... has too many digits")
    return number


_Loader.add_constructor("tag:yaml.org,2002:int", _whole_number)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789"))


def read_yaml(text: str, *, texts: bool = False) -> Any:
    """Parse a YAML text; ``texts``: every scalar as text.

    Raises :class:`ValueError` with the problem in one line, :class:`AliasError` for an alias.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters; at most {MOST_CHARACTERS:,}")
    try:
        return yaml.load(text, _Texts if texts else _Loader)
    except AliasError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: e.g. the 45th of a month
        raise ValueError(" ".join(str(error).split())) from None
