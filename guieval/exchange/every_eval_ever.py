"""Every Eval Ever 0.3.0: a JSON file of the metrics, and a JSON line for every answered step or repetition of a task.

The layout is that of the project's data store: ``data/BENCHMARK/DEVELOPER/MODEL/UUID.json``, with the responses next to it in
``UUID_samples.jsonl``. Screenshots are only named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from guieval.actions import Action, action_to_json
from guieval.exchange.exported import Exported, ExportedMetric, failure, slug, token_counts
from guieval.exchange.predictions.every_eval_ever import READ_BY
from guieval.journal.setup import AGENT, UNKNOWN
from guieval.metrics.intervals import Interval
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, OpenedStep
from guieval.reports.trajectories.reading import RecordedTrajectory, read_online
from guieval.settings.sampling import EXPORTED, NATIVE
from guieval.steps import Sample

VERSION = "0.3.0"
_SELF = ("vllm", "vllm-inprocess", "transformers", "local")


def write(run: Exported, folder: Path, *, organization: str = "not stated", relationship: str = "other") -> list[Path]:
    """Write both files below ``folder``.

    ``organization`` publishes the result, and ``relationship`` is its relation to the model's developer (first_party,
    third_party, collaborative or other).
    """
    developer, _, model = run.model.rpartition("/")
    place = Path("data", slug(run.manifest.benchmark.name), slug(developer or "unknown"), slug(model))
    (folder / place).mkdir(parents=True, exist_ok=True)
    name = place / f"{run.uuid}_samples.jsonl"
    digest, count = sha256(), 0
    with (folder / name).open("wb") as stream:
        for row in _rows(run):
            line = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
            stream.write(line)
            digest.update(line)
            count += 1
    values = _aggregate(run, organization, relationship)
    values["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": name.as_posix(),
        "hash_algorithm": "sha256",
        "checksum": digest.hexdigest(),
        "total_rows": count,
    }
    path = folder / place / f"{run.uuid}.json"
    path.write_text(json.dumps(values, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    return [path, folder / name]


def evaluation_id(run: Exported) -> str:
    """Benchmark, model and time of the run, as the schema asks for."""
    return f"{run.manifest.benchmark.name}/{run.model}/{_seconds(run.manifest.created)}"


def _seconds(created: str) -> str:
    """The run's beginning in Unix time, so that a second export gives the same file."""
    try:
        return str(int(datetime.fromisoformat(created).timestamp()))
    except ValueError:
        return str(int(datetime.now(UTC).timestamp()))


