"""A log of Inspect (inspect_ai), version 2: a file ``.eval``, which ``inspect view`` and ``read_eval_log`` open.

The file is a ZIP archive with the metrics in ``header.json`` and each answer in a file of its own. A sample is an answer to a
step, or of an online run a repetition of a task; Inspect's epochs are the samples of a step and the repetitions of a task,
counted from 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from guieval.actions import Action, action_to_json
from guieval.data.screenshots import Screenshot, read_screenshot
from guieval.errors import ScreenshotError, whole_text
from guieval.exchange.exported import Exported, ExportedMetric, failure, slug, token_counts
from guieval.journal import journal_file
from guieval.journal.setup import UNKNOWN
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, OpenedStep, open_run
from guieval.reports.trajectories.reading import RecordedTrajectory, read_online
from guieval.settings.sampling import EXPORTED
from guieval.steps import Sample, Usage

VERSION = 2
_GENERATION = (*EXPORTED, "seed")
_STOPS = {"stop": "stop", "length": "max_tokens", "tool_calls": "tool_calls", "content_filter": "content_filter"}
_MOST_LISTED = 1024
"""Characters of a text that the list of samples repeats."""
_ATTACHED = "attachment://"

Responses: TypeAlias = Sequence[Usage | None]
"""What each response used; ``None`` if its server did not say."""
Shown = Callable[[str, tuple[int, int]], Screenshot]
"""The screenshot at a path, of a size in pixels; :class:`ScreenshotError` if it cannot be read."""


def write(run: Exported, folder: Path, *, images: bool = False) -> list[Path]:
    """Write the log into ``folder``, with ``images`` including the screenshots.

    Raises :class:`guieval.errors.UsageError` if the screenshots are demanded and the run's data cannot be opened.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slug(run.manifest.created)}_{run.name}_{run.uuid}.eval"
    shown = _shown(run) if images else None
    summaries: list[dict[str, Any]] = []
    usages: list[Usage | None] = []
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        _add(archive, "_journal/start.json", {"version": VERSION, "eval": _spec(run), "plan": {}})
        for values, responses in _samples(run, shown):
            _add(archive, f"samples/{values['id']}_epoch_{values['epoch']}.json", values)
            summaries.append(_summary(values))
            usages += responses
        _add(archive, "summaries.json", summaries)
        _add(archive, "header.json", _header(run, summaries, usages))
    return [path]


def _add(archive: ZipFile, name: str, values: object) -> None:
    """Add a file with a fixed date, so that a second export gives the same archive."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_DEFLATED
    archive.writestr(entry, json.dumps(values))


def _shown(run: Exported) -> Shown:
    root = run.source
    if isinstance(original := open_run(run.source), OpenedRun):
        root = original.screenshots
    return lambda path, size: read_screenshot(root, path, size)


def _header(run: Exported, summaries: Sequence[Mapping[str, Any]], usages: Sequence[Usage | None]) -> dict[str, Any]:
    answered = sum(not summary["error"] for summary in summaries)
    missing = max((metric.measured.missing for metric in run.metrics), default=0)
    return {
        "version": VERSION,
        "status": "cancelled" if missing else "success",
        "eval": _spec(run),
        "plan": {},
        "results": {
            "total_samples": len(summaries),
            "completed_samples": answered,
            "scores": [
                {
                    "name": run.protocol.name,
                    "scorer": run.protocol.name,
                    "scored_samples": answered,
                    "unscored_samples": len(summaries) - answered,
                    "metrics": {metric.name: _metric(metric) for metric in run.metrics},
                }
            ],
            "headline": {"scorer": run.protocol.name, "metric": run.headline.name},
        },
        "stats": {"started_at": run.manifest.created, "completed_at": _completed(run), "model_usage": _used(run, usages)},
    }


def _completed(run: Exported) -> str:
    """When the last answer was recorded, by the date of the journal; the viewer of Inspect computes a duration from it."""
    created = datetime.fromisoformat(run.manifest.created)
    written = journal_file(run.source).stat().st_mtime
    return max(created, datetime.fromtimestamp(int(written), UTC)).isoformat()


def _spec(run: Exported) -> dict[str, Any]:
    """The evaluated task; without a benchmark's code in Inspect, it cannot be evaluated there again."""
    manifest = run.manifest
    return {
        "eval_id": run.uuid,
        "run_id": run.uuid,
        "created": manifest.created,
        "task": f"{manifest.benchmark.name} {manifest.mode.label}",
        "task_id": run.uuid,
        "dataset": {"name": run.dataset or manifest.benchmark.name, "samples": len(run.run), "shuffled": False},
        "model": run.model,
        "model_generate_config": {name: run.manifest.sampling[name] for name in _GENERATION if name in run.manifest.sampling},
        "config": {},
        "packages": {"guieval": manifest.guieval or UNKNOWN, **_engine(run)},
        "metadata": {"adapter": manifest.model.adapter, "setup": run.setup, **run.details},
    }


