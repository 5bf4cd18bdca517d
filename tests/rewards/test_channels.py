"""One response by every way it can come: each gives the same verdict, the same action and the same reward."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Click, Point
from guieval.engines.http.chat_answers import response_in
from guieval.journal.lines import read_line, write_line
from guieval.models.response import Call, Response
from guieval.models.scored_response import read_response
from guieval.rewards import ResponseScorer, open_scorer
from guieval.rewards.adapters import easyr1, ms_swift, nemo_rl, openrlhf, rllm, trl, verifiers, verl
from guieval.scoring.recorded_run import read_again
from guieval.steps import Sample, StepRecord
from tests.model_adapters.steps import step

TASK = step(Click(point=Point(500.0, 750.0)), targets=[(400.0, 700.0, 600.0, 800.0)])
ROW = TASK.model_dump_json()
NAMES = {"qwen3-vl-8b-instruct": "ui-s1-lenient", "qwen2.5-vl-7b-ui-s1": "ui-s1"}
SCORERS = {model: open_scorer(model, reward) for model, reward in NAMES.items()}
CALLS = (
    *(Call("mobile_use", {"action": "click", "coordinate": place}) for place in ([500, 750], [10, 10])),
    *(Call("mobile_use", {"action": "wait", "time": 2}), Call("mobile_use", '{"action": "cli'), Call("other", {})),
)
ACTIONS = ('{"action": "click", "coordinate": [540, 1800]}', '{"action": "click", "coordinate": [5, 5]}', '{"action": ')


def called(response: Response) -> Iterator[tuple[str, Any]]:
    """A response with calls as servers and frameworks give it."""
    texts = [call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments) for call in response.calls]
    functions = [{"name": call.name, "arguments": text} for call, text in zip(response.calls, texts, strict=True)]
    tool_calls = [{"id": "c", "type": "function", "function": function} for function in functions]
    yield "tool_calls", {"role": "assistant", "content": response.text, "tool_calls": tool_calls}
    yield "no content", {"role": "assistant", "content": response.text or None, "tool_calls": tool_calls}
    yield "parts", {"role": "assistant", "content": [{"type": "text", "text": response.text}], "tool_calls": tool_calls}
    yield "written", {"role": "assistant", "content": response.written}
    if len(functions) == 1:
        yield "function_call", {"role": "assistant", "content": response.text, "function_call": functions[0]}


def thought(response: Response) -> Iterator[tuple[str, Any]]:
    """A response whose thought was split off, or was not."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        yield name, {"role": "assistant", "content": response.text, name: response.reasoning}
    yield "in the text", {"role": "assistant", "content": f"<think>{response.reasoning}</think>{response.text}"}
    yield "end token", {"role": "assistant", "content": f"<think>{response.reasoning}</think>{response.text}<|im_end|>\n"}


def rewards(model: str, scorer: ResponseScorer, message: Any) -> Iterator[tuple[str, float | None]]:
    """What every framework's reward function gives a message; those that hand in a text get a plain one only."""
    columns: dict[str, Any] = {"task": [ROW]}
    names: dict[str, Any] = {"model": model, "reward": NAMES[model]}
    said = SimpleNamespace(**message)

    class Swift(ms_swift.GuievalReward):
        reward = NAMES[model]

    Swift.model = model
    for form in (message, [message], [{"role": "user", "content": "?"}, message], said, [said]):
        yield "trl", trl.reward_function(scorer)(completions=[form], **columns)[0]
        yield "verifiers", verifiers.rubric_function(scorer)(completion=form, info={"task": ROW})
        yield "rllm", rllm.reward_function(scorer)({"task": ROW}, form).reward
    if not isinstance(message["content"], str) or len(message) > 2:
        return
    text = message["content"]
    yield "ms-swift", Swift(args=None)([text], task=[ROW])[0]
    yield "verl", verl.compute_score("guieval", text, ROW, **names)["score"]
    yield "easyr1", easyr1.compute_score({"response": text, "ground_truth": ROW}, **names)["overall"]
    yield "nemo-rl", nemo_rl.reward_function(scorer)(ROW, text)[0]
    yield "openrlhf", openrlhf.reward_function(scorer, tensor=list)(["Q: " + text], ["Q: "], [ROW])["rewards"][0]


def judged(sample: Sample) -> tuple[Any, ...]:
    return sample.outcome, sample.action, sample.batch, None if sample.error is None else sample.error.stage


def agree(model: str, forms: Iterator[tuple[str, Any]]) -> None:
    scorer = SCORERS[model]
    expected: tuple[Any, ...] = ()
    for form, message in forms:
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        sample = read_response(scorer.model, scorer.reward.evaluator, TASK, response_in(body))
        record = read_line(write_line(StepRecord(task=TASK, samples=(sample,)), compact=False))
        again = read_again(scorer.reward.evaluator, scorer.model, TASK, record.sample)
        scored = scorer.score(TASK, message)
        expected = expected or (judged(sample), scored.reward.total)
        assert (judged(sample), scored.reward.total) == expected, form
        assert judged(again) == judged(scored.sample) == expected[0], form
        for name, reward in rewards(model, scorer, message):
            assert reward == scored.reward.total, (form, name)


@settings(max_examples=60)
@given(st.sampled_from(["", "I tap it."]), st.lists(st.sampled_from(CALLS), min_size=1, max_size=2))
def test_calls_are_read_wherever_they_stand(text: str, calls: list[Call]) -> None:
    """TRL's ``tool_calls`` earned 0.0 where the same call in the text was right."""
    agree("qwen3-vl-8b-instruct", called(Response(text, calls=tuple(calls))))


@settings(max_examples=30)
@given(st.sampled_from(["The box.", "a <b> & c"]), st.sampled_from(ACTIONS))
def test_a_thought_counts_wherever_it_stands(reasoning: str, action: str) -> None:
    """A thought in a field of its own, and an end token that was decoded, each cost the whole reward for the format."""
    agree("qwen2.5-vl-7b-ui-s1", thought(Response(f"\n<action>{action}</action>", reasoning)))
