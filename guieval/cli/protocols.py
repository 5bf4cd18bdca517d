"""``guieval protocols``: the scoring protocols, and what one of them does in words."""

from __future__ import annotations

from typing import Annotated

import typer


def protocols(name: Annotated[str | None, typer.Argument(help="Show one protocol's rules.")] = None) -> None:
    """List scoring protocols, or tell one protocol's rules in words."""
    from guieval.cli.tables import print_table
    from guieval.evaluation import get_protocol, list_protocols

    if name is not None:
        typer.echo(get_protocol(name).describe())
        return
    protocols = map(get_protocol, list_protocols())
    print_table(("protocol", "summary", "source"), ((each.name, each.summary, each.source) for each in protocols))
