"""``guieval train evaluate``: evaluates the checkpoints of a training in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import say
from guieval.metrics.rounding import percentage
from guieval.running.config import override as with_overrides


def evaluate_training(
    training: Annotated[Path, path_argument("DIR", "Folder of the training.")],
    engine: Annotated[str | None, typer.Option(help="Engine that answers: transformers (default) or vllm.")] = None,
    data: Annotated[Path | None, path_option("The benchmark's data folder, if it is not where the training had it.")] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the runs as key=value, e.g. concurrency=16.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for further checkpoints until the training has ended.")
    ] = False,
) -> None:
    """Evaluate the checkpoints of a training that are not evaluated yet, during the training or after it.

    The evaluation is the one of the training's settings, which `evaluation: {sidecar: true}` leaves to this command.
    """
    from guieval.training.sidecar import evaluate_checkpoints

    settings: dict[str, Any] = {} if engine is None else {"engine": engine}
    with_overrides(settings, override or ())
    found = 0
    for step, row in evaluate_checkpoints(
        training, settings, data=None if data is None else str(data), follow=follow, progress=None
    ):
        found += 1
        shown = [f"{name} {percentage(row[name])} %" for name in ("success", "exact_match", "pg", "tsr") if name in row]
        say(f"step {step}: {', '.join(shown)}")
    if not found:
        say("every checkpoint is evaluated")
