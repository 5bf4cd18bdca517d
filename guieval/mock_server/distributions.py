"""Policy ``distribution``: each request is answered by one draw from a distribution over actions that a file states.

So the truth about a model's decisions is known: what a rollout measures can be compared with it. The file is JSONL, a line a
step (``key`` as messages print it, or ``*`` for every other step)::

    {"key": "*", "draws": [{"weight": 0.7, "action": "reference", "spread": 8},
                           {"weight": 0.2, "action": {"type": "PRESS", "button": "BACK"}},
                           {"weight": 0.1, "action": null}]}
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.actions import Action, Click, LongPress, Point
from guieval.errors import UsageError, first_problem
from guieval.mock_server.app import Answer, Answers, Tag
from guieval.steps import StepKey, StepTaskModel

if TYPE_CHECKING:
    from guieval.models import ABCModel

NO_ACTION = "I do not know what to do here."
THOUGHT = "This is what I decide to do here."
EVERY_OTHER = "*"


class Draw(BaseModel):
    """One outcome: how likely it is beside the others, and what is done.

    ``action`` is unified, or the step's reference (where the model's format cannot say it, an alternative to it, else a
    wrong one), or a wrong one, or ``None`` for a reply that holds no action. ``spread`` is
    the standard deviation of a click's or long press's point, in thousandths of the screen on each axis.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    weight: float = Field(gt=0, allow_inf_nan=False)
    action: Annotated[Action | Literal["reference", "wrong"] | None, Field(union_mode="left_to_right")]
    spread: float = Field(0.0, ge=0, allow_inf_nan=False)
    thought: str = THOUGHT


class Distribution(BaseModel):
    """The outcomes of one step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    draws: tuple[Draw, ...] = Field(min_length=1)


def read_distributions(file: Path) -> dict[str, Distribution]:
    """The distributions of a file by step; :class:`UsageError` when it cannot be read, or a line is none."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"the distributions {str(file)!r} cannot be read: {error.strerror}") from None
    found: dict[str, Distribution] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            each = Distribution.model_validate_json(line)
        except ValidationError as error:
            problem = first_problem(error)
            raise UsageError(f"{str(file)!r}, line {number}, field {problem.field}: {problem.said}") from None
        found[each.key] = each
    return found


def distribution_answers(
    file: Path,
    model: ABCModel,
    find: Callable[[StepKey], StepTaskModel],
    wrong: Callable[[StepTaskModel, float], Action],
    seed: int,
) -> Answers:
    """The policy: a draw is a function of ``seed``, the request's step and sample, and the sampling seed in its body."""
    distributions = read_distributions(file)

    def answer(tag: Tag, body: bytes) -> Answer:
        if tag.key is None:
            raise LookupError(f"the request {tag.name!r} names no step, so it has no distribution")
        distribution = distributions.get(str(tag.key)) or distributions.get(EVERY_OTHER)
        if distribution is None:
            raise LookupError(f"the file of distributions has none for step {tag.key}, and none for {EVERY_OTHER!r}")
        source = random.Random(repr((seed, tag.name, _sampling_seed(body))))
        draw = source.choices(distribution.draws, [each.weight for each in distribution.draws])[0]
        task = find(tag.key)
        if draw.action is None:
            return Answer(NO_ACTION)
        if draw.action == "wrong":
            wanted: list[Action] = [wrong(task, 0.0)]
        else:
            wanted = [task.action, *task.alternatives] if draw.action == "reference" else [draw.action]
        if draw.action == "reference" and not any(each in model.action_space for each in wanted):
            wanted = [wrong(task, 0.0)]
        action = next((each for each in wanted if each in model.action_space), None)
        if action is None:
            raise LookupError(f"the model's format cannot say {wanted[0].type}, which is drawn at step {tag.key}")
        return Answer(model.render(task, _spread(action, draw.spread, source), draw.thought))

    return answer


def _spread(action: Any, deviation: float, source: random.Random) -> Any:
    if not deviation or not isinstance(action, Click | LongPress):
        return action
    x, y = (min(1000.0, max(0.0, source.gauss(middle, deviation))) for middle in action.point)
    return action.model_copy(update={"point": Point(x, y)})


def _sampling_seed(body: bytes) -> object:
    """The ``seed`` that a request asks to be sampled with, ``None`` where it does not."""
    try:
        return json.loads(body).get("seed")
    except (ValueError, AttributeError):
        return None
