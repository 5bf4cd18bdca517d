"""Runs in a browser: :func:`guieval.view`, which ``guieval view`` calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

from guieval.errors import UsageError
from guieval.given import AnyPath, Paths, every_path, one_path
from guieval.metrics.registry import use_metrics
from guieval.reports.server.app import ViewerApp
from guieval.reports.server.library import Library
from guieval.reports.server.serving import address, has_screen, listen, serve, tunnel


def view(
    runs: Paths = Path("runs"),
    *,
    port: int | None = None,
    data: AnyPath | None = None,
    adapter: AnyPath | None = None,
    metrics_from: Paths | None = None,
    no_browser: bool = False,
    announce: Callable[[str], None] = print,
) -> None:
    """Show runs, rollouts or folders of them in a browser, as ``guieval view`` does, until Ctrl-C.

    The other arguments are the options of the same names; ``announce`` is given the lines with the addresses. Raises
    :class:`guieval.errors.UsageError` if there is no run, or the port cannot be had.
    """
    use_metrics(every_path(metrics_from))
    if port is not None and not 0 <= port <= 65535:
        raise UsageError(f"--port is {port}; expected 0 to 65535")
    folders = every_path(runs)
    for folder in folders:
        if not folder.is_dir():
            raise UsageError(
                f"there is no folder {str(folder)!r}" + ("; name the folder of your runs" if runs == Path("runs") else "")
            )
    library = Library(folders, one_path(data), None if adapter is None else str(adapter))
    if not len(library):
        raise UsageError(f"there is no run in {', '.join(repr(str(folder)) for folder in folders)}")
    app = ViewerApp(library)
    listener = listen(port)
    only = f"runs/{library.names[0]}/" if len(library) == 1 else ""

    def ready() -> None:
        if only:
            Thread(target=app.prepare, args=library.names, daemon=True).start()
        announce(f"runs:     {len(library)}")
        announce(f"open:     {address(listener, app.token, only)}")
        announce(f"remote:   {tunnel(listener)}    (on your own machine; then open the same address there)")
        announce("stop:     Ctrl-C")

    browse = address(listener, app.once(), only) if has_screen() and not no_browser else None
    serve(app, listener, browse=browse, ready=ready)
