from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval import actions as act
from guieval.conformance import check_adapter, every_model, example_step
from guieval.errors import DataError, ParseError, UsageError, whole_text
from guieval.frames import PER_1000
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, ParsedResponse, load_template
from guieval.registry import adapter_class, list_adapters, list_models, load_model, model_config
from guieval.steps import StepTaskModel
from tests.checkpoints import of_each_kind, twin
from tests.evaluation.strategies import points
from tests.rows import every_row

from .steps import GROUNDING, adapter, past, step


def test_a_checkpoint_of_each_kind_conforms() -> None:
    assert violations({*of_each_kind()} | {*list_adapters()} - {model_config(name).adapter for name in list_models()}) == []


@pytest.mark.full
def test_every_model_conforms() -> None:
    assert violations(list_models()) == []


@every_row("name", list_models)
def test_checkpoints_of_a_kind_are_one_agent(name: str) -> None:
    model, other = (load_model(each) for each in (name, twin(name)))
    assert (type(model), model.action_space, model.resolved_options) == (
        type(other),
        other.action_space,
        other.resolved_options,
    )


def violations(names: Collection[str]) -> list[str]:
    """What the checkpoints of these names, and the adapters without one, break in any state of their thinking switch."""
    chosen = [(title, model) for title, model in every_model() if model.config.name in names]
    assert len(chosen) >= len(names)
    return [str(finding) for title, model in chosen for finding in check_adapter(model, title)]


@every_row("name", list_adapters)
def test_what_an_adapter_cannot_be_told_is_reported_by_name(name: str) -> None:
    with pytest.raises(UsageError, match="no_such_option"):
        adapter(name, no_such_option=1)
    if not name.startswith("ocr_"):  # these go on by the goal
        with pytest.raises(DataError, match="b/e#0"):
            adapter(name).prepare_input(step(setting="low"), ())


