"""The agent loop with verl's own base class, tokenisation and outputs; only the server's answers are made up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.utils.tokenizer import hf_processor, hf_tokenizer

from guieval.errors import EngineError, UsageError
from guieval.registry import build_model, load_model, model_config
from guieval.steps import Episode
from guieval.training.data.examples import TrainingData
from guieval.training.verl.loop import GuiLoop, PolicyLoop
from guieval.training.verl.records import RowRecord
from guieval.training.verl.rows import write_rows
from tests.training.thought_server import Server
from tests.training_verl.conftest import Compose
from tests.training_verl.scripted_server import WRONG, ScriptedServer

UI_S1 = ("guieval.reward.protocol=ac-curated-bbox", "guieval.rollout.budget=1")


@pytest.fixture(scope="module")
def tokenizer(policy: Path) -> Any:
    return hf_tokenizer(str(policy))


@pytest.fixture(scope="module")
def episode(data: TrainingData) -> Episode:
    """One of at least three steps."""
    return next(episode for episode in map(data.episode, range(4)) if len(episode) >= 3)


def right(episode: Episode, step: int, model: str = "qwen2.5-vl-7b-ui-s1") -> str:
    task = episode.steps[step]
    return load_model(model).render(task, task.action, f"thought of step {step}")


def roll(
    config: Any,
    policy: Path,
    server: ScriptedServer,
    row: dict[str, Any],
    *,
    sessions: int = 1,
    kind: type[PolicyLoop] = GuiLoop,
) -> Any:
    """The outputs of a session, or of several that run at the same time."""

    async def run(session: int) -> Any:
        loop = kind(
            trainer_config=DictConfigWrap(config),
            server_manager=server,
            tokenizer=server.tokenizer,
            processor=hf_processor(str(policy)),
            dataset_cls=RLHFDataset,
            data_config=DictConfigWrap(config.data),
            hf_model_type="qwen3_vl",
        )
        return await loop.run({"temperature": 1.0}, uid="task", session_id=session, **row)

    async def together() -> Any:
        return await asyncio.gather(*(run(2 + number) for number in range(sessions)))

    outputs = asyncio.run(together())
    return outputs[0] if sessions == 1 else outputs


def row_of(rows: Path, episode: Episode, step: int = -1) -> dict[str, Any]:
    for line in (rows / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        place = row["extra_info"]
        with open(place["episodes"], "rb") as stream:
            stream.seek(place["offset"])
            if Episode.model_validate_json(stream.readline()).key == episode.key and place["step"] == step:
                return row
    raise AssertionError(f"no row of {episode.key}")


def test_right_then_patched_then_over(compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode) -> None:
    replies = [right(episode, 0), WRONG, WRONG]
    server = ScriptedServer(tokenizer, lambda number, prompt: replies[number])
    outputs = roll(compose("ui-s1-1x8", *UI_S1), policy, server, row_of(rows, episode))

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


def test_all_right_is_a_success(compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode) -> None:
    server = ScriptedServer(tokenizer, lambda number, prompt: right(episode, number))
    outputs = roll(compose("ui-s1-1x8", *UI_S1), policy, server, row_of(rows, episode))
    assert len(outputs) == len(episode)
    figures = outputs[-1].extra_fields["reward_extra_info"]
    assert figures == {"score": 1.0, "progress": 1.0, "success": 1.0, "patches": 0.0, "prompt_too_long": 0.0}


def test_the_policy_writes_the_thought_of_its_patch(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode
) -> None:
    replies = [WRONG, "<think>because of the hint</think>", WRONG]
    server = ScriptedServer(tokenizer, lambda number, prompt: replies[number])
    config = compose("ui-s1-1x8", *UI_S1, "guieval.rollout.patch=on-policy")
    outputs = roll(config, policy, server, row_of(rows, episode))
    assert len(outputs) == 2 and len(server.prompts) == 3  # the thought is not trained on
    assert "Next Action Hint" in server.prompts[1] and "Next Action Hint" not in server.prompts[2]
    assert "because of the hint" in server.prompts[2]


def test_a_server_writes_the_thoughts_of_off_policy_patches_once_for_each_step(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode
) -> None:
    thoughts = Server("<think>The next one is in sight.</think>")
    try:
        server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
        address = f"guieval.rollout.server={{base_urls: ['{thoughts.url}'], model: other-model}}"
        config = compose("ui-s1-1x8", *UI_S1, "guieval.rollout.patch=off-policy", address)
        sessions = roll(config, policy, server, row_of(rows, episode), sessions=3)
    finally:
        thoughts.stop()
    assert len(thoughts.asked) == 1  # three rollouts are patched at the first step, at the same time
    assert "other-model" in thoughts.asked[0]["model"]
    for outputs in sessions:
        assert [output.extra_fields["guieval"]["patched"] for output in outputs] == [True, False]
    assert len(server.prompts) == 6 and sum("The next one is in sight." in prompt for prompt in server.prompts) == 3


def test_a_server_of_thoughts_that_is_away_fails_the_session(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode
) -> None:
    thoughts = Server("unused")
    thoughts.stop()
    settings = f"base_urls: ['{thoughts.url}'], model: other-model, patience: 0, max_attempts: 1"
    config = compose("ui-s1-1x8", *UI_S1, "guieval.rollout.patch=off-policy", f"guieval.rollout.server={{{settings}}}")
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    with pytest.raises(EngineError, match=thoughts.url):
        roll(config, policy, server, row_of(rows, episode))


def test_thoughts_of_off_policy_patches_come_from_a_file(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode, tmp_path: Path
) -> None:
    file = tmp_path / "thoughts.jsonl"
    file.write_text(json.dumps({"step": str(episode.steps[0].key), "thought": "It was written before."}), encoding="utf-8")
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    config = compose("ui-s1-1x8", *UI_S1, "guieval.rollout.patch=off-policy", f"guieval.rollout.thoughts={file}")
    outputs = roll(config, policy, server, row_of(rows, episode))
    assert len(outputs) == 2 and "It was written before." in server.prompts[1]


def test_validation_makes_no_patches(
    compose: Compose, policy: Path, tokenizer: Any, data: TrainingData, episode: Episode, tmp_path: Path
) -> None:
    write_rows(data, tmp_path, validation=True)
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    outputs = roll(compose("ui-s1-1x8", *UI_S1), policy, server, row_of(tmp_path, episode))
    record = outputs[0].extra_fields["guieval"]
    assert len(outputs) == 1 and record["patched"] is False and record["watched"] == {}


def test_one_step_with_the_references_past(
    compose: Compose, policy: Path, tokenizer: Any, data: TrainingData, episode: Episode, tmp_path: Path
) -> None:
    write_rows(data, tmp_path, steps=True)
    row = row_of(tmp_path, episode, step=2)
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    settings = ("guieval.model=qwen2.5-vl-7b-ui-s1", "guieval.reward.protocol=ac-curated-bbox")
    output = roll(compose("hypertrack-1x8", *settings), policy, server, row)
    assert json.loads(row["reward_model"]["ground_truth"])["step_index"] == 2
    assert server.images == [2] and server.prompts[0].count("<action>") > 1
    figures = output.extra_fields["reward_extra_info"]
    assert output.reward_score == figures["score"] == 1.0  # the type alone
    assert (figures["type"], figures["params"], figures["exact_match"]) == (1.0, 0.0, 0.0)


def test_one_step_is_scored_by_the_adapter_that_wrote_its_prompt(
    compose: Compose, policy: Path, tokenizer: Any, data: TrainingData, episode: Episode, tmp_path: Path
) -> None:
    """Its options say at which size the model sees the screen, and so what its coordinates mean."""
    write_rows(data, tmp_path, steps=True)
    options = {"max_pixels": 20 * 28 * 28}
    config = model_config("qwen2.5-vl-7b-ui-s1", None)
    model = build_model(config.model_copy(update={"options": {**config.options, **options}}), thinking=None)
    task = next(task for task in episode.steps if task.action.type == "CLICK")
    reply = model.render(task, task.action, "thought")
    assert reply != right(episode, task.step_index)
    server = ScriptedServer(tokenizer, lambda number, prompt: reply)
    settings = ("guieval.model=qwen2.5-vl-7b-ui-s1", "++guieval.model_options.max_pixels=15680")
    protocol = "guieval.reward.protocol=ac-curated-bbox"
    output = roll(compose("hypertrack-1x8", *settings, protocol), policy, server, row_of(tmp_path, episode, task.step_index))
    assert output.extra_fields["reward_extra_info"]["exact_match"] == 1.0 and output.reward_score == 2.0  # type and parameters


def test_a_prompt_that_is_too_long_ends_the_rollout(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode
) -> None:
    server = ScriptedServer(tokenizer, lambda number, prompt: right(episode, number))
    whole = roll(compose("ui-s1-1x8", *UI_S1), policy, server, row_of(rows, episode))
    first, second = len(whole[0].prompt_ids), len(whole[1].prompt_ids)
    assert first < second
    config = compose("ui-s1-1x8", *UI_S1, f"data.max_prompt_length={second - 1}")
    cut = roll(config, policy, ScriptedServer(tokenizer, server.say), row_of(rows, episode))
    assert len(cut) == 1 and cut[0].extra_fields["reward_extra_info"]["prompt_too_long"] == 1.0
    config = compose("ui-s1-1x8", *UI_S1, f"data.max_prompt_length={first - 1}")
    with pytest.raises(UsageError, match=rf"{first} tokens and 1 screenshots, data.max_prompt_length is {first - 1}"):
        roll(config, policy, ScriptedServer(tokenizer, server.say), row_of(rows, episode))


def test_a_template_argument_that_is_missing_is_named(
    compose: Compose, policy: Path, tokenizer: Any, rows: Path, episode: Episode
) -> None:
    server = ScriptedServer(tokenizer, lambda number, prompt: WRONG)
    glm = ("guieval.model=glm-4.5v", "~guieval.model_options", "guieval.thinking=false")
    with pytest.raises(UsageError, match=r"add \+\+data\.apply_chat_template_kwargs\.enable_thinking=False"):
        roll(compose("ui-s1-1x8", *glm), policy, server, row_of(rows, episode))
    result = compose(
        "ui-s1-1x8", *glm, "data.max_prompt_length=20000", "++data.apply_chat_template_kwargs.enable_thinking=false"
    )
    assert len(roll(result, policy, server, row_of(rows, episode))) == 2  # both wrong, the first patched
