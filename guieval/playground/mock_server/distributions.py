"""Policy ``distribution``: the response to a request is drawn from a distribution over actions in a file.

So a model's true decisions are known, and the metrics of a rollout can be compared with them. The file is JSONL with one line
per step (``key`` as printed in messages, or ``*`` for all other steps)::

    {"key": "*", "draws": [{"weight": 0.7, "action": "reference", "spread": 8},
                           {"weight": 0.2, "action": {"type": "PRESS", "button": "BACK"}},
                           {"weight": 0.1, "action": null}]}
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from guieval.actions import Action, Click, Frozen, LongPress, Point
from guieval.data.files import read_text
from guieval.errors import DataError, UsageError
from guieval.playground.mock_server.answers import PolicyResponse
from guieval.playground.mock_server.app import Answers, Tag
from guieval.steps import StepKey, StepTaskModel, validated

if TYPE_CHECKING:
    from guieval.models import ABCModel

NO_ACTION = "I do not know what to do here."
THOUGHT = "This is what I decide to do here."
EVERY_OTHER = "*"
UNNAMED = "names no step in its header X-Request-Id (guieval's engines do)"


class DrawnSeconds(Frozen):
    """One outcome: its relative probability and its action.

    ``action`` is a unified action, or the step's reference (if the model's format cannot express it, an alternative, else a
    wrong action), or a wrong action, or ``None`` for a response without an action. ``spread`` is the standard deviation of the
    point of a click or long press, in thousandths of the screen on each axis.
    """

    weight: float = Field(gt=0, allow_inf_nan=False)
    action: Annotated[Action | Literal["reference", "wrong"] | None, Field(union_mode="left_to_right")]
    spread: float = Field(0.0, ge=0, allow_inf_nan=False)
    thought: str = THOUGHT


class Distribution(Frozen):
    """The outcomes of one step."""

    key: str
    draws: tuple[DrawnSeconds, ...] = Field(min_length=1)


Line = TypeVar("Line", bound=BaseModel)


def read_lines(file: Path, model: type[Line]) -> Iterator[Line]:
    """The lines of a policy's JSONL file; :class:`UsageError` for an unreadable file or an invalid line."""
    try:
        lines = read_text(file).splitlines()
    except OSError as error:
        raise UsageError(f"the script {str(file)!r} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield validated(model, line, file=file, line=number)
            except DataError as error:
                raise UsageError(str(error)) from None


def distribution_answers(
    file: Path, model: ABCModel, find: Callable[[StepKey], StepTaskModel], wrong: Callable[[StepTaskModel], Action], seed: int
) -> Answers:
    """The policy: a draw is a function of ``seed``, the request's step and sample, and the sampling seed in its body."""
    distributions = {line.key: line for line in read_lines(file, Distribution)}

    def answer(tag: Tag, body: bytes) -> PolicyResponse:
        if tag.key is None:
            raise LookupError(f"the request {tag.name!r} {UNNAMED}, so it has no distribution")
        distribution = distributions.get(str(tag.key)) or distributions.get(EVERY_OTHER)
        if distribution is None:
            raise LookupError(f"the file of distributions has none for step {tag.key}, and none for {EVERY_OTHER!r}")
        source = random.Random(repr((seed, tag.name, _sampling_seed(body))))
        draw = source.choices(distribution.draws, [option.weight for option in distribution.draws])[0]
        task = find(tag.key)
        if draw.action is None:
            return PolicyResponse(NO_ACTION)
        action: Action
        if draw.action == "wrong":
            action = wrong(task)
        elif draw.action == "reference":
            right = (option for option in (task.action, *task.alternatives) if option in model.action_space)
            action = next(right, None) or wrong(task)
        else:
            action = draw.action
        if action not in model.action_space:
            raise LookupError(f"the model's format cannot express {action.type}, which is drawn at step {tag.key}")
        return PolicyResponse(model.render(task, _spread(action, draw.spread, source), draw.thought))

    return answer


def _spread(action: Any, deviation: float, source: random.Random) -> Any:
    if not deviation or not isinstance(action, Click | LongPress):
        return action
    x, y = (min(1000.0, max(0.0, source.gauss(middle, deviation))) for middle in action.point)
    return action.model_copy(update={"point": Point(x, y)})


def _sampling_seed(body: bytes) -> object:
    try:
        return json.loads(body).get("seed")
    except (ValueError, AttributeError):
        return None
