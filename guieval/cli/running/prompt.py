"""``guieval dev prompt``: what a model would be sent for one step, to be read before anything is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.settings import path_option
from guieval.cli.tables import echo
from guieval.errors import UsageError
from guieval.history import HistoryEntry, reference_history, select
from guieval.history.modes import Mode, get_mode
from guieval.journal import RunFolder
from guieval.models.faults import named_faults
from guieval.models.written_prompts import shown
from guieval.registry import build_model, model_config
from guieval.steps import Episode


def prompt(
    model: options.Model,
    bench: options.Bench,
    episode: Annotated[str, typer.Option(help="Id of the episode.")],
    step: Annotated[int, typer.Option(help="Number of the step within it, from 0.")],
    data: options.Data = None,
    mode: Annotated[str, typer.Option(help="offline, or with --run soeval or sop.")] = "offline",
    run: Annotated[Path | None, path_option("Run whose answers are the model's own past.")] = None,
    subset: Annotated[str | None, typer.Option(help="Subset, if an id is in several.")] = None,
    thinking: options.Thinking = None,
    thought: Annotated[str | None, typer.Option(help="Show the prompt that contains this thought.")] = None,
    adapter: options.Adapter = None,
    scaffold: options.Scaffold = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", help="Loader's option=value, or options.option=value of the model; may be repeated."),
    ] = None,
) -> None:
    """Print what a model would be sent for one step; a screenshot appears as name, size and size after resizing."""
    of_model, of_loader = options.of_model_and_loader(override or [], "options.")
    own = options.loader_options(of_model)
    config = model_config(model, adapter, scaffold)
    loaded = build_model(config.model_copy(update={"options": {**config.options, **own}}), thinking=thinking)
    how = get_mode(mode)
    if how.history != "reference" and run is None:
        raise UsageError(f"in mode {mode!r} the history has the model's own responses: add --run, a run in which it gave them")
    if how.history == "reference" and run is not None:
        raise UsageError(f"in mode {mode!r} the past is the reference's; --run is for the modes that show a model its own")
    found = options.open_benchmark(bench, data, of_loader).episode(episode, subset=subset)
    if not 0 <= step < len(found):
        raise UsageError(f"episode {episode!r} has the steps 0 to {len(found) - 1}, not {step}")
    task, past = found.steps[step], _past(found, step, how, run)
    with named_faults(loaded):
        prepared = loaded.prepare_input(task, past) if thought is None else loaded.prepare_fixed_thought(task, past, thought)
    echo(shown(prepared), nl=False)


def _past(episode: Episode, step: int, mode: Mode, run: Path | None) -> tuple[HistoryEntry, ...]:
    before = episode.steps[:step]
    if run is None:
        return reference_history(before)
    records = RunFolder(run).check().read(episode.key)
    answers = {index: record.sample for index, record in records.items() if record.finished}
    missing = [str(index) for index in range(step) if index not in answers]
    if missing:
        raise UsageError(f"the run {str(run)!r} has no response to step {', '.join(missing)} of episode {episode.key}")
    return tuple(select(mode.history, task, answers[task.step_index]) for task in before)
