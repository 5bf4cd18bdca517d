"""Runs the viewer's server on loopback until it is stopped."""

from __future__ import annotations

import getpass
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable

from guieval.errors import UsageError
from guieval.reports.server.app import ViewerApp

HOST = "127.0.0.1"
PORT = 8770
_TRIED = 10


def listen(port: int | None) -> socket.socket:
    """A socket on loopback: at ``port``, else at the first free one from 8770; :class:`UsageError` if there is none."""
    for each in range(PORT, PORT + _TRIED) if port is None else [port]:
        try:
            listener = socket.create_server((HOST, each), backlog=128)
        except OSError as error:
            problem = error.strerror
            continue
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    which = f"port {port}" if port is not None else f"any port from {PORT} to {PORT + _TRIED - 1}"
    raise UsageError(f"the viewer cannot listen on {which} of {HOST}: {problem}; --port names another, 0 any free one")


def address(listener: socket.socket, token: str, page: str = "") -> str:
    """The address of a page (default: the list of runs), with a token."""
    return f"http://{HOST}:{listener.getsockname()[1]}/{page}?token={token}"


def tunnel(listener: socket.socket) -> str:
    """The command that makes the server reachable from another machine."""
    port = listener.getsockname()[1]
    connection = os.environ.get("SSH_CONNECTION", "").split()
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "USER"
    return f"ssh -N -L {port}:{HOST}:{port} {user}@{connection[2] if len(connection) == 4 else socket.gethostname()}"


def has_screen() -> bool:
    """Whether a browser can be opened here: a screen is attached, and nobody is logged in from elsewhere."""
    if os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def serve(app: ViewerApp, listener: socket.socket, *, browse: str | None = None, ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C. ``browse`` is an address to open in the browser; ``ready`` is called when requests are taken."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=1,
    )
    ready()
    if browse is not None:
        threading.Thread(target=webbrowser.open, args=(browse,), daemon=True).start()
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down and raises the caught signal again
    finally:
        listener.close()
