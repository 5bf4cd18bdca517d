"""What degenerate policies earn: a reward that pays them well will be learnt from them.

A probe answers every step the same way, whatever the screen shows, in the model's own format; beside them stands the expert,
whose earnings are the most there is to get. Nothing is generated, so a reward is probed on a whole benchmark in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from guieval.actions import Action, Click, Open, Point, Scroll, Type, Wait
from guieval.rewards.formats import Tags
from guieval.rewards.reply import ReplyScorer
from guieval.steps import StepTaskModel

_CENTRE = Point(500.0, 500.0)
_NONSENSE = "zxqv wjkp"
THOUGHT = "I look at the screen and decide."
"""What every probe thinks, so that none falls short of a form that asks for a thought."""


@dataclass(frozen=True)
class Probe:
    """A policy: ``reply`` writes its answer to a step, ``None`` where the model's format cannot say it."""

    name: str
    summary: str
    reply: Callable[[ReplyScorer, StepTaskModel], str | None]


@dataclass(frozen=True)
class Earnings:
    """Means over the ``steps`` that a probe could answer; shares in [0, 1], ``None`` where it could answer none."""

    probe: Probe
    steps: int
    reward: float | None
    type_match: float | None
    exact_match: float | None
    format: float | None


def _written(scorer: ReplyScorer, task: StepTaskModel, action: Action) -> str | None:
    try:
        return scorer.model.render(task, action, THOUGHT, None)
    except ValueError:  # the family's format has no word for the action
        return None


def _always(action: Action) -> Callable[[ReplyScorer, StepTaskModel], str | None]:
    return lambda scorer, task: _written(scorer, task, action)


def _nonsense(scorer: ReplyScorer, task: StepTaskModel) -> str | None:
    if isinstance(scorer.format, Tags):
        return "".join(f"<{name}>{_NONSENSE}</{name}>" for name in scorer.format.names)
    said = (_written(scorer, task, each) for each in (Type(text=_NONSENSE), Open(app=_NONSENSE), Click(point=Point(0.0, 0.0))))
    return next((text for text in said if text is not None), None)


PROBES: tuple[Probe, ...] = (
    Probe(
        "expert", "the reference action, the most there is to earn", lambda scorer, task: _written(scorer, task, task.action)
    ),
    Probe("always-swipe", "swipe up from the middle", _always(Scroll(point=_CENTRE, direction="up"))),
    Probe("centre-click", "click the middle of the screen", _always(Click(point=_CENTRE))),
    Probe("empty-text", "type nothing", _always(Type(text=""))),
    Probe(
        "typed-instruction", "type the instruction", lambda scorer, task: _written(scorer, task, Type(text=task.instruction))
    ),
    Probe("always-wait", "wait", _always(Wait())),
    Probe("copied-instruction", "the instruction's text, in no format", lambda scorer, task: task.instruction),
    Probe("nonsense", "the right form around meaningless words", _nonsense),
)
"""The expert, then the degenerate policies."""


def probe(scorer: ReplyScorer, tasks: Iterable[StepTaskModel], probes: Iterable[Probe] = PROBES) -> list[Earnings]:
    """What each probe earns on ``tasks``, in the order of ``probes``."""
    steps = list(tasks)
    return [_earned(scorer, each, steps) for each in probes]


def _earned(scorer: ReplyScorer, asked: Probe, tasks: list[StepTaskModel]) -> Earnings:
    replies = ((task, asked.reply(scorer, task)) for task in tasks)
    scored = [scorer.score(task, text) for task, text in replies if text is not None]
    n = len(scored)
    if not n:
        return Earnings(asked, 0, None, None, None, None)
    return Earnings(
        asked,
        n,
        sum(each.reward.total for each in scored) / n,
        sum(each.reward.outcome.type_match for each in scored) / n,
        sum(each.reward.outcome.exact_match for each in scored) / n,
        sum(each.reward.parts["format"] for each in scored) / n,
    )
