"""Evaluates the checkpoints of a training while it runs: by any engine, in a process of its own, on this machine or another.

The evaluation is the one that the training's settings name (``evaluation``), with ``sidecar: true`` left to this module. Each
checkpoint's run is in ``OUT/evaluations/step-N``, and its metrics are a line of ``OUT/evaluations.jsonl``, as of an evaluation
in the training.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.data.yaml_text import read_yaml
from guieval.errors import UsageError
from guieval.journal import write_atomically
from guieval.running.api import run
from guieval.settings import Online
from guieval.studies.training_curves import EVALUATIONS, SETTINGS, evaluations
from guieval.training.config import TrainingConfig, parse_config
from guieval.training.evaluation import metrics_of, run_config
from guieval.training.settings import Evaluation
from guieval.training.trainings import COMPLETE, FINAL, checkpoints

SECONDS = 30.0
"""Between two looks for new checkpoints."""


def evaluate_checkpoints(
    out: Path,
    settings: Mapping[str, Any] | None = None,
    *,
    data: str | None = None,
    follow: bool = False,
    progress: bool | None = False,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[tuple[int, dict[str, float]]]:
    """Evaluate every complete checkpoint below ``out`` that has no line yet, in order; yields the step and its metrics.

    ``settings`` are settings of a run over the evaluation's, e.g. ``{"engine": "vllm"}``; ``data`` is the benchmark's folder,
    if it is not where the training had it. ``follow`` waits for further checkpoints until the training has ended. A run that
    was stopped is continued. Raises :class:`UsageError` if ``out`` has no training, or one without ``evaluation`` settings.
    """
    config, evaluation = _read(out)
    while True:
        ended = (out / FINAL / COMPLETE).is_file()  # before the checkpoints are listed, so that the last one is among them
        done = {row["step"] for row in evaluations(out)}
        for step, folder in checkpoints(out).items():
            if step not in done and (row := _evaluated(config, evaluation, step, folder, settings or {}, data, progress)):
                _add(out, {"step": step, **row})
                yield step, row
        if ended or not follow:
            return
        sleep(SECONDS)


def _read(out: Path) -> tuple[TrainingConfig, Evaluation]:
    try:
        values = read_yaml(read_text(out / SETTINGS))
    except OSError:
        raise UsageError(f"{str(out)!r} has no training: expected {SETTINGS}, as `guieval train` writes") from None
    except ValueError as error:
        raise UsageError(f"{str(out / SETTINGS)!r} is damaged: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{str(out / SETTINGS)!r} is damaged: expected the settings of a training")
    config = parse_config({**values, "out": str(out)})
    if config.evaluation is None:
        raise UsageError(
            f"the training in {str(out)!r} has no evaluation settings: train with --set evaluation.sidecar=true, or evaluate "
            "one checkpoint by `guieval run --set model_path=FOLDER`"
        )
    return config, config.evaluation


def _evaluated(
    config: TrainingConfig,
    evaluation: Evaluation,
    step: int,
    folder: Path,
    settings: Mapping[str, Any],
    data: str | None,
    progress: bool | None,
) -> dict[str, float] | None:
    """The metrics of a checkpoint; ``None`` if the run was interrupted."""
    where = Path(config.out) / "evaluations" / f"step-{step}"
    given = {"model_path": str(folder.resolve()), **settings}
    if (where / "manifest.json").is_file():
        result = run(resume=where, progress=progress, **given)
    else:
        base = run_config(config, evaluation, Online.model_fields["environments"].default)
        folder_of_data = data or evaluation.data or (config.data if evaluation.bench in (None, config.bench) else None)
        result = run(base, out=where, progress=progress, data=folder_of_data, **given)
    if not result.complete:
        return None
    (done,) = result.runs
    return metrics_of(done.summary)


def _add(out: Path, row: Mapping[str, Any]) -> None:
    rows = sorted([*evaluations(out), row], key=lambda each: int(each["step"]))
    write_atomically(out / EVALUATIONS, "".join(json.dumps(each) + "\n" for each in rows))
