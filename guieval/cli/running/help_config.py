"""``guieval help-config``: every setting of a run with its type, default and meaning, from the models that check them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import BaseModel

from guieval.cli.tables import JSON, print_json, say, show
from guieval.engines.vllm.command import LAUNCH_SETTINGS, VLLMSettings
from guieval.errors import UsageError, nearest
from guieval.history.mixing import Mix
from guieval.models.sampling import SamplingSettings
from guieval.reports.tables.table import Table, columns
from guieval.running.config import RunConfig
from guieval.running.tracking import SETTINGS as TRACKING

FREE = {
    "bench_options": "`guieval benchmarks NAME` lists the options of a benchmark",
    "options": "the adapter's file lists the options of a model family",
    "vllm": "and any argument of `vllm serve` under its own name",
}
"""Groups that take names which no model here lists."""


_ANY = 2**53
"""A bound from here on, e.g. the largest seed, is not shown."""


class Setting(NamedTuple):
    """One setting, as ``--set`` and a settings file name it."""

    setting: str
    type: str
    default: Any
    description: str


def help_config(
    group: Annotated[str | None, typer.Argument(help="Only this setting, or group of settings, e.g. sampling.")] = None,
    json_output: JSON = False,
) -> None:
    """List every setting of a run, as --set NAME=VALUE and --config FILE take it, with type, default and meaning."""
    known = list(settings())
    chosen = [one for one in known if group is None or one.setting == group or one.setting.startswith(f"{group}.")]
    if not chosen:
        raise UsageError(f"unknown setting {group!r}{nearest(group or '', [one.setting for one in known])}")
    if json_output:
        print_json(chosen)
        return
    what = "type, default and meaning"  # in one column, which at 80 characters leaves room for all three
    show(Table("", columns("setting", what, folds=(what,)), tuple((one.setting, in_words(one)) for one in chosen)))
    for name, words in FREE.items():
        if any(one.setting == name for one in chosen):
            say(f"{name}.NAME: {words}.")


def in_words(setting: Setting) -> str:
    """A setting\'s type, default and meaning."""
    default = "" if setting.default in (None, {}, []) else f" (default {json.dumps(setting.default)})"
    return f"{setting.type}{default}: {setting.description}"


def settings() -> Iterator[Setting]:
    """Every setting of a run, the groups\' own included."""
    groups = {
        "sampling": list(_fields(SamplingSettings)),
        "resampling": list(_fields(SamplingSettings)),
        "mix": list(_fields(Mix)),
        "vllm": [one for one in _fields(VLLMSettings) if one.setting.replace("_", "-") in LAUNCH_SETTINGS],
        "tracking": [Setting(name, "text", None, words) for name, words in TRACKING.items()],
    }
    for one in _fields(RunConfig):
        yield one
        yield from (inner._replace(setting=f"{one.setting}.{inner.setting}") for inner in groups.get(one.setting, ()))


def _fields(model: type[BaseModel]) -> Iterator[Setting]:
    schema = model.model_json_schema()
    for name, field in model.model_fields.items():
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        plain = list(default) if isinstance(default, tuple) else default
        words = "required" if field.is_required() else None
        described = "; ".join(filter(None, (field.description, words)))
        yield Setting(name, type_in_words(schema["properties"][name]), plain, described)


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
