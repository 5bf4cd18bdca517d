"""``guieval train sft --preflight``: a training tried in small before it begins, so that its plan has what was measured.

It is the training itself, in processes of its own, on the tasks with the longest prompts: a rollout, an update, an evaluation
and a checkpoint; then it is resumed for a second update. Its folder is next to the training's, and is removed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.errors import GuievalError, UsageError
from guieval.training.building import TrainerParts
from guieval.training.checkpoints import is_first
from guieval.training.config import TrainingConfig, parse_config
from guieval.training.failures import TrainingFailed, explained
from guieval.training.launch import read_launch
from guieval.training.meter import Meter
from guieval.training.planning import Plan, make_plan
from guieval.training.trainings import checkpoints

FIRST, RESUMED = "first", "resumed"
_LINES = 5
"""Lines of the output of a part that failed which its error shows."""


@dataclass(frozen=True)
class PreflightMetrics:
    """What a preflight measured: ``seconds`` and ``bytes`` by phase, the largest of all processes.

    ``checkpoint`` is its bytes on the disk, ``resume`` the seconds until a resumed training is ready, and ``prompt`` the tokens
    of the prompts that it trained on, in the mean, if they can be known before (all but online ones).
    """

    device: str
    seconds: dict[str, float]
    bytes: dict[str, float]
    checkpoint: float
    resume: float
    prompt: float | None

    def step(self, plan: Plan) -> float:
        """Seconds of an optimiser step at these prompts: its update, and its share of a rollout."""
        return self.seconds["training"] + self.seconds.get("generation", 0.0) / plan.batch.updates

    def share(self, plan: Plan) -> float:
        """The length of a prompt in the mean, as a part of that of the prompts that were trained on."""
        return 1.0 if plan.prompt is None or self.prompt is None else min(1.0, plan.prompt / self.prompt)

    def hours(self, plan: Plan) -> float | None:
        """Hours of the whole training by these seconds; ``None`` if the number of its steps is unknown."""
        total = plan.batch.total
        if total is None:
            return None
        evaluations, saved = self.times(plan)
        seconds = total * self.step(plan) * self.share(plan)
        return (seconds + evaluations * self.seconds.get("evaluation", 0.0) + saved * self.seconds["checkpoint"]) / 3600

    def times(self, plan: Plan) -> tuple[int, int]:
        """How many evaluations and checkpoints the whole training has."""
        total, evaluation = plan.batch.total or 0, plan.config.evaluation
        inside = evaluation is not None and not evaluation.sidecar
        evaluations = total // evaluation.every + evaluation.at_start if inside and evaluation is not None else 0
        return evaluations, -(-total // plan.disk.every) if plan.disk.every else 0


def preflight(config: TrainingConfig) -> tuple[Plan, PreflightMetrics] | None:
    """The plan of a training, and what its preflight measured; ``None`` in processes after the first one.

    Raises :class:`UsageError` if the training does not fit by its plan, or refuses its settings, and :class:`TrainingFailed` if
    it fails.
    """
    plan = make_plan(TrainerParts(config), read_launch())
    if problem := plan.problem():
        raise UsageError(problem)
    out = Path(config.out)
    folder = out.with_name(f"{out.name}.preflight")
    if is_first():
        _clear(folder)
    try:
        _part(FIRST, _small(config, folder, 1), plan)
        _part(RESUMED, _small(config, folder, 2), plan)
        return (plan, _read(folder, plan)) if is_first() else None
    finally:
        if is_first():
            shutil.rmtree(folder, ignore_errors=True)


def _clear(folder: Path) -> None:
    """Remove what a preflight that was killed has left; :class:`UsageError` for a folder with anything else."""
    if folder.exists() and not (folder / "training.yaml").is_file() and any(folder.iterdir()):
        raise UsageError(
            f"{str(folder)!r} is the folder of a preflight, and has other files: move it away, or give another --out"
        )
    shutil.rmtree(folder, ignore_errors=True)


def _small(config: TrainingConfig, folder: Path, steps: int) -> TrainingConfig:
    """The training until an optimiser step, of which the first one is evaluated and saved."""
    first = steps == 1
    trainer = {**config.trainer, "max_steps": steps, "save_strategy": "steps" if first else "no", "save_steps": 1}
    values = {**config.model_dump(mode="json"), "out": str(folder), "trainer": trainer, "report_to": []}
    if config.evaluation is not None and not config.evaluation.sidecar:
        values["evaluation"] = {**values["evaluation"], "every": 1, "at_start": False} if first else None
    return parse_config(values)


def _part(name: str, config: TrainingConfig, plan: Plan) -> None:
    """Run a part in a process of its own, whose memory is free before the next one begins."""
    given = json.dumps({"name": name, "config": config.model_dump(mode="json"), "tasks": plan.batch.tasks})
    environment = dict(os.environ)
    if name == RESUMED and (count := environment.get("TORCHELASTIC_RESTART_COUNT")) is not None:
        environment["TORCHELASTIC_RESTART_COUNT"] = str(int(count) + 1)  # else it would find the keys of the first part
    words = [sys.executable, "-m", __name__]
    done = subprocess.run(words, input=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    if not done.returncode:
        return
    lines = [line for line in done.stdout.splitlines() if line.strip()][-_LINES:]
    if lines and lines[-1].startswith("error: "):
        kind = UsageError if done.returncode == 2 else TrainingFailed
        raise kind(f"the preflight failed, {name} part: {lines[-1].removeprefix('error: ')}")
    raise TrainingFailed(f"the preflight ended with exit code {done.returncode}, {name} part:\n" + "\n".join(lines))


def _read(folder: Path, plan: Plan) -> PreflightMetrics:
    first, resumed = (
        [json.loads(read_text(folder / f"{name}-{rank}.json")) for rank in range(plan.launch.processes)]
        for name in (FIRST, RESUMED)
    )
    (saved,) = checkpoints(folder).values()
    size = sum(file.stat().st_size for file in saved.rglob("*") if file.is_file())
    seconds, held = (_largest([row[kind] for row in first]) for kind in ("seconds", "bytes"))
    if plan.config.evaluation is None or plan.config.evaluation.sidecar:
        del seconds["evaluation"]
    ready = _largest([row["seconds"] for row in resumed])["start"]
    return PreflightMetrics(first[0]["device"], seconds, held, float(size), ready, first[0]["prompt"])


def _largest(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: max(row.get(name, 0.0) for row in rows) for name in rows[0]}


def main(given: dict[str, Any]) -> None:
    """One part of a preflight, in this process."""
    from guieval.training.session import train

    meter, config = Meter(given["name"]), parse_config(given["config"])
    try:
        with explained(Path(config.out)):
            train(config, resume=given["name"] == RESUMED, meter=meter, longest=given["tasks"])
    except GuievalError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)


if __name__ == "__main__":
    main(json.load(sys.stdin))
