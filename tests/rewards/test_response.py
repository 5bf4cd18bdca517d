"""From a raw response to its reward, by every way it can come: the score of the evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Box, Boxes, Click, Open, Point, Type
from guieval.engines.http.chat_answers import response_in
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal.lines import read_line, write_line
from guieval.models.parsing.call_tables import BACK
from guieval.models.response import Call, Response
from guieval.models.scored_response import read_response
from guieval.registry import build_model, load_model, model_config
from guieval.rewards import REWARDS, HasThought, ResponseScorer, Tags, get_reward, open_scorer
from guieval.rewards.adapters import easyr1, ms_swift, nemo_rl, openrlhf, rllm, trl, verifiers, verl
from guieval.rewards.response import predicted_box
from guieval.scoring.recorded_run import read_again
from guieval.scoring.score import evaluate_run
from guieval.steps import Sample, StepRecord
from tests.model_adapters.steps import scroll, step
from tests.rows import every_row

from .pairs import UNJUDGED, Answered, kairos, os_atlas, recorded, run_of, written

TASK = step(Click(point=Point(500.0, 500.0)), targets=Boxes([[450.0, 450.0, 550.0, 550.0]]), screenshot_size=(1000, 1000))


def test_a_scorer_by_names_reads_judges_and_weighs() -> None:
    scorer = open_scorer("ui-s1-7b", "ui-s1", protocol="guievalkit", type_weight=0.3)
    assert scorer.reward.evaluator.protocol.name == "guievalkit"
    scored = scorer.score(TASK, scorer.model.render(TASK, TASK.action, "tap it"))
    assert scored.measured and scored.sample.thought == "tap it" and scored.sample.action is not None
    assert scored.reward.outcome == scored.sample.outcome
    assert scored.reward.total == pytest.approx(0.9)
    assert scorer.score(TASK, "I do not know").reward.total == 0.0
    assert scorer.score(TASK, "I do not know").sample.outcome.verdict == "unparseable"
    for model, reward, nearest in (("ui-s1-7bb", "ui-s1", "ui-s1-7b"), ("ui-s1-7b", "ui-s", "ui-s1")):
        with pytest.raises(UsageError, match=f"did you mean '{nearest}'"):
            open_scorer(model, reward)


def test_the_form_may_be_another_and_an_adapters_own_failure_earns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, text = load_model("ui-s1-7b"), '<action>\n{"action": "wait", "time": 1}\n</action>'
    reward = get_reward("ui-s1-lenient")
    assert ResponseScorer(model, reward).score(TASK, text).reward.parts["format"] == 1.0
    assert ResponseScorer(model, reward, HasThought()).score(TASK, text).reward.parts["format"] == 0.0
    assert ResponseScorer(model, reward, Tags("action")).score(TASK, text).reward.parts["format"] == 1.0

    def broken(*arguments: Any) -> Any:
        raise KeyError("a bug")

    monkeypatch.setattr(model, "parse_response", broken)
    scored = ResponseScorer(model, get_reward("ui-r1")).score(TASK, "<think>a</think><answer>b</answer>")
    assert not scored.measured
    assert scored.reward.outcome.verdict == "infrastructure_failure" and "a bug" in scored.reward.outcome.reason
    assert scored.reward.total == 0.0 and not any(scored.reward.parts.values())


@every_row(
    ("text", "box"),
    [
        ("[100, 200, 300, 400]", Box(100, 200, 300, 400)),
        ("(100,200),(300,400)", Box(100, 200, 300, 400)),
        ("<|box_start|>(100, 200), (300, 400)<|box_end|>", Box(100, 200, 300, 400)),
        ("first [1, 2, 3, 4], then [10.5, 20, 30, 40]", Box(10.5, 20, 30, 40)),
        ("[100, 200]", None),
        ("[300, 200, 100, 400]", None),  # turned round
        ("[100, 200, 300, 1400]", None),  # off the screen
        ("", None),
    ],
)
def test_a_predicted_box_is_the_replys_last_four_numbers_in_the_models_frame(text: str, box: Box | None) -> None:
    assert predicted_box(load_model("ui-tars-7b-dpo"), TASK, text) == box


def test_the_iou_reward_reads_boxes_from_replies() -> None:
    scorer = ResponseScorer(load_model("qwen2.5-vl-7b"), get_reward("ui-r1-iou"))
    grounding = TASK.model_copy(update={"setting": "grounding"})
    width, height = scorer.model.frame(grounding).extent(grounding.screenshot_size)
    corners = [round(share * side) for share, side in ((0.45, width), (0.45, height), (0.55, width), (0.55, height))]
    scored = scorer.score(grounding, f'[{{"bbox_2d": {corners}, "label": "button"}}]')
    assert isinstance(scored.sample.action, Click) and scored.reward.parts["iou"] == 1.0
    point = scorer.score(grounding, scorer.model.render(grounding, grounding.action))
    assert point.reward.outcome.exact_match and point.reward.parts["iou"] == 0.0


def test_ui_r1_is_rewarded_in_its_own_words_and_for_a_box() -> None:
    """Types alone count in full; the released reward reads the words of a response, in pixels of the image that is seen."""
    boxed = build_model(model_config("ui-r1-3b").model_copy(update={"options": {"target": "box"}}))
    text = boxed.render(TASK, TASK.action, "t")
    assert "'bbox': [454, 454, 554, 554]" in text and boxed.parse_response(TASK, text).action == TASK.action
    assert "[x1, y1, x2, y2]" in str(boxed.prepare_input(TASK, ()).messages[-1].parts)
    assert ResponseScorer(boxed, get_reward("ui-r1-iou")).score(TASK, text).reward.total == 3.0
    at = "<think>t</think> <answer>[{'action': '%s', 'coordinate': [%d, %d]}]</answer>"
    texts = {"open_app": Open(app="Maps"), "input_text": Type(text="a")}
    others: dict[str, Any] = {"scroll": scroll("up"), "navigate_back": BACK, **texts}
    rows: list[tuple[Any, ...]] = [(step(action), at % (name, -100, -100), 3.0, 3.0) for name, action in others.items()]
    rows += [(step(action), at % ("click", 5, 5), 1.0, 1.0) for action in others.values()]
    rows += [(TASK, at % ("click", 504, 504), 3.0, 3.0), (TASK, at % ("click", 1, 1), 2.0, 2.0)]
    rows += [(TASK, at % ("left_click", 504, 504), 3.0, 1.0)]  # the base model's own word, which the adapter reads
    names = ("ui-r1", "ui-r1-released")
    found = [[open_scorer("ui-r1-3b", name).score(task, text).reward.total for name in names] for task, text, *_ in rows]
    assert found == [[*expected] for _, _, *expected in rows]
    with pytest.raises(UsageError, match="is of a raw response"):
        get_reward("ui-r1-released").of(TASK, TASK.action, well_formed=True)


JUDGED = [name for name, kind in REWARDS.items() if not kind.reads_text]
"""The rewards of an action; the others have an outcome beside their parts."""
UI_S1 = ("ui-s1", "ui-s1-lenient", "ui-s1-released")
EXACT_PART = {"ui-r1": "coordinate", "hypertrack": "params", **dict.fromkeys(UI_S1, "exact")}
"""The part that is the exact match itself; the others grade it."""


def both_paths_agree(answered: Answered, name: str, protocol: str, directory: Path) -> int:
    """Compare every pair, and then the totals of a whole run that is read and judged again; how many pairs there were."""
    scorer = ResponseScorer(answered.model, get_reward(name, protocol=protocol))
    evaluator = ActionEvaluator(protocol)
    types = exacts = 0
    for pair in answered.pairs:
        scored = scorer.score(pair.task, pair.text)
        judged = read_again(evaluator, answered.model, pair.task, Sample(raw_response=pair.text, outcome=UNJUDGED))
        assert scored.sample == judged
        assert scored.reward.outcome == judged.outcome
        parts = scored.reward.parts
        assert parts["type"] == judged.outcome.type_match
        if name in EXACT_PART:
            assert parts[EXACT_PART[name]] == judged.outcome.exact_match
        assert all(0.0 <= part <= 1.0 for part in parts.values())
        if judged.outcome.verdict in ("unparseable", "unsupported"):
            assert not any(part for part_name, part in parts.items() if part_name != "format")
        types += int(parts["type"])
        exacts += judged.outcome.exact_match
    summary = evaluate_run(run_of(directory, answered), protocol, reparse=True).summary
    assert summary.verdicts.measured == len(answered.pairs)
    assert (summary.metrics["type match"].count, summary.metrics["exact match"].count) == (types, exacts)
    return len(answered.pairs)


def over(all_answered: Iterator[Answered], directory: Path) -> int:
    """In turn: every reward under its own protocol, and one under GUIEvalKit's; how many pairs there were."""
    turns = [turn for name in JUDGED for turn in ((name, REWARDS[name].protocol), ("ui-s1", "guievalkit"))]
    numbered = enumerate(all_answered)
    return sum(both_paths_agree(each, *turns[number % len(turns)], directory / str(number)) for number, each in numbered)


