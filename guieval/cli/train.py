"""``guieval train``: supervised training, GRPO on reference history, and UI-S1's semi-online RL, each from one YAML file.

Several processes, DeepSpeed or FSDP: ``accelerate launch --config_file FILE -m guieval train ...``. Shipped files are named
alone (``--config ui-s1``). The exit code is 2 for a mistake, 130 when it was stopped; what was saved by then is resumed by
``--resume``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.paths import PATH, path

KIND = typer.Argument(metavar="sft|grpo|semi-online", help="How to train.")


def train(
    kind: Annotated[str, KIND],
    config: Annotated[
        Path, typer.Option("--config", parser=path, metavar=PATH, help="YAML file, or the name of a shipped one.")
    ],
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Setting as key=value (key may be nested: a.b=c).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The benchmark's data folder; the file's own else.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="Folder to write to; the file's own else.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in the folder.")] = False,
) -> None:
    """Train a model with TRL: by reference actions, by offline RL, or by semi-online RL."""
    from guieval.errors import UsageError, nearest
    from guieval.training.config import KINDS, read_config
    from guieval.training.guard import require_extra

    if kind not in KINDS:
        raise UsageError(f"unknown kind of training {kind!r}{nearest(kind, KINDS)}; known: {', '.join(KINDS)}")
    folders = {name: str(given) for name, given in (("data", data), ("out", out)) if given is not None}
    settings = read_config(_shipped(config), override or (), kind=kind, **folders)
    require_extra()
    from guieval.training.session import train as begin

    final = begin(settings, resume=resume)
    typer.echo(f"The weights are in {final}.")


def _shipped(config: Path) -> Path:
    """The file itself, or the shipped one of that name."""
    from guieval.errors import UsageError, nearest
    from guieval.registry import config_folder

    if config.exists() or config.suffix or len(config.parts) > 1:
        return config
    folder = config_folder() / "training"
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if config.name not in known:
        raise UsageError(
            f"there is no file {str(config)!r}, and no shipped training of that name{nearest(config.name, known)}; "
            f"shipped: {', '.join(known)}"
        )
    return folder / f"{config.name}.yaml"
