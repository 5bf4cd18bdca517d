"""``guieval dev help-config``: every setting of a run with its type, default and meaning, from the models that check them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel

from guieval.cli.tables import JSON, print_json, say, show
from guieval.engines.vllm.command import LAUNCH_SETTINGS, VLLMSettings
from guieval.errors import UsageError, nearest
from guieval.history.mixing import Mix
from guieval.reports.tables.table import Table, columns
from guieval.settings import GROUPS, own_names, own_path
from guieval.settings.sampling import SamplingSettings

FREE = {
    "bench_options": "`guieval benchmarks NAME` lists the options of a benchmark",
    "options": "the adapter's file lists the options of a model family",
    "vllm": "and any argument of `vllm serve` under its own name",
}
"""Settings that take names which no model here lists."""
_ANY = 2**53
"""A bound from here on, e.g. the largest seed, is not shown."""


class Setting(NamedTuple):
    """One setting of a group, as ``--set`` and a settings file name it."""

    group: str
    setting: str
    type: str
    default: Any
    description: str


def help_config(
    name: Annotated[
        str | None, typer.Argument(metavar="[GROUP|SETTING]", help="Only this group, or setting, e.g. server or sampling.stop.")
    ] = None,
    json_output: JSON = False,
) -> None:
    """List every setting of a run in its group, as --set NAME=VALUE and --config FILE take it, with type, default and meaning.

    A name may be given with its group (server.timeout) or without it (timeout); in a file a group may hold its settings.
    """
    known = list(settings())
    own = name if name is None or name in GROUPS else ".".join(own_path(name.split(".")))
    chosen = [one for one in known if own in (None, one.group, one.setting) or one.setting.startswith(f"{own}.")]
    if not chosen:
        raise UsageError(f"unknown setting {name!r}{nearest(name or '', [*GROUPS, *(one.setting for one in known)])}")
    if json_output:
        print_json({"settings": chosen})
        return
    what = "type, default and meaning"  # in one column, which at 80 characters leaves room for all three
    for group, listed in groupby(chosen, key=lambda one: one.group):
        rows = tuple((one.setting, in_words(one)) for one in listed)
        title = f"{group}: {(GROUPS[group].__doc__ or '').splitlines()[0]}"
        show(Table(title, columns("setting", what, folds=(what,)), rows))
    for setting, words in FREE.items():
        if any(one.setting == setting for one in chosen):
            say(f"{setting}.NAME: {words}.")


def in_words(setting: Setting) -> str:
    """A setting\'s type, default and meaning."""
    default = "" if setting.default in (None, {}, []) else f" (default {json.dumps(setting.default)})"
    return f"{setting.type}{default}: {setting.description}"


def settings() -> Iterator[Setting]:
    """Every setting of a run, and what the settings that are groups themselves take."""
    taken: dict[str, Iterable[tuple[str, str, Any, str]]] = {
        "sampling": (requests := list(_fields(SamplingSettings))),
        "resampling": requests,
        "mix": list(_fields(Mix)),
        "vllm": [one for one in _fields(VLLMSettings) if one[0].replace("_", "-") in LAUNCH_SETTINGS],
    }
    for group, kind in GROUPS.items():
        for name, (_, *rest) in zip(own_names(group), _fields(kind), strict=True):
            yield Setting(group, name, *rest)
            yield from (Setting(group, f"{name}.{inner}", *more) for inner, *more in taken.get(name, ()))


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, str, Any, str]]:
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        plain = list(default) if isinstance(default, tuple) else default
        words = "required" if field.is_required() else None
        described = "; ".join(filter(None, (field.description, words)))
        yield name, type_in_words(schema["properties"][name]), plain, described


def type_in_words(schema: Mapping[str, Any]) -> str:
    """A JSON schema as words: what may be given, and in which range; null, which is not given, is left out."""
    if "anyOf" in schema:
        return " or ".join(type_in_words(kind) for kind in schema["anyOf"] if kind.get("type") != "null")
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {type_in_words(schema.get('items', {}))}s"
    names = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false", "object": "group"}
    bounds = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    span = [f"{word} {schema[key]:g}" for key, word in bounds.items() if abs(schema.get(key, _ANY)) < _ANY]
    return " ".join([names.get(schema.get("type", ""), "any value"), *span])
