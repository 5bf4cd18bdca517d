from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.actions import Action, ActionSpace, Click, Point, Unsupported, Wait, action_from_json, action_to_json
from guieval.errors import ParseError, UsageError
from guieval.frames import PER_1000, Frame
from guieval.history import HistoryEntry
from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, ParsedResponse, load_template
from guieval.registry import adapter_class, list_adapters, list_models, load_model, model_config
from guieval.steps import StepTaskModel
from guieval.testing.conformance import check_adapter, every_model, example_step

MODELS = dict(every_model())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_conforms(name: str) -> None:
    assert [str(finding) for finding in check_adapter(MODELS[name], name)] == []


@pytest.mark.parametrize("name", list_models())
def test_configs(name: str) -> None:
    config = model_config(name)
    assert config.adapter in list_adapters()
    if config.engine == "openai":
        # weights that nobody publishes have no Hugging Face id, nor have those that are shipped
        assert (config.hf_id is None) == (config.licence in ("proprietary", "unpublished") or config.folder is not None)
        assert config.sampling["max_tokens"] > 0
        assert "temperature" in config.sampling
    if load_model(name).thinking_switch:
        assert config.thinking is not None, "a family with a switch needs its default in the file"
    else:
        with pytest.raises(UsageError, match="no thinking switch"):
            load_model(name, thinking=True)


@pytest.mark.parametrize("name", list_adapters())
def test_unknown_options_are_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match="no_such_option"):
        adapter_class(name)(ModelConfig(name="m", adapter=name, options={"no_such_option": 1}))


def test_every_prompt_file_names_its_origin() -> None:
    files = list((Path(inspect.getfile(adapter_class(list_adapters()[0]))).parent / "prompts").glob("*.txt"))
    assert files
    for file in files:
        assert file.read_text(encoding="utf-8").startswith("# origin: "), file.name
        assert load_template(file)


class Broken(ABCModel):
    """Breaks one promise at a time, to see that the suite notices."""

    action_space = ActionSpace(types=frozenset({"CLICK", "WAIT"}))
    fault = ""

    def frame(self, task: StepTaskModel) -> Frame:
        return PER_1000

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
        return ModelInput((Message("user", (ImageRef(task), result)),))

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        try:
            action = action_from_json(text)
        except ValueError:
            if self.fault == "credulous":
                return ParsedResponse(Click(point=Point(500.0, 500.0)))
            if self.fault == "leaks":
                raise
            raise ParseError("no action") from None
        if self.fault == "shifted" and isinstance(action, Click):
            return ParsedResponse(Click(point=Point(abs(action.point.x - 3.0), action.point.y)))
        if self.fault == "deaf" and isinstance(action, Click):
            return ParsedResponse(Wait())
        return ParsedResponse(action)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space and self.fault != "obliging":
            raise ValueError("outside")
        return action_to_json(action)


@pytest.mark.parametrize(
    ("fault", "checks"),
    [
        ("", set()),
        ("no history", {"input", "instruction"}),
        ("filled twice", {"instruction"}),
        ("unstable", {"input"}),
        ("blind", {"input"}),
        ("unmarked prefill", {"input"}),
        ("credulous", {"garbage"}),
        ("leaks", {"garbage"}),
        ("shifted", {"round trip"}),
        ("deaf", {"round trip", "reference scores"}),
        ("obliging", {"refusal"}),
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
    '```json\n[\n\t{"bbox_2d": [1, 2, 3, 4], "label": "x"}\n]\n```',
    "123, 456]}}\n</tool_call>",
    "Thought: x\nAction: click(start_box='<|box_start|>(177,549)<|box_end|>')",
    "Action：drag(start_box='(255,690)', end_box='(235,142)')",
    "Action: scroll(direction='down', point='<point>1 2</point>')\n\ntype(content='it's\\n')",
    "<think_x>a</think_x>\nAction: hotkey(key='ctrl v')",
    "(12, 34)",
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


TASKS = [example_step(Click(point=Point(500.0, 500.0)), setting=setting) for setting in ("high", "low", "grounding")]


@pytest.mark.parametrize("name", list_adapters())
@settings(max_examples=800, deadline=None)
@given(text=mutated() | st.text(st.characters()))
def test_any_reply_is_an_action_or_a_parse_error(name: str, text: str) -> None:
    model = _model_of(name)
    for task in TASKS:
        try:
            parsed = model.parse_response(task, text)
        except ParseError as error:
            assert str(error)
            continue
        assert action_from_json(action_to_json(parsed.action)) == parsed.action


_CACHE: dict[str, ABCModel] = {}


def _model_of(name: str) -> ABCModel:
    if name not in _CACHE:
        _CACHE[name] = adapter_class(name)(ModelConfig(name=name, adapter=name))
    return _CACHE[name]


@pytest.mark.parametrize("name", list_adapters())
@given(data=st.data())
def test_any_text_and_point_survive_the_way_there_and_back(name: str, data: st.DataObject) -> None:
    model = _model_of(name)
    text = data.draw(st.text(st.characters(exclude_categories=["Cs"])).filter(lambda text: not text.endswith("\n")))
    x, y = (data.draw(st.floats(0.0, 1000.0)) for _ in range(2))
    actions: list[dict[str, Any]] = [{"type": "TYPE", "text": text}, {"type": "CLICK", "point": [x, y]}]
    for action in map(action_from_json, actions):
        if action not in model.action_space:
            continue
        task = example_step(action)
        read = model.parse_response(task, model.render(task, action)).action
        if isinstance(action, Click):
            assert isinstance(read, Click)
            frame, size = model.frame(task), task.screenshot_size
            assert frame.quantise(read.point, size) == frame.quantise(action.point, size)
        else:
            assert read == action
    assert not isinstance(action, Unsupported)
