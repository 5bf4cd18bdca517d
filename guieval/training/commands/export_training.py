"""``guieval train export``: the data of a training for other frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import say
from guieval.errors import UsageError
from guieval.running.config import settings_file
from guieval.steps import StepTaskModel


def export_training(
    config: Annotated[Path, path_option("YAML file of a training, or the name of a shipped one.", "--config")],
    form: Annotated[str, typer.Option("--format", help="ms-swift, messages, llama-factory or sharegpt.")],
    out: Annotated[Path, path_option("Folder to write: train.jsonl, images/.")],
    override: Annotated[list[str] | None, typer.Option("--set", help="Setting of the training as key=value.")] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="The benchmark's data folder; of several sources BENCH=PATH, repeated."),
    ] = None,
) -> None:
    """Write a training's data for ms-swift, LLaMA-Factory and others: answers for SFT, steps to be judged for RL."""
    from guieval.training.building import Parts
    from guieval.training.config import SFTTraining, read_config
    from guieval.training.data.examples import Messages
    from guieval.training.data.export import check_folder, check_format, write_rows

    settings = read_config(settings_file(config, "training", "training"), override or (), data=data or ())
    if settings.kind in ("semi-online", "online"):
        raise UsageError(
            f"{settings.kind} training has no rows: its prompts depend on the policy's own rollouts; use sft or grpo"
        )
    chosen = check_format(form, answers=isinstance(settings, SFTTraining))
    check_folder(out)
    parts = Parts(settings)
    count, example_of = parts.examples()

    def rows() -> Iterator[tuple[StepTaskModel, Messages, str | None]]:
        for number in range(count):
            example = example_of(number)
            yield example.task, parts.prompts.messages(example.task, example.history), example.completion

    counts = write_rows(rows(), out, chosen, out.name)
    say(f"{out}: {counts.pop('written', 0):,} rows in the format {chosen}")
    for why, left_out in counts.most_common():
        say(f"  {left_out:,} left out: {why}")
