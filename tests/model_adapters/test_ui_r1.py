from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Open, Point, Press, Scroll, Type, Unsupported
from guieval.errors import DataError, ParseError, UsageError
from guieval.models import ImageRef, Message
from guieval.registry import load_model, model_config

from .replies import rows
from .steps import CLICK, adapter, past, step

HIGH = step()
GROUNDING = step(setting="grounding")
# first 16 digits of the SHA-256 of the published texts
DIGESTS = {"androidcontrol": "2d66af89d395a811", "screenspot": "99df92b1c10ce576", "direct": "f84ad498ca6e5fd1"}


def prompt(task_text: str, digest: str, instruction: str) -> bool:
    published = task_text.replace(f"'{instruction}'", "'{instruction}'")
    return hashlib.sha256(published.encode()).hexdigest().startswith(digest)


@pytest.mark.parametrize(
    ("form", "setting", "digest", "result"),
    [
        ("thinking", "high", "androidcontrol", "Turn on Wi-Fi"),
        ("thinking", "low", "androidcontrol", "Tap the switch"),
        ("thinking", "grounding", "screenspot", "Turn on Wi-Fi"),
        ("direct", "high", "direct", "Turn on Wi-Fi"),
        ("direct", "low", "direct", "Tap the switch"),
        ("direct", "grounding", "direct", "Turn on Wi-Fi"),
    ],
)
def test_the_published_prompt_after_the_image_without_history(form: str, setting: str, digest: str, result: str) -> None:
    task = step(setting=setting, low_level_instruction="Tap the switch")
    request = adapter("ui_r1", form=form).prepare_input(task, past())
    (message,) = request.messages
    image, text = message.parts
    # 1080 x 2400 is within the processor's limits, so the file is sent as it is
    assert message.role == "user"
    assert image == ImageRef(task, None)
    assert isinstance(text, str)
    assert prompt(text, DIGESTS[digest], result), text
    assert not request.prefill


def test_the_worked_anchor_in_pixels_of_the_resized_screenshot() -> None:
    model = adapter("ui_r1")
    assert model.frame(HIGH).extent((1080, 2400)) == (1092.0, 2408.0)
    reply = "<think> a </think> <answer>[{'action': 'click', 'coordinate': [546, 1806]}]</answer>"
    assert model.render(HIGH, CLICK, "a") == reply
    assert model.parse_response(HIGH, reply).action == CLICK
    limited = adapter("ui_r1", max_pixels=1_003_520)  # README of Qwen2.5-VL: 672 x 1484
    assert limited.prepare_input(HIGH, ()).images == (ImageRef(HIGH, (672, 1484)),)
    assert limited.parse_response(HIGH, "<answer>[{'action': 'click', 'coordinate': [336, 1113]}]</answer>").action == CLICK


def test_the_direct_form_has_no_thought() -> None:
    model = load_model("ui-r1-e-3b")
    assert model.render(HIGH, CLICK, "a") == "<answer>[{'action': 'click', 'coordinate': [546, 1806]}]</answer>"
    with pytest.raises(UsageError, match="thinking is turned off"):
        model.prepare_fixed_thought(HIGH, (), "a")


def test_a_fixed_thought_is_the_begun_reply() -> None:
    request = adapter("ui_r1").prepare_fixed_thought(HIGH, (), "I see it.")
    assert request.messages[-1] == Message("assistant", ("<think> I see it. </think> <answer>",))
    assert request.prefill
    assert request.extra == {"continue_final_message": True, "add_generation_prompt": False}


