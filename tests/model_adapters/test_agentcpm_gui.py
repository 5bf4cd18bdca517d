from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef

from .steps import adapter, past, step

MODEL = adapter("agentcpm_gui")
AT = Point(500.0, 750.0)


def test_the_published_request() -> None:
    task = step(instruction="请点击屏幕上的‘会员’按钮")
    request = MODEL.prepare_input(task, past(3))
    system, user = request.messages
    assert isinstance(system.parts[0], str)
    assert system.parts[0].startswith("# Role\n你是一名熟悉安卓系统触屏GUI操作的智能体，将根据用户的问题，")
    schema = json.loads(system.parts[0].partition("# Schema\n")[2])
    assert list(schema)[3] == "required"
    assert schema["required"] == ["thought"]
    assert user.parts == (
        "<Question>请点击屏幕上的‘会员’按钮</Question>\n当前屏幕截图：(<image>./</image>)",
        ImageRef(task, (504, 1120)),
    )


def test_the_thinking_switch_is_one_word_of_the_schema() -> None:
    on, off = (adapter("agentcpm_gui", thinking=thinking).prepare_input(step(), ()).text for thinking in (True, False))
    assert off == on.replace('"required":["thought"]', '"optional":["thought"]')
    assert off != on


def test_a_step_instruction_is_asked_alone() -> None:
    text = MODEL.prepare_input(step(setting="low", low_level_instruction="Tap Wi-Fi"), past(2)).messages[-1].parts[0]
    assert text == "<Question>Tap Wi-Fi</Question>\n当前屏幕截图：(<image>./</image>)"


@pytest.mark.parametrize(
    ("size", "sent"),
    [((1080, 2400), (504, 1120)), ((1152, 2376), (543, 1120)), ((1920, 1080), (1120, 630)), ((540, 1080), None)],
)
def test_the_longer_side_is_at_most_1120(size: tuple[int, int], sent: tuple[int, int] | None) -> None:
    task = step(screenshot_size=size)
    assert MODEL.prepare_input(task, ()).images == (ImageRef(task, sent),)


def test_past_turns_are_pairs_of_question_and_object() -> None:
    model = adapter("agentcpm_gui", max_images=4)
    own = HistoryEntry(
        step(step_index=2, screenshot="2.png"), Click(point=AT), "看", None, '{"thought":"看", "POINT":[500,750]}', "model"
    )
    reference = reference_entry(step(Scroll(point=AT, direction="up"), step_index=1, screenshot="1.png"))
    messages = model.prepare_input(step(step_index=3), (*past(1), reference, own)).messages
    assert [message.role for message in messages] == ["system"] + ["user", "assistant"] * 3 + ["user"]
    assert [message.parts[0] for message in messages[2:7:2]] == [
        '{"thought":"Open the settings","STATUS":"continue"}',
        '{"POINT":[500,750],"to":"up"}',
        '{"thought":"看","POINT":[500,750]}',
    ]
    silent = adapter("agentcpm_gui", thinking=False, max_images=2).prepare_input(step(step_index=3), (reference, own))
    assert [message.parts[0] for message in silent.messages[2:3]] == ['{"POINT":[500,750]}']


def test_grounding_has_a_prompt_for_functions_and_one_for_texts() -> None:
    task = step(setting="grounding", instruction="QQ音乐")
    system, user = MODEL.prepare_input(task, ()).messages
    assert user.parts == (ImageRef(task, (504, 1120)), "屏幕上某一组件的功能描述：QQ音乐")
    assert isinstance(system.parts[0], str)
    assert system.parts[0].endswith('\n    输出：点击操作，以{"POINT":[...,...]}为格式，其中不能存在任何非坐标字符')
    named = step(setting="grounding", instruction="QQ音乐", groups={"task": "text2point"})
    system, user = MODEL.prepare_input(named, ()).messages
    assert user.parts[1] == "屏幕上的文本：## Text\nQQ音乐\n"
    assert isinstance(system.parts[0], str)
    assert system.parts[0].endswith('\n    输出：文本的相对坐标的中心点,{"POINT":[...,...]}为格式\n    ')


def test_a_given_thought_ends_before_the_next_key() -> None:
    request = MODEL.prepare_fixed_thought(step(), (), 'Tap "会员".')
    assert request.prefill
    assert request.messages[-1].parts == ('{"thought":"Tap \\"会员\\".","',)
    assert MODEL.parse_response(step(), 'POINT":[713,95]}').action == Click(point=Point(713.0, 95.0))
    with pytest.raises(UsageError, match="thinking is turned off"):
        adapter("agentcpm_gui", thinking=False).prepare_fixed_thought(step(), (), "x")
    with pytest.raises(UsageError, match="no thought"):
        MODEL.prepare_fixed_thought(step(setting="grounding"), (), "x")


WORDS: list[tuple[Action, str]] = [
    (Click(point=AT), '{"POINT":[500,750]}'),
    (LongPress(point=AT), '{"POINT":[500,750],"duration":1000}'),
    (Scroll(point=AT, direction="down"), '{"POINT":[500,750],"to":"down"}'),
    (Type(text='sa"y'), '{"TYPE":"sa\\"y"}'),
    (Press(button="ENTER"), '{"PRESS":"ENTER"}'),
    (Wait(duration=500.0), '{"duration":500}'),
    (Stop(), '{"STATUS":"finish"}'),
    (Stop(status="impossible"), '{"STATUS":"impossible"}'),
]


