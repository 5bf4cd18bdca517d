"""Golden prompts: the exact messages of every checkpoint, so that a change of one shows as a change of a file.

A new checkpoint, or a change that is meant, is written with ``GUIEVAL_WRITE_GOLDEN=1 pytest -k golden``; then read the diff.
Checkpoints of a family with the same options share a file. A text that stood in a file before is recognised by its place.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from guieval.actions import Action, Click, Point, Type
from guieval.evaluation import ActionEvaluator
from guieval.history import HistoryEntry, reference_entry, select
from guieval.models import ABCModel, Message, ModelInput
from guieval.models.scored_response import read_response
from guieval.models.written_prompts import example_episode, shown
from guieval.registry import list_models, load_model
from guieval.steps import StepTaskModel
from tests.checkpoints import of_each_kind
from tests.rows import every_row

GOLDEN = Path(__file__).parent / "golden"
WRITE = os.environ.get("GUIEVAL_WRITE_GOLDEN") == "1"
EVALUATOR = ActionEvaluator("guievalkit")
SURFACES = tuple(f"ui-venus-2-9b ui-venus-2-{surface}-official" for surface in ("computer", "browser"))
"""Checkpoints with scaffolds whose prompts are others than the default one's."""
LONG = 120
"""Texts above this many characters are written once a file."""


def cases(model: ABCModel) -> Iterator[tuple[str, ModelInput]]:
    steps = example_episode().steps
    first, second, third = steps
    bare = first.model_copy(update={"low_level_instruction": None})
    yield "first step", model.prepare_input(first, ())
    yield "second step, offline", model.prepare_input(second, (reference_entry(first),))
    yield "second step, offline, no step instruction to the first", model.prepare_input(second, (reference_entry(bare),))
    yield "third step, offline", model.prepare_input(third, tuple(map(reference_entry, steps[:2])))
    yield "second step, SOEval, the first answered right", model.prepare_input(second, (answered(model, first, first.action),))
    wrong = Click(point=Point(900.0, 100.0))
    yield "second step, SOEval, the first answered wrong", model.prepare_input(second, (answered(model, first, wrong),))
    typed = [step.model_copy(update={"action": Type(text='it\'s "1"\n\\2'), "low_level_instruction": None}) for step in steps]
    if typed[1].action in model.action_space:
        past = (reference_entry(typed[0]), answered(model, typed[1], typed[1].action))
        yield "third step, two texts typed, the second by the model", model.prepare_input(third, past)
    low = [step.model_copy(update={"setting": "low"}) for step in steps]
    yield "second step, low", model.prepare_input(low[1], (reference_entry(low[0]),))
    target = first.model_copy(update={"setting": "grounding", "instruction": "the Wi-Fi switch", "episode_length": 1})
    yield "grounding", model.prepare_input(target, ())
    if model.fixes_thought and model.thinking is not False:
        given = model.prepare_fixed_thought(second, (reference_entry(first),), "The switch must be\nfurther down.")
        yield "second step, thought given", given


def answered(model: ABCModel, task: StepTaskModel, action: Action) -> HistoryEntry:
    """What SOEval tells of a step to which the model answered ``action``."""
    reply = model.render(task, action, "Wi-Fi is below this row.", "I tapped the row.")
    return select("matched", task, read_response(model, EVALUATOR, task, reply))


def golden(name: str) -> str:
    """All cases of a checkpoint as one text, with thinking on and off where there is a switch."""
    blocks: list[str] = []
    seen: dict[str, str] = {}
    checkpoint, _, scaffold = name.partition(" ")
    for thinking in (True, False) if load_model(checkpoint).thinking_switch else (None,):
        for case, prepared in cases(load_model(checkpoint, thinking=thinking, scaffold=scaffold or None)):
            title = case if thinking is None else f"{case}, thinking {'on' if thinking else 'off'}"
            messages = tuple(
                once(message, f"{title}, message {number}", seen) for number, message in enumerate(prepared.messages, 1)
            )
            blocks.append(f"##### {title}\n{shown(replace(prepared, messages=messages))}")
    return "\n".join(blocks)


def once(message: Message, where: str, seen: dict[str, str]) -> Message:
    parts = []
    for part in message.parts:
        known = seen.setdefault(part, where) if isinstance(part, str) and len(part) > LONG else where
        parts.append(part if known == where else f"[the text of: {known}]")
    return replace(message, parts=tuple(parts))


def file_of(name: str) -> Path:
    """The golden file of a checkpoint, which it shares with those of its family that have the same options."""
    checkpoint, _, scaffold = name.partition(" ")
    config = load_model(checkpoint, scaffold=scaffold or None).config
    options = [f"{key}={value}" for key, value in sorted(config.options.items())]
    title = re.sub(r"[^\w.,=-]", "_", ",".join([config.adapter, *options]))
    return GOLDEN / f"{title}.txt"


@every_row("name", lambda: [*of_each_kind(), *SURFACES])
def test_golden_prompts_are_sent_as_they_were(name: str) -> None:
    file, new = file_of(name), golden(name)
    if WRITE:
        file.write_text(new, encoding="utf-8")
    assert file.exists(), f"{file.name} is missing: write it with GUIEVAL_WRITE_GOLDEN=1, and read it"
    old = file.read_text(encoding="utf-8")
    difference = "\n".join(difflib.unified_diff(old.splitlines(), new.splitlines(), file.name, f"{name} now", lineterm=""))
    assert old == new, f"the prompts of {name} have changed (GUIEVAL_WRITE_GOLDEN=1 accepts it):\n{difference}"


@pytest.mark.full
@every_row("name", list_models)
def test_every_checkpoint_is_sent_the_prompts_of_its_kind(name: str) -> None:
    assert golden(name) == file_of(name).read_text(encoding="utf-8")


def test_golden_files_all_belong_to_a_checkpoint() -> None:
    left = {*GOLDEN.glob("*.txt")} - {*map(file_of, [*list_models(), *SURFACES])}
    if WRITE:
        for file in left:
            file.unlink()
    assert WRITE or not left


def test_golden_text_is_the_whole_of_a_request() -> None:
    """Nothing that is sent is left out: roles, texts, images with their sizes, the begun turn and the request fields."""
    model = load_model("qwen2.5-vl-7b")
    task = example_episode("grounding", (330, 210)).steps[0].model_copy(update={"instruction": "the {width} button"})
    assert shown(model.prepare_input(task, ())).endswith(
        "=== user\n[image 0.png: 330 x 210]\nthe {width} button\n=== assistant, to be continued\n"
        '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [\n'
        '=== request fields\n{"add_generation_prompt": false, "continue_final_message": true}\n'
    )
    assert "[image 0.png: 330 x 210, sent as 364 x 224]" in shown(load_model("ui-tars-1.5-7b").prepare_input(task, ()))