def test_every_recorded_reply_is_rewarded_as_it_is_evaluated(shared_data: Path, tmp_path: Path) -> None:
    assert over(recorded(shared_data), tmp_path) > 3000
    assert over(iter([kairos(shared_data), os_atlas(shared_data)]), tmp_path / "others") > 600


def test_every_family_is_rewarded_as_it_is_evaluated(tmp_path: Path) -> None:
    assert over(written(episodes=2), tmp_path) > 1000


@every_row("name", JUDGED)
def test_every_reward_follows_the_protocol_it_is_given(name: str, tmp_path: Path) -> None:
    answered = next(written(episodes=1))
    for protocol in ("guievalkit", "ui-s1-sop", "coat-intended", "gui-r1", "agentnetbench"):
        both_paths_agree(answered, name, protocol, tmp_path / protocol)


SHOWN = step(Click(point=Point(500.0, 750.0)), targets=[(400.0, 700.0, 600.0, 800.0)])
ROW = SHOWN.model_dump_json()
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
        sample = read_response(scorer.model, scorer.reward.evaluator, SHOWN, response_in(body))
        record = read_line(write_line(StepRecord(task=SHOWN, samples=(sample,)), compact=False))
        again = read_again(scorer.reward.evaluator, scorer.model, SHOWN, record.sample)
        scored = scorer.score(SHOWN, message)
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
