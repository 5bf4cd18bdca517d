"""``guieval models``: the checkpoints that can be evaluated by name."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Annotated

import typer

from guieval.cli.tables import echo, say, show
from guieval.data.names import natural_order
from guieval.data.shipped import config_folder
from guieval.engines.vllm.command import merged_arguments
from guieval.history import reference_history
from guieval.models import ABCModel, ModelConfig
from guieval.models.unlisted import resolution
from guieval.models.written_prompts import example_episode, shown
from guieval.registry import adapter_class, load_model, model_configs
from guieval.reports.tables.table import Table, columns


def models(
    name: Annotated[
        str | None, typer.Argument(help="Show this checkpoint in full, or list those whose name, family or id has this in it.")
    ] = None,
) -> None:
    """List checkpoints by family, or show one in full: its settings, how to serve it, a prompt and a reply."""
    known = model_configs()
    names = {each: "\n".join((each, config.adapter, config.hf_id or "")).lower() for each, config in known.items()}
    chosen = [config for each, config in known.items() if name is None or name.lower() in names[each]]
    if name is not None and (name in known or not chosen):
        for line in _details(load_model(name)):
            (echo if line.startswith("serve:") else say)(line)  # a command to copy stays whole
        return
    rows = []
    for config in sorted(chosen, key=lambda each: (each.adapter, natural_order(each.name))):
        family = adapter_class(config.adapter)
        switch = "yes" if family.thinking_switch else "no"
        where = (config.frame or "-", config.hf_id or "-")
        rows.append((config.name, config.adapter, config.scaffold.name, config.engine, switch, *where))
    heads = ("model", "family", "scaffold", "engine", "thinking switch", "frame", "Hugging Face id")
    spare = ("thinking switch", "engine", "frame", "Hugging Face id", "scaffold")
    show(
        Table("", columns(*heads, keys=7, spare=spare), tuple(rows)),
        full="A wider terminal shows all.",
    )
    say("`guieval models NAME` shows how to serve one, with a prompt and a reply.")


def _details(model: ABCModel) -> Iterator[str]:
    import yaml

    config = model.config
    values = config.model_dump(mode="json", exclude_none=True, exclude={"resolved"}) | {"scaffold": config.scaffold.to_json()}
    yield from resolution(config)
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=128)
    yield text.rstrip()
    yield ""
    facts = {
        "actions": ", ".join(sorted(model.action_space.types)),
        "thinking": f"--thinking/--no-thinking (default {'on' if model.thinking else 'off'})" if model.thinking_switch else "",
        "thought": "can be given" if model.fixes_thought else "",
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
        yield "\nan example reply to it, as the model would write it:\n"
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
            words.append(value if isinstance(value, str) else json.dumps(value))
    return shlex.join(words)
