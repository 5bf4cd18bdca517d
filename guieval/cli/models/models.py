"""``guieval models``: the checkpoints that can be evaluated by name."""

from __future__ import annotations

import json as json_text
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.shipped import config_folder
from guieval.engines.vllm.command import merged_arguments
from guieval.errors import known_name
from guieval.history import reference_history
from guieval.models import ABCModel, KnownModel, ModelConfig
from guieval.models.families import OLD, TASKS
from guieval.models.unlisted import resolution
from guieval.models.written_prompts import example_episode, shown
from guieval.registry import find_models, load_model, model_configs
from guieval.reports.tables.table import Column, Table, columns

WIDER = "A wider terminal shows all."


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Show this checkpoint (also ORG/NAME or a folder) in full, or list those whose name, family or id has this."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help=f"List those for this task: {', '.join(TASKS)}.")] = None,
    size: Annotated[str | None, typer.Option(help="List those of this size, e.g. 7b.")] = None,
    every: Annotated[bool, typer.Option("--all", help=f"List the families of {OLD} too.")] = False,
    json: JSON = False,
) -> None:
    """List checkpoints, newest families first, or show one in full: its settings, how to serve it, a prompt and a response."""
    listed = model_configs()
    ids = "\n".join(each.hf_id or "" for each in listed.values()).lower()
    other = name is not None and "/" in name and name.lower() not in ids  # an unlisted one's id or folder
    if name is not None and (name in listed or other) and task is size is None and not (every or json):
        for line in _details(load_model(name)):
            (echo if line.startswith("serve:") else say)(line)  # a command to copy stays whole
        return
    found = find_models(name or "", task=None if task is None else known_name("task", task, TASKS), size=size)
    if json:
        print_json({"models": [asdict(each) for each in found]})
        return
    current = [each for each in found if (each.year or OLD + 1) > OLD]
    old = found[len(current) :]
    shown = bool(name) or every or not current
    show(_table("", current) if current else None, _table(f"{OLD} and before", old) if old and shown else None, full=WIDER)
    if old and not shown:
        say(f"Not shown are families of {OLD}: {', '.join(dict.fromkeys(each.family for each in old))}; --all shows them.")
    say(
        "Proof of an adapter: whose reader of responses it was compared with, and how many recorded responses it was tested "
        "with; without either it has its golden prompt only."
    )
    say("`guieval models NAME` shows how to serve one, with a prompt and a response.")


def _table(title: str, chosen: Sequence[KnownModel]) -> Table:
    rows = []
    for each in chosen:
        config = model_configs()[each.name]
        proof = (each.reader or None, each.recorded or None)
        where = (config.scaffold.name, config.frame, each.hf_id)
        rows.append((each.name, each.family, " ".join(each.tasks) or None, *proof, *where))
    words = columns("model", "family", "tasks", "reader", keys=4, spare=("family",))
    more = columns("scaffold", "frame", "Hugging Face id", keys=3, spare=("frame", "scaffold", "Hugging Face id"))
    return Table(title, (*words, Column("recorded"), *more), tuple(rows))


def _details(model: ABCModel) -> Iterator[str]:
    import yaml

    config, known = model.config, model.family
    values = config.model_dump(mode="json", exclude_none=True, exclude={"resolved"}) | {"scaffold": config.scaffold.to_json()}
    yield from resolution(config)
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=128)
    yield text.rstrip()
    yield ""
    facts = {
        "actions": ", ".join(sorted(model.action_space.types)),
        "thinking": f"--thinking/--no-thinking (default {'on' if model.thinking else 'off'})" if model.thinking_switch else "",
        "thought": "can be given" if model.fixes_thought else "",
        "tasks": "" if known is None else ", ".join(known.tasks),
        "proof": "" if known is None else known.proof,
        "source": model.source,
        "frame": model.frame_source,
        "serve": _serve(config),
    }
    yield from (f"{title + ':':10}{value}" for title, value in facts.items() if value)
    steps = example_episode().steps
    yield "\nan example prompt, the second step of an episode:\n"
    yield shown(model.prepare_input(steps[1], reference_history(steps[:1]))).rstrip("\n")
    action = next((step.action for step in reversed(steps[:2]) if step.action in model.action_space), None)
    if action is not None:
        yield "\nan example response to it, as the model would write it:\n"
        yield model.render(steps[1], action, "The switch must be further down.", "Swipe up to find the switch")


def _serve(config: ModelConfig) -> str:
    if config.hf_id is None or config.engine != "openai":
        return ""
    words = ["vllm", "serve", config.hf_id]
    for option, value in merged_arguments(config, {}).items():
        if option == "chat-template":
            value = str(config_folder() / "chat_templates" / str(value))
        words.append(f"--{option}")
        if value is not True:
            words.append(value if isinstance(value, str) else json_text.dumps(value))
    return shlex.join(words)
