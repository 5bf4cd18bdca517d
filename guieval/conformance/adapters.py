"""The conformance suite of model adapters.

An adapter is tested against the contract in :mod:`guieval.models` alone, with synthetic steps: no data, no server, no images.
Each family's own tests compare it with its authors' sources (whether it has the published prompt, for example).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence

from guieval import actions as act
from guieval.conformance.examples import SIZES, example_actions, example_step
from guieval.conformance.finding import Violation, run_check
from guieval.conformance.published import published_responses_are_read
from guieval.errors import ParseError, UsageError
from guieval.frames import Frame, Normalised, Size
from guieval.history import HistoryEntry, reference_history
from guieval.models import ABCModel, ModelConfig, ModelInput
from guieval.steps import Setting, StepTaskModel

SETTINGS: tuple[Setting, ...] = ("high", "low", "grounding")

GARBAGE = (
    "",
    " ",
    "I am not sure what to do.",
    "Action:",
    "<tool_call>\n</tool_call>",
    "```json\n{\n```",
    "[[",
    "click(",
    "\0",
)
"""Responses that hold no action in any family's format."""


def check_adapter(model: ABCModel, name: str | None = None) -> list[Violation]:
    """All violations of the contract by the adapter; empty if it conforms. ``name`` is its name in the findings."""
    checks: dict[str, Callable[[ABCModel], Iterator[str]]] = {
        "round trip": _round_trips,
        "published responses": published_responses_are_read,
        "reference scores": _references_score,
        "past": _pasts,
        "input": _inputs,
        "instruction": _instructions,
        "fixed thought": _fixed_thoughts,
        "refusal": _refusals,
        "garbage": _garbage,
    }
    subject = name or model.config.name
    return [finding for title, check in checks.items() for finding in run_check(subject, title, check, model)]


def every_model(names: Sequence[str] | None = None) -> Iterator[tuple[str, ABCModel]]:
    """The checkpoints with every state of their thinking switch, by unique names."""
    from guieval.registry import adapter_class, list_adapters, list_models, load_model, model_config

    chosen = list_models() if names is None else names
    for name in chosen:
        model = load_model(name)
        if not model.thinking_switch:
            yield name, model
            continue
        for thinking in (True, False):
            yield f"{name} ({'thinking' if thinking else 'no thinking'})", load_model(name, thinking=thinking)
    if names is None:
        used = {model_config(name).adapter for name in chosen}
        for adapter in list_adapters():
            if adapter not in used:
                yield adapter, adapter_class(adapter)(ModelConfig(name=adapter, adapter=adapter))


# --- the checks: each yields one sentence per broken promise ---------------------------------------------------------


def _round_trips(model: ABCModel) -> Iterator[str]:
    for size in SIZES:
        for action in example_actions(model.action_space):
            settings = SETTINGS if isinstance(action, act.Click) else SETTINGS[:2]
            for setting in settings:
                task = example_step(action, setting=setting, size=size)
                for thought, conclusion in ((None, None), ("I see the switch.", "Tap the switch.")):
                    text = model.render(task, action, thought, conclusion)
                    problem = _difference(action, model.parse_response(task, text).action, model.frame(task), size)
                    if problem:
                        yield f"{setting}, {size[0]}x{size[1]}: {action!r} was written {text!r} and read as {problem}"


def _difference(action: act.Action, read: act.Action, frame: Frame, size: Size) -> str:
    """What ``read`` is, unless it is ``action`` up to half a native unit and times and lengths that a format lacks or adds."""
    if read.type != action.type:
        return repr(read)
    changes: dict[str, object] = {}
    if isinstance(action, act.Click | act.LongPress | act.Scroll) and isinstance(read, act.Click | act.LongPress | act.Scroll):
        unit = 10.0**-frame.digits if isinstance(frame, Normalised) else 1.0
        wanted, got = frame.encode(action.point, size), frame.encode(read.point, size)
        if all(abs(one - other) <= unit / 2 + 1e-6 for one, other in zip(wanted, got, strict=True)):
            changes["point"] = action.point
    if isinstance(action, act.Scroll) and action.distance is None:  # a format may have no scroll without a length
        changes["distance"] = None
    if isinstance(action, act.LongPress | act.Wait) and isinstance(read, act.LongPress | act.Wait):
        default = type(action).model_fields["duration"].default
        if read.duration == default or math.isclose(read.duration, action.duration):
            changes["duration"] = action.duration
    return "" if read.model_copy(update=changes) == action else repr(read)