WHOLE = "[{'action': 'click', 'coordinate': [546, 1806]}]"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"<answer>{WHOLE}</answer>", id="no thought"),
        pytest.param(f"<think>a</think>\n<answer>{WHOLE}", id="unclosed answer"),
        pytest.param(f"<think> a <answer>{WHOLE}</answer>", id="unclosed thought"),
        pytest.param(f"{WHOLE}</answer>", id="continued turn"),
        pytest.param(
            f"<think> a </think> <answer>{WHOLE}</answer>\n<think> b </think> <answer>[{{'action': 'scroll'}}]</answer>",
            id="the next step as well",
        ),
        pytest.param(
            f"<think> a <answer>[{{'action': 'scroll'}}]</answer> </think> <answer>{WHOLE}</answer>", id="rehearsed answer"
        ),
        pytest.param(f"```python\n{WHOLE}\n```", id="fence without tags"),
        pytest.param(f"<answer>```json\n{WHOLE}\n```</answer>", id="fence in the answer"),
        pytest.param('<answer>[{"action": "click", "coordinate": [546, 1806]}]</answer>', id="double quotes"),
        pytest.param("<answer>{'action': 'click', 'coordinate': [546, 1806]}</answer>", id="no list"),
        pytest.param("<answer>[{'action': 'click', 'coordinate': ['546', '1806']}]</answer>", id="numbers as text"),
        pytest.param("<answer>[{'action': 'click', 'coordinate': [536, 1796, 556, 1816]}]</answer>", id="box"),
        pytest.param("<answer>[{'action': 'click', 'coordinate': [546, 1806]</answer>", id="missing brackets"),
        pytest.param("<answer>[{'action': 'left_click', 'coordinate': [546, 1806]}]</answer>", id="the base model's word"),
        pytest.param(f"<answer>{WHOLE[:-1]}, {{'action': 'navigate_back'}}]</answer>", id="several actions"),
        pytest.param(f"<answer>{WHOLE}</answer><|im_end|> That is it.", id="special token and trailing prose"),
    ],
)
def test_tolerances(text: str) -> None:
    assert adapter("ui_r1").parse_response(HIGH, text).action == CLICK


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("{'action': 'navigate_back', 'coordinate': [0, 0]}", Press(button="BACK")),
        ("{'action': 'scroll', 'coordinate': [0, 0]}", Unsupported(name="scroll", arguments={"coordinate": [0, 0]})),
        ("{'action': 'scroll', 'direction': 'up'}", Unsupported(name="scroll", arguments={"direction": "up"})),
        ("{'action': 'open_app'}", Unsupported(name="open_app")),
        ("{'action': 'input_text', 'coordinate': [0, 0]}", Unsupported(name="input_text", arguments={"coordinate": [0, 0]})),
        ("{'action': 'open_app', 'app_name': 'Maps'}", Open(app="Maps")),
        ("{'action': 'input_text', 'text': 'hello'}", Type(text="hello")),
    ],
)
def test_what_the_format_can_say(action: str, expected: Action) -> None:
    assert adapter("ui_r1").parse_response(HIGH, f"<think> a </think> <answer>[{action}]</answer>").action == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<think> I would click [546, 1806] </think>", "no answer"),
        ("<answer></answer>", "no readable JSON"),
        ("<answer>[]</answer>", "not an action"),
        ("<answer>[{}]</answer>", "is not an action"),
        ("<answer>[{'action': 'click'}]</answer>", "lacks 'coordinate'"),
        ("<answer>[{'action': 'click', 'coordinate': [546]}]</answer>", "not a point"),
        ("<answer>[{'action': 'click', 'coordinate': [5460, 1806]}]</answer>", "outside"),
        ("<answer>[{'action': 'click', 'coordinate': [546, 18", "no readable JSON"),
        ("<answer>[{'action': 'swipe', 'coordinate': [1, 2]}]</answer>", "'swipe' is not an action"),
        ("<answer>[{'coordinate': [546, 1806]}]</answer>", "not an action"),
        ("<answer>[546, 1806]</answer>", "is not an action"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("ui_r1").parse_response(HIGH, text)


@pytest.mark.parametrize(
    "answer", ["[546, 1806]", "[[546, 1806]]", "[[536, 1796], [556, 1816]]", "[{'coordinate': [546, 1806]}]"]
)
def test_a_place_alone_is_an_answer_to_a_grounding_query(answer: str) -> None:
    assert adapter("ui_r1").parse_response(GROUNDING, f"<answer>{answer}</answer>").action == CLICK


def test_what_it_cannot_say() -> None:
    for action in (Type(text="a"), Open(app="a"), Scroll(point=Point(1, 1), direction="up"), Press(button="HOME")):
        with pytest.raises(ValueError, match="has no word for"):
            adapter("ui_r1").render(HIGH, action)
    with pytest.raises(DataError, match="step instruction"):
        adapter("ui_r1").prepare_input(step(setting="low"), ())
    with pytest.raises(UsageError, match="no thinking switch"):
        load_model("ui-r1-3b", thinking=True)


def test_checkpoints() -> None:
    assert model_config("ui-r1-3b").hf_id == "LZXzju/Qwen2.5-VL-3B-UI-R1"
    for name in ("ui-r1-3b", "ui-r1-e-3b"):
        assert model_config(name).frame == load_model(name).frame(HIGH).name


def test_recorded_replies(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four replies whose source states the numbers it reads in them, which are the last pair of the reply.

    | reply                                                                        | source     | here        | why           |
    | [{'action': 'left_click', 'coordinate': [1146, 380]}, {'action': 'swipe', .. | [756, 462] | [1146, 380] | first counts  |
    """
    model = adapter("ui_r1")
    task = step(setting="grounding", screenshot_size=(2800, 1400))  # a multiple of 28: pixels are what they say
    counts: Counter[str] = Counter()
    for row in rows(shared_data, "ui_r1"):
        action = model.parse_response(task, row.text).action
        assert isinstance(action, Click)
        read = model.frame(task).encode(action.point, task.screenshot_size)
        assert row.expected is not None
        if read == pytest.approx(row.expected["point_px"]):
            counts["same"] += 1
        else:
            assert read == pytest.approx((1146, 380))
            counts["first of several actions, source reads the last"] += 1
    with capsys.disabled():
        print(f"\nui_r1: {dict(counts)}")
    assert counts == {"same": 3, "first of several actions, source reads the last": 1}
