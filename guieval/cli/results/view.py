"""``guieval view``: runs in a browser, served on this machine to this machine alone."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument
from guieval.cli.tables import echo, say
from guieval.errors import UsageError

DEFAULT = Path("runs")


def view(
    runs: Annotated[list[Path] | None, path_argument("RUN", "Runs, rollouts or folders of them (default: runs/).")] = None,
    port: Annotated[int | None, typer.Option(help="Port on loopback (default: the first free one from 8770).")] = None,
    data: options.RunData = None,
    adapter: options.ReadingAdapter = None,
    metrics_from: options.MetricsFrom = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Look at runs in a browser: overview, steps, comparison, trajectories, and notes on them.

    Serves on this machine alone, until Ctrl-C; on another machine, the printed ssh line makes it reachable. Only notes are
    written, to notes.jsonl in the run's folder.
    """
    from guieval.reports.server.app import ViewerApp
    from guieval.reports.server.library import Library
    from guieval.reports.server.serving import address, has_screen, listen, serve, tunnel

    options.use_metrics(metrics_from)
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(f"--port is {port}; expected 0 to 65535")
    folders = runs or [DEFAULT]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {str(folder)!r}" + ("" if runs else "; name the folder of your runs"))
    library = Library(folders, data, adapter)
    if not len(library):
        raise UsageError(f"there is no run in {', '.join(repr(str(folder)) for folder in folders)}")
    app = ViewerApp(library)
    listener = listen(port)
    only = f"runs/{library.names[0]}/" if len(library) == 1 else ""

    def ready() -> None:
        if only:
            Thread(target=app.prepare, args=library.names, daemon=True).start()
        say(f"runs:     {len(library)}")
        echo(f"open:     {address(listener, app.token, only)}")
        echo(f"remote:   {tunnel(listener)}    (on your own machine; then open the same address there)")
        say("stop:     Ctrl-C")

    browse = address(listener, app.once(), only) if has_screen() and not no_browser else None
    serve(app, listener, browse=browse, ready=ready)
