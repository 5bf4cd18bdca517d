"""Actions of which only the type is known: they count in type everywhere, and where the type alone decides."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from guieval import actions as act
from guieval.evaluation import ActionEvaluator
from guieval.history import describe, reference_entry, select
from guieval.models import ABCModel
from guieval.online.attempt import Attempt
from guieval.registry import load_benchmark, load_model
from guieval.rewards import ResponseScorer, action_reward, coordinate_reward, format_reward, get_reward
from guieval.steps import OnlineTask, Sample, StepTaskModel
from tests.evaluation.verdicts import judged
from tests.made_runs import ANSWERED, step
from tests.rows import every_row

AT = act.Point(500, 500)


def typed(known: act.ActionType, name: str = "call") -> act.Unsupported:
    return act.Unsupported(name=name, known=known, problem="it has no argument")


@every_row(
    ("protocol", "reference", "known", "type_match", "exact"),
    [
        ("ui-r1", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("ui-r1", act.Open(app="Maps"), "OPEN", True, True),
        ("ui-r1", act.Type(text="a"), "TYPE", True, True),
        ("ui-r1", act.Press(button="BACK"), "PRESS", True, True),
        ("ui-r1", act.Click(point=AT), "CLICK", True, False),
        ("ui-r1", act.Click(point=AT), "SCROLL", False, False),
        ("ui-r1-reward", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("ui-r1-reward", act.Press(button="BACK"), "PRESS", False, False),  # each button is a type of its own there
        ("ui-r1-reward", act.Stop(), "STOP", False, False),
        ("guievalkit", act.Scroll(point=AT, direction="up"), "SCROLL", True, False),
        ("guievalkit", act.Type(text="a"), "TYPE", True, False),
        ("guievalkit", act.Click(point=AT), "CLICK", True, False),
        ("guievalkit", act.LongPress(point=AT), "LONG_PRESS", True, False),
        ("guievalkit", act.LongPress(point=AT), "CLICK", False, False),
        ("guievalkit", act.Wait(), "WAIT", True, True),
        ("agentnetbench", act.Scroll(point=AT, direction="up"), "SCROLL", True, True),
        ("agentnetbench-v2", act.Scroll(point=AT, direction="up"), "SCROLL", True, False),
        ("guievalkit", act.Unsupported(name="zoom"), "CLICK", False, False),
    ],
)
def test_the_type_alone_decides_where_the_protocol_looks_at_nothing_else(
    protocol: str, reference: act.Action, known: act.ActionType, type_match: bool, exact: bool
) -> None:
    outcome = judged(protocol, step(reference), typed(known))
    assert (outcome.type_match, outcome.exact_match) == (type_match, exact)
    assert outcome.verdict == ("right" if exact else "wrong") and outcome.distance is None


def test_the_best_of_several_labels_counts_and_the_reason_names_the_problem() -> None:
    outcome = judged("guievalkit", step(act.Stop(), alternatives=(act.Click(point=AT),)), typed("CLICK"))
    assert outcome.type_match and outcome.reason == "CLICK as the reference; it has no argument"


PIXEL_CALL = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": %s}}\n</tool_call>'


@every_row(
    ("name", "text"),
    [
        ("qwen2.5-vl-7b", PIXEL_CALL % "[5000, 20]"),
        ("qwen3-vl-8b-instruct", PIXEL_CALL % "[500, 1200]"),
        ("qwen3-vl-8b-instruct", '{"name": "mobile_use", "arguments": {"action": "click"}}'),
        ("ui-tars-1.5-7b", "Thought: I tap.\nAction: click(start_box='(5000,20)')"),
        ("autoglm-phone-9b", '<answer>do(action="Tap", element=[1811,188])</answer>'),
        ("aguvis-7b", "pyautogui.click(x=1.5, y=0.5)"),
    ],
)
def test_a_click_outside_the_frame_counts_in_type_and_not_in_place(name: str, text: str) -> None:
    task = step(act.Click(point=AT), targets=[[0, 0, 1000, 1000]])
    action = load_model(name).parse_response(task, text).action
    for protocol in ("guievalkit", "ui-s1-sop", "ui-r1", "seeclick-official"):
        outcome = ActionEvaluator(protocol).evaluate(task, action)
        assert (outcome.verdict, outcome.type_match, outcome.distance) == ("wrong", True, None), protocol
    assert act.action_from_json(act.action_to_json(action)) == action


@every_row(
    ("name", "text"),
    [
        ("qwen3-vl-8b-instruct", '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [500, 500]}}'),
        (
            "qwen3-vl-8b-instruct",
            '{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [1, 2], "coordinate2": [1, 2]}}',
        ),
        ("aguvis-7b", "mobile.swipe(from_coord=[0.5, 0.8])"),
    ],
)
def test_a_swipe_without_an_end_or_a_length_counts_in_type(name: str, text: str) -> None:
    task = step(act.Scroll(point=AT, direction="up"))
    outcome = ActionEvaluator("guievalkit").evaluate(task, load_model(name).parse_response(task, text).action)
    assert (outcome.type_match, outcome.exact_match) == (True, False)


NAMES = {"SCROLL": "scroll", "OPEN": "open_app", "TYPE": "input_text", "PRESS": "navigate_back"}


def perfect(model: ABCModel, task: StepTaskModel) -> str:
    """A response in the published format, which asks for a name and a coordinate: as the prompt's example has it."""
    if isinstance(task.action, act.Click):
        return model.render(task, task.action, "I see it.")
    answer = [{"action": NAMES[task.action.type], "coordinate": [0, 0]}]
    return f"<think> I see it. </think> <answer>{answer}</answer>"


