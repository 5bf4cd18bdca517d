"""Reading a reply: the model's mistakes apart from the adapter's, and nothing that a journal could not hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from guieval.actions import Open, Type, Unsupported
from guieval.errors import whole_text
from guieval.evaluation import ActionEvaluator
from guieval.journal import Journal, RunFolder
from guieval.models import ModelConfig, ParsedResponse, Response
from guieval.models.scored_response import read_response, storable
from guieval.registry import load_model
from guieval.steps import Sample, StepRecord, StepTaskModel
from tests.checkpoints import of_each_kind
from tests.rows import every_row
from tests.scripted import ACTIONS, ScriptedModel, make_episode

TASK = make_episode("a", ACTIONS).steps[1]
EVALUATOR = ActionEvaluator("guievalkit")


def model_that(parse: Callable[[str], Any]) -> ScriptedModel:
    class Model(ScriptedModel):
        def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
            result: ParsedResponse = parse(text)
            return result

    return Model(ModelConfig(name="m", adapter="m"))


SCRIPTED = model_that(lambda text: ScriptedModel.parse_response(model_that(lambda _: None), TASK, text))


def journalled(sample: Sample, directory: Path) -> Any:
    with Journal(directory) as journal:
        journal.append(StepRecord(task=TASK, samples=(sample,)))
    return list(RunFolder(directory).records)[-1].sample


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": [value]}
    return value


@every_row(
    "arguments",
    [
        *({"a": "\ud83d"}, {"\udc00": 1}, {"a": float("nan"), "b": [float("-inf")]}, {"a": 10**4000}),
        *({"a": b"\xff", "b": object()}, {"a": {1, 2}}),
        *(nested(60), nested(400)),
    ],
    ids=["surrogate", "surrogate key", "nan", "huge", "foreign", "set", "deep", "too deep"],
)
def test_whatever_a_parser_makes_of_a_reply_is_read_back_from_the_journal(tmp_path: Path, arguments: dict[str, Any]) -> None:
    model = model_that(lambda text: ParsedResponse(Unsupported(name="odd\ud83d", arguments=arguments), "thought \udc00"))
    sample = read_response(model, EVALUATOR, TASK, Response("raw \ud83d\0", "r\udfff"))
    assert sample.outcome.verdict == "unsupported"
    assert journalled(sample, tmp_path) == sample


@given(st.text(st.characters(exclude_categories=())))
def test_any_reply_is_kept_whole_but_for_half_surrogates(text: str) -> None:
    sample = read_response(SCRIPTED, EVALUATOR, TASK, text)
    assert sample.raw_response == whole_text(text)
    assert Sample.model_validate_json(sample.model_dump_json()) == sample
    if not any("\ud800" <= each <= "\udfff" for each in text):
        assert sample.raw_response == text


def test_half_surrogates_that_meet_join_and_others_are_replaced() -> None:
    assert whole_text("a\ud83d\ude00b") == "a😀b" and whole_text("a\ud83db") == "a�b" and whole_text("ü\0") == "ü\0"
    assert storable(Type(text="\ud83d")) == Type(text="�") and storable(Open(app="\ud83d")) == Open(app="�")


@every_row("action", ACTIONS)
def test_an_ordinary_action_is_stored_as_it_is(action: Any) -> None:
    assert storable(action) is action or storable(action) == action
    call = Unsupported(name="x", arguments={"a": [1, 2.5, None, True, "text", {"b": {}}]})
    assert storable(call) == call


def crash(_: str) -> Any:
    raise KeyError("bug \ud83d")


@every_row(
    "parse",
    [crash, lambda _: None, lambda _: ParsedResponse({"type": "CLICK"}), lambda _: ParsedResponse(ACTIONS[1], thought=7)],  # type: ignore[arg-type]
    ids=["raises", "nothing", "no action", "no text"],
)
def test_an_adapters_bug_is_not_scored_and_keeps_the_reply(tmp_path: Path, parse: Callable[[str], Any]) -> None:
    sample = read_response(model_that(parse), EVALUATOR, TASK, Response("the reply", attempts=3))
    assert not sample.answered and sample.error is not None and sample.error.stage == "adapter"
    assert (sample.raw_response, sample.attempts, sample.action) == ("the reply", 3, None)
    assert journalled(sample, tmp_path) == sample


def test_a_reply_without_action_is_the_models_mistake() -> None:
    sample = read_response(SCRIPTED, EVALUATOR, TASK, "no action")
    assert sample.outcome.verdict == "unparseable" and sample.error is not None and sample.raw_response == "no action"


def test_the_servers_reasoning_stands_in_for_a_missing_thought() -> None:
    text = json.dumps({"action": ACTIONS[1].model_dump(mode="json")})
    assert read_response(SCRIPTED, EVALUATOR, TASK, Response(text, "because")).thought == "because"
    own = json.dumps({"thought": "own", "action": ACTIONS[1].model_dump(mode="json")})
    assert read_response(SCRIPTED, EVALUATOR, TASK, Response(own, "because")).thought == "own"


LONG = "x" * 30_000
CALL = '<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


@every_row("name", of_each_kind)
def test_the_message_about_a_long_reply_is_short(name: str) -> None:
    """A long word in each place where an adapter may repeat it."""
    model = load_model(name)
    replies = [
        *(LONG, f"{LONG}()", f"Action: {LONG}", f"Action: {LONG}(start_box='(1,2)')", f"Action: click(start_box='{LONG}')"),
        *(f"Action: click({LONG}={LONG})", f'{{"action": "{LONG}"}}', f'{{"{LONG}": 1}}', f'{{"POINT": "{LONG}"}}'),
        CALL.format(name=LONG, arguments="{}"),
        CALL.format(name="mobile_use", arguments=f'{{"action": "{LONG}"}}'),
        CALL.format(name="mobile_use", arguments=f'{{"action": "click", "coordinate": "{LONG}"}}'),
        CALL.format(name="mobile_use", arguments=f'{{"action": "click", "coordinate": ["{LONG}", "{LONG}"]}}'),
        CALL.format(name="mobile_use", arguments=f'{{"action": "swipe", "direction": "{LONG}"}}'),
        CALL.format(name="mobile_use", arguments=f'{{"action": "terminate", "status": "{LONG}"}}'),
    ]
    samples = [read_response(model, EVALUATOR, TASK, reply) for reply in replies]
    sentence = [text for each in samples for text in (each.outcome.reason, each.error.message if each.error else "")]
    assert max(map(len, sentence)) < 300 and any(sentence)


def test_the_message_about_an_adapters_bug_is_short() -> None:
    def fails(text: str) -> Any:
        raise RuntimeError(f"begin {LONG} end")

    message = read_response(model_that(fails), EVALUATOR, TASK, LONG).outcome.reason
    assert len(message) < 300 and "in fails: RuntimeError: begin xx" in message and message.endswith("xx end")
