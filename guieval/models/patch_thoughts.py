"""The thought of a patch: the request for it, and how the answer is read.

Source: UI-S1 paper, section 3.3, Table 5 and appendix I. On-policy, the policy itself is queried, M(I, a*, H, S): its adapter's
own messages for the step under appendix I's system prompt. Off-policy, an auxiliary model is queried in a plain chat, M0(I, a*,
S): Table 5 gives it no history. The paper mentions a "Next Action Hint" without its wording; here it is a line at the end of
the last user turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from guieval.errors import ParseError
from guieval.history import HistoryEntry, describe
from guieval.models import ABCModel, ImageRef, Message, ModelInput, Response, fill, load_template
from guieval.models.response import without_end_tokens
from guieval.steps import StepTaskModel

HINT = "\n\nNext Action Hint: {action}"
"""How the expert's action is given. The prompt refers to it in these words; the line is ours."""
_BINDING = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "structured_outputs"}
    | {"guided_json", "guided_regex", "guided_choice", "guided_grammar", "continue_final_message", "add_generation_prompt"}
)
_THOUGHT = re.compile(r"<(think|thinking|thought)>(.*?)(?:</\1>|\Z)", re.DOTALL)
_CLOSED = re.compile(r"\A(.*?)</(?:think|thinking|thought)>", re.DOTALL)


@cache
def thought_prompt() -> str:
    """Appendix I's system prompt, with the placeholder ``{instruction}``."""
    return load_template(Path(__file__).parent / "templates" / "patch_thought-system.txt")


def thought_fingerprint() -> str:
    """All text of a request for a thought, apart from the adapter's own."""
    return thought_prompt() + HINT


def on_policy_input(model: ABCModel, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
    """The request to a policy for the thought that leads to ``task``'s reference action, given its past oldest first.

    Its adapter's messages without their own system prompt, without a begun answer and without the request fields that ask for
    an action (:func:`unbound`); the hint is written as the family writes an action, or in plain words if it cannot. Raises
    what the adapter raises.
    """
    prepared = model.prepare_input(task, history)
    turns = [message for message in prepared.messages if message.role != "system"]
    if prepared.prefill:  # the thought is another answer than the one that was begun
        turns = turns[:-1]
    try:
        hint = fill(HINT, action=model.render(task, task.action))
    except ValueError:
        hint = fill(HINT, action=describe(task.action))
    if turns and turns[-1].role == "user":
        turns[-1] = replace(turns[-1], parts=(*turns[-1].parts, hint))
    else:
        turns.append(Message("user", (hint.strip(),)))
    return ModelInput((_system(task), *turns), extra=unbound(prepared.extra))


def unbound(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Request fields but for those that bind an answer's form: a model made to call a function cannot write a thought."""
    return {name: value for name, value in fields.items() if name not in _BINDING}


def off_policy_input(task: StepTaskModel) -> ModelInput:
    """The request to an auxiliary model: the prompt, the step's screenshot as it is, and the hint in plain words.

    Its places are in thousandths of the screen's sides, as everywhere in the unified space.
    """
    hint = fill(HINT, action=describe(task.action))
    return ModelInput((_system(task), Message("user", (ImageRef(task), hint.strip()))))


def read_thought(response: Response | str, *, model: ABCModel | None = None, task: StepTaskModel) -> str | None:
    """The thought in a response, ``None`` if it has none.

    That is what is between the tags of the prompt's format; without tags what ``model``, the policy, reads as the thought
    of an answer in its own form; else the whole text. What a server's reasoning parser took out of the text replaces an answer
    without text. Raises no error of its own.
    """
    response = Response.of(response)
    text = without_end_tokens(response.written)
    tagged = _THOUGHT.search(text)
    if tagged is not None:
        return tagged[2].strip() or None
    closed = _CLOSED.match(text)  # the opening tag may be part of a chat template
    if closed is not None:
        return closed[1].strip() or None
    if not text.strip():
        return (response.reasoning or "").strip() or None
    if model is not None:
        try:
            return model.parse_response(task, text).thought or None
        except ParseError:
            pass
    return text.strip()


def _system(task: StepTaskModel) -> Message:
    return Message("system", (fill(thought_prompt(), instruction=task.instruction),))
