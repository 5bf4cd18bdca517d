"""``guieval dev mock-server``: a scripted OpenAI-compatible server, for tests, load and machines without a GPU."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from pydantic import ValidationError

from guieval.cli.settings import Given, Settings
from guieval.errors import UsageError
from guieval.playground.mock_server import MockSettings, serve

SERVER = Settings.of(MockSettings, {"concurrency": "slots", "benchmark": "bench"})
FOR_TESTS = ("api_key", "retry_after_date", "echo_key", "hang_at", "keep", "engine_version", "fingerprint")
"""Settings without an option."""
PORT = 8000


@SERVER.options(without=FOR_TESTS, port=f"Port; 0 takes a free one and prints it (default: {PORT}).")
def mock_server(
    settings: Given,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the key that requests must carry; others get 401.")
    ] = None,
) -> None:
    """Serve scripted answers on an OpenAI-compatible endpoint until Ctrl-C; GET /stats reports what it received."""
    if api_key_env is not None:  # the key itself would be seen by everybody on the machine
        if not os.environ.get(api_key_env):
            raise UsageError(f"--api-key-env is {api_key_env!r}: there is no such environment variable, or it is empty")
        settings["api_key"] = os.environ[api_key_env]
    try:
        chosen = MockSettings.model_validate({"port": PORT, **settings})
    except ValidationError as error:
        raise SERVER.refusal(error) from None
    serve(chosen)
