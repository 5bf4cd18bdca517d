"""``guieval protocols``: the scoring protocols, and what one of them does in words."""

from __future__ import annotations

from typing import Annotated

import typer


def protocols(name: Annotated[str | None, typer.Argument(help="Show one protocol's rules.")] = None) -> None:
    """List scoring protocols, or tell one protocol's rules in words."""
    from rich.console import Console
    from rich.table import Table

    from guieval.evaluation import get_protocol, list_protocols

    if name is not None:
        typer.echo(get_protocol(name).describe())
        return
    table = Table("protocol", "summary", "source", box=None, pad_edge=False)
    for each in list_protocols():
        protocol = get_protocol(each)
        table.add_row(protocol.name, protocol.summary, protocol.source)
    Console().print(table)
