"""``guieval dev serve-environment``: an environment for trainers that speak OpenEnv."""

from __future__ import annotations

from typing import Annotated

import typer

from guieval.cli.options import loader_options
from guieval.cli.tables import echo
from guieval.connectors.servers.openenv_server import serve
from guieval.errors import UsageError
from guieval.online.find import load_environment


def serve_environment(
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="Its name, e.g. demo or miniwob.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on. Anyone who can reach it can act in the environment.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one and prints it.")] = 8000,
    sessions: Annotated[int, typer.Option(help="Most clients at once; each has a device of its own.")] = 8,
    timeout: Annotated[float, typer.Option(help="Most seconds for a reset or a step.")] = 120.0,
    override: Annotated[list[str] | None, typer.Option("--set", help="Option of the environment, e.g. scale=4.")] = None,
) -> None:
    """Serve an environment to OpenEnv clients (TRL, verl, verifiers) until Ctrl-C.

    A client connects to /ws, sends reset, step and state, and gets screenshots and rewards.
    """
    if not 0 <= port <= 65535:
        raise UsageError(f"--port is {port}; expected 0 to 65535")
    if sessions < 1:
        raise UsageError(f"--sessions is {sessions}; expected at least 1")
    if not timeout > 0:
        raise UsageError(f"--timeout is {timeout:g}; expected more than 0")
    chosen = load_environment(environment, **loader_options(override or ()))
    serve(chosen, host=host, port=port, sessions=sessions, timeout=timeout, say=echo)
