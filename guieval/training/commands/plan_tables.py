"""What ``guieval train plan`` and ``--preflight`` print of a training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from guieval.cli.tables import say, show
from guieval.reports.tables.table import Cell, Table, bare, columns

if TYPE_CHECKING:
    from guieval.training.planning import BatchSizes, Plan
    from guieval.training.preflight import PreflightMetrics

GIB = 1 << 30
REACHED = 350.0
"""TFLOP/s of each GPU that hours are computed with (:data:`guieval.training.work.REACHED`)."""


def show_plan(plan: Plan, reached: float = REACHED) -> None:
    """The plan: batches, steps, hours, memory by part and phase, and disk."""
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
    what = "rollouts" if kind in ("semi-online", "online") else "responses"
    rollouts = f"{batch.tasks * batch.responses:,} {what}"
    steps = _plural("optimiser step", batch.updates)
    return f"{tasks} x {batch.responses} = {rollouts}, used for {batch.updates:g} {steps}"


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


def show_measured(plan: Plan, measured: PreflightMetrics, reached: float = REACHED) -> None:
    """What a preflight measured, next to what the plan says of the same."""
    from guieval.training.trainings import hours

    work, share = plan.work, measured.share(plan)
    predicted = None if work is None else work.hours(reached) * 3600 / work.steps / share
    names = {"generation": "a rollout", "training": "an update", "evaluation": "an evaluation", "checkpoint": "a checkpoint"}
    lines: list[tuple[Cell, ...]] = [
        (
            names[phase],
            bare(plan.peaks.get(phase, 0.0) / GIB, ",.2f") if phase in plan.peaks else "",
            bare(measured.bytes[phase] / GIB, ",.2f"),
            "",
            bare(measured.seconds[phase], ",.1f"),
        )
        for phase in names
        if phase in measured.seconds
    ]
    rate = "" if predicted is None else bare(predicted, ",.1f")
    lines.append(("an optimiser step", "", "", rate, bare(measured.step(plan), ",.1f")))
    lines.append(("until it starts", "", "", "", bare(measured.seconds["start"], ",.1f")))
    lines.append(("until it is resumed", "", "", "", bare(measured.resume, ",.1f")))
    heads = columns("phase", "planned GiB", "measured GiB", "planned s", "measured s", keys=1)
    say()
    show(Table(f"measured on {plan.launch.processes} x {measured.device}, on the longest prompts", heads, tuple(lines)))
    if measured.device == "CPU":
        say("note: the planned memory is that of a GPU, and the measured one that of a process on a CPU, so they differ")
    disk, saved = plan.disk.checkpoint / GIB, measured.checkpoint / GIB
    say(f"disk of a checkpoint: {saved:,.3g} GiB measured, {disk:,.3g} planned")
    if (whole := measured.hours(plan)) is None:
        say("time: unknown, because the number of optimiser steps is")
        return
    evaluations, checkpoints = measured.times(plan)
    total, seconds = plan.batch.total or 0, measured.step(plan) * share
    parts = [f"{total:,} {_plural('optimiser step', total)} of {seconds:,.1f} s"]
    parts += [f"{evaluations:,} {_plural('evaluation', evaluations)}"] if evaluations else []
    parts += [f"{checkpoints:,} {_plural('checkpoint', checkpoints)}"] if checkpoints else []
    scaled = f" (prompts have {share:.0%} of the length tried, in the mean)" if share < 1 else ""
    taken = f"{hours(whole)} hours, {hours(whole * plan.launch.processes)} GPU hours"
    say(f"time by what was measured: {taken}, for {', '.join(parts)}{scaled}")
