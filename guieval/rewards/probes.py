"""Rewards of degenerate policies: training learns such a policy if its reward is high.

Some probes answer every step the same way, whatever the screen shows, in the model's own format. Others know the reference and
break its form (no thought, words around it, a second answer) or its text. The expert responses with the reference action and
earns the maximum. Nothing is generated, so a reward is probed on a whole benchmark in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from guieval.actions import Action, Click, Open, Point, Scroll, Type, Wait
from guieval.rewards.formats import Tags
from guieval.rewards.response import ResponseScorer
from guieval.rewards.step import RewardParts
from guieval.steps import StepTaskModel

_CENTRE = Point(500.0, 500.0)
_NONSENSE = "zxqv wjkp"
THOUGHT = "I look at the screen and decide."
"""The thought of every probe except ``no-thought``, so that none fails a format that requires one."""
_SPAM = " ".join(["great excellent perfect correct done"] * 10)


@dataclass(frozen=True)
class Probe:
    """A policy: ``reply`` writes its answer to a step, ``None`` if the model's format cannot express it."""

    name: str
    summary: str
    reply: Callable[[ResponseScorer, StepTaskModel], str | None]


@dataclass(frozen=True)
class Earnings:
    """Means over the ``steps`` that a probe could answer; shares in [0, 1], ``None`` if it could answer none.

    ``expert`` is what the expert earns on the same steps.
    """

    probe: Probe
    steps: int
    reward: float | None
    type_match: float | None
    exact_match: float | None
    format: float | None
    expert: float | None


def _written(scorer: ResponseScorer, task: StepTaskModel, action: Action, thought: str | None = THOUGHT) -> str | None:
    try:
        return scorer.model.render(task, action, thought, None)
    except ValueError:  # the family's format has no word for the action
        return None


def _always(action: Action) -> Callable[[ResponseScorer, StepTaskModel], str | None]:
    return lambda scorer, task: _written(scorer, task, action)


def _spoilt(spoil: Callable[[str], str]) -> Callable[[ResponseScorer, StepTaskModel], str | None]:
    """The expert's response with a defect; ``None`` if the defect changes nothing."""

    def reply(scorer: ResponseScorer, task: StepTaskModel) -> str | None:
        text = _written(scorer, task, task.action)
        return None if text is None or (spoiled := spoil(text)) == text else spoiled

    return reply


def _texted(change: Callable[[str], str]) -> Callable[[ResponseScorer, StepTaskModel], str | None]:
    """The reference with another text, on the steps that have one to change."""

    def reply(scorer: ResponseScorer, task: StepTaskModel) -> str | None:
        match task.action:
            case Type(text=text) if change(text) != text:
                return _written(scorer, task, Type(text=change(text)))
            case Open(app=app) if change(app) != app:
                return _written(scorer, task, Open(app=change(app)))
        return None

    return reply


def _nonsense(scorer: ResponseScorer, task: StepTaskModel) -> str | None:
    if isinstance(scorer.format, Tags):
        return "".join(f"<{name}>{_NONSENSE}</{name}>" for name in scorer.format.names)
    replies = (
        _written(scorer, task, action) for action in (Type(text=_NONSENSE), Open(app=_NONSENSE), Click(point=Point(0.0, 0.0)))
    )
    return next((text for text in replies if text is not None), None)


EXPERT = Probe(
    "expert", "the reference action, which earns the maximum", lambda scorer, task: _written(scorer, task, task.action)
)
BLIND: tuple[Probe, ...] = (
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
"""Policies that ignore the screen."""
PROBES: tuple[Probe, ...] = (
    EXPERT,
    *BLIND,
    Probe(
        "no-thought", "the reference action without a thought", lambda scorer, task: _written(scorer, task, task.action, None)
    ),
    Probe(
        "format-spam",
        "the reference action, with 50 words before and after it",
        _spoilt(lambda text: f"{_SPAM}\n{text}\n{_SPAM}"),
    ),
    Probe("two-answers", "the reference action, twice", _spoilt(lambda text: f"{text}\n{text}")),
    Probe(
        "unclosed-thought",
        "the reference action in a thought that never ends",
        _spoilt(lambda text: text.replace("</think>", "")),
    ),
    Probe("one-letter", "the first letter of what is to be typed or opened", _texted(lambda text: text[:1])),
    Probe("overlong-text", "what is to be typed or opened, and more", _texted(lambda text: f"{text} {_NONSENSE}")),
)
"""The expert, then the degenerate policies."""


def probe(scorer: ResponseScorer, tasks: Iterable[StepTaskModel], probes: Iterable[Probe] = PROBES) -> list[Earnings]:
    """The earnings of each probe on ``tasks``, in the order of ``probes``."""
    steps = list(tasks)
    expert = _scored(scorer, EXPERT, steps)
    return [_earned(each, _scored(scorer, each, steps), expert) for each in probes]


def _scored(scorer: ResponseScorer, asked: Probe, tasks: list[StepTaskModel]) -> list[RewardParts | None]:
    replies = ((task, asked.reply(scorer, task)) for task in tasks)
    return [None if text is None else scorer.score(task, text).reward for task, text in replies]


def _earned(asked: Probe, scored: list[RewardParts | None], expert: list[RewardParts | None]) -> Earnings:
    rewards = [reward for reward in scored if reward is not None]
    beside = [other.total for own, other in zip(scored, expert, strict=True) if own is not None and other is not None]
    return Earnings(
        asked,
        len(rewards),
        _mean([reward.total for reward in rewards]),
        _mean([reward.outcome.type_match for reward in rewards]),
        _mean([reward.outcome.exact_match for reward in rewards]),
        _mean([reward.parts["format"] for reward in rewards]),
        _mean(beside),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
