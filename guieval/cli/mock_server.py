"""``guieval mock-server``: a scripted OpenAI-compatible server, for tests, load and machines without a GPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.cli.paths import PATH, path

_OPTIONS = {"concurrency": "slots", "benchmark": "bench", "malformed_kinds": "malformed_kind", "served_models": "served_model"}
"""Settings whose option has another name."""


def mock_server(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one and prints it.")] = 8000,
    model: Annotated[str | None, typer.Option(help="Checkpoint whose native format it answers in, and serves.")] = None,
    adapter: Annotated[str | None, typer.Option(help="Model family, where --model is no shipped checkpoint.")] = None,
    served_model: Annotated[
        list[str] | None, typer.Option(help="Name it serves, may be repeated (default: --model, else mock).")
    ] = None,
    check_model: Annotated[bool, typer.Option("--check-model", help="Refuse requests for any other model: 404.")] = False,
    api_key_env: Annotated[
        str | None, typer.Option(help="Environment variable with the key that everybody must send, else 401.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="PEM file of a certificate and its key: speak https.")
    ] = None,
    longest_body: Annotated[int | None, typer.Option(help="Bytes above which a request is too long: 400.")] = None,
    policy: Annotated[str, typer.Option(help="centre, random, reference, script, fixed or distribution.")] = "centre",
    bench: Annotated[str | None, typer.Option(help="Policy reference: the benchmark that is run.")] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Policy reference: that benchmark's data folder.")
    ] = None,
    accuracy: Annotated[float, typer.Option(help="Policy reference: how often it is right.")] = 1.0,
    history_gain: Annotated[
        float, typer.Option(help="Policy reference: added to that, by the share of the past that it is shown as its own.")
    ] = 0.0,
    script: Annotated[
        Path | None,
        typer.Option(
            parser=path, metavar=PATH, help='JSONL; policy script: {"key": ..., "reply": ...}, distribution: {"key", "draws"}.'
        ),
    ] = None,
    reply: Annotated[str, typer.Option(help="Policy fixed: the reply.")] = "",
    latency: Annotated[float, typer.Option(help="Mean seconds a request is served.")] = 0.0,
    sigma: Annotated[float, typer.Option(help="Spread of the lognormal latency.")] = 0.6,
    slots: Annotated[int | None, typer.Option(help="Requests served at once; the others wait.")] = None,
    error_rate: Annotated[float, typer.Option(help="Share of requests that fail.")] = 0.0,
    error_status: Annotated[int, typer.Option(help="Their HTTP status.")] = 500,
    sticky_errors: Annotated[bool, typer.Option(help="The same request fails again when retried.")] = False,
    retry_after: Annotated[str | None, typer.Option(help="Retry-After header of status 429 and 503.")] = None,
    malformed_rate: Annotated[float, typer.Option(help="Share of replies with a damaged body.")] = 0.0,
    malformed_kind: Annotated[
        list[str] | None, typer.Option(help="How it is damaged, may be repeated (default: as servers and proxies do).")
    ] = None,
    first_fault: Annotated[
        list[str] | None,
        typer.Option(help="What becomes of each request's 1st, 2nd, ... try: a status, a malformed kind or hang."),
    ] = None,
    faults_after: Annotated[int, typer.Option(help="Requests that are answered before the first fault.")] = 0,
    hang_rate: Annotated[float, typer.Option(help="Share of requests that are never answered.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of everything that is random.")] = 1,
    log: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="JSONL file that gets one line a request.")
    ] = None,
) -> None:
    """Serve scripted answers on an OpenAI-compatible endpoint until Ctrl-C; GET /stats tells what it saw."""
    from pydantic import ValidationError

    from guieval.errors import UsageError, first_problem
    from guieval.mock_server import MockSettings, serve

    values: dict[str, Any] = {
        "host": host,
        "port": port,
        "seed": seed,
        "latency": latency,
        "sigma": sigma,
        "concurrency": slots,
        "policy": policy,
        "model": model,
        "adapter": adapter,
        "benchmark": bench,
        "data": data,
        "accuracy": accuracy,
        "history_gain": history_gain,
        "script": script,
        "reply": reply,
        "error_rate": error_rate,
        "error_status": error_status,
        "sticky_errors": sticky_errors,
        "retry_after": retry_after,
        "malformed_rate": malformed_rate,
        "hang_rate": hang_rate,
        "check_model": check_model,
        "certificate": certificate,
        "longest_body": longest_body,
        "first_faults": tuple(first_fault or ()),
        "faults_after": faults_after,
        "log": log,
    }
    if served_model or model is not None:
        values["served_models"] = tuple(served_model or (model,))
    if malformed_kind:
        values["malformed_kinds"] = tuple(malformed_kind)
    if api_key_env is not None:  # the key itself would be seen by everybody on the machine
        if not os.environ.get(api_key_env):
            raise UsageError(f"--api-key-env is {api_key_env!r}: there is no such environment variable, or it is empty")
        values["api_key"] = os.environ[api_key_env]
    try:
        settings = MockSettings.model_validate(values)
    except ValidationError as error:
        problem = first_problem(error)
        name = problem.path[0] if problem.path else "setting"
        option = "--" + _OPTIONS.get(name, name).replace("_", "-")
        raise UsageError(f"{option} is {problem.value!r}: {problem.said}") from None
    serve(settings)
