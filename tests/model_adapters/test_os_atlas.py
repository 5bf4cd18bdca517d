from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import DataError, ParseError, UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef, Message
from guieval.registry import list_models, load_model, model_config

from .replies import rows
from .steps import CLICK, adapter, past, step

HIGH = step()
GROUNDING = step(setting="grounding")
PUBLISHED = {
    "ac_low_test": "androidcontrol",
    "ac_test": "androidcontrol",
    "gui_odyssey_test": "guiodyssey",
    "gui_act_mobile_test": "guiact",
    "gui_act_web_test": "guiact",
}


@pytest.mark.parametrize("file", PUBLISHED)
def test_prompts_are_the_published_samples(shared_data: Path, file: str) -> None:
    """Each published sample rebuilt from its own goal, step instruction and past, byte for byte."""
    model = adapter("os_atlas", prompt=PUBLISHED[file])
    for line in (shared_data / "os_atlas_eval" / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
        published = json.loads(line)["conversations"][0]["value"]
        found = re.search(r"\nTask: (.*?)(?: You need to: (.*))?\nHistory: \n(None|(?:Step \d+: .*\n)+)\n\Z", published)
        assert found is not None
        goal, instruction, result = found.groups()
        done = re.findall(r"Step \d+: (.*)\n", result)
        task = step(setting="low" if instruction else "high", instruction=goal, low_level_instruction=instruction)
        entries = [reference_entry(step(step_index=index, low_level_instruction=text)) for index, text in enumerate(done)]
        (message,) = model.prepare_input(task, entries).messages
        before, image, after = message.parts
        assert image == ImageRef(task, None)
        assert f"{before}<image>{after}" == published


def test_the_action_history_of_gui_odyssey_is_calls() -> None:
    own = HistoryEntry(step(step_index=1), CLICK, "I see it.", None, "raw", "model")
    swipe = Scroll(point=Point(500, 500), direction="up")
    entries = (reference_entry(step(swipe, low_level_instruction="Scroll")), own)
    text = adapter("os_atlas", prompt="guiodyssey").prepare_input(HIGH, entries).text
    assert text.endswith("History: \nStep 1: SCROLL [UP]\nStep 2: CLICK <point>[[500,750]]</point>\n\n")


def test_history_states_step_instructions_thoughts_and_plain_sentences() -> None:
    plain = reference_entry(step(Press(button="BACK")))
    text = adapter("os_atlas").prepare_input(HIGH, (*past(), plain)).text
    assert text.endswith("History: \nStep 1: Open the settings\nStep 2: Thought 1\nStep 3: Press the back button.\n\n")
    assert adapter("os_atlas").prepare_input(GROUNDING, past()).text.endswith("Task: Turn on Wi-Fi\nHistory: \nNone\n")


def test_the_published_grounding_prompts_of_the_base_checkpoints() -> None:
    request = adapter("os_atlas", prompt="base-bbox").prepare_input(GROUNDING, past())
    question = (
        'In this UI screenshot, what is the position of the element corresponding to the command "Turn on Wi-Fi" (with bbox)?'
    )
    assert request.messages == (Message("user", (ImageRef(GROUNDING, None), question)),)
    assert request.extra == {"skip_special_tokens": False}
    request = adapter("os_atlas", prompt="base-point").prepare_input(GROUNDING, ())
    question = (
        "In the screenshot of this web page, please give me the coordinates of the element I want to click on according to my "
        'instructions(with point).\n"Turn on Wi-Fi"'
    )
    assert request.messages == (Message("user", (ImageRef(GROUNDING, None), question)),)


def test_a_fixed_thought_is_the_begun_reply() -> None:
    request = adapter("os_atlas").prepare_fixed_thought(HIGH, (), "I see it.")
    assert request.messages[-1] == Message("assistant", ("thoughts:\nI see it.\nactions:\n",))
    assert request.prefill
    with pytest.raises(UsageError, match="thinking is turned off"):
        adapter("os_atlas", prompt="base-bbox").prepare_fixed_thought(HIGH, (), "I see it.")


@pytest.mark.parametrize(
    ("action", "call"),
    [
        (CLICK, "CLICK <point>[[500,750]]</point>"),
        (LongPress(point=Point(108, 272)), "LONG_PRESS <point>[[108,272]]</point>"),
        (Type(text="Shanghai [old] mall"), "TYPE [Shanghai [old] mall]"),
        (Open(app="PocketBook"), "OPEN_APP [PocketBook]"),
        (Press(button="BACK"), "PRESS_BACK"),
        (Press(button="HOME"), "PRESS_HOME"),
        (Press(button="RECENT"), "PRESS_RECENT"),
        (Press(button="ENTER"), "ENTER"),
        (Wait(), "WAIT"),
        (Stop(), "COMPLETE"),
        (Stop(status="impossible"), "IMPOSSIBLE"),
    ],
)
def test_calls_both_ways(action: Action, call: str) -> None:
    model = adapter("os_atlas")
    assert model.render(HIGH, action, "Do it.") == f"thoughts:\nDo it.\nactions:\n{call}"
    parsed = model.parse_response(HIGH, f"thoughts:\nDo it.\nactions:\n{call}")
    assert (parsed.action, parsed.thought) == (action, "Do it.")


@pytest.mark.parametrize(
    ("options", "finger"),
    [
        ({}, "up"),  # the labels of AndroidControl: the content comes from below
        ({"prompt": "guiodyssey"}, "down"),
        ({"scroll_words": "finger"}, "down"),
        ({"prompt": "guiodyssey", "scroll_words": "content"}, "up"),
    ],
)
def test_scroll_words(options: dict[str, Any], finger: Any) -> None:
    model = adapter("os_atlas", **options)
    expected = Scroll(point=Point(500, 500), direction=finger)
    assert model.parse_response(HIGH, "actions:\nSCROLL [DOWN]").action == expected
    assert model.render(HIGH, expected) == "actions:\nSCROLL [DOWN]"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "Thoughts: tap it\nActions: CLICK <point>[[500, 750]]</point>", id="labels as in the prompt, one line each"
        ),
        pytest.param("**Thoughts:** tap\n**Action:** `CLICK <point>[[500,750]]</point>`", id="bold labels and a code mark"),
        pytest.param("thoughts：tap\nactions：\nCLICK <point>［［500，750］］</point>", id="full-width punctuation"),
        pytest.param("CLICK <point>[[500,750]]</point>", id="no labels"),
        pytest.param("I will tap it.\nCLICK <point>[[500,750]]</point>", id="no labels, prose before"),
        pytest.param("actions:\n```\nCLICK <point>[[500,750]]</point>\n```", id="fence"),
        pytest.param("actions:\n1. CLICK <point>[[500,750]]</point>\n2. TYPE [a]", id="numbered, several actions"),
        pytest.param("actions:\nCLICK <point>[[500,750]]</point> TYPE [a]", id="several actions in a line"),
        pytest.param("actions:\nCLICK <point>[[500,750]]</point> <point>[[1,2]]</point>", id="several points, no corners"),
        pytest.param("actions:\nclick <point>[[500,750]]</point>", id="lower case"),
        pytest.param("actions:\nClick the icon:\nCLICK <point>[[500,750]]</point>", id="prose after the label"),
        pytest.param("actions:\nCLICK <point>[[500,750]]", id="unclosed point"),
        pytest.param("actions:\nCLICK [[500.0,750.0]]", id="no tag, floats"),
        pytest.param("actions:\nCLICK (500, 750)", id="round brackets"),
        pytest.param("actions:\nCLICK <point>[[490,740,510,760]]</point>", id="box"),
        pytest.param("actions:\nCLICK <point>[[490,740][510,760]]</point>", id="two corners"),
        pytest.param("actions:\nCLICK <|box_start|>(490,740),(510,760)<|box_end|>", id="box tokens"),
        pytest.param("actions:\nCLICK <point>[[500,750]]</point><|im_end|>", id="special token"),
        pytest.param("actions:\nCLICK <point>[[500,750]]</point>\nThis opens [it].", id="trailing prose"),
    ],
)
def test_tolerances(text: str) -> None:
    assert adapter("os_atlas").parse_response(HIGH, text).action == CLICK


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        pytest.param("TYPE [a] b]", "a] b", id="to the last bracket"),
        pytest.param("TYPE []", "", id="nothing"),
        pytest.param("TYPE [a]\nTYPE [b]", "a", id="in front of the next call"),
        pytest.param("TYPE [a] PRESS_BACK", "a", id="in front of a call in the same line"),
        pytest.param("TYPE [a]\nthoughts:\nb [c]", "a", id="in front of the next step"),
        pytest.param("TYPE [a [b]]\nThis types [it].", "a [b]", id="in front of words with brackets"),
        pytest.param("TYPE [a] b]<|im_end|>", "a] b", id="in front of a special token"),
        pytest.param("TYPE [多行\n文本]", "多行\n文本", id="several lines"),
        pytest.param("TYPE [actions: WAIT]", "actions: WAIT", id="words of the format"),
    ],
)
def test_typed_text_is_unescaped(text: str, typed: str) -> None:
    assert adapter("os_atlas").parse_response(HIGH, f"actions:\n{text}").action == Type(text=typed)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("thoughts:\ntap it", "no action"),
        ("You should CLICK the icon.", "no action"),
        ("click the icon", "no action"),
        ("actions:\nSWIPE [UP]", "'SWIPE', which is not an action"),
        ("SWIPE [UP]\nCLICK <point>[[500,750]]</point>", "'SWIPE', which is not an action"),
        ("actions:\nTAP <point>[[1,2]]</point>\nCLICK <point>[[500,750]]</point>", "'TAP', which is not an action"),
        ("actions:\ntap <point>[[1,2]]</point>\nCLICK <point>[[500,750]]</point>", "'tap', which is not an action"),
        ("actions:\nSCROLL [UP/DOWN/LEFT/RIGHT]", "names no direction"),
        ("actions:\nSCROLL [UP or DOWN]", "names no direction"),
        ("actions:\nCLICK the icon", "gives no point"),
        ("actions:\nCLICK <point>[[500]]</point>", "holds 1 numbers"),
        ("actions:\nCLICK <point>[[500,7", "ends inside a point"),
        ("actions:\nCLICK <point>[[500,1750]]</point>", "outside"),
        ("actions:\nTYPE hello", "no text in brackets"),
        ("actions:\nTYPE [hello", "ends inside the text"),
        ("actions:\nOPEN_APP [ ]", "names no app"),
        ("actions:\nSCROLL [FORWARD]", "names no direction"),
        ("actions:\nWait for the page to load", "no action"),
        ("actions:\n[[500,750]]", "no action"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        adapter("os_atlas").parse_response(HIGH, text)


def test_actions_of_the_desktop_prompt_are_unsupported() -> None:
    read = adapter("os_atlas").parse_response
    point = "<point>[[1,2]]</point>"
    assert read(HIGH, f"actions:\nDOUBLECLICK {point}").action == Unsupported(name="DOUBLECLICK", arguments={"text": point})
    assert read(HIGH, "actions:\nHOTKEY [CTRL_A]").action == Unsupported(name="HOTKEY", arguments={"text": "[CTRL_A]"})
    assert read(HIGH, "actions:\nPRESS_TAB").action == Unsupported(name="PRESS_TAB")


@pytest.mark.parametrize(
    "text",
    [
        "<|object_ref_start|>tab (2, 3)<|object_ref_end|><|box_start|>(480,730),(520,770)<|box_end|><|im_end|>",
        "language switch(480,730),(520,770)",
        "GPS [[480,730],[520,770]]",
        "[[500,750]]",
        "<point>[[500, 750]]</point>",
    ],
)
def test_places_alone(text: str) -> None:
    for prompt in ("base-bbox", "base-point"):
        for task in (HIGH, GROUNDING):
            assert adapter("os_atlas", prompt=prompt).parse_response(task, text).action == CLICK
    assert adapter("os_atlas").parse_response(GROUNDING, text).action == CLICK
    with pytest.raises(ParseError, match=r"no action|not an action"):
        adapter("os_atlas").parse_response(HIGH, text)


def test_a_base_checkpoint_answers_with_a_place() -> None:
    assert adapter("os_atlas", prompt="base-point").render(GROUNDING, CLICK) == "<point>[[500,750]]</point>"
    assert adapter("os_atlas", prompt="base-bbox").render(GROUNDING, CLICK) == "<|box_start|>(500,750),(500,750)<|box_end|>"


def test_refused_uses() -> None:
    with pytest.raises(DataError, match="step instruction"):
        adapter("os_atlas").prepare_input(step(setting="low"), ())
    with pytest.raises(UsageError, match="no thinking switch"):
        load_model("os-atlas-7b", thinking=False)
    with pytest.raises(UsageError, match="prompt"):
        adapter("os_atlas", prompt="aitw")


def test_checkpoints() -> None:
    names = {"os-atlas-7b", "os-atlas-4b", *(f"os-atlas-{kind}-{size}" for kind in ("pro", "base") for size in ("7b", "4b"))}
    assert {name for name in list_models() if name.startswith("os-atlas")} == names
    for name in names:
        assert model_config(name).frame == load_model(name).frame(HIGH).name
        assert model_config(name).vllm.get("trust-remote-code", False) == name.endswith("4b")


@pytest.mark.parametrize(("name", "digest"), [("bbox", "d261bb67e17a7eb7"), ("point-4b", "a38ee01af60b5e58")])
def test_grounding_prompts_are_byte_exact(name: str, digest: str) -> None:
    prompt = f"base-{name.removesuffix('-4b')}"
    text = adapter("os_atlas", prompt=prompt).prepare_input(GROUNDING, ()).text.replace("Turn on Wi-Fi", "{instruction}")
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)


