"""Finds environments by name: modules of this package, and entry points in the group ``guieval.environments``."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from guieval.data.plugin_options import check_options
from guieval.errors import UsageError, nearest
from guieval.online.contract import ABCEnvironment
from guieval.registry import entry_value, list_benchmarks, module_names, plugin_classes

GROUP = "guieval.environments"


@cache
def environments() -> dict[str, type[ABCEnvironment]]:
    """All environment classes by registered name, in name order."""
    classes: dict[str, type[ABCEnvironment]] = {}
    for name in module_names("guieval.online"):
        for item in plugin_classes(importlib.import_module(f"guieval.online.{name}"), ABCEnvironment):
            classes[item.name] = item
    for entry in entry_points(group=GROUP):
        classes.setdefault(entry.name, entry_value(entry))
    return dict(sorted(classes.items()))


def load_environment(name: str, **options: Any) -> ABCEnvironment:
    """The environment called ``name``, with its options; nothing is started.

    Raises :class:`UsageError` for an unknown name or option, or where a package that it needs is missing.
    """
    known = environments()
    if name not in known:
        unknown = f"unknown environment {name!r}{nearest(name, known)}"
        what = f"benchmark {name!r} has no environment" if name in list_benchmarks() else unknown
        raise UsageError(f"{what}; mode online is for {', '.join(known)}")
    check_options(known[name], options, f"environment {name!r}")
    return known[name](**options)