def _references_score(model: ABCModel) -> Iterator[str]:
    from guieval.evaluation import ActionEvaluator, list_protocols

    evaluators = {protocol: ActionEvaluator(protocol) for protocol in list_protocols()}
    for action in model.action_space.examples:
        task = example_step(action, setting="high")
        read = model.parse_response(task, model.render(task, action)).action
        for protocol, evaluator in evaluators.items():
            # ignore protocols that do not count the label itself as right (they score other actions)
            if evaluator.evaluate(task, action).exact_match and not evaluator.evaluate(task, read).exact_match:
                yield f"under {protocol}, the reference {action!r} read back as {read!r} is not an exact match"


_CALL_MARK = re.compile(r"\w\(\S|\{")
"""What a call is known by; a sentence about an action has none, not even if it states a place."""


def _pasts(model: ABCModel) -> Iterator[str]:
    """A family that shows the past as calls reads each of them back as what was done, also one that it has no word for.

    It may leave out a step, or tell it in words.
    """
    if (shown := _shown(model, act.Click(point=act.Point(500.0, 750.0)))[1]) is None or shown[0]:
        return  # the past is not shown, in words, or in another notation than responses
    for action in act.ActionSpace(buttons=frozenset(act.BUTTONS)).examples:
        text, read = _shown(model, action)
        # without a word for an impossible task, its end is one in words
        ended = action.type == "STOP" and action not in model.action_space and read and read[1] == "STOP"
        if _CALL_MARK.search(text) and not ended and (read is None or read[0]):
            yield f"the past {action!r} was written {text!r} and read as {read[0] if read else 'no action'}"


def _shown(model: ABCModel, action: act.Action) -> tuple[str, tuple[str, str] | None]:
    """How an action is shown as the only past step, and what is wrong with it and its type once that is read as a response.

    What the prompt also says without a past is not part of it: it may hold a call as an example.
    """
    before = example_step(action).model_copy(update={"low_level_instruction": None})
    task = example_step(act.Click(point=act.Point(500.0, 500.0)), index=1)
    told, untold = model.prepare_input(task, reference_history([before])), model.prepare_input(task, ()).text
    if told.text == untold:
        return "", None
    turns = [message for message in told.messages[: len(told.messages) - told.prefill] if message.role == "assistant"]
    text = lines = ModelInput(tuple(turns[-1:])).text
    if not turns:
        text, lines = _added(untold, told.text)
    try:
        read = model.parse_response(before, lines).action
    except ParseError:
        return text, None
    if isinstance(action, act.Type) and isinstance(read, act.Type):  # a past of one line a step has no line breaks
        read = read if " ".join(action.text.split()) != read.text else action
    return text, (_difference(action, read, model.frame(before), before.screenshot_size), read.type)


def _added(text: str, longer: str) -> tuple[str, str]:
    """What ``longer`` has that ``text`` lacks, and the whole lines that contain it."""
    start = _shared(text, longer)
    end = len(longer) - min(_shared(text[::-1], longer[::-1]), len(longer) - start)
    first, last = longer.rfind("\n", 0, start) + 1, longer.find("\n", end)
    return longer[start:end], longer[first : last if last >= 0 else len(longer)]


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (char, another) in pairs if char != another), min(len(one), len(other)))


def _inputs(model: ABCModel) -> Iterator[str]:
    actions = (*act.ActionSpace(buttons=frozenset(act.BUTTONS)).examples, act.Unsupported(name="zoom", arguments={"factor": 2}))
    every = [example_step(action, index=index, length=len(actions)) for index, action in enumerate(actions)]
    entries = reference_history(every)
    answered = tuple(HistoryEntry(entry.task, entry.action, "I see it.", "Tapped it.", "a reply", "model") for entry in entries)
    for setting in SETTINGS:
        for past in ((), entries[:1], entries[:7], entries[:-1], answered[:7]):
            task = every[len(past)].model_copy(update={"setting": setting})
            first = model.prepare_input(task, past)
            where = f"{setting}, {len(past)} past steps"
            if first != model.prepare_input(task, past):
                yield f"{where}: the same step gives two different inputs"
            if not any(image.task == task for image in first.images):
                yield f"{where}: the current screenshot is not shown"
            if not {image.task.key for image in first.images} <= {step.key for step in every[: len(past) + 1]}:
                yield f"{where}: a screenshot is shown that is neither past nor current"
            if not first.messages or (first.messages[-1].role == "assistant") != first.prefill:
                yield f"{where}: the last message must be the user's, or an assistant's turn marked as prefill"
            if any(not message.parts for message in first.messages):
                yield f"{where}: a message is empty"
            for image in first.images:
                if image.resize is not None and min(image.resize) < 1:
                    yield f"{where}: a screenshot would be resized to {image.resize}"


