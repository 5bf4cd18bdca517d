"""``guieval dev mcp``: the tools of an assistant, served over standard input and output."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_option
from guieval.errors import UsageError, refuse


def mcp(
    runs: Annotated[Path | None, path_option("Folder of the runs (default: runs/); tools read and write in it alone.")] = None,
    allow_run: Annotated[bool, typer.Option("--allow-run", help="Offer the tools that start and stop runs.")] = False,
    data: Annotated[
        Path | None, path_option("With --allow-run: folder of the benchmarks' data, each in a subfolder of its name.")
    ] = None,
    base_url: Annotated[
        list[str] | None, typer.Option(help="With --allow-run: the OpenAI-compatible server that runs ask; may be repeated.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(help="With --allow-run: settings of every run, a file or name as of `guieval run --config`.")
    ] = None,
) -> None:
    """Serve tools to a coding assistant (Model Context Protocol, stdio): list, score, compare, show steps, start runs."""
    given = {"data": data, "base-url": base_url, "config": config}
    if not allow_run:
        refuse(given, "is for the runs that an assistant starts: add --allow-run")
    if data is not None and not data.is_dir():
        raise UsageError(f"--data {str(data)!r} is not a folder")
    if find_spec("mcp") is None:
        raise UsageError("`guieval dev mcp` needs the package 'mcp': pip install 'guieval[mcp]'")
    from guieval.assistants.server import server
    from guieval.assistants.starting import GivenToRuns

    starting = GivenToRuns(data, tuple(base_url or ()), config) if allow_run else None
    server(runs or Path("runs"), starting).run("stdio")
