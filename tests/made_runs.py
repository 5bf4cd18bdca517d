"""Run directories with nothing in them but what a test says, written as a run writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, ActionSpace
from guieval.data.benchmark import EpisodeRef
from guieval.history.modes import get_mode
from guieval.journal import SCHEMA, Journal
from guieval.steps import EpisodeKey, Plan, Sample, StepOutcome, StepRecord, StepTaskModel

FAILED = StepOutcome(verdict="infrastructure_failure", reason="no answer")
ANSWERED = StepOutcome(verdict="wrong")
"""What stands in a journal is judged again, so a test only needs an answer."""


def step(
    action: Action, *, episode: str = "a", index: int = 0, length: int = 1, dataset: str = "made-up", **more: Any
) -> StepTaskModel:
    values: dict[str, Any] = {
        "benchmark": "made-up",
        "dataset": dataset,
        "episode_id": episode,
        "step_index": index,
        "episode_length": length,
        "instruction": "do it",
        "screenshot": "s.png",
        "screenshot_size": (1080, 2400),
        "action": action,
    }
    return StepTaskModel(**{**values, **more})


def sample(action: Action | None, *, failed: bool = False) -> Sample:
    return Sample(outcome=FAILED) if failed else Sample(raw_response="", action=action, outcome=ANSWERED)


def record(task: StepTaskModel, *actions: Action | None) -> StepRecord:
    """An answer of one sample, or of several; no action at all is a request that failed."""
    return StepRecord(task=task, samples=tuple(map(sample, actions)) or (sample(None, failed=True),))


def whole_plan(records: Iterable[StepRecord]) -> Plan:
    """Every step of every episode that occurs."""
    return {record.task.episode_key: range(record.task.episode_length) for record in records}


def write_run(
    directory: Path,
    records: Sequence[StepRecord],
    *,
    plan: Plan | None = None,
    mode: str = "offline",
    protocol: str = "seeclick-official",
    model_space: ActionSpace | None = None,
    benchmark: str = "made-up",
) -> Path:
    played = get_mode(mode)
    manifest = {
        "schema": SCHEMA,
        "config": {"model": "made-up-model", "thinking": None},
        "model": {"name": "made-up-model"},
        "benchmark": {"name": benchmark},
        "protocol": {"name": protocol},
        "mode": {"name": played.name, "history": played.history, "stop": played.stop},
        "action_spaces": {"model": (model_space or ActionSpace()).to_json(), "benchmark": ActionSpace().to_json()},
    }
    counted = whole_plan(records) if plan is None else plan
    lengths = {record.task.episode_key: record.task.episode_length for record in records}
    refs = [EpisodeRef(key, lengths.get(key, steps[-1] + 1)) for key, steps in counted.items()]
    with Journal(directory) as journal:
        journal.start(manifest, counted, refs)
        for one in records:
            journal.append(one)
    return directory


def key(episode: str) -> EpisodeKey:
    return EpisodeKey("made-up", "", episode)