def _aggregate(run: Exported, organization: str, relationship: str) -> dict[str, Any]:
    return {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id(run),
        "evaluation_timestamp": run.manifest.created,
        "retrieved_timestamp": _seconds(run.manifest.created),
        "source_metadata": {
            "source_name": "guieval",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {"name": "guieval", "version": run.manifest.guieval or version("guieval")},
        "model_info": _model(run),
        "evaluation_results": [_result(run, metric) for metric in run.metrics],
    }


def _model(run: Exported) -> dict[str, Any]:
    model = run.manifest.model.to_json()
    engine = run.manifest.config.server.engine or "auto"
    if engine == "auto":
        engine = model.get("engine") or "openai"
    deployed = "self_deployed" if engine in _SELF else "externally_managed" if engine in NATIVE else "unknown"
    weights = "open_weights" if model.get("hf_id") else "closed_weights" if model.get("licence") == "proprietary" else "unknown"
    details = {"deployment_type": deployed, "model_availability": weights, "adapter": model.get("adapter")}
    values: dict[str, Any] = {"name": run.manifest.model_name, "id": run.model}
    if "/" in run.model:
        values["developer"] = run.model.split("/")[0]
    known = run.setup.get("engine", UNKNOWN)
    name = known if known != UNKNOWN else engine.partition("-")[0]
    if engine in NATIVE:
        values["inference_platform"] = name
    elif name not in ("openai", "local", "replay", AGENT):
        values["inference_engine"] = {"name": name, "version": run.setup.get("version", UNKNOWN)}
    texts = {name: str(value) for name, value in details.items() if value is not None}
    return {**values, "additional_details": {**texts, **{f"setup_{name}": value for name, value in run.setup.items()}}}


def _source(run: Exported) -> dict[str, Any]:
    name = run.manifest.benchmark.name
    details = {"planned_steps": str(len(run.run)), **run.details}
    if run.dataset is None:
        return {"dataset_name": name, "source_type": "other", "additional_details": details}
    return {
        "dataset_name": name,
        "source_type": "hf_dataset",
        "hf_repo": run.dataset,
        "samples_number": len(run.run),
        "additional_details": details,
    }


def _result(run: Exported, metric: ExportedMetric) -> dict[str, Any]:
    name = f"{run.manifest.benchmark.name} {run.manifest.mode.name}, {run.protocol.name}"
    details = {"n": str(metric.measured.n), "n_of": metric.measured.of, "steps_not_measured": str(metric.measured.missing)}
    return {
        "evaluation_result_id": result_id(run, metric),
        "evaluation_name": name,
        "source_data": _source(run),
        "metric_config": {
            "evaluation_description": metric.description,
            "metric_id": f"guieval.{run.protocol.name}.{metric.id}",
            "metric_name": metric.name,
            "metric_kind": metric.kind,
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
            "additional_details": {"mode": run.manifest.mode.label, "protocol": run.protocol.name},
        },
        "score_details": {
            "score": metric.value,
            "details": details,
            "uncertainty": _uncertainty(metric.measured.interval, metric.measured.n),
        },
        "generation_config": _generation(run),
    }


def result_id(run: Exported, metric: ExportedMetric) -> str:
    """The id that joins the rows of answers with a metric."""
    return f"{run.uuid}.{metric.id}"


def _uncertainty(interval: Interval | None, n: int) -> dict[str, Any]:
    values: dict[str, Any] = {"num_samples": n}
    if interval is None:
        return values
    values["confidence_interval"] = {
        "lower": interval.low,
        "upper": interval.high,
        "confidence_level": interval.level,
        "method": interval.method if interval.method == "wilson" else "randomly weighted episodes (after Gaffke)",
    }
    return values


def _generation(run: Exported) -> dict[str, Any]:
    arguments = {name: run.manifest.sampling[name] for name in EXPORTED if name in run.manifest.sampling}
    if run.manifest.thinking is not None:
        arguments["reasoning"] = run.manifest.thinking
    others = {name: json.dumps(value) for name, value in run.manifest.sampling.items() if name not in EXPORTED}
    return {"generation_args": arguments, "additional_details": others}


def _rows(run: Exported) -> Iterator[dict[str, Any]]:
    common = {
        "schema_version": VERSION,
        "evaluation_id": evaluation_id(run),
        "model_id": run.model,
        "evaluation_name": _result(run, run.headline)["evaluation_name"],
        "evaluation_result_id": result_id(run, run.headline),
    }
    if isinstance(run.run, OpenedRun):
        for step in run.run.walk(run.protocol.name):
            if step.record is not None and step.verdict != "not_reached":
                yield common | _step_row(step, run)
    elif isinstance(run.run, OpenedOnlineRun):
        for trajectory in read_online(run.run.directory):
            if trajectory.outcome is not None:
                yield common | _trajectory_row(trajectory)


def _compared(raw: str, reference: list[str]) -> dict[str, Any]:
    """The input of a row, with the digest by which the same sample is found in other files."""
    return {
        "sample_hash": sha256("\n".join((raw, *reference)).encode("utf-8", "replace")).hexdigest(),
        "input": {"raw": raw, "reference": reference},
    }


def _step_row(step: OpenedStep, run: Exported) -> dict[str, Any]:
    task, outcome = step.task, step.outcomes[0]
    samples = step.record.billed if step.record is not None else ()
    reference = [action_to_json(action) for action in (task.action, *task.alternatives)]
    raw = task.instruction if task.low_level_instruction is None else f"{task.instruction}\n{task.low_level_instruction}"
    metadata = {
        "benchmark": task.benchmark,
        "subset": task.subset,
        "episode_id": task.episode_id,
        "step_index": str(task.step_index),
        "episode_length": str(task.episode_length),
        "screenshot": task.screenshot,
        "verdict": outcome.verdict,
        "type_match": str(outcome.type_match).lower(),
        "reason": outcome.reason,
        **{f"group_{name}": value for name, value in task.groups.items()},
    }
    reasoning = [sample.reasoning or sample.thought or "" for sample in samples]
    return {
        "sample_id": str(task.key),
        "interaction_type": "single_turn",
        **_compared(raw, reference),
        "output": {
            "raw": [sample.raw_response or "" for sample in samples],
            "reasoning_trace": reasoning if any(reasoning) else None,
        },
        "messages": None,
        "answer_attribution": list(_attribution(samples[0], run.manifest.model.adapter or "unknown")),
        "evaluation": {"score": float(outcome.exact_match), "is_correct": outcome.exact_match, "num_turns": 1},
        "token_usage": token_counts([usage for sample in samples for usage in sample.responses]),
        "performance": _latency(samples[0].seconds),
        "error": None if samples[0].answered else failure(samples[0]),
        "metadata": metadata,
    }


def _attribution(sample: Sample, adapter: str) -> Iterator[dict[str, Any]]:
    if sample.action is not None:
        yield {
            "turn_idx": 0,
            "source": "output.raw",
            "extracted_value": action_to_json(sample.action),
            "extraction_method": f"{READ_BY}{adapter}",
            "is_terminal": True,
        }


def _latency(seconds: float | None) -> dict[str, float] | None:
    return None if seconds is None else {"latency_ms": 1000 * seconds}


def _trajectory_row(each: RecordedTrajectory) -> dict[str, Any]:
    assert each.outcome is not None
    messages: list[dict[str, Any]] = [{"turn_idx": 0, "role": "user", "content": each.goal}]
    calls = 0
    for step in each.steps:
        made = [_call(action, f"{step.index}.{number}") for number, action in enumerate(step.actions)]
        calls += len(made)
        messages.append(
            {
                "turn_idx": len(messages),
                "role": "assistant",
                "content": step.raw_response,
                "reasoning_trace": step.reasoning or step.thought,
                "tool_calls": made or None,
            }
        )
    score = each.outcome.score
    return {
        "sample_id": f"{each.key}, repetition {each.repetition}",
        "interaction_type": "agentic",
        **_compared(each.goal, []),
        "output": None,
        "messages": messages,
        "answer_attribution": [],
        "evaluation": {
            "score": float(score.success),
            "is_correct": score.success,
            "num_turns": len(messages),
            "tool_calls_count": calls,
        },
        "token_usage": token_counts(each.responses),
        "performance": _latency(sum(step.seconds or 0.0 for step in each.steps)),
        "metadata": {
            "ended": each.ended,
            "progress": str(score.progress),
            "reason": score.reason,
            "side_effects": json.dumps(list(score.side_effects)),
            "benchmark": each.key.benchmark,
            "subset": each.key.subset,
            "episode_id": each.key.episode_id,
            "repetition": str(each.repetition),
        },
    }


def _call(action: Action, number: str) -> dict[str, Any]:
    values: Mapping[str, Any] = action.model_dump(mode="json", exclude={"type"})
    arguments = {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}
    return {"id": number, "name": action.type, "arguments": arguments}
