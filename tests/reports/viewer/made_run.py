"""Run directories whose every step a test writes, through the journal itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from guieval.actions import Action, ActionSpace, Click, Point
from guieval.evaluation import ActionEvaluator, get_protocol, infrastructure_failure
from guieval.journal import Journal
from guieval.metrics import RunSummary
from guieval.metrics.kinds import of_steps
from guieval.reports.viewer.folder import Written
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import protocols_to_show, shown_run
from guieval.reports.viewer.writing import write_report
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import EpisodeKey, Sample, StepError, StepRecord, StepTaskModel
from tests.made_runs import step as made_step

PROTOCOL = "guievalkit"


def at(x: float, y: float) -> Click:
    return Click(point=Point(x, y))


def task(episode: str = "e1", step: int = 0, length: int = 3, **more: Any) -> StepTaskModel:
    values: dict[str, Any] = {"benchmark": "demo", "dataset": "demo", "action": at(500, 500), "screenshot_size": (300, 600)}
    values |= {"instruction": f"Goal of {episode}", "screenshot": f"{episode}/{step}.png", **more}
    return made_step(values.pop("action"), episode=episode, index=step, length=length, **values)


def record(of: StepTaskModel, *actions: Action | None, raw: str = "a reply", **more: Any) -> StepRecord:
    """A step with one sample an action; ``None`` is a reply without one."""
    evaluator = ActionEvaluator(PROTOCOL)
    samples = tuple(
        Sample(raw_response=raw, action=action, outcome=evaluator.evaluate(of, action), **more) for action in actions
    )
    return StepRecord(task=of, history=("reference",) * of.step_index, samples=samples)


def failed(of: StepTaskModel, message: str = "the server is gone") -> StepRecord:
    error = StepError(stage="generate", message=message)
    return StepRecord(task=of, samples=(Sample(error=error, outcome=infrastructure_failure(message)),))


def write_run(
    directory: Path,
    records: Sequence[StepRecord],
    *,
    stop: str = "never",
    plan: dict[EpisodeKey, Sequence[int]] | None = None,
    data: Path | None = None,
    model: str = "ocr-baseline",
) -> Path:
    space = ActionSpace().to_json()
    config: dict[str, Any] = {"bench": "demo", "data": None if data is None else str(data), "bench_options": {}}
    protocol = {"name": PROTOCOL, "fingerprint": get_protocol(PROTOCOL).fingerprint}
    manifest = {"schema": 1, "created": "2030-01-01T00:00:00+00:00", "config": config, "protocol": protocol}
    manifest |= {"model": {"name": model, "adapter": "ocr_baseline"}, "benchmark": {"name": "demo"}}
    manifest |= {"mode": {"name": "offline", "history": "reference", "stop": stop}}
    manifest |= {"action_spaces": {"model": space, "benchmark": space}, "selection": {"text": "the steps of a test"}}
    if plan is None:
        plan = {each.task.episode_key: range(each.task.episode_length) for each in records}
    with Journal(directory) as journal:
        journal.start(manifest, plan)
        for each in records:
            journal.append(each)
    return directory


def end(directory: Path) -> RunSummary:
    """Store the summary, as a run does at its end."""
    summary = of_steps(evaluate_run(directory).summary)
    store_summary(directory, summary)
    return summary


def report(
    folder: Path,
    records: Sequence[StepRecord],
    *,
    protocols: Sequence[str] = (),
    against: Sequence[StepRecord] | None = None,
    screenshots: Path | None = None,
    small: bool = False,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    **more: Any,
) -> Written:
    """A report of a run with these records in ``folder``/report."""
    run = shown_run(write_run(folder / "run", records, **more))
    other = None if against is None else shown_run(write_run(folder / "other", against))
    out = folder / "report"
    pictures = Pictures(screenshots, out, small=small)
    chosen = protocols_to_show(run, protocols)
    return write_report(out, run, pictures, chosen, against=other, on_progress=on_progress)
