"""Format rules: whether a response has the format that a policy should learn. Every reward has a default rule."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from guieval.errors import UsageError
from guieval.steps import Sample


class FormatRule(ABC):
    """Whether a response is well formed."""

    @abstractmethod
    def holds(self, text: str, sample: Sample) -> bool:
        """Judge a raw response and the sample that its adapter parsed from it."""

    @abstractmethod
    def describe(self) -> str:
        """The required format, in words."""


@dataclass(frozen=True)
class Parses(FormatRule):
    """The adapter read an action, even one outside the unified space: the response has the family's own format."""

    def holds(self, text: str, sample: Sample) -> bool:
        return sample.action is not None

    def describe(self) -> str:
        return "a response that the model's adapter can read"


@dataclass(frozen=True)
class HasThought(FormatRule):
    """The adapter read an action and a thought that is not blank (UI-S1's released reward requires the thought)."""

    def holds(self, text: str, sample: Sample) -> bool:
        return sample.action is not None and bool((sample.thought or "").strip())

    def describe(self) -> str:
        return "a response that the model's adapter can read, with a thought"


@dataclass(frozen=True)
class ThoughtAndAction(FormatRule):
    """The whole response is ``<think>...</think><action>{...}</action>``, as UI-S1 requires (paper, appendix H).

    The thought is not blank and the action is one JSON object, which the adapter read. Each of the four tags occurs once, so
    a second answer, an answer within the thought, or an unclosed thought is malformed. Only white space may surround
    the two parts.
    """

    def holds(self, text: str, sample: Sample) -> bool:
        if sample.action is None or any(text.count(tag) != 1 for tag in _THOUGHT_AND_ACTION_TAGS):
            return False
        found = _THOUGHT_AND_ACTION.fullmatch(text)
        if found is None or not found[1].strip():
            return False
        try:
            return isinstance(json.loads(found[2]), dict)
        except (ValueError, RecursionError):
            return False

    def describe(self) -> str:
        return "<think>...</think> <action>{...}</action> with one JSON object, and nothing else"


_THOUGHT_AND_ACTION_TAGS = ("<think>", "</think>", "<action>", "</action>")
_THOUGHT_AND_ACTION = re.compile(r"\s*<think>(.*)</think>\s*<action>(.*)</action>\s*", re.DOTALL)


@dataclass(frozen=True, init=False)
class Tags(FormatRule):
    """The whole text is these tagged parts, in order, with nothing but space between: ``Tags("think", "answer")``.

    The content of the parts does not matter, and no part has to end at its first closing tag, as in UI-R1's released format
    reward (:func:`guieval.rewards.format_reward`). Raises :class:`UsageError` without a name, or for a name that is none.
    """

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        if not names or not all(re.fullmatch(r"[\w-]+", name) for name in names):
            raise UsageError(f"Tags needs names of tags, such as 'think' and 'answer', got {names!r}")
        object.__setattr__(self, "names", names)

    @cached_property
    def _joints(self) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(rf"</{one}>\s*<{other}>") for one, other in pairwise(self.names))

    def holds(self, text: str, sample: Sample) -> bool:
        # One pattern for the whole text takes time by the square of a response that repeats its tags without end.
        begin, end = f"<{self.names[0]}>", f"</{self.names[-1]}>"
        if not text.startswith(begin) or not text.endswith(end):
            return False
        place = len(begin)
        for joint in self._joints:  # the first place where one can be leaves the most room for those after it
            found = joint.search(text, place)
            if found is None:
                return False
            place = found.end()
        return place <= len(text) - len(end)

    def describe(self) -> str:
        return " ".join(f"<{name}>...</{name}>" for name in self.names) + " and nothing else"
