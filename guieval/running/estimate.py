"""What runs would take before they begin: requests, cost, time, and the smallest difference that they can show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from guieval.history.modes import ONLINE
from guieval.journal import METRICS, Records, is_run, read_manifest
from guieval.metrics.power import design_effect, smallest_paired
from guieval.running.engine_choice import asks_a_model
from guieval.running.execute import Job
from guieval.running.forecast import Forecast, forecast


@dataclass(frozen=True)
class Estimate:
    """The estimate of one run.

    ``left`` is how many of its ``steps`` have no record yet, ``seconds`` how long these take (``None``: not known).
    ``forecast`` is ``None`` where no model is asked. ``detectable`` is the smallest true difference in exact match to another
    run on the same steps that is found four times out of five.
    """

    name: str
    steps: int
    episodes: int
    left: int
    forecast: Forecast | None
    seconds: float | None
    detectable: float | None


def estimates(jobs: Sequence[Job], *, pace: float | None, disagreement: float, icc: float) -> list[Estimate]:
    """Estimate every run. ``pace`` is in steps a second (default: that of the finished runs of the same model)."""
    paces: dict[str, list[float]] = {}
    for run, directory in jobs:
        if (measured := _pace(directory)) is not None:
            paces.setdefault(run.config.model, []).append(measured)
    found = []
    for run, directory in jobs:
        lengths = list(map(len, run.plan.values()))
        steps = sum(lengths)
        left = _left(directory, steps)
        known = paces.get(run.config.model)
        speed = pace or (sum(known) / len(known) if known else None)
        found.append(
            Estimate(
                name=directory.name,
                steps=steps,
                episodes=len(lengths),
                left=left,
                forecast=forecast(run) if asks_a_model(run.config, run.model.config) else None,
                seconds=0.0 if not left else None if speed is None or run.mode.name == ONLINE else left / speed,
                detectable=smallest_paired(steps / design_effect(lengths, icc), disagreement),
            )
        )
    return found


def _left(directory: Path, steps: int) -> int:
    """Steps without a record; none in a finished run, which need not have reached all."""
    if not is_run(directory):
        return steps
    with suppress(FileNotFoundError, ValueError, KeyError, TypeError):
        if json.loads((directory / METRICS).read_text(encoding="utf-8"))["summary"]["complete"]:
            return 0
    return max(0, steps - len({record.task.key for record in Records(directory)}))


def _pace(directory: Path) -> float | None:
    """Steps a second of a finished run, from its beginning to its figures; an interruption makes it slower."""
    if not is_run(directory) or not (directory / METRICS).is_file():
        return None
    try:
        begun = datetime.fromisoformat(read_manifest(directory).created).timestamp()
    except ValueError:
        return None
    seconds = (directory / METRICS).stat().st_mtime - begun
    return sum(1 for _ in Records(directory)) / seconds if seconds > 0 else None