def test_recorded_replies(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """253 replies and reference answers. Their sources state no parse, so each is compared with its own text: all agree."""
    counts: Counter[str] = Counter()
    for row in rows(shared_data, "os_atlas"):
        if row.text.startswith("<|object_ref_start|>"):
            action = adapter("os_atlas", prompt="base-bbox").parse_response(GROUNDING, row.text).action
            assert action == Click(point=Point(584, 27))  # the middle of (576,12),(592,42)
            counts["box"] += 1
            continue
        parsed = adapter("os_atlas").parse_response(HIGH, row.text)
        counts[_as_written(row.text.split("actions:\n")[-1], parsed.action)] += 1
    with capsys.disabled():
        print(f"\nos_atlas: {dict(counts)}")
    assert counts == {"CLICK": 193, "TYPE": 56, "OPEN": 1, "LONG_PRESS": 1, "PRESS": 1, "box": 1}


def _as_written(call: str, action: Action) -> str:
    """The action's type, once it is what a strict reading of the documented form says."""
    point = re.fullmatch(r"(CLICK|LONG_PRESS) <point>\[\[([\d.]+), ?([\d.]+)\]\]</point>", call)
    text = re.fullmatch(r"(TYPE|OPEN_APP) \[(.*)\]", call, re.DOTALL)
    match action:
        case Click() | LongPress():
            assert point is not None
            assert (action.type, *action.point) == (point[1], float(point[2]), float(point[3]))
        case Type() | Open():
            assert text is not None
            assert (action.type, action.model_dump().get("text", action.model_dump().get("app"))) == (text[1][:4], text[2])
        case _:
            assert (call, action) == ("PRESS_HOME", Press(button="HOME"))
    return action.type
