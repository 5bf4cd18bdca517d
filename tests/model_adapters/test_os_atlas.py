from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Type
from guieval.errors import UsageError
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ImageRef
from tests.rows import every_row

from .replies import rows
from .steps import CLICK, GROUNDING, HIGH, adapter, outside, scroll, step
from .tables import means, reads, refuses, writes

MODEL = adapter("os_atlas")
PUBLISHED = {
    "ac_low_test": "androidcontrol",
    "ac_test": "androidcontrol",
    "gui_odyssey_test": "guiodyssey",
    "gui_act_mobile_test": "guiact",
    "gui_act_web_test": "guiact",
}


@every_row("file", PUBLISHED)
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
    entries = (reference_entry(step(scroll("up"), low_level_instruction="Scroll")), own)
    text = adapter("os_atlas", prompt="guiodyssey").prepare_input(HIGH, entries).text
    assert text.endswith("History: \nStep 1: SCROLL [UP]\nStep 2: CLICK <point>[[500,750]]</point>\n\n")


test_calls_both_ways = writes(
    MODEL,
    *((Press(button="HOME"), "PRESS_HOME"), (Press(button="RECENT"), "PRESS_RECENT")),
    wrap=lambda call: f"thoughts:\nDo it.\nactions:\n{call}",
    thought="Do it.",
)

test_tolerances = means(
    MODEL,
    CLICK,
    ("labels as in the prompt, one line each", "Thoughts: tap it\nActions: CLICK <point>[[500, 750]]</point>"),
    ("bold labels and a code mark", "**Thoughts:** tap\n**Action:** `CLICK <point>[[500,750]]</point>`"),
    ("numbered, several actions", "actions:\n1. CLICK <point>[[500,750]]</point>\n2. TYPE [a]"),
    ("several actions in a line", "actions:\nCLICK <point>[[500,750]]</point> TYPE [a]"),
    ("several points, no corners", "actions:\nCLICK <point>[[500,750]]</point> <point>[[1,2]]</point>"),
    ("prose after the label", "actions:\nClick the icon:\nCLICK <point>[[500,750]]</point>"),
    *(("unclosed point", "actions:\nCLICK <point>[[500,750]]"), ("no tag, floats", "actions:\nCLICK [[500.0,750.0]]")),
    *(("round brackets", "actions:\nCLICK (500, 750)"), ("box", "actions:\nCLICK <point>[[490,740,510,760]]</point>")),
    ("two corners", "actions:\nCLICK <point>[[490,740][510,760]]</point>"),
    ("box tokens", "actions:\nCLICK <|box_start|>(490,740),(510,760)<|box_end|>"),
)

test_typed_text_is_unescaped = reads(
    MODEL,
    *(("to the last bracket", "TYPE [a] b]", Type(text="a] b")), ("nothing", "TYPE []", Type(text=""))),
    ("in front of the next call", "TYPE [a]\nTYPE [b]", Type(text="a")),
    ("in front of a call in the same line", "TYPE [a] PRESS_BACK", Type(text="a")),
    ("in front of the next step", "TYPE [a]\nthoughts:\nb [c]", Type(text="a")),
    ("in front of words with brackets", "TYPE [a [b]]\nThis types [it].", Type(text="a [b]")),
    ("in front of a special token", "TYPE [a] b]<|im_end|>", Type(text="a] b")),
    ("several lines", "TYPE [多行\n文本]", Type(text="多行\n文本")),
    ("words of the format", "TYPE [actions: WAIT]", Type(text="actions: WAIT")),
    wrap=lambda text: f"actions:\n{text}",
)

POINT = "<point>[[1,2]]</point>"
test_actions_of_the_desktop_prompt_are_unsupported = reads(
    MODEL,
    (f"actions:\nDOUBLECLICK {POINT}", outside("DOUBLECLICK", text=POINT)),
    *(("actions:\nHOTKEY [CTRL_A]", outside("HOTKEY", text="[CTRL_A]")), ("actions:\nPRESS_TAB", outside("PRESS_TAB"))),
)
test_a_base_checkpoint_answers_with_a_point = writes(
    adapter("os_atlas", prompt="base-point"), (CLICK, "<point>[[500,750]]</point>"), task=GROUNDING
)
test_a_base_checkpoint_answers_with_a_box = writes(
    adapter("os_atlas", prompt="base-bbox"), (CLICK, "<|box_start|>(500,750),(500,750)<|box_end|>"), task=GROUNDING
)

test_refusals = refuses(
    MODEL,
    *(("thoughts:\ntap it", "no action"), ("You should CLICK the icon.", "no action"), ("click the icon", "no action")),
    ("actions:\nSWIPE [UP]", "'SWIPE', which is not an action"),
    ("SWIPE [UP]\nCLICK <point>[[500,750]]</point>", "'SWIPE', which is not an action"),
    ("actions:\nTAP <point>[[1,2]]</point>\nCLICK <point>[[500,750]]</point>", "'TAP', which is not an action"),
    ("actions:\ntap <point>[[1,2]]</point>\nCLICK <point>[[500,750]]</point>", "'tap', which is not an action"),
    *(("actions:\nSCROLL [UP/DOWN/LEFT/RIGHT]", "names no direction"), ("actions:\nSCROLL [UP or DOWN]", "names no direction")),
    *(("actions:\nCLICK the icon", "gives no point"), ("actions:\nCLICK <point>[[500]]</point>", "holds 1 numbers")),
    ("actions:\nCLICK <point>[[500,7", "ends inside a point"),
    *(("actions:\nCLICK <point>[[500,1750]]</point>", "outside", "CLICK"), ("actions:\nTYPE hello", "no text in brackets")),
    *(("actions:\nTYPE [hello", "ends inside the text"), ("actions:\nOPEN_APP [ ]", "names no app", "OPEN")),
    *(("actions:\nSCROLL [FORWARD]", "names no direction"), ("actions:\nWait for the page to load", "no action")),
    ("actions:\n[[500,750]]", "no action"),
)

PLACES = (
    "<|object_ref_start|>tab (2, 3)<|object_ref_end|><|box_start|>(480,730),(520,770)<|box_end|><|im_end|>",
    "language switch(480,730),(520,770)",
    "GPS [[480,730],[520,770]]",
    "[[500,750]]",
    "<point>[[500, 750]]</point>",
)
BASE = [adapter("os_atlas", prompt=prompt) for prompt in ("base-bbox", "base-point")]
test_a_place_alone_is_what_base_checkpoints_answer = means(BASE, CLICK, *PLACES)
test_a_place_alone_is_an_answer_to_a_query = means([MODEL, *BASE], CLICK, *PLACES, task=GROUNDING)
test_a_place_alone_is_no_action = refuses(MODEL, *((text, "no action|not an action") for text in PLACES))


def test_a_base_checkpoint_cannot_be_given_a_thought() -> None:
    with pytest.raises(UsageError, match="thinking is turned off"):
        adapter("os_atlas", prompt="base-bbox").prepare_fixed_thought(HIGH, (), "I see it.")


def test_recorded_replies(shared_data: Path) -> None:
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
