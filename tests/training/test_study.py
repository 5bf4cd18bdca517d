"""A study for real: tiny trainings over a grid, one of them lost its end, and the curve over them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.command_line import CommandLine

from .conftest import json_lines


@pytest.mark.full
def test_a_study_trains_evaluates_resumes_and_is_a_curve(tmp_path: Path, guieval: CommandLine, screens: Path) -> None:
    trainer = {"trainer.save_steps": 1, "trainer.per_device_train_batch_size": 8}
    shared = {"data": str(screens), "bench_options": {"split": "train", "episodes": 40}, "trainer.max_steps": 2, **trainer}
    evaluation = {"every": 2, "bench_options": {"split": "test", "episodes": 40}, "limit": 3, "data": str(screens)}
    reward = {"dynamic_sampling": None, "trainer.num_generations": 4, "trainer.max_completion_length": 16}
    rows = [{"name": "sft", "recipe": "tiny-sft"}, {"name": "rl", "recipe": "tiny-grpo", "settings": reward, "grid": {}}]
    grid = {"limit": [4, 8, 16]}
    train = {"rows": rows, "grid": grid, "settings": {**shared, "evaluation": evaluation}}
    bench = {"bench": "demo-icons", "data": str(screens), "bench_options": {"split": "test", "episodes": 40}, "limit": 3}
    file, out = tmp_path / "study.yaml", tmp_path / "out"
    file.write_text(
        yaml.safe_dump({"train": train, "benchmarks": [bench], "modes": ["sop"], "settings": {"engine": "transformers"}})
    )
    plan = guieval("campaign", file, "--out", out, "--dry-run")
    assert (
        plan.code == 0
        and plan.out.count("  computed") == 4
        and "GPU hours for what is left of 4" in plan.out
        and not out.exists()
    ), plan
    done = guieval("campaign", file, "--out", out)
    names = ["sft-4", "sft-8", "sft-16", "rl"]
    table = done.out[done.out.index("Trainings\n", done.out.index("trained:  rl")) :]
    assert done.code in (0, 1) and [line.split()[0] for line in table.splitlines() if line.endswith("(CPU)")] == names, done
    lines = json_lines(out / "trainings.jsonl")
    assert [line["settings"] for line in lines[:1]] == [{"row": "sft", "limit": 4}] and all(
        line["gpu_hours"] > 0 for line in lines
    )
    assert [(row["steps"], row["cards"]) for row in json_lines(out / "trainings" / "rl" / "hours.jsonl")] in (
        [(2, 1)],
        [(1, 1)] * 2,
    )
    of_sft = json.loads((out / "trainings" / "sft-4" / "evaluations.jsonl").read_text().splitlines()[-1])
    assert of_sft["step"] == 2 and of_sft["exact_match"] * 100 == pytest.approx(lines[0]["metrics"]["exact match"])
    written = {name: (out / "trainings" / name / "final" / "complete").stat().st_mtime_ns for name in names}
    shutil.rmtree(out / "trainings" / "rl" / "final")  # as if it had been killed before its end
    again = guieval("campaign", file, "--out", out)
    assert "training: rl goes on" in again.out and again.out.count("trained:") == 1, again
    assert {
        name for name in names if (out / "trainings" / name / "final" / "complete").stat().st_mtime_ns != written[name]
    } == {"rl"}
    changed = guieval.sentence("campaign", file, "--out", out, "--set", "train.settings.seed=3")
    assert "training 'sft-4': " in changed and "setting 'seed' differs: it was 0, now 3" in changed
    curve = guieval("study", "fit-scaling", out, "--by", "row")
    assert curve.code == 0 and "sft: y = " in curve.out and "n = 3" in curve.out, curve
