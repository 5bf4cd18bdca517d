"""The curves of trainings: read from logs, grouped by settings, with intervals over seeds worked out by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from guieval.errors import UsageError
from guieval.studies.training_curves import mean_over_seeds, training_curves
from tests.command_line import CommandLine


def training(folder: Path, lines: list[dict[str, Any]], **settings: Any) -> Path:
    folder.mkdir()
    (folder / "training.yaml").write_text(yaml.safe_dump({"kind": "grpo", "out": str(folder), **settings}), encoding="utf-8")
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


def rewards(*values: float) -> list[dict[str, Any]]:
    return [{"step": number, "reward": value, "loss": 0.0} for number, value in enumerate(values, 1)]


def test_seeds_are_one_curve_with_students_interval(tmp_path: Path) -> None:
    folders = [training(tmp_path / f"gui-{seed}", rewards(1.0, value), seed=seed) for seed, value in enumerate((1.0, 2.0, 3.0))]
    other = training(tmp_path / "other", rewards(5.0), seed=0, dtype="bfloat16")
    one, alone = training_curves([*folders, other])
    assert (one.label, one.seeds, alone.label, alone.seeds) == ("gui", 3, "other", 1)
    assert list(one.curves) == ["reward"]  # the loss is of supervised trainings
    first, second = one.curves["reward"]
    assert (first.mean.value, first.mean.low, first.mean.high) == (1.0, 1.0, 1.0)
    assert (second.step, second.mean.value, second.mean.n) == (2, 2.0, 3) and second.mean.high is not None
    assert second.mean.high - 2.0 == pytest.approx(4.302653 / math.sqrt(3))  # t with 2 degrees of freedom, deviation 1
    assert alone.curves["reward"][0].mean.interval is None and mean_over_seeds([]).value is None


def test_figures_are_found_by_their_names_in_the_log(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"step": 1, "loss": 2.0, "hypertrack/exact_match": 0.25, "dynamic_sampling/kept_share": 0.5, "kl": 0.1},
        {
            "step": 1,
            "hypertrack/format": 1.0,
            "hypertrack/params": 0.5,
            "reward_std": 0.2,
            "learning_rate": 1e-6,
            "grad_norm": 2.0,
        },
        {"step": 1, "loss": 3.0},  # of a resumed training
        {"step": 1, "warning": "words"},
        {"step": 2, "eval/sop_score": 0.5, "eval/exact_match": 0.75},
    ]
    folder = training(tmp_path / "a", lines, kind="sft")
    with (folder / "log.jsonl").open("a", encoding="utf-8") as log:
        log.write('{"step": 3, "los')
    (found,) = training_curves([folder])
    values = {title: [(point.step, point.mean.value) for point in points] for title, points in found.curves.items()}
    assert values == {
        "reward for the format": [(1, 1.0)],
        "reward for the parameters": [(1, 0.5)],
        "spread of the rewards of a group": [(1, 0.2)],
        "learning rate": [(1, 1e-6)],
        "norm of the gradient": [(1, 2.0)],
        "exact match of the responses (%)": [(1, 25.0)],
        "KL": [(1, 0.1)],
        "groups kept (%)": [(1, 50.0)],
        "loss": [(1, 3.0)],
        "SOP score in evaluations (%)": [(2, 50.0)],
        "exact match in evaluations (%)": [(2, 75.0)],
    }
    long = training(tmp_path / "long", rewards(*map(float, range(80))))
    points = training_curves([long])[0].curves["reward"]
    assert len(points) == 40 and (points[0].step, points[0].mean.value) == (1.5, 0.5)


def test_mistakes_are_one_sentence(tmp_path: Path, guieval: CommandLine) -> None:
    with pytest.raises(UsageError, match="has no training"):
        training_curves([tmp_path])
    folder = training(tmp_path / "a", [])
    with pytest.raises(UsageError, match="no metric yet"):
        training_curves([folder])
    with pytest.raises(UsageError, match="1 trainings and 2 --label"):
        training_curves([training(tmp_path / "b", rewards(1.0))], ["x", "y"])
    for words in (["training"], ["training", str(tmp_path)], ["training", str(folder), "--by", "step"]):
        done = guieval("plot", *words, "--out", str(tmp_path / "x.svg"))
        assert done.code == 2, done.err


def test_the_command_draws_several_trainings(tmp_path: Path, guieval: CommandLine) -> None:
    pytest.importorskip("matplotlib")
    folders = [training(tmp_path / f"gui-{seed}", rewards(1.0, 2.0 + seed), seed=seed) for seed in (0, 1)]
    folders.append(training(tmp_path / "b", [{**line, "eval/sop_score": 0.5} for line in rewards(1.0, 1.0)], dtype="x"))
    picture = tmp_path / "curves.svg"
    done = guieval("plot", "training", *map(str, folders), "--width", "two-column", "--out", str(picture), "--json")
    assert done.code == 0, done.err
    assert "gui: 2, b: 1" in done.out + done.err and picture.stat().st_size > 1000