def _instructions(model: ABCModel) -> Iterator[str]:
    """An instruction may contain text that looks like a placeholder of the template."""
    goal, low = "Find {history} {task} {low_level_instruction} %s in {query}", "Tap {instruction} and {screenshot}"
    for setting in SETTINGS:
        task = example_step(act.Click(point=act.Point(500.0, 500.0)), setting=setting, index=1)
        task = task.model_copy(update={"instruction": goal, "low_level_instruction": low})
        before = task.model_copy(update={"step_index": 0, "screenshot": "before.png"})
        text = model.prepare_input(task, reference_history([before])).text
        # families show a step instruction with the goal, in its place, or show only the goal
        if goal not in text and (setting != "low" or low not in text):
            yield f"{setting}: the instruction {goal!r} is not in the prompt word for word"


THOUGHT = "The switch is at the top.\nI tap it."


def _fixed_thoughts(model: ABCModel) -> Iterator[str]:
    """A given thought is in an unfinished last turn, and a response with only the action is parsed.

    If the prompt requests no thought (a setting, or thinking off), none can be given: :class:`UsageError`.
    """
    for setting in SETTINGS:
        task = example_step(act.Click(point=act.Point(400.0, 600.0)), setting=setting, index=1)
        past = reference_history([task.model_copy(update={"step_index": 0, "screenshot": "before.png"})])
        try:
            begun = model.prepare_fixed_thought(task, past, THOUGHT)
        except UsageError:
            if model.fixes_thought and setting == "high" and model.thinking is not False:
                yield f"{setting}: fixes_thought is set, but no thought can be given"
            continue
        if not model.fixes_thought:
            yield f"{setting}: a thought can be given, but fixes_thought is not set"
            continue
        last = begun.messages[-1]
        turn = "".join(part for part in last.parts if isinstance(part, str))
        if last.role != "assistant" or not begun.prefill:
            yield f"{setting}: the thought must stand in an assistant's last turn, marked as prefill"
        if turn.count(THOUGHT) != 1 or THOUGHT in ModelInput(begun.messages[:-1]).text:
            yield f"{setting}: the thought must stand once, in the last turn, word for word; that is {turn!r}"
        plain = model.prepare_input(task, past)
        if begun.messages[: len(begun.messages) - 1] != plain.messages[: len(plain.messages) - plain.prefill]:
            yield f"{setting}: a given thought changes the messages before it"
        rest = _rest(model, task, turn)
        action = model.parse_response(task, rest).action
        problem = _difference(task.action, action, model.frame(task), task.screenshot_size)
        if problem:
            yield f"{setting}: {task.action!r} after a given thought was written {rest!r} and read as {problem}"


def _rest(model: ABCModel, task: StepTaskModel, turn: str) -> str:
    """The continuation of an unfinished turn: the rest of a full response that begins with it, else a response without a
    thought.
    """
    whole = model.render(task, task.action, THOUGHT)
    return whole.removeprefix(turn) if whole.startswith(turn) else model.render(task, task.action)


def _refusals(model: ABCModel) -> Iterator[str]:
    everything = act.ActionSpace(types=frozenset(act.ACTION_TYPES), buttons=frozenset(act.BUTTONS))
    for action in (*everything.examples, act.Unsupported(name="zoom")):
        if action in model.action_space:
            continue
        task = example_step(action)
        try:
            text = model.render(task, action)
        except ValueError:
            continue
        yield f"{action!r} is outside the action space, but was written {text!r} instead of raising ValueError"


def _garbage(model: ABCModel) -> Iterator[str]:
    for setting in SETTINGS:
        task = example_step(act.Click(point=act.Point(500.0, 500.0)), setting=setting)
        for text in GARBAGE:
            try:
                read = model.parse_response(task, text).action
            except ParseError:
                continue
            yield f"{setting}: the response {text!r} has no action, but was read as {read!r}"
