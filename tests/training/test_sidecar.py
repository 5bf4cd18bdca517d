"""Checkpoints evaluated beside a training: the same figures as in it, none twice, and none left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.studies.training_curves import training_curves
from guieval.training.session import train
from guieval.training.sidecar import _add, evaluate_checkpoints
from tests.command_line import CommandLine
from tests.rows import every_row

from .conftest import Configured, evaluations, json_lines

EVALUATION: dict[str, Any] = {"bench_options": {"split": "test"}, "limit": 3}


@every_row(
    ("settings", "message"),
    [
        (None, "has no training: expected training.yaml"),
        ("{kind: [", "training.yaml' is damaged: "),
        ("{kind: sft, model: tiny-policy, bench: demo}", "no evaluation settings: train with --set evaluation.sidecar=true"),
    ],
)
def test_no_such_training_is_a_sentence(guieval: CommandLine, tmp_path: Path, settings: str | None, message: str) -> None:
    if settings is not None:
        (tmp_path / "training.yaml").write_text(settings, encoding="utf-8")
    assert message in guieval.sentence("train", "evaluate", tmp_path)


def test_a_torn_line_costs_no_other(tmp_path: Path) -> None:
    whole = ['{"step": 8, "pg": 0.5}', '{"step": 16, "pg": 0.6}']
    (tmp_path / "evaluations.jsonl").write_text("\n".join([whole[1], '{"step": 24, "p', whole[0]]), encoding="utf-8")
    _add(tmp_path, {"step": 12, "pg": 0.55})
    assert [row["step"] for row in json_lines(tmp_path / "evaluations.jsonl")] == [8, 12, 16]


@pytest.mark.parametrize("kind", ["sft", "online"])
def test_figures_are_those_in_the_training(kind: str, configured: Configured, tmp_path: Path, guieval: CommandLine) -> None:
    trainer = {"max_steps": 2, "save_steps": 1}
    within = configured(kind, out=str(tmp_path / "in"), trainer=trainer, evaluation={**EVALUATION, "every": 1})
    beside = configured(kind, out=str(tmp_path / "beside"), trainer=trainer, evaluation={**EVALUATION, "sidecar": True})
    train(within)
    train(beside)
    assert not (tmp_path / "beside" / "evaluations").exists()
    done = guieval("train", "evaluate", tmp_path / "beside")  # the lines before are the trainings'
    assert done.code == 0 and [line.partition(":")[0] for line in done.out.splitlines()[-2:]] == ["step 1", "step 2"], done
    expected = [row for row in evaluations(within) if row["step"]]
    assert evaluations(beside) == expected
    again = guieval("train", "evaluate", tmp_path / "beside")
    assert again.out == "every checkpoint is evaluated\n"
    (curves,) = training_curves([tmp_path / "beside"])
    title = "success in evaluations (%)" if kind == "online" else "SOP score in evaluations (%)"
    assert [point.step for point in curves.curves[title]] == [1, 2]


def test_it_follows_a_training_to_its_end(configured: Configured, tmp_path: Path) -> None:
    config = configured("sft", trainer={"max_steps": 2, "save_steps": 1}, evaluation={**EVALUATION, "sidecar": True})
    train(config)
    out = Path(config.out)
    later, end = out / "checkpoints" / "checkpoint-2", out / "final" / "complete"
    later.rename(tmp_path / "later")
    end.unlink()
    waits: list[float] = []

    def sleep(seconds: float) -> None:  # the training goes on meanwhile
        waits.append(seconds)
        if len(waits) == 2:
            (tmp_path / "later").rename(later)
            end.touch()

    assert [step for step, _ in evaluate_checkpoints(out, follow=True, sleep=sleep)] == [1, 2]
    assert len(waits) == 2
