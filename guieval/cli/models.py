"""``guieval models``: the checkpoints that can be evaluated by name."""

from __future__ import annotations

from typing import Annotated

import typer


def models(name: Annotated[str | None, typer.Argument(help="Show one checkpoint whole.")] = None) -> None:
    """List checkpoints by family, or show one."""
    from guieval.cli.tables import print_table
    from guieval.registry import adapter_class, model_config, model_configs

    if name is not None:
        import yaml

        config = model_config(name)
        adapter = adapter_class(config.adapter)
        typer.echo(
            yaml.safe_dump(config.model_dump(mode="json", exclude_none=True), sort_keys=False, allow_unicode=True).rstrip()
        )
        typer.echo(f"actions: {', '.join(sorted(adapter.action_space.types))}")
        if adapter.source:
            typer.echo(f"source: {adapter.source}")
        return
    rows = []
    for config in model_configs().values():
        switch = "yes" if adapter_class(config.adapter).thinking_switch else "no"
        rows.append((config.name, config.adapter, config.engine, switch, config.hf_id or "-"))
    print_table(("model", "family", "engine", "thinking switch", "Hugging Face id"), rows)