def test_perfect_responses_in_ui_r1s_format_win_every_step_of_its_file(shared_data: Path) -> None:
    model, evaluator = load_model("ui-r1-3b"), ActionEvaluator("ui-r1")
    missed: Counter[str] = Counter()
    count = 0
    for task in (each for episode in load_benchmark("ui-r1", shared_data / "ui_r1") for each in episode.steps):
        outcome = evaluator.evaluate(task, model.parse_response(task, perfect(model, task)).action)
        count += 1
        missed[task.action.type] += not (outcome.type_match and outcome.exact_match)
    assert count == 7868 and not +missed


@every_row(
    "reference",
    [
        act.Click(point=AT),
        act.Scroll(point=AT, direction="down"),
        act.Open(app="Maps"),
        act.Type(text="hello"),
        act.Press(button="BACK"),
    ],
)
def test_the_reward_pays_a_right_type_in_full_as_the_released_code_does(reference: act.Action) -> None:
    model = load_model("ui-r1-3b")
    task = step(reference, targets=[[450, 450, 550, 550]])
    scorer = ResponseScorer(model, get_reward("ui-r1"))
    for answered in (reference, act.Scroll(point=AT, direction="up"), act.Press(button="BACK"), act.Type(text="x")):
        text = perfect(model, task.model_copy(update={"action": answered}))
        solution = f"<answer>[{{'action': '{NAMES.get(reference.type, 'click')}', 'coordinate': [1, 1, 1008, 2296]}}]</answer>"
        released = action_reward(text, solution) + coordinate_reward(text, solution) + format_reward(text)
        assert scorer.score(task, text).reward.total == released
        assert (released == 3.0) is (answered.type == reference.type)


def test_no_device_carries_it_out_and_it_counts_as_unsupported_there() -> None:
    attempt = Attempt(OnlineTask(benchmark="demo", episode_id="t", instruction="a goal", max_steps=9))
    shown = step(act.Wait())
    assert act.executable(typed("SCROLL")) is None
    assert attempt.answered(shown, Sample(raw_response="", action=typed("SCROLL"), outcome=ANSWERED)) == []
    assert (attempt.steps, attempt.unsupported, attempt.unparseable, attempt.history) == (1, 1, 0, [])


def test_a_later_step_sees_the_reference_in_its_place() -> None:
    task = step(act.Scroll(point=AT, direction="up"))
    outcome = ActionEvaluator("ui-r1").evaluate(task, typed("SCROLL"))
    assert outcome.exact_match
    told = partial(select, task=task, sample=Sample(raw_response="r", action=typed("SCROLL"), outcome=outcome))
    assert told("matched") == told("model") == reference_entry(task)
    assert describe(typed("SCROLL", "scroll")) == "scroll."


def test_a_space_holds_it_by_its_type() -> None:
    assert typed("SCROLL") in act.ActionSpace(types=frozenset({"SCROLL"}))
    assert typed("OPEN") not in act.ActionSpace(types=frozenset({"SCROLL"}))
