"""Training examples from a run: its exact replies, each under the prompt that it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder
from guieval.models import ModelConfig
from guieval.training.data.examples import journal_examples
from tests.running.runner.test_patched_runs import MISSED, PATCHES, asked, ran
from tests.scripted import ScriptedModel

MODEL = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))


@pytest.mark.parametrize("method", PATCHES)
def test_prompts_are_those_of_the_run_patches_and_their_thoughts_included(tmp_path: Path, method: str) -> None:
    engine = ran(tmp_path / "run", patch=method, patch_budget="unlimited")
    sent = asked(engine)
    examples = {(each.task.episode_id, each.task.step_index): each for each in journal_examples(tmp_path / "run", MODEL)}
    assert examples.keys() == sent.keys() - MISSED
    for key, example in examples.items():
        assert MODEL.prepare_input(example.task, example.history) == sent[key].input
        assert example.completion is not None and f"own {key[1]}" in example.completion
    assert ("a", 2) in examples  # after a patch


@pytest.mark.parametrize(
    ("name", "given"), [("mix", {"start": 0.0, "end": 1.0}), ("mix_artifacts", "runs/a"), ("fixed_thoughts", "runs/a")]
)
def test_a_run_whose_prompts_cannot_be_written_again_is_refused(tmp_path: Path, name: str, given: object) -> None:
    ran(tmp_path / "run", mode="offline")
    manifest = RunFolder(tmp_path / "run").manifest.to_json()
    changed = {**manifest, "config": {**manifest["config"], name: given}}
    (tmp_path / "run" / MANIFEST).write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(UsageError, match=rf"cannot be used for training: its prompts hold .* of another run \({name}\)"):
        list(journal_examples(tmp_path / "run", MODEL))
