"""A given thought: its form in each family, and what the suite notices."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from guieval.actions import Action, ActionSpace, Click, Point, action_from_json, action_to_json
from guieval.conformance import check_adapter
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry
from guieval.models import Message, ModelConfig, ModelInput, ParsedResponse
from guieval.registry import load_model
from guieval.steps import Setting, StepTaskModel
from tests.rows import every_row

from .steps import adapter, past, step
from .test_conformance import Broken

SAID = "Wi-Fi is off.\nI tap the switch."
CONTINUED = {"continue_final_message": True, "add_generation_prompt": False}
CALL = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "click", "coordinate": [%s]}}\n</tool_call>'
QWEN3S = 'Action: "I tapped the switch."\n' + CALL % "499.5, 749.25"


@every_row(
    ("name", "turn", "reply"),
    [
        ("qwen2.5-vl-7b", f"<thinking>\n{SAID}\n</thinking>\n", CALL % "546, 1806"),
        ("qwen3-vl-8b-instruct", f"Thought: {SAID}\n", QWEN3S),
        ("qwen3-vl-8b-thinking", f"<think>\n{SAID}\n</think>\n\n", f"Thought: The switch is here.\n{QWEN3S}"),
        ("ui-tars-7b", f"Thought: {SAID}\nAction:", " click(start_box='<|box_start|>(500,750)<|box_end|>')"),
        ("ui-tars-1.5-7b", f"Thought: {SAID}\nAction:", " click(start_box='(546,1806)')"),
    ],
)
def test_the_turn_of_a_given_thought(name: str, turn: str, reply: str) -> None:
    model = load_model(name)
    task = step(step_index=2)
    begun = model.prepare_fixed_thought(task, past(2), f"\n{SAID}\n\n")
    assert begun.messages[:-1] == model.prepare_input(task, past(2)).messages
    assert begun.messages[-1] == Message("assistant", (turn,))
    assert begun.prefill and begun.extra == CONTINUED
    assert model.parse_response(task, reply).action == Click(point=Point(500.0, 750.0))


@every_row(
    ("name", "setting", "thinking", "reason"),
    [
        ("qwen2_5_vl", "grounding", None, "asks for no thought"),
        ("ui_tars", "low", None, "the step instruction is its thought"),
        *(("ui_tars", "grounding", None, "asks for no thought"), ("ui_tars", "high", False, "asks for no thought")),
        *(("ui_tars_1_5", "grounding", None, "asks for no thought"), ("ui_tars_1_5", "high", False, "thinking is turned off")),
        *(("aguvis", "high", False, "thinking is turned off"), ("gui_owl", "high", False, "thinking is turned off")),
        ("ocr_baseline", "high", None, "cannot be given a thought"),
    ],
)
def test_where_no_thought_is_written_none_can_be_given(name: str, setting: Setting, thinking: bool | None, reason: str) -> None:
    task = step(setting=setting, low_level_instruction="Tap it")
    with pytest.raises(UsageError, match=reason):
        adapter(name, thinking=thinking).prepare_fixed_thought(task, (), "I tap it.")


@every_row(
    "name",
    [
        *("qwen2_5_vl", "qwen3_vl", "ui_tars", "ui_tars_1_5", "gui_owl", "ui_s1", "infigui_r1", "ui_venus_navi", "gui_r1"),
        *("mimo_vl", "glm_4_1v", "glm_4_5v", "ui_r1", "os_atlas", "os_genesis", "aguvis", "agentcpm_gui"),
    ],
)
def test_an_empty_thought_is_none(name: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        adapter(name).prepare_fixed_thought(step(), (), " \n")


class Given(Broken):
    """Gives a thought in the simplest form, with one fault at a time."""

    action_space = ActionSpace(types=frozenset({"CLICK"}))
    fixes_thought = True

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        messages = self.prepare_input(task, history).messages
        match self.fault:
            case "refuses":
                raise UsageError("no")
            case "drops it":
                thought = "Hm."
            case "asks for it":
                messages = (Message("user", (*messages[0].parts, thought)),)
        turn = Message("user" if self.fault == "puts it to the user" else "assistant", (f"{thought}\n",))
        return ModelInput((*messages, turn), prefill=self.fault != "closes the turn")

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        thought, _, call = text.rpartition("\n")
        try:
            if self.fault == "needs the thought" and not thought:
                raise ParseError("no thought")
            return ParsedResponse(action_from_json(call), thought or None)
        except ValueError:
            raise ParseError("no action") from None

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        if action not in self.action_space:
            raise ValueError("outside")
        if self.fault == "needs the thought":
            thought = thought or "Hm."
        return f"{thought}\n{action_to_json(action)}" if thought else action_to_json(action)


@every_row(
    "fault",
    ["", "refuses", "drops it", "asks for it", "puts it to the user", "closes the turn", "needs the thought", "undeclared"],
)
def test_the_suite_notices(fault: str) -> None:
    model = Given(ModelConfig(name="given", adapter="given"))
    model.fault = fault
    if fault == "undeclared":
        model.fixes_thought = False
    assert {finding.check for finding in check_adapter(model)} == ({"fixed thought"} if fault else set())
