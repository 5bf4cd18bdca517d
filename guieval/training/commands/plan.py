"""``guieval train plan``: what a training needs, as a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import JSON, print_json, say, show
from guieval.errors import UsageError
from guieval.reports.tables.table import Cell, Table, bare, columns
from guieval.running.config import settings_file
from guieval.training.commands.train import Overrides, Recipe, Sources

if TYPE_CHECKING:
    from guieval.training.planning import BatchSizes, Plan

GIB = 1 << 30


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
        _show(planned, reached)
    if problem := planned.problem():
        raise UsageError(problem)


def _show(plan: Plan, reached: float) -> None:
    from guieval.engines.in_process.attention import implementation

    gpu = "an unknown memory (give --gpu-memory)" if plan.launch.gpu is None else f"{plan.launch.gpu / GIB:,.1f} GiB"
    launch = plan.launch
    say(f"{plan.config.out}: {launch.processes} {_plural('process', launch.processes)} with {launch.sharding}, GPUs of {gpu}")
    parameters = f"{plan.size.parameters:,} parameters"
    trained = f"{plan.size.trained:,} of adapters are trained" if plan.size.adapters else f"{plan.size.trained:,} are trained"
    say(f"model: {parameters}, {trained}")
    say(f"attention: {implementation(plan.config.attention, half=True)}, of what is installed here")
    say(f"batch: {_batch(plan.batch, plan.config.kind)}")
    say(f"epoch: {_epoch(plan.batch, plan.config.kind)}")
    if plan.work is not None:
        taken = f"{plan.work.hours(reached):,.1f} hours, {plan.work.gpu_hours(reached):,.0f} GPU hours"
        say(f"time: about {taken} at {reached:g} TFLOP/s of each GPU (--reached), without decoding and evaluations")
    rows = plan.rows
    each = f"{rows.rows} {_plural('row', rows.rows)} of up to {rows.tokens:,} tokens"
    say(f"a pass: {each}, of which {rows.image:,} of images and {rows.completion:,} of the response")
    lines: list[tuple[Cell, ...]] = [
        (part.name, bare(part.bytes / GIB, ",.2f"), part.when, "counted" if part.exact else "estimated") for part in plan.parts
    ]
    lines += [(f"together, in {phase}", bare(amount / GIB, ",.2f"), "", "") for phase, amount in plan.peaks.items()]
    show(Table("memory of each process", columns("part", "GiB", "when", "how", keys=1), tuple(lines)))
    disk = plan.disk
    saved = f"{disk.kept} {_plural('checkpoint', disk.kept)} of {disk.checkpoint / GIB:,.1f} GiB"
    say(f"disk: {disk.total / GIB:,.1f} GiB: {saved} at the same time, and final weights of {disk.final / GIB:,.1f} GiB")


def _batch(batch: BatchSizes, kind: str) -> str:
    tasks = f"{batch.tasks:,} {_tasks(kind, batch.tasks)}"
    if kind == "sft":
        return f"{tasks} an optimiser step"
    what = "rollouts" if kind in ("semi-online", "online") else "replies"
    rollouts = f"{batch.tasks * batch.replies:,} {what}"
    steps = _plural("optimiser step", batch.updates)
    return f"{tasks} x {batch.replies} = {rollouts}, used for {batch.updates:g} {steps}"


def _epoch(batch: BatchSizes, kind: str) -> str:
    if batch.epoch is None or batch.steps is None:
        known = "" if batch.total is None else f"; {batch.total:,} optimiser steps in all"
        return f"unknown without the data (give --data){known}"
    tasks = f"{batch.epoch:,} {_tasks(kind, batch.epoch)}"
    return f"{tasks}, {batch.steps:,} {_plural('optimiser step', batch.steps)}; {batch.total:,} in all"


def _tasks(kind: str, count: int) -> str:
    return _plural({"semi-online": "episode", "online": "task"}.get(kind, "step"), count)


def _plural(word: str, count: float) -> str:
    return word if count == 1 else f"{word}es" if word.endswith("s") else f"{word}s"


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