@pytest.mark.parametrize(("action", "text"), WORDS)
def test_actions_as_the_readme_writes_them(action: Action, text: str) -> None:
    assert MODEL.render(step(), action) == text
    assert MODEL.parse_response(step(), text).action == action


def test_apps_cannot_be_opened() -> None:
    with pytest.raises(ValueError, match="has no word for"):
        MODEL.render(step(), Open(app="Settings"))


TOLERATED: dict[str, tuple[str, Action]] = {
    "fence": ('```json\n{"POINT":[500,750]}\n```', Click(point=AT)),
    "prose": ('Sure. {"POINT":[500,750]} is the button.', Click(point=AT)),
    "several objects": ('{"POINT":[500,750]}\n{"STATUS":"finish"}', Click(point=AT)),
    "list of objects": ('[{"POINT":[500,750]},{"PRESS":"BACK"}]', Click(point=AT)),
    "single quotes": ("{'POINT': [500, 750]}", Click(point=AT)),
    "missing brackets": ('{"POINT":[500,750]', Click(point=AT)),
    "numbers in quotes": ('{"POINT":["500","750"],"duration":"1000"}', LongPress(point=AT)),
    "full-width punctuation": ('{"POINT"：[500，750]}', Click(point=AT)),
    "quotes in the thought": ('{"thought":"点击"会员"按钮","POINT":[500,750]}', Click(point=AT)),
    "tags": ('<think>x</think><act>{"POINT":[500,750]}</act>', Click(point=AT)),
    "unclosed tag": ('<think>x {"POINT":[500,750]}', Click(point=AT)),
    "special token": ('{"POINT":[500,750]}<|im_end|>', Click(point=AT)),
    "begun turn": (',"POINT":[500,750]}', Click(point=AT)),
    "case": ('{"point":[500,750],"To":"UP"}', Scroll(point=AT, direction="up")),
    "status beside an action": ('{"POINT":[500,750],"STATUS":"continue"}', Click(point=AT)),
    "short touch": ('{"POINT":[500,750],"duration":200}', Click(point=AT)),
    "path": ('{"POINT":[500,750],"to":[480,100]}', Scroll(point=AT, direction="up", distance=650)),
    "end with an action": ('{"POINT":[500,750],"STATUS":"satisfied"}', Stop()),
    "feedback": ('{"STATUS":"need_feedback"}', Stop(status="impossible")),
    "recent apps": ('{"PRESS":"APPSELECT"}', Press(button="RECENT")),
    "outside": ('{"CLEAR":null}', Unsupported(name="CLEAR")),
    "outside, with a value": ('{"DEEP_LINK":"maps://a"}', Unsupported(name="DEEP_LINK", arguments={"value": "maps://a"})),
}


@pytest.mark.parametrize("name", TOLERATED)
def test_tolerances(name: str) -> None:
    text, action = TOLERATED[name]
    assert MODEL.parse_response(step(), text).action == action


@pytest.mark.parametrize("text", ["[500, 750]", "POINT:[500,750]", '{"POINT":[500,750]}'])
def test_a_place_alone_is_an_answer_only_to_a_query(text: str) -> None:
    assert MODEL.parse_response(step(setting="grounding"), text).action == Click(point=AT)
    if "{" not in text:
        with pytest.raises(ParseError, match="not an object"):
            MODEL.parse_response(step(), text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"POINT":[500,7', "no readable JSON"),
        ('{"thought":"x"}', "holds no action"),
        ('{"STATUS":"continue"}', "holds no action"),
        ('{"STATUS":"done"}', "is none of"),
        ('{"POINT":[1,2],"TYPE":"x"}', "several actions"),
        ('{"to":"up"}', "lacks the POINT"),
        ('{"POINT":[1,2],"to":[1,2]}', "no length"),
        ('{"POINT":[1001,2]}', "outside"),
        ('{"POINT":[NaN,2]}', "outside"),
        ('{"POINT":[1]}', "not a point"),
        ('{"PRESS":"MENU"}', "is none of"),
        ('{"TYPE":null}', "lacks 'TYPE'"),
        ('{"duration":-1}', "not a number of milliseconds"),
        ('{"OPEN_APP":"x"}', "holds no action"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        MODEL.parse_response(step(), text)


def test_a_looping_reply_is_read_in_linear_time() -> None:
    for unit in ("\n", '\\"', '{"thought":"a" ', '"POINT"：[1，2]，', "<think>"):
        with pytest.raises(ParseError):
            MODEL.parse_response(step(), unit * (60_000 // len(unit)))


def test_real_replies(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """11 replies; the source states its own reading of five, the others are examples of the README and an issue."""
    counts: Counter[str] = Counter()
    for line in (shared_data / "model_outputs" / "agentcpm_gui.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        parsed = MODEL.parse_response(step(), row["raw_response"])
        written = json.loads(row["raw_response"])
        assert parsed.thought == written.get("thought")
        stated: dict[str, Any] | None = row["expected_action_if_the_source_states_it"]
        rendered = json.loads(MODEL.render(step(), parsed.action, parsed.thought))
        assert rendered == written
        if stated is not None:
            assert {key: value for key, value in rendered.items() if key != "thought"} == {
                key: value for key, value in stated.items() if key != "basis"
            }
        counts["same as stated" if stated else parsed.action.type] += 1
    with capsys.disabled():
        print("\nagentcpm_gui: " + "; ".join(f"{count} {what}" for what, count in counts.most_common()))
    assert counts == {"same as stated": 5, "CLICK": 2, "PRESS": 1, "WAIT": 1, "SCROLL": 1, "TYPE": 1}
