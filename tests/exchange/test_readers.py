"""Exported files, opened by the packages of the tools that they are for: Inspect, Harbor and Every Eval Ever.

``make test-formats`` installs these packages apart, since they would triple the environment of the other tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from guieval.exchange.exported import exported
from guieval.exchange.formats import format_named
from guieval.journal import MANIFEST
from tests.conftest import REPOSITORY
from tests.exchange.test_formats import MISSED
from tests.reports.scripted_runs import edited, made_run, reported
from tests.reports.trajectories.made_online import online_run

PYTHON = Path(os.environ.get("GUIEVAL_FORMATS_PYTHON", REPOSITORY / "build" / "formats" / "bin" / "python"))
INSPECT = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries, resolve_sample_attachments
log = read_eval_log(sys.argv[1])
(of_protocol,) = log.results.scores
samples = [resolve_sample_attachments(sample) for sample in log.samples]
print(json.dumps({
    "status": log.status,
    "model": log.eval.model,
    "headline": log.results.headline.metric,
    "metrics": {name: metric.value for name, metric in of_protocol.metrics.items()},
    "listed": [[each.id, each.epoch] for each in read_eval_log_sample_summaries(sys.argv[1])],
    "samples": [
        {
            "id": sample.id,
            "epoch": sample.epoch,
            "scores": {name: score.value for name, score in sample.scores.items()},
            "replies": [message.text for message in sample.messages if message.role == "assistant"],
            "images": [part.image[:22] for message in sample.messages if isinstance(message.content, list)
                       for part in message.content if part.type == "image"],
            "results": [message.tool_call_id for message in sample.messages if message.role == "tool"],
            "calls": [call.id for message in sample.messages if message.role == "assistant"
                      for call in message.tool_calls or ()],
            "tokens": sum(usage.total_tokens for usage in sample.model_usage.values()),
        }
        for sample in samples
    ],
}))
"""
HARBOR = """
import json, pathlib, sys
from harbor.models.trajectories import Trajectory
read = [Trajectory.model_validate_json(pathlib.Path(path).read_text()) for path in sys.argv[1:]]
print(json.dumps([[each.trajectory_id, len(each.steps), each.has_multimodal_content()] for each in read]))
"""
PNG = "data:image/png;base64,"


def read(program: str, *arguments: str | Path, folder: Path | None = None) -> Any:
    """What a program prints as JSON in the environment of these packages."""
    if not PYTHON.is_file():
        pytest.skip(f"there is no {PYTHON}: `make test-formats` makes it")
    command = [str(PYTHON), "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def online(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return online_run(tmp_path_factory.mktemp("online"))


def test_inspect_reads_a_log_of_steps(tmp_path: Path) -> None:
    run = exported(made_run(tmp_path / "run", MISSED, usage=reported(100, 7), samples=2, sampling={"temperature": 0.7}))
    (path,) = format_named("inspect").write(run, tmp_path)
    log = read(INSPECT, path)
    assert (log["status"], log["model"], log["headline"]) == ("success", run.model, "exact match")
    assert log["metrics"] == {figure.name: figure.value for figure in run.metrics}
    assert sorted(log["listed"]) == sorted([sample["id"], sample["epoch"]] for sample in log["samples"])
    first = [sample for sample in log["samples"] if sample["epoch"] == 1]
    assert len(first) == 48 and len(log["samples"]) == 96
    assert sum(sample["scores"]["exact match"] for sample in first) == 45
    assert all(sample["tokens"] == 107 and len(sample["replies"]) == 1 and not sample["images"] for sample in first)


def test_inspect_reads_a_log_of_trajectories(online: Path, tmp_path: Path) -> None:
    run = exported(online)
    (path,) = format_named("inspect").write(run, tmp_path, images=True)
    log = read(INSPECT, path)
    assert log["headline"] == "success rate"
    assert log["metrics"]["success rate"] == sum(sample["scores"]["success"] for sample in log["samples"]) / 8 == 3 / 8
    for sample in log["samples"]:
        assert sample["results"] == sample["calls"]
        assert len(sample["images"]) == len(sample["replies"]) + 1 and set(sample["images"]) == {PNG}


@pytest.mark.parametrize("images", [False, True])
def test_harbor_reads_trajectories(online: Path, tmp_path: Path, images: bool) -> None:
    written = format_named("atif").write(exported(online), tmp_path, images=images)
    found = read(HARBOR, *(path for path in written if path.suffix == ".json"))
    assert len({name for name, _, _ in found}) == 8 and all(multimodal == images for _, _, multimodal in found)


def test_the_validator_of_every_eval_ever_passes(online: Path, tmp_path: Path) -> None:
    for run in (Path(shutil.copytree(online, tmp_path / "online")), made_run(tmp_path / "run", MISSED)):
        with edited(run / MANIFEST) as manifest:
            manifest["model"]["hf_id"] = "example/scripted-7b"
        format_named("every-eval-ever").write(exported(run), tmp_path)
    validate = "import sys; from every_eval_ever.validate import main; main(sys.argv[1:])"
    files = [path.relative_to(tmp_path) for path in sorted((tmp_path / "data").rglob("*.json*"))]
    assert len(files) == 4
    reports = read(validate, "--format", "json", *files, folder=tmp_path)
    assert {report["line_count"] for report in reports if report["file_type"] == "instance"} == {48, 8}
    assert all(report["valid"] and not report["errors"] + report["warnings"] for report in reports), reports
