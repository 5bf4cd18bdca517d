"""``guieval train plan``: what a training needs, as a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import JSON, print_json
from guieval.errors import UsageError
from guieval.running.config import settings_file
from guieval.training.commands.plan_tables import GIB, show_plan
from guieval.training.commands.train import Overrides, Recipe, Sources

if TYPE_CHECKING:
    from guieval.training.planning import Plan


def plan(
    config: Recipe,
    override: Overrides = None,
    data: Sources = None,
    accelerate: Annotated[Path | None, path_option("accelerate's configuration, or a shipped one.")] = None,
    processes: Annotated[int | None, typer.Option(min=1, help="Number of processes (GPUs).")] = None,
    gpu_memory: Annotated[float | None, typer.Option(min=1, help="GiB of each GPU.")] = None,
    reached: Annotated[float, typer.Option(min=1, help="TFLOP/s that each GPU reaches, for the hours.")] = 350.0,
    json: JSON = False,
) -> None:
    """Print a training's batches, steps, hours, memory in each process and disk, and train nothing.

    The exit code is 2 if the training does not fit into the GPUs.
    """
    from guieval.training.building import TrainerParts
    from guieval.training.config import read_config
    from guieval.training.guard import require_extra
    from guieval.training.launch import read_launch
    from guieval.training.planning import make_plan

    settings = read_config(settings_file(config, "training", "training"), override or (), data=data or ())
    require_extra()
    file = None if accelerate is None else settings_file(accelerate, "training/accelerate", "accelerate configuration")
    launch = read_launch(file, processes, None if gpu_memory is None else gpu_memory * GIB)
    planned = make_plan(TrainerParts(settings), launch)
    if json:
        print_json(_plain(planned, reached))
    else:
        show_plan(planned, reached)
    if problem := planned.problem():
        raise UsageError(problem)


def _plain(plan: Plan, reached: float) -> dict[str, object]:
    return {
        "launch": asdict(plan.launch),
        "model": {"parameters": plan.size.parameters, "trained": plan.size.trained},
        "batch": asdict(plan.batch),
        "rows": asdict(plan.rows),
        "parts": [asdict(part) for part in plan.parts],
        **{f"{phase}_bytes": amount for phase, amount in plan.peaks.items()},
        "work": None if plan.work is None else {**asdict(plan.work), "gpu_hours": plan.work.gpu_hours(reached)},
        "disk": {**asdict(plan.disk), "total": plan.disk.total},
        "fits": None if plan.launch.gpu is None else plan.problem() is None,
    }
