"""Finds the wings: packages of guieval that not everybody needs, of which the core imports none.

A wing says in ``OFFERS``, in its ``__init__``, what it adds: by kind (``environments``, ``commands`` and so on) the names and
their places, ``package.module`` or ``package.module:attribute``. A folder that was deleted offers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from guieval.errors import UsageError

WINGS = (
    *("conformance", "playground", "connectors", "graphs", "exchange", "cluster"),
    *("studies", "perturbed", "board", "training", "assistants", "plugins"),
)


def absent(error: ImportError) -> bool:
    """Whether an import failed because a wing is not there."""
    names = (error.name or "").split(".")
    return names[0] == "guieval" and names[1:2] != [] and names[1] in WINGS and find_spec(".".join(names[:2])) is None


@cache
def offers(kind: str) -> Mapping[str, str]:
    """All names of a kind that the wings offer, with their places."""
    found = (import_module(f"guieval.{wing}").OFFERS for wing in WINGS if find_spec(f"guieval.{wing}"))
    return {name: place for each in found for name, place in each.get(kind, {}).items()}


def offered(kind: str, name: str) -> Any:
    """The module or the attribute of one that a wing offers; :class:`UsageError` if the wing is not there."""
    if name not in offers(kind):
        raise UsageError(f"this copy of guieval lacks {name!r} of its {kind}: one of the folders {', '.join(WINGS)} is deleted")
    module, _, attribute = offers(kind)[name].partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)
