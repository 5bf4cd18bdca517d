"""Has WebArena-Verified's evaluator judge the folders that an agent's run left behind, one a task.

The package pins the versions of its dependencies, so it may be in an environment of its own: the evaluator runs in a process of
the Python that has it (:mod:`guieval.exchange.webarena_verified.worker`).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

from guieval.errors import UsageError
from guieval.exchange.predictions.predicted import PredictedTask
from guieval.steps import Ended, EpisodeKey, OnlineTask, Outcome, Repetition, Score, StepError

WORKER = Path(__file__).with_name("worker.py")
PACKAGE = "webarena-verified"
MOST_STEPS = 1
"""What the tasks are recorded with: the package does not count an agent's steps."""


@dataclass(frozen=True, kw_only=True)
class WebArenaJudge:
    """The evaluator of the interpreter ``python``, with the package's own settings in ``config``.

    ``tasks`` are those that count: "all" of the 812, or the 258 of the authors' "hard" subset.
    """

    python: str = ""
    config: str = ""
    tasks: Literal["all", "hard"] = "all"

    def rows(self, folder: Path) -> Iterator[dict[str, Any]]:
        """The judgement of every task that counts, also of those that ``folder`` does not have."""
        _check(folder)
        if self.config and not Path(self.config).is_file():
            raise UsageError(f"option config is {self.config!r}, which is not a file; expected {PACKAGE}'s settings in JSON")
        found = shutil.which(self.python) if self.python else sys.executable
        if found is None:
            raise UsageError(f"option python is {self.python!r}, which is not a program; expected a Python with {PACKAGE}")
        command = [found, "-P", str(WORKER), str(folder), self.config]
        with TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout is not None, "it is piped"
            for line in process.stdout:
                row: dict[str, Any] = json.loads(line)
                if self.tasks == "all" or row["hard"]:
                    yield row
            process.wait()
            errors.seek(0)
            told = errors.read().decode(errors="replace").strip()
        if process.returncode:
            raise UsageError(_failure(found, told))


def outcome_of(row: Mapping[str, Any]) -> PredictedTask | EpisodeKey:
    """The outcome of a task by its row, or only the key of one of which there is nothing."""
    task = OnlineTask(
        benchmark=PACKAGE,
        episode_id=str(row["task_id"]),
        instruction=row["intent"],
        max_steps=MOST_STEPS,
        groups={"sites": ", ".join(row["sites"]), "task type": row["task_type"]},
    )
    return task.episode_key if row["status"] == "missing" else PredictedTask(task, _repetition(row))


def _repetition(row: Mapping[str, Any]) -> Repetition:
    """An evaluator that failed has no outcome; a response that is no JSON object is unparseable, and so fails."""
    status, reason = row["status"], row["reason"]
    if status == "error":
        return Repetition(error=StepError(stage="environment", message=reason or "the evaluator failed"))
    success = status == "success"
    ended: Ended = "success" if success else "failed" if row["object"] else "unparseable"
    progress = min(1.0, max(float(success), float(row["score"] or 0.0)))
    score = Score(success=success, progress=progress, reason=reason or status)
    return Repetition(outcome=Outcome(ended=ended, score=score, steps=None))


def version_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """The package's version, with the checksums of its tasks and of its evaluator, as its rows name them."""
    row = next((row for row in rows if "webarena_verified" in row), None)
    return "" if row is None else f"{row['webarena_verified']}, tasks {row['data']}, evaluator {row['evaluator']}"


def _check(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} is not a folder; expected the one in which the agent left a folder a task")
    if not any(child.name.isdecimal() and any(child.iterdir()) for child in folder.iterdir() if child.is_dir()):
        raise UsageError(f"{str(folder)!r} has no task; expected <task id>/agent_response.json with <task id>/network.har")


def _failure(python: str, told: str) -> str:
    last = told.splitlines()[-1] if told else "it gives no reason"
    if "No module named 'webarena_verified'" in last:
        return (
            f"{python!r} does not have {PACKAGE}: pip install 'guieval[{PACKAGE}]', or install {PACKAGE} elsewhere and add "
            "--set python=PATH, the Python that has it"
        )
    return f"{PACKAGE} in {python!r} failed: {last:.300}"
