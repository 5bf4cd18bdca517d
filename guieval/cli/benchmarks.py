"""``guieval benchmarks``: the benchmarks that can be loaded by name."""

from __future__ import annotations


def benchmarks() -> None:
    """List benchmarks, the protocol each is scored under by default, and where its data comes from."""
    from rich.console import Console
    from rich.table import Table

    from guieval import registry

    table = Table("benchmark", "protocol", "--data", "source", box=None, pad_edge=False)
    for name, kind in registry.benchmarks().items():
        table.add_row(name, kind.protocol, "needed" if kind.needs_data else "optional", kind.source)
    Console().print(table)
