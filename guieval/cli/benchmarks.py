"""``guieval benchmarks``: the benchmarks that can be loaded by name."""

from __future__ import annotations


def benchmarks() -> None:
    """List benchmarks, the protocol each is scored under by default, and where its data comes from."""
    from guieval import registry
    from guieval.cli.tables import print_table

    kinds = registry.benchmarks().items()
    rows = ((name, kind.protocol, "needed" if kind.needs_data else "optional", kind.source) for name, kind in kinds)
    print_table(("benchmark", "protocol", "--data", "source"), rows)
