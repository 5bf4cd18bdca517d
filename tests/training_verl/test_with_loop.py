"""The agent loop with verl's own base class, tokenisation and outputs; only the server's answers are made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import EngineError, UsageError
from guieval.registry import build_model, load_model, model_config
from guieval.steps import Episode
from guieval.training.data.examples import TrainingData
from guieval.training.verl.records import RowRecord
from guieval.training.verl.rows import write_rows
from tests.training.thought_server import Server
from tests.training_verl.conftest import Roll, read_rows
from tests.training_verl.scripted_server import WRONG

PROTOCOL = "guieval.reward.protocol=ac-curated-bbox"
UI_S1 = (PROTOCOL, "guieval.rollout.budget=1")
OFF_POLICY = (*UI_S1, "guieval.rollout.patch=off-policy")


@pytest.fixture(scope="module")
def episode(data: TrainingData) -> Episode:
    """One of at least three steps."""
    return next(episode for episode in map(data.episode, range(4)) if len(episode) >= 3)


def right(episode: Episode, step: int, model: str = "qwen2.5-vl-7b-ui-s1") -> str:
    task = episode.steps[step]
    return load_model(model).render(task, task.action, f"thought of step {step}")


def row_of(folder: Path, episode: Episode, step: int = -1) -> dict[str, Any]:
    for row in read_rows(folder):
        place = row["extra_info"]
        with open(place["episodes"], "rb") as stream:
            stream.seek(place["offset"])
            if Episode.model_validate_json(stream.readline()).key == episode.key and place["step"] == step:
                return row
    raise AssertionError(f"no row of {episode.key}")


@pytest.fixture(scope="module")
def row(rows: Path, episode: Episode) -> dict[str, Any]:
    return row_of(rows, episode)


def wrong(number: int, prompt: str) -> str:
    return WRONG


def test_right_then_patched_then_over(roll: Roll, tokenizer: Any, row: Any, episode: Episode) -> None:
    replies = [right(episode, 0), WRONG, WRONG]
    outputs, server = roll("ui-s1-1x8", UI_S1, lambda number, prompt: replies[number], row)
    records = [RowRecord(**output.extra_fields["guieval"]) for output in outputs]
    assert [(each.uid, each.session, each.step) for each in records] == [("task", 2, 0), ("task", 2, 1), ("task", 2, 2)]
    assert [(each.matched, each.patched) for each in records] == [(True, False), (False, True), (False, False)]
    assert [each.reward for each in records] == pytest.approx([1.0, 0.5, 0.5])  # 0.1 format + 0.4 type (+ 0.5 exact)
    assert [len(output.multi_modal_data["images"]) for output in outputs] == server.images == [1, 2, 2]
    assert "thought of step 0" in server.prompts[1] and "thought of step 0" in server.prompts[2]
    assert "hm" not in server.prompts[2].split("assistant")[-2]  # the patch took the place of what was answered
    for output, reply in zip(outputs, replies, strict=True):
        assert tokenizer.decode(output.response_ids, skip_special_tokens=True) == reply
        assert output.response_mask == [1] * len(output.response_ids)
        assert len(output.response_logprobs) == len(output.response_ids)
        assert output.extra_fields["min_global_steps"] == 0  # verl's own figures travel along
    watched = [each.watched for each in records]
    assert [each["watch/reward"] for each in watched] == [pytest.approx((reward, 1)) for reward in (1.0, 0.5, 0.5)]
    assert [each["watch/exact_match"] for each in watched] == [(1.0, 1), (0.0, 1), (0.0, 1)]
    assert all(each["watch/malformed"] == (0.0, 1) and each["watch/blind_policy/always-wait"][1] == 1 for each in watched)
    assert {each.protocol for each in records} == {"ac-curated-bbox"}  # that of the benchmark
    figures = outputs[-1].extra_fields["reward_extra_info"]
    assert outputs[-1].reward_score == figures["score"] == pytest.approx(2.0 / len(episode))
    assert figures["progress"] == pytest.approx(1 / len(episode)) and figures["success"] == 0.0 and figures["patches"] == 1.0
    assert len(set(server.requests)) == 1


def test_all_right_is_a_success_and_a_prompt_that_is_too_long_ends_the_rollout(roll: Roll, row: Any, episode: Episode) -> None:
    whole, server = roll("ui-s1-1x8", UI_S1, lambda number, prompt: right(episode, number), row)
    assert len(whole) == len(episode)
    figures = whole[-1].extra_fields["reward_extra_info"]
    assert figures == {"score": 1.0, "progress": 1.0, "success": 1.0, "patches": 0.0, "prompt_too_long": 0.0}
    first, second = len(whole[0].prompt_ids), len(whole[1].prompt_ids)
    assert first < second
    cut, _ = roll("ui-s1-1x8", (*UI_S1, f"data.max_prompt_length={second - 1}"), server.say, row)
    assert len(cut) == 1 and cut[0].extra_fields["reward_extra_info"]["prompt_too_long"] == 1.0
    with pytest.raises(UsageError, match=rf"{first} tokens and 1 screenshots, data.max_prompt_length is {first - 1}"):
        roll("ui-s1-1x8", (*UI_S1, f"data.max_prompt_length={first - 1}"), server.say, row)


def test_the_policy_writes_the_thought_of_its_patch(roll: Roll, row: Any) -> None:
    replies = [WRONG, "<think>because of the hint</think>", WRONG]
    settings = (*UI_S1, "guieval.rollout.patch=on-policy")
    outputs, server = roll("ui-s1-1x8", settings, lambda number, prompt: replies[number], row)
    assert len(outputs) == 2 and len(server.prompts) == 3  # the thought is not trained on
    assert "Next Action Hint" in server.prompts[1] and "Next Action Hint" not in server.prompts[2]
    assert "because of the hint" in server.prompts[2]


def test_a_server_writes_the_thoughts_of_off_policy_patches_once_for_each_step(roll: Roll, row: Any) -> None:
    thoughts = Server("<think>The next one is in sight.</think>")
    try:
        address = f"guieval.rollout.server={{base_urls: ['{thoughts.url}'], model: other-model}}"
        sessions, server = roll("ui-s1-1x8", (*OFF_POLICY, address), wrong, row, sessions=3)
    finally:
        thoughts.stop()
    assert len(thoughts.asked) == 1  # three rollouts are patched at the first step, at the same time
    assert "other-model" in thoughts.asked[0]["model"]
    for outputs in sessions:
        assert [output.extra_fields["guieval"]["patched"] for output in outputs] == [True, False]
    assert len(server.prompts) == 6 and sum("The next one is in sight." in prompt for prompt in server.prompts) == 3


def test_thoughts_may_fail_or_come_from_a_file(roll: Roll, row: Any, episode: Episode, tmp_path: Path) -> None:
    thoughts = Server("unused")
    thoughts.stop()
    settings = f"base_urls: ['{thoughts.url}'], model: other-model, patience: 0, max_attempts: 1"
    with pytest.raises(EngineError, match=thoughts.url):
        roll("ui-s1-1x8", (*OFF_POLICY, f"guieval.rollout.server={{{settings}}}"), wrong, row)
    # or from a file
    file = tmp_path / "thoughts.jsonl"
    file.write_text(json.dumps({"step": str(episode.steps[0].key), "thought": "It was written before."}), encoding="utf-8")
    outputs, server = roll("ui-s1-1x8", (*OFF_POLICY, f"guieval.rollout.thoughts={file}"), wrong, row)
    assert len(outputs) == 2 and "It was written before." in server.prompts[1]


def test_validation_makes_no_patches(roll: Roll, data: TrainingData, episode: Episode, tmp_path: Path) -> None:
    write_rows(data, tmp_path, validation=True)
    outputs, _ = roll("ui-s1-1x8", UI_S1, wrong, row_of(tmp_path, episode))
    record = outputs[0].extra_fields["guieval"]
    assert len(outputs) == 1 and record["patched"] is False and record["watched"] == {}


def test_one_step_with_the_references_past(roll: Roll, data: TrainingData, episode: Episode, tmp_path: Path) -> None:
    write_rows(data, tmp_path, steps=True)
    row = row_of(tmp_path, episode, step=2)
    output, server = roll("hypertrack-1x8", ("guieval.model=qwen2.5-vl-7b-ui-s1", PROTOCOL), wrong, row)
    assert json.loads(row["reward_model"]["ground_truth"])["step_index"] == 2
    assert server.images == [2] and server.prompts[0].count("<action>") > 1
    figures = output.extra_fields["reward_extra_info"]
    assert output.reward_score == figures["score"] == 1.0  # the type alone
    assert (figures["type"], figures["params"], figures["exact_match"]) == (1.0, 0.0, 0.0)


def test_one_step_is_scored_by_its_prompts_adapter(roll: Roll, data: TrainingData, episode: Episode, tmp_path: Path) -> None:
    """Its options say at which size the model sees the screen, and so what its coordinates mean."""
    write_rows(data, tmp_path, steps=True)
    options = {"max_pixels": 20 * 28 * 28}
    config = model_config("qwen2.5-vl-7b-ui-s1", None)
    model = build_model(config.model_copy(update={"options": {**config.options, **options}}), thinking=None)
    task = next(task for task in episode.steps if task.action.type == "CLICK")
    reply = model.render(task, task.action, "thought")
    assert reply != right(episode, task.step_index)
    settings = ("guieval.model=qwen2.5-vl-7b-ui-s1", "++guieval.model_options.max_pixels=15680", PROTOCOL)
    output, _ = roll("hypertrack-1x8", settings, lambda number, prompt: reply, row_of(tmp_path, episode, task.step_index))
    assert output.extra_fields["reward_extra_info"]["exact_match"] == 1.0 and output.reward_score == 2.0  # type and parameters


def test_a_template_argument_that_is_missing_is_named(roll: Roll, row: Any) -> None:
    glm = ("guieval.model=glm-4.5v", "~guieval.model_options", "guieval.thinking=false")
    with pytest.raises(UsageError, match=r"add \+\+data\.apply_chat_template_kwargs\.enable_thinking=False"):
        roll("ui-s1-1x8", glm, wrong, row)
    told = (*glm, "data.max_prompt_length=20000", "++data.apply_chat_template_kwargs.enable_thinking=false")
    assert len(roll("ui-s1-1x8", told, wrong, row)[0]) == 2  # both wrong, the first patched
