"""``guieval train``: supervised training, GRPO on reference history, UI-S1's semi-online RL and online RL, from YAML files.

Several processes, DeepSpeed or FSDP: ``accelerate launch --config_file FILE -m guieval train ...``. Shipped files are named
alone (``--config ui-s1``). The exit code is 2 for a mistake, 1 for a training that memory, disk, a server or another process
ended, 130 when it was stopped; ``--resume`` continues from the last complete checkpoint.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say
from guieval.errors import UsageError
from guieval.running.config import settings_file

if TYPE_CHECKING:
    from guieval.training.config import Kind, TrainingConfig

PICTURE = "training.svg"
SECONDS_TO_END = 20
"""Seconds in which a failed process prints its error and ends; the others wait so long for it."""

Recipe: TypeAlias = Annotated[Path, path_option("YAML file, or the name of a shipped one.", "--config")]
Overrides: TypeAlias = Annotated[
    list[str] | None, typer.Option("--set", help="Setting as key=value (key may be nested: a.b=c).")
]
Sources: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--data", metavar="PATH", help="The benchmark's data folder; of several sources BENCH=PATH, repeated."),
]
Out: TypeAlias = Annotated[Path | None, path_option("Folder to write to (default: the file's).")]
Preflight: TypeAlias = Annotated[
    bool,
    typer.Option("--preflight", help="Try a step, an evaluation, a checkpoint and a resume, and print the plan with them."),
]
Resume: TypeAlias = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")]


def _training(kind: Kind) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Makes the command of a kind of training from a function with its help; the options are the same of all kinds."""

    def command(described: Callable[[], None]) -> Callable[..., None]:
        def train(
            config: Recipe,
            override: Overrides = None,
            data: Sources = None,
            out: Out = None,
            resume: Resume = False,
            preflight: Preflight = False,
        ) -> None:
            _train(kind, config, override or (), data or (), out, resume=resume, preflight=preflight)

        train.__doc__ = described.__doc__
        return train

    return command


@_training("sft")
def sft() -> None:
    """Train on the reference's actions (supervised)."""


@_training("grpo")
def grpo() -> None:
    """Train by offline RL: GRPO on recorded steps with reference history."""


@_training("semi-online")
def semi_online() -> None:
    """Train by UI-S1's semi-online RL: rollouts over recorded episodes, patched where the policy leaves them."""


@_training("online")
def online() -> None:
    """Train by online RL: rollouts in an environment, judged at their end."""


def _train(
    kind: Kind, config: Path, override: Sequence[str], data: Sequence[str], out: Path | None, *, resume: bool, preflight: bool
) -> None:
    from guieval.training.config import read_config
    from guieval.training.guard import require_extra

    file = settings_file(config, "training", "training")
    settings = read_config(file, override, kind=kind, data=data, out=None if out is None else str(out))
    require_extra()
    if preflight:
        if resume:
            raise UsageError("--preflight is given together with --resume: it tries the beginning of a training, leave one out")
        _try(settings)
        return
    from guieval.training.failures import explained
    from guieval.training.session import train as begin

    with _ending_with_others(), explained(Path(settings.out)):
        final = begin(settings, resume=resume)
    if os.environ.get("RANK", "0") == "0":  # of several processes, the first one speaks and draws
        say(f"The weights are in {final}.")
        _draw(Path(settings.out))


def _try(settings: TrainingConfig) -> None:
    from guieval.training.commands.plan_tables import show_measured, show_plan
    from guieval.training.preflight import preflight

    if (found := preflight(settings)) is not None:
        plan, measured = found
        show_plan(plan)
        show_measured(plan, measured)


@contextmanager
def _ending_with_others() -> Iterator[None]:
    """Let a failed process of several end for certain, so that the launcher ends the others.

    A thread, a connection to a server or the process group may otherwise hold it up while it exits. The alarm is the operating
    system's: it needs no turn of the interpreter.
    """
    try:
        yield
    except BaseException:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS_TO_END)
        raise


def _draw(folder: Path) -> None:
    """Write the training's curves; without matplotlib, say how they are drawn later."""
    if find_spec("matplotlib") is None:
        say(
            f"note: no picture without matplotlib: pip install 'guieval[report]', then `guieval plot training {folder}`",
            err=True,
        )
        return
    from guieval.reports.plots.paper import write
    from guieval.studies.plots.training import training
    from guieval.studies.training_curves import training_curves

    try:
        write(training(training_curves([folder]), "two-column"), folder / PICTURE)
    except (UsageError, OSError) as error:  # the weights are saved: a picture that fails does not fail the training
        echo(f"note: no picture: {error}", err=True)
        return
    say(f"The curves are in {folder / PICTURE}.")
