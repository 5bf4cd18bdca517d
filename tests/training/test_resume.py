"""A training that was killed goes on from its last complete checkpoint, and comes to what an uninterrupted one comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.training.checkpoints import discard_after, keep_until, last_checkpoint, mark
from guieval.training.config import TrainingConfig
from guieval.training.session import train
from guieval.training.trainings import checkpoints
from tests.rows import every_row

from .conftest import Configured, json_lines, launched

TIMES = {"step_time", "train_runtime", "train_samples_per_second", "train_steps_per_second", "train_tokens_per_second"}


def written(out: Path, *steps: int, complete: bool = True) -> None:
    for step in steps:
        folder = out / "checkpoints" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text("{}", encoding="utf-8")
        if complete:
            mark(folder)


def lines(file: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in TIMES} for row in json_lines(file)]


def result(config: TrainingConfig) -> tuple[Any, ...]:
    out = Path(config.out)
    # the mean loss at the end is transformers' sum over this session, divided by all steps
    log = [{name: value for name, value in row.items() if name != "train_loss"} for row in lines(out / "log.jsonl")]
    return (out / "final" / "model.safetensors").read_bytes(), log, lines(out / "evaluations.jsonl")


def test_incomplete_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"has no complete checkpoint of a training$"):
        last_checkpoint(tmp_path)
    written(tmp_path, 100, complete=False)
    with pytest.raises(UsageError, match="complete checkpoint of a training; checkpoint-100 was not written to its end"):
        last_checkpoint(tmp_path)
    written(tmp_path, 9, 50)
    assert last_checkpoint(tmp_path) == (50, tmp_path / "checkpoints" / "checkpoint-50")
    noted = "note: checkpoint-100 was not written to its end, so the training resumes from checkpoint-50\n"
    assert capsys.readouterr().err == noted
    with monkeypatch.context() as other:  # it comes from one process
        other.setenv("RANK", "1")
        assert last_checkpoint(tmp_path)[0] == 50 and capsys.readouterr().err == ""
    discard_after(tmp_path, 50)
    assert list(checkpoints(tmp_path)) == [9, 50] and not checkpoints(tmp_path, complete=False)
    written(tmp_path, 20, complete=False)  # before the one that is resumed from: no reason to speak
    last_checkpoint(tmp_path)
    assert capsys.readouterr().err == ""


@every_row("torn", ['{"step": 4, "los', '{"step": 3, "loss": 2}', "", "\x00\x00", "[]", '{"loss": 1}'])
def test_a_log_is_cut_back_to_a_step(torn: str, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    keep_until(file, 2)
    assert not file.exists()
    kept = ['{"step": 0, "thought_share": 1.0}', '{"step": 2, "loss": 1}', '{"step": 2, "warning": "w"}']
    file.write_text("\n".join([*kept[:2], '{"step": 3, "loss": 1}', kept[2], torn]), encoding="utf-8")
    keep_until(file, 2)
    assert file.read_text(encoding="utf-8") == "".join(f"{line}\n" for line in kept)


KINDS = [("sft", 1), ("sft", 2), ("grpo", 2), ("semi-online", 1), ("semi-online", 2), ("online", 1), ("online", 2)]


@pytest.mark.parametrize(("kind", "processes"), KINDS)
def test_a_killed_training_comes_to_the_same(kind: str, processes: int, configured: Configured, tmp_path: Path) -> None:
    """Killed after step 3 with a checkpoint of step 2, which is in the middle of a generation batch and of a check."""
    outcomes = []
    for name in ("whole", "killed"):
        rl = {"steps_per_generation": 3, "temperature": 1.2} if kind != "sft" else {}
        config = configured(
            kind,
            out=str(tmp_path / name),
            evaluation={"every": 3, "bench_options": {"split": "test"}, "limit": 3},
            trainer={"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": 8 // processes, **rl},
            **({"reward_watch": {"every": 3}} if kind in ("grpo", "semi-online") else {}),
        )
        if name == "killed":
            assert launched(config, faults="kill:3:0", processes=processes).returncode
            assert [line["step"] for line in lines(Path(config.out) / "log.jsonl") if "loss" in line] == [1, 2, 3]
        done = launched(config, *(["--resume"] if name == "killed" else []), processes=processes)
        assert done.returncode == 0, done.stderr[:6000]
        outcomes.append(result(config))
    whole, resumed = outcomes
    assert resumed[1] == whole[1]
    assert resumed[2] == whole[2] and [row["step"] for row in whole[2]] == [0, 3]
    assert resumed[0] == whole[0]


def test_a_save_killed_in_the_middle_leaves_the_one_before(configured: Configured) -> None:
    trainer = {"max_steps": 5, "save_steps": 2, "save_total_limit": 1}
    config = configured("sft", trainer=trainer)
    done = launched(config, faults="kill-in-save:4")
    assert done.returncode == -9
    out = Path(config.out)
    assert (out / "checkpoints" / "checkpoint-4" / "model.safetensors").is_file()
    assert list(checkpoints(out)) == [2] and list(checkpoints(out, complete=False)) == [4]
    done = launched(config, "--resume")
    assert done.returncode == 0, done.stderr[:6000]
    assert "note: checkpoint-4 was not written to its end, so the training resumes from checkpoint-2" in done.stderr
    assert [line["step"] for line in lines(out / "log.jsonl") if "loss" in line] == [1, 2, 3, 4, 5]
    assert list(checkpoints(out)) == [5] and not checkpoints(out, complete=False)  # save_total_limit
    assert (out / "final" / "complete").is_file()


def test_a_checkpoint_is_written_where_a_line_is_logged(configured: Configured) -> None:
    """So that means over several steps are the same after a resume."""
    config = configured("sft", trainer={"max_steps": 6, "save_steps": 2, "logging_steps": 4})
    train(config)
    assert [line["step"] for line in lines(Path(config.out) / "log.jsonl") if "loss" in line] == [2, 4, 6]