@every_row(
    ("name", "options", "message"),
    [
        ("os_atlas", {"prompt": "aitw"}, "prompt"),
        ("openai_tools", {"frame": "0-999"}, "cannot use '0-999' as option 'frame'"),
        ("qwen3_vl", {"list_scale": 998}, "cannot use 998 as option 'list_scale'"),
        *(("gui_owl", {"history": "images"}, "'images'.*'history'"), ("ui_s1", {"examples": "none"}, "'examples'")),
        ("ui_tars", {"prompt": "androidcontol"}, "'androidcontol' as option 'prompt'.*'androidcontrol'"),
        ("ui_tars", {"scroll_word": "finger"}, "did you mean 'scroll_words'"),
        ("evocua", {"scale": 100}, "cannot use 100 as option 'scale'"),
    ],
)
def test_a_value_that_an_option_cannot_have_is_reported_by_name(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        adapter(name, **options)


CONTENT, FINGER = {"scroll_words": "content"}, {"scroll_words": "finger"}
ODYSSEY = {"prompt": "guiodyssey"}
ATLAS = "actions:\nSCROLL [DOWN]"
R1 = "<think> a </think> <answer>[{'action': 'scroll', 'point': [-100, -100], 'input_text': 'down'}]</answer>"
MIMO = '```json\n[{"action": "scroll", "direction": "down"}]\n```'
COG = "Grounded Operation: SCROLL_DOWN(box=[[500,500,500,500]], step_count=5)"


@every_row(
    ("name", "options", "text", "direction", "written"),
    [
        *(
            (
                name,
                options,
                f"Action: scroll(direction='{word}')",
                act.OPPOSITE[word] if options == {} else word,
                f"direction='{word}'",
            )
            for name in ("ui_tars", "ui_tars_1_5")
            for options in ({}, FINGER)
            for word in act.DIRECTIONS
        ),
        ("os_atlas", {}, ATLAS, "up", ATLAS),  # the labels of AndroidControl: the content comes from below
        *(("os_atlas", ODYSSEY, ATLAS, "down", ATLAS), ("os_atlas", FINGER, ATLAS, "down", ATLAS)),
        ("os_atlas", ODYSSEY | CONTENT, ATLAS, "up", ATLAS),
        ("gui_r1", {"prompt": "androidcontrol"}, R1, "up", "'input_text': 'down'}"),
        ("gui_r1", ODYSSEY, R1, "down", "'input_text': 'down'}"),
        ("gui_r1", {"prompt": "androidcontrol"} | FINGER, R1, "down", "'input_text': 'down'}"),
        *(("gui_r1", ODYSSEY | CONTENT, R1, "up", "'input_text': 'down'}"), ("mimo_vl", CONTENT, MIMO, "up", "")),
        (
            *("ui_venus_navi", CONTENT, "<action>Scroll(direction='down')</action>", "up"),
            "<action>\nScroll(start=(546, 1204), end=(546, 482), direction='down')\n</action>",
        ),
        ("cogagent", {"platform": "WIN"}, COG, "up", ""),  # on computers the name states the content's way
        ("cogagent", {"platform": "WIN"} | FINGER, COG, "down", ""),
    ],
)
def test_a_scroll_word_names_the_finger_or_the_content(
    name: str, options: dict[str, Any], text: str, direction: act.Direction, written: str
) -> None:
    model = adapter(name, **options)
    expected = act.Scroll(point=act.Point(500.0, 500.0), direction=direction)
    assert model.parse_response(step(), text).action == expected
    assert written in model.render(step(), expected)


def test_a_grounding_query_has_no_past() -> None:
    told = {name for name, model in adapters() if model.prepare_input(GROUNDING, past()) != model.prepare_input(GROUNDING, ())}
    assert told == set()


def test_every_prompt_file_names_its_origin() -> None:
    files = list((Path(inspect.getfile(adapter_class(list_adapters()[0]))).parent / "prompts").glob("*.txt"))
    assert files
    for file in files:
        assert file.read_text(encoding="utf-8").startswith("# origin: "), file.name
        assert load_template(file)


PASTS: dict[str, Callable[[act.Action], str]] = {
    "past left out": lambda action: "",
    "past in words": lambda action: f"I did a {action.type.lower()}",
    "unread past in the prompt": lambda action: act.action_to_json(action).replace("type", "kind"),
}
"""How a family that shows clicks as calls, and a call as an example, shows what else was done."""


class Broken(ABCModel):
    """Breaks one promise at a time, to see that the suite notices."""

    action_space = act.ActionSpace(types=frozenset({"CLICK", "WAIT"}))
    fixed_frame = PER_1000
    fault = ""

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        if self.fault == "no history":
            raise KeyError("past")
        result = (task.low_level_instruction if task.setting == "low" else task.instruction) or ""
        if self.fault == "unstable":
            self.fault_count = getattr(self, "fault_count", 0) + 1
            return ModelInput((Message("user", (ImageRef(task), result, str(self.fault_count))),))
        if self.fault == "blind":
            return ModelInput((Message("user", (result,)),))
        if self.fault == "filled twice":
            result = result.replace("{history}", "").replace("{instruction}", task.instruction)
        if self.fault == "unmarked prefill":
            return ModelInput((Message("user", (ImageRef(task), result)), Message("assistant", ("Thought:",))))
        if self.fault in PASTS:
            done = history[-1].action if history else None
            so_far = act.action_to_json(done) if isinstance(done, act.Click) else PASTS[self.fault](done) if done else "nothing"
            result = f'{result}\nSo far: {so_far or "nothing"}. Reply with {{"type": "CLICK", "point": [x, y]}}.'
        asked = Message("user", (ImageRef(task), result))
        if self.fault == "unread past" and history:
            written = act.action_to_json(history[-1].action).replace("RECENT", "MENU")
            return ModelInput((Message("user", ("Go on.",)), Message("assistant", (written,)), asked))
        return ModelInput((asked,))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            found = re.search(r"\{[^}]*\}", text) if self.fault in PASTS else None
            action = act.action_from_json(found[0] if found else text)
        except ValueError:
            if self.fault == "credulous":
                return ParsedResponse(act.Click(point=act.Point(500.0, 500.0)))
            if self.fault == "leaks":
                raise
            raise ParseError("no action") from None
        if self.fault == "shifted" and isinstance(action, act.Click):
            return ParsedResponse(act.Click(point=act.Point(abs(action.point.x - 3.0), action.point.y)))
        if self.fault == "deaf" and isinstance(action, act.Click):
            return ParsedResponse(act.Wait())
        return ParsedResponse(action)

    def render(self, task: StepTaskModel, action: act.Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space and self.fault != "obliging":
            raise ValueError("outside")
        return act.action_to_json(action)


@every_row(
    ("fault", "checks"),
    [
        *(("", set()), ("no history", {"past", "input", "instruction"}), ("filled twice", {"instruction"})),
        *(("unstable", {"input"}), ("blind", {"input"}), ("unmarked prefill", {"input"}), ("credulous", {"garbage"})),
        *(("leaks", {"garbage"}), ("shifted", {"round trip"}), ("deaf", {"round trip", "reference scores"})),
        *(("obliging", {"refusal"}), ("unread past", {"past"}), ("past left out", set()), ("past in words", set())),
        ("unread past in the prompt", {"past"}),
    ],
)
def test_the_suite_notices(fault: str, checks: set[str]) -> None:
    model = Broken(ModelConfig(name="broken", adapter="broken"))
    model.fault = fault
    assert {finding.check for finding in check_adapter(model)} == checks


# --- replies of every kind -------------------------------------------------------------------------------------------

SEEDS = (
    '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [935, 406]}}\n</tool_call>',
    '{"name": "left_click", "arguments": [3487, 52]}}',
    'Thought: a\nAction: "b"\n<tool_call>\n{"name": "mobile_use", "arguments": {"action": "swipe", "coordinate": [1, 2], '
    '"coordinate2": [3, 900]}}\n</tool_call>',
    '<tool_call>{"name": "mobile_use", "arguments": {"action": "long_press", "coordinate": "(1, 2)", "time": "2"}}',
    '<think>x</think>{"action": "terminate", "status": "failure"}',
    '{"name": "mobile_use", "arguments": "{\\"action\\": \\"wait\\", \\"time\\": 2}"}',
    *('```json\n[\n\t{"bbox_2d": [1, 2, 3, 4], "label": "x"}\n]\n```', "123, 456]}}\n</tool_call>"),
    "Thought: x\nAction: click(start_box='<|box_start|>(177,549)<|box_end|>')",
    "Action：drag(start_box='(255,690)', end_box='(235,142)')",
    "Action: scroll(direction='down', point='<point>1 2</point>')\n\ntype(content='it's\\n')",
    *("<think_x>a</think_x>\nAction: hotkey(key='ctrl v')", "(12, 34)"),
)
MARKS = ("<tool_call>", "</think>", "<think>", "Action:", "click(", "start_box=", "\\u", "\\ud83d", "null", "true", "[[]]")
NUMBERS = ("NaN", "1e999", "9" * 400, "0x" + "f" * 4000, "-", "٣")
PIECES = st.sampled_from((*"'\"\\{}[](),=:\n\0", "", "\ud800", *MARKS, *NUMBERS))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + draw(PIECES | st.text(max_size=3)) + text[end:]
    return text


TASKS = [example_step(act.Click(point=act.Point(500.0, 500.0)), setting=setting) for setting in ("high", "low", "grounding")]


@settings(max_examples=400)
@given(text=mutated() | st.text(st.characters()))
def test_any_reply_is_an_action_or_a_parse_error(text: str) -> None:
    for name, model in adapters():
        for task in TASKS:
            try:
                action = model.parse_response(task, whole_text(text)).action
            except ParseError as error:
                assert str(error), name
                continue
            except Exception as error:
                raise AssertionError(f"{name}, {task.setting}") from error
            assert act.action_from_json(act.action_to_json(action)) == action, name


@cache
def adapters() -> list[tuple[str, ABCModel]]:
    return [(name, adapter(name)) for name in list_adapters()]


@given(text=st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not text.endswith("\n")), point=points)
def test_any_text_and_point_survive_the_way_there_and_back(text: str, point: act.Point) -> None:
    for name, model in adapters():
        for action in (act.Type(text=text), act.Click(point=point)):
            if action not in model.action_space:
                continue
            task = example_step(action)
            read = model.parse_response(task, model.render(task, action)).action
            if isinstance(action, act.Click):
                assert isinstance(read, act.Click), name
                frame, size = model.frame(task), task.screenshot_size
                assert frame.quantise(read.point, size) == frame.quantise(action.point, size), name
            else:
                assert read == action, name
