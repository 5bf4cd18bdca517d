"""Every framework's adapter as the framework documents its calls: same reply, same reward (``tests/training`` tries some)."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.errors import UsageError
from guieval.rewards import ResponseScorer, open_scorer
from guieval.rewards.adapters import easyr1, ms_swift, nemo_rl, openrlhf, rllm, trl, verifiers, verl
from guieval.rewards.adapters.rows import task_of
from tests.json_values import read_json
from tests.model_adapters.steps import step
from tests.rows import every_row

MODEL = "ui-s1-7b"
TASK = step(Click(point=Point(500.0, 500.0)))
ROW = TASK.model_dump_json()
NAMES: dict[str, Any] = {"model": MODEL, "reward": "ui-s1", "protocol": "guievalkit"}


@pytest.fixture(scope="module")
def scorer() -> ResponseScorer:
    return open_scorer(MODEL, "ui-s1", protocol="guievalkit")


@pytest.fixture(scope="module")
def replies(scorer: ResponseScorer) -> list[str]:
    """A hit, a miss, a wrong type, and no action at all: 1, 0.5, 0.1 and 0."""
    miss = Click(point=Point(10.0, 10.0))
    hit, other = scorer.model.render(TASK, TASK.action, "t"), scorer.model.render(TASK, miss, "t")
    return [hit, other, '<think>\nt\n</think>\n<action>\n{"action": "wait", "time": 2}\n</action>', "no action"]


EXPECTED = [1.0, 0.5, 0.1, 0.0]
USER = "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Tap it<|im_end|>\n<|im_start|>assistant\n"


def messages(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def test_trl_by_keywords_with_strings_or_messages(scorer: ResponseScorer, replies: list[str]) -> None:
    reward = trl.reward_function(scorer)
    assert reward.__name__ == "ui_s1" and trl.reward_function(scorer, name="grip").__name__ == "grip"
    assert not inspect.iscoroutinefunction(reward)
    logged: dict[str, float] = {}
    rest: dict[str, Any] = {"prompts": [[]] * 4, "completion_ids": [[1]] * 4, "task": [ROW] * 4, "trainer_state": None}
    for completions in (replies, [messages(text) for text in replies]):
        assert reward(completions=completions, **rest, instruction=["x"] * 4) == pytest.approx(EXPECTED)
        given = reward(completions=completions, **rest, log_metric=logged.__setitem__, log_extra=print)
        assert given == pytest.approx(EXPECTED)
    assert logged == {"ui_s1/format": 0.75, "ui_s1/type": 0.5, "ui_s1/exact": 0.25, "ui_s1/exact_match": 0.25}


def test_trl_states_what_data_lacks_and_leaves_out_unjudged(scorer: ResponseScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    reward = trl.reward_function(scorer)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"solution": ["y"]}, r"no column 'task'.*its columns are: solution"),
        ({"completions": ["x", "y"], "task": [ROW]}, "one step for each of the 2"),
        ({"task": 3}, "one step for each of the 1"),
        ({"task": iter([ROW])}, "one step for each of the 1"),
        ({"task": ["click"]}, r"StepTaskModel.model_dump_json\(\), got 'click'"),
        ({"task": [{"dataset": "d"}]}, "field benchmark"),
    ]
    for columns, message in wrong:
        with pytest.raises(UsageError, match=message):
            reward(**{"completions": ["x"], **columns})

    def broken(*arguments: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(scorer.model, "parse_response", broken)
    assert trl.reward_function(scorer)(completions=["x"], task=[ROW]) == [None]
    assert nemo_rl.reward_function(scorer)(ROW, "x") == (0.0, None)


def test_verl_easyr1_and_nemo_rl_by_their_own_arguments(replies: list[str], scorer: ResponseScorer) -> None:
    for text, expected in zip(replies, EXPECTED, strict=True):
        given = verl.compute_score(data_source="guieval", solution_str=text, ground_truth=ROW, extra_info={"index": 0}, **NAMES)
        assert given["score"] == pytest.approx(expected)
        assert all(isinstance(value, float) for value in given.values())
    carried = verl.compute_score("guieval", replies[0], None, {"task": ROW}, **NAMES, weights={"exact_weight": 0.0})
    assert carried == {"score": 0.5, "format": 1.0, "type": 1.0, "exact": 1.0, "exact_match": 1.0}
    inputs = [{"response": text, "response_length": 9, "ground_truth": ROW} for text in replies]
    batch = easyr1.compute_scores(inputs, **NAMES)
    assert [each["overall"] for each in batch] == pytest.approx(EXPECTED)
    assert easyr1.compute_score(inputs[1], **NAMES) == batch[1]
    assert easyr1.REWARD_TYPE == "sequential"
    reward = nemo_rl.reward_function(scorer)
    pairs = [reward(ground_truth=ROW, response=text, images=None) for text in replies]
    assert [value for value, _ in pairs] == pytest.approx(EXPECTED)
    assert [right for _, right in pairs] == [True, False, False, False]


@every_row(
    ("weights", "message"),
    [
        ({"exact_weight": [1]}, r"must be a number, got \[1\]"),
        ({"exact_weight": "1"}, "must be a number, got '1'"),
        ({"model": 1.0}, "has no weight 'model'"),
        ({"protocol": 1.0}, "has no weight 'protocol'"),
    ],
)
def test_wrong_weights_of_a_configuration_are_reported(weights: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        verl.compute_score("guieval", "x", ROW, weights=weights)
    with pytest.raises(UsageError, match=message):
        easyr1.compute_score({"ground_truth": ROW, "response": "x"}, weights=weights)


def test_a_row_is_read_from_text_object_and_record_and_is_reported_without_its_step(scorer: ResponseScorer) -> None:
    for call in (
        lambda: verl.compute_score("guieval", "x", None, {}),
        lambda: easyr1.compute_score({"response": "x"}),
        lambda: verifiers.rubric_function(scorer)("x"),
        lambda: nemo_rl.reward_function(scorer)(None, "x"),
        lambda: rllm.reward_function(scorer)({"question": "?"}, "x"),
    ):
        with pytest.raises(UsageError, match="has no 'task'"):
            call()
    assert task_of(ROW) == task_of(read_json(ROW)) == task_of(TASK) == TASK


def test_a_reply_without_text_earns_nothing(scorer: ResponseScorer) -> None:
    """Frameworks hand in ``None`` where a model answered nothing."""
    assert verl.compute_score("guieval", None, ROW, **NAMES)["score"] == 0.0  # type: ignore[arg-type]
    assert easyr1.compute_score({"ground_truth": ROW, "response": None}, **NAMES)["overall"] == 0.0
    assert nemo_rl.reward_function(scorer)(ROW, None) == (0.0, False)
    guieval = verifiers.task_method(scorer)
    given = guieval(SimpleNamespace(data=SimpleNamespace(task=ROW)), trace=SimpleNamespace(last_reply=None))
    assert asyncio.run(given) == {"ui-s1": 0.0}


def test_ms_swift_is_a_class_and_rllm_makes_its_own_output(replies: list[str], scorer: ResponseScorer) -> None:
    class Own(ms_swift.GuievalReward):
        model, reward, protocol = MODEL, "ui-s1", "guievalkit"

    orm = Own(args=SimpleNamespace(output_dir="x"))
    assert orm(replies, task=[ROW] * 4, trainer_state=None) == pytest.approx(EXPECTED)
    assert type(orm).__name__ == "Own"  # what ms-swift logs it under
    reward = rllm.reward_function(scorer)
    given = reward({"task": ROW, "data_source": "gui"}, replies[0])
    assert (given.reward, given.is_correct, given.metadata["type"]) == (1.0, True, 1.0)
    wrapped = reward({"ground_truth": ROW}, SimpleNamespace(action=replies[1]))
    assert (wrapped.reward, wrapped.is_correct) == (0.5, False)
    assert rllm.reward_function(scorer, output=dict)({"task": ROW}, replies[0])["reward"] == 1.0


def test_openrlhf_with_queries_that_hold_the_prompt(scorer: ResponseScorer, replies: list[str]) -> None:
    made: list[list[float]] = []

    def tensor(values: list[float]) -> tuple[float, ...]:
        made.append(values)
        return tuple(values)

    reward = openrlhf.reward_function(scorer, tensor=tensor)
    prompt = "<|im_start|>user\n" + replies[0]  # what stands in the prompt is not an answer
    given = reward(queries=[prompt + text for text in replies], prompts=[prompt] * 4, labels=[ROW] * 4)
    assert given["rewards"] == pytest.approx(EXPECTED) and given["scores"] == pytest.approx(EXPECTED)
    assert given["extra_logs"]["exact_match"] == (1.0, 0.0, 0.0, 0.0)
    assert len(made) == 2 + len(given["extra_logs"])
    halved = openrlhf.reward_function(open_scorer(MODEL, "hypertrack", protocol="guievalkit"))
    assert halved(replies, [""] * 4, [ROW] * 4)["scores"] == [1.0, 0.5, 0.0, 0.0]  # of the 2 that there are
    with pytest.raises(UsageError, match="expected equally many"):
        reward(replies, [""], [ROW])
    with pytest.raises(UsageError, match="does not hold its prompt, which ends with"):
        openrlhf.reply_in("click(1)", USER)


@every_row(
    ("query", "reply"),
    [
        (USER + "click(1)", "click(1)"),
        (USER + "click(1)<|im_end|>", "click(1)<|im_end|>"),
        (USER.replace("<|image_pad|>", "<|image_pad|>" * 144) + "click(1)<|im_end|>", "click(1)<|im_end|>"),
        (USER, ""),
    ],
)
def test_openrlhfs_reply_follows_its_prompt(query: str, reply: str) -> None:
    assert openrlhf.reply_in(query, USER) == reply
    padding = "Read this first. " * 20
    assert openrlhf.reply_in((padding + query)[40:], padding + USER) == reply  # a prompt that was cut at its beginning


def test_verifiers_v0_asks_by_name_and_v1_is_a_method_of_a_task(scorer: ResponseScorer, replies: list[str]) -> None:
    reward = verifiers.rubric_function(scorer)
    offered: dict[str, Any] = {"prompt": [], "answer": "", "state": {}, "task": "gui", "info": {"task": ROW}, "parser": None}
    wanted = set(inspect.signature(reward).parameters)
    assert wanted <= {*offered, "completion"}
    for text, expected in zip(replies, EXPECTED, strict=True):
        given = {name: value for name, value in {**offered, "completion": messages(text)}.items() if name in wanted}
        assert reward(**given) == pytest.approx(expected)
    assert reward(completion=replies[0], answer=ROW) == 1.0

    class Task:
        data = SimpleNamespace(task=ROW)
        guieval = verifiers.task_method(scorer)

    trace = SimpleNamespace(last_reply=replies[1])
    assert asyncio.run(Task().guieval(trace=trace)) == {"ui-s1": 0.5}
    Task.data = SimpleNamespace()
    with pytest.raises(UsageError, match="no field 'task'"):
        asyncio.run(Task().guieval(trace=trace))


def test_nothing_of_a_framework_is_imported() -> None:
    names = "easyr1, ms_swift, nemo_rl, openrlhf, rllm, trl, verifiers, verl"
    code = (
        f"import sys\nfrom guieval.rewards.adapters import {names}\n"
        "heavy = ('torch', 'trl', 'verl', 'swift', 'transformers', 'verifiers', 'aiohttp', 'PIL')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