def _engine(run: Exported) -> dict[str, str]:
    """The engine as a package with its version, if it is known."""
    engine = run.setup.get("engine", UNKNOWN)
    return {} if engine == UNKNOWN else {engine: run.setup["version"]}


def _metric(metric: ExportedMetric) -> dict[str, Any]:
    values: dict[str, Any] = {"n": metric.measured.n, "of": metric.measured.of, "steps_not_measured": metric.measured.missing}
    if metric.measured.interval is not None:
        between = {
            "low": metric.measured.interval.low,
            "high": metric.measured.interval.high,
            "level": metric.measured.interval.level,
        }
        values |= {**between, "method": metric.measured.interval.method}
    return {"name": metric.name, "value": metric.value, "params": values, "metadata": {"description": metric.description}}


def _samples(run: Exported, shown: Shown | None) -> Iterator[tuple[dict[str, Any], Responses]]:
    if isinstance(run.run, OpenedRun):
        for step in run.run.walk(run.protocol.name):
            if step.record is not None and step.verdict != "not_reached":
                for place, sample in enumerate(step.record.billed):
                    yield _step_sample(run, step, place, sample, _Content(shown)), sample.responses
    elif isinstance(run.run, OpenedOnlineRun):
        for trajectory in read_online(run.run.directory):
            if trajectory.steps or trajectory.failure is not None:
                yield _trajectory_sample(run, trajectory, _Content(shown)), trajectory.responses


class _Content:
    """Makes the contents of a sample's messages; ``attachments`` are the screenshots that they show."""

    def __init__(self, shown: Shown | None) -> None:
        self._shown = shown
        self.attachments: dict[str, str] = {}

    def screen(self, text: str, path: str, size: tuple[int, int]) -> list[dict[str, str]]:
        """A text and a screenshot; without screenshots, its path."""
        words = [{"type": "text", "text": text}] if text else []
        if self._shown is None:
            return [*words, {"type": "text", "text": f"[{path}]"}]
        try:
            screenshot = self._shown(path, size)
        except ScreenshotError:  # its message may name a folder of this machine
            return [*words, {"type": "text", "text": f"[{path} cannot be read]"}]
        name = screenshot.sha256[:32]
        self.attachments[name] = screenshot.data_url
        return [*words, {"type": "image", "image": _ATTACHED + name}]


def _step_sample(run: Exported, step: OpenedStep, place: int, sample: Sample, content: _Content) -> dict[str, Any]:
    task, outcome = step.task, step.outcomes[place]
    words = "\n".join(filter(None, (task.instruction, task.low_level_instruction)))
    asked = _message(f"{step.key} {step.index} 0", "user", content.screen(words, task.screenshot, task.screenshot_size))
    metadata = {
        "benchmark": task.benchmark,
        "subset": task.subset,
        "episode_id": task.episode_id,
        "step_index": task.step_index,
        "episode_length": task.episode_length,
        "verdict": outcome.verdict,
        "screenshot": task.screenshot,
        **{f"group_{name}": value for name, value in task.groups.items()},
    }
    values = {
        "id": whole_text(str(task.key)),
        "epoch": place + 1,
        "input": [asked],
        "target": [action_to_json(action) for action in (task.action, *task.alternatives)],
        "metadata": metadata,
        "attachments": content.attachments,
        "model_usage": _used(run, sample.responses),
        "total_time": sample.seconds,
    }
    if not sample.answered:
        return values | {"messages": [asked], "error": _failed(failure(sample))}
    reply = _reply(f"{step.key} {step.index} {place + 1}", run, sample.raw_response, sample.actions, sample.reasoning)
    score = {
        "answer": None if sample.action is None else action_to_json(sample.action),
        "explanation": outcome.reason,
        "metadata": {"verdict": outcome.verdict, "thought": sample.thought},
    }
    return values | {
        "messages": [asked, reply],
        "output": _output(run, reply, sample.finish_reason, sample.usage, sample.seconds),
        "scores": {
            "exact match": {"value": float(outcome.exact_match), **score},
            "type match": {"value": float(outcome.type_match), **score},
        },
    }


