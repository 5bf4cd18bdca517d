"""Finds environments by name: modules of packages that wings offer, and entry points in ``guieval.environments``."""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from guieval.data.plugin_options import check_options, option_names
from guieval.errors import UsageError, nearest
from guieval.online.contract import ABCEnvironment
from guieval.registry import entry_value, list_benchmarks, module_names, plugin_classes
from guieval.wings import offers

GROUP = "guieval.environments"


@cache
def environments() -> dict[str, type[ABCEnvironment]]:
    """All environment classes by registered name, in name order."""
    classes: dict[str, type[ABCEnvironment]] = {}
    for package in offers("environments").values():
        for name in module_names(package):
            for item in plugin_classes(importlib.import_module(f"{package}.{name}"), ABCEnvironment):
                classes[item.name] = item
    for entry in entry_points(group=GROUP):
        classes.setdefault(entry.name, entry_value(entry))
    return dict(sorted(classes.items()))


def check_bench(name: str) -> None:
    """Refuse a name that is neither a benchmark's nor an environment's, with the nearest of both in :class:`UsageError`."""
    if name not in (known := [*list_benchmarks(), *environments()]):
        raise UsageError(f"unknown benchmark or environment {name!r}{nearest(name, known)}; `guieval benchmarks` lists them")


def load_environment(name: str, *, allow_network: bool = False, **options: Any) -> ABCEnvironment:
    """The environment called ``name``, with its options; nothing is started.

    ``allow_network`` is for environments whose pages guieval opens itself: these reach no other host without it.

    Raises :class:`UsageError` for an unknown name or option, or if a package that it needs is missing.
    """
    known = environments()
    if name not in known:
        unknown = f"unknown environment {name!r}{nearest(name, known)}"
        what = f"benchmark {name!r} has no environment" if name in list_benchmarks() else unknown
        raise UsageError(f"{what}; mode online is for {', '.join(each for each in known if known[each].mode == 'online')}")
    if allow_network:
        if "allow_network" not in option_names(known[name]):
            pages = [each for each, kind in known.items() if "allow_network" in option_names(kind)]
            raise UsageError(
                f"--allow-network is for environments whose pages are opened here ({', '.join(pages)}), not for {name!r}"
            )
        options = {**options, "allow_network": allow_network}
    check_options(known[name], options, f"environment {name!r}")
    return known[name](**options)
