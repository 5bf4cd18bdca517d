"""``guieval dev scaffolds``: the named settings in which models are run, one of them in full, or how two differ."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.names import natural_order
from guieval.models.scaffold import Scaffold, differing, in_effect, named_as_in_scaffolds
from guieval.registry import build_model, load_scaffold, model_configs
from guieval.registry import scaffolds as known_scaffolds
from guieval.reports.tables.table import Table, columns

NOT_SET = "-"


def scaffolds(
    name: Annotated[str | None, typer.Argument(help="Show this scaffold in full: a name, or a YAML file.")] = None,
    other: Annotated[str | None, typer.Argument(help="Show how it differs from this one.")] = None,
    json_output: JSON = False,
) -> None:
    """List the named settings in which models are run, show one in full, or show how two differ."""
    if name is None:
        _list(json_output)
    elif other is None:
        _show(load_scaffold(name), json_output)
    else:
        _compare(load_scaffold(name), load_scaffold(other), json_output)


def _list(json_output: bool) -> None:
    every = sorted(known_scaffolds().values(), key=lambda each: natural_order(each.name))
    if json_output:
        print_json({"scaffolds": [_plain(each) for each in every]})
        return
    rows = tuple((each.name, ", ".join(each.families), _source(each), each.sha256) for each in every)
    show(
        Table("", columns("scaffold", "family", "source", "digest", keys=4, spare=("digest", "source")), rows),
        full="A wider terminal shows all.",
    )
    say("`guieval dev scaffolds NAME` shows one in full, `guieval dev scaffolds NAME OTHER` how two differ.")


def _plain(scaffold: Scaffold) -> dict[str, Any]:
    default_of = [config.name for config in model_configs().values() if config.scaffold.name == scaffold.name]
    return {**scaffold.to_json(), "default_of": default_of}


def _source(scaffold: Scaffold) -> str:
    return NOT_SET if scaffold.source is None else f"{scaffold.source.repository} @ {scaffold.source.commit}"


def _show(scaffold: Scaffold, json_output: bool) -> None:
    import yaml

    values = _plain(scaffold)
    if json_output:
        print_json(values)
        return
    default_of = values.pop("default_of")
    echo(yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=100).rstrip())
    if default_of:
        say(f"default of: {', '.join(default_of)}")
    say("What is not set is left to the family, the server or the environment.")


def _compare(one: Scaffold, other: Scaffold, json_output: bool) -> None:
    rows = list(differing(*(in_effect(each.acts, _defaults(each)) for each in (one, other))))
    if json_output:
        print_json({"differences": [{"setting": name, one.name: first, other.name: second} for name, first, second in rows]})
        return
    if not rows:
        say(f"{one.name} and {other.name} set the same ({one.sha256})")
        return
    heads = columns("setting", f"{one.name} ({one.sha256})", f"{other.name} ({other.sha256})")
    show(Table("", heads, tuple((name, *(NOT_SET if each is None else str(each) for each in pair)) for name, *pair in rows)))
    say(f"{NOT_SET}: not set, so left to the server or the environment. What a family sets by itself is shown as its value.")


def _defaults(scaffold: Scaffold) -> dict[str, Any]:
    """What a checkpoint of its first family has if a scaffold sets nothing."""
    family = next(iter(scaffold.families), None)
    config = next((config for config in model_configs().values() if config.adapter == family), None)
    if config is None:
        return {}
    options = {**config.options, **scaffold.family_options}
    model = build_model(config.model_copy(update={"scaffold": scaffold, "options": options}))
    return named_as_in_scaffolds(model.resolved_options)
