"""``python -m guieval.training.verl``: write the rows that verl reads, and start verl with a shipped configuration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Train on several nodes with verl.")


@app.command()
def rows(
    out: Annotated[Path, typer.Argument(help="Folder for rows.jsonl and episodes.jsonl, seen from all nodes.")],
    bench: Annotated[str, typer.Option(help="Benchmark name.")],
    data: Annotated[str | None, typer.Option(help="The benchmark's data folder, seen from all nodes.")] = None,
    split: Annotated[str | None, typer.Option(help="Split, or all.")] = None,
    subset: Annotated[list[str] | None, typer.Option(help="Subset; may be given several times.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="Option of the benchmark as key=value.")] = None,
    sample_set: Annotated[str | None, typer.Option(help="The steps of this set: its name, or a .json file.")] = None,
    episodes: Annotated[str | None, typer.Option(help="File that lists the episodes, or the steps.")] = None,
    limit: Annotated[int | None, typer.Option(help="Number of episodes in a seeded sample.")] = None,
    weight: Annotated[float, typer.Option(help="How often each row is written; 0.5 is every other one.")] = 1.0,
    curriculum: Annotated[
        list[str] | None, typer.Option(help="Setting of a curriculum as key=value, e.g. runs=RUN, pass_rate=[0.05,0.95].")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that sample.")] = 0,
    steps: Annotated[bool, typer.Option("--steps", help="One row a step (GRPO), not one an episode (semi-online).")] = False,
    validation: Annotated[
        bool, typer.Option("--validation", help="Rollouts without patches, as evaluation makes them.")
    ] = False,
    online: Annotated[bool, typer.Option("--online", help="The tasks of the environment of that name.")] = False,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Most steps of a rollout in an environment.")] = None,
) -> None:
    """Write a benchmark's episodes, their steps, or the tasks of an environment as rows for verl."""
    from pydantic import ValidationError

    from guieval.errors import UsageError
    from guieval.running.config import override
    from guieval.training.data.environment_tasks import open_tasks
    from guieval.training.data.examples import open_source
    from guieval.training.settings import Curriculum, Source, setting_error
    from guieval.training.verl.rows import ROWS, write_rows, write_tasks

    options: dict[str, object] = {}
    override(options, option or ())
    values: dict[str, object] = {"bench": bench, "bench_options": options, "data": data, "split": split}
    values |= {"subset": tuple(subset or ()), "sample_set": sample_set, "episodes": episodes, "limit": limit, "weight": weight}
    try:
        source = Source.model_validate(values)
    except ValidationError as error:
        raise setting_error(error, Source) from None
    if online:
        unused = {"--data": data, "--sample-set": sample_set, "--steps": steps, "--curriculum": curriculum}
        if given := [name for name, value in unused.items() if value]:
            raise UsageError(f"{given[0]} is for recorded episodes, and --online rows are tasks of an environment: remove it")
        tasks = open_tasks(source, out, seed, max_steps=max_steps)
        count = write_tasks(tasks, out, options=options, max_steps=max_steps, validation=validation, weight=weight, seed=seed)
        typer.echo(f"{count} rows in {out / ROWS}")
        return
    if max_steps is not None:
        raise UsageError("--max-steps is for --online: rollouts of recorded episodes have their steps")
    chosen: dict[str, object] = {}
    override(chosen, curriculum or ())
    try:
        weighed = Curriculum.model_validate(chosen) if chosen else None
    except ValidationError as error:
        raise setting_error(error, Curriculum, group="curriculum") from None
    count = write_rows(
        open_source(source, seed), out, steps=steps, validation=validation, weight=weight, curriculum=weighed, seed=seed
    )
    typer.echo(f"{count} rows in {out / ROWS}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def train(
    context: typer.Context,
    config: Annotated[str, typer.Argument(help="Name of a shipped configuration, e.g. ui-s1-1x8.")],
) -> None:
    """Start verl; what follows the name are verl's own overrides (data.train_files=... actor_rollout_ref.model.path=...)."""
    from guieval.errors import UsageError, nearest
    from guieval.training.guard import require_verl
    from guieval.training.verl.settings import GROUP

    folder = config_folder()
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if config not in known:
        raise UsageError(f"no shipped configuration {config!r}{nearest(config, known)}; known: {', '.join(known)}")
    require_verl()
    # Hydra refuses what a file does not list; our own group is checked by name, whatever the file lists.
    arguments = [f"++{each}" if each.startswith(f"{GROUP}.") else each for each in context.args]
    _check(folder, config, [each for each in arguments if not each.startswith("-")])
    from verl.trainer.main_ppo import main as begin

    sys.argv = ["verl", f"--config-path={folder}", f"--config-name={config}", *arguments]
    begin()


def _check(folder: Path, config: str, overrides: list[str]) -> None:
    """Report mistakes in our settings before Ray starts; verl reports those in its own."""
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    from guieval.training.verl.settings import read_settings
    from guieval.training.verl.trainer import TRAINERS, check_config

    try:
        with initialize_config_dir(str(folder), version_base=None):
            composed = compose(config, overrides=overrides)
    except (HydraException, OmegaConfBaseException):
        return
    settings = read_settings(composed)
    settings.reward.open_scorer(settings.open_adapter(), composed.actor_rollout_ref.rollout.response_length)
    if composed.trainer.v1.trainer_mode in TRAINERS:
        check_config(composed)


def config_folder() -> Path:
    """Where the shipped configurations are."""
    from guieval.data.shipped import config_folder

    return config_folder().resolve() / "training" / "verl"


def main() -> None:
    """Exit code 2 and one sentence for a mistake."""
    from guieval.errors import GuievalError

    try:
        app()
    except GuievalError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