def _trajectory_sample(run: Exported, each: RecordedTrajectory, content: _Content) -> dict[str, Any]:
    screens = [(step.screenshot, step.size) for step in each.steps]
    if screens and each.outcome is not None and each.outcome.screenshot is not None:
        screens.append((each.outcome.screenshot, screens[-1][1]))
    name = f"{each.key} {each.repetition}"
    messages = [_message(f"{name} goal", "user", content.screen(each.goal, *screens[0]) if screens else each.goal)]
    for place, step in enumerate(each.steps):
        reply = _reply(f"{name} {place}", run, step.raw_response, step.actions, step.reasoning)
        done = "carried out" if step.executed else "not carried out"
        followed = content.screen(done, *screens[place + 1]) if place + 1 < len(screens) else done
        calls = reply.get("tool_calls", ())
        messages += [reply, *(_result(call, "" if call is not calls[-1] else followed) for call in calls)]
        if not calls:
            messages.append(_message(f"{name} {place} seen", "user", followed))
    outcome = each.outcome
    values = {
        "id": whole_text(str(each.key)),
        "epoch": each.repetition + 1,
        "input": messages[:1],
        "target": "the environment judges",
        "messages": messages,
        "metadata": {"task": each.key.episode_id, "ended": each.ended, "steps": len(each.steps)},
        "attachments": content.attachments,
        "model_usage": _used(run, each.responses),
        "total_time": sum(step.seconds or 0.0 for step in each.steps),
    }
    if outcome is None:
        return values | {"error": _failed(each.failure or each.ended)}
    score = {"answer": outcome.stopped, "explanation": outcome.score.reason}
    judged = {"side_effects": list(outcome.score.side_effects), "ended": outcome.ended}
    return values | {
        "scores": {
            "success": {"value": float(outcome.score.success), **score, "metadata": judged},
            "progress": {"value": outcome.score.progress, **score},
        }
    }


def _message(name: str, role: str, content: object) -> dict[str, Any]:
    """A message whose id is always the same for the same name."""
    return {"id": sha256(name.encode("utf-8", "replace")).hexdigest()[:22], "role": role, "content": content}


def _reply(name: str, run: Exported, raw: str | None, actions: Sequence[Action], reasoning: str | None) -> dict[str, Any]:
    content = [{"type": "reasoning", "reasoning": reasoning}] if reasoning else []
    reply = _message(name, "assistant", [*content, {"type": "text", "text": raw or ""}])
    calls = [
        {
            "id": f"{reply['id']}.{number}",
            "function": action.type,
            "arguments": action.model_dump(mode="json", exclude={"type"}),
            "type": "function",
        }
        for number, action in enumerate(actions)
    ]
    return {**reply, "source": "generate", "model": run.model, **({"tool_calls": calls} if calls else {})}


def _result(call: Mapping[str, Any], content: object) -> dict[str, Any]:
    seen = _message(f"{call['id']} seen", "tool", content)
    return {**seen, "tool_call_id": call["id"], "function": call["function"]}


def _output(
    run: Exported, reply: Mapping[str, Any], finish: str | None, usage: Usage | None, seconds: float | None
) -> dict[str, Any]:
    choice = {"message": reply, "stop_reason": _STOPS.get(finish or "", "unknown")}
    return {"model": run.model, "choices": [choice], "usage": token_counts([usage]), "time": seconds}


def _used(run: Exported, responses: Responses) -> dict[str, Any]:
    counts = token_counts(responses)
    return {} if counts is None else {run.model: counts}


def _failed(message: str) -> dict[str, str]:
    return {"message": message, "traceback": "", "traceback_ansi": ""}


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample in the list of samples: its texts cut short, and of its screenshots the word."""
    copied = ("id", "epoch", "metadata", "model_usage", "total_time")
    error = sample.get("error")
    (asked,) = sample["input"]
    content = asked["content"]
    if not isinstance(content, str):
        content = [_short(part["text"]) if part["type"] == "text" else "(Image)" for part in content]
    target = sample["target"]
    scores = {name: {**score, "explanation": _short(score["explanation"])} for name, score in sample.get("scores", {}).items()}
    return {
        **{name: sample[name] for name in copied},
        "input": content if isinstance(content, str) else "\n".join(content),
        "target": _short(target) if isinstance(target, str) else [_short(text) for text in target],
        "scores": scores,
        "error": error and _short(error["message"]),
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LISTED else f"{text[:_MOST_LISTED]}..."
