"""A judge: what a model is sent and how its verdict is read, or a rule. Both are named, have a version and a digest.

One file has one prompt and one or several ways to read the responses: as the published code reads them (``-official``), whose
faults its source names, and as the prompt means them (``-intended``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field

from guieval.actions import Frozen
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.errors import UsageError, nearest
from guieval.studies.judges.cases import Case

FOLDER = "judges"
"""The folder of verdicts in a run's or a data set's directory, and that of the judges in ``configs``."""
SCREENSHOTS = "{screenshots}"
"""The part of a user's turn in whose place the screenshots are sent."""
Verdict: TypeAlias = Literal["success", "failure", "unreadable", "no response"]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


Pattern: TypeAlias = Annotated[str, AfterValidator(_pattern)]


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its fields ``{name}`` filled in; braces around other words stay, and so do those of the values."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


class Reading(Frozen):
    """How a verdict is read: the first of ``found`` that matches decides, by its group: ``success`` is searched for in it, or
    else ``failure``. Of several places ``take`` says which counts. ``otherwise`` is the verdict if nothing decides."""

    found: tuple[Pattern, ...] = Field(min_length=1)
    take: Literal["first", "last"] = "last"
    success: Pattern
    failure: Pattern | None = None
    otherwise: Literal["success", "failure", "unreadable"] = "unreadable"
    same_case: bool = Field(False, description="whether capital letters differ from small ones")

    def verdict(self, response: str) -> Verdict:
        """What the response says."""
        flags = re.DOTALL | re.MULTILINE | (0 if self.same_case else re.IGNORECASE)
        for pattern in self.found:
            places = list(re.finditer(pattern, response, flags))
            if places:
                word = places[0 if self.take == "first" else -1][1]
                if re.search(self.success, word, flags):
                    return "success"
                return "failure" if self.failure is None or re.search(self.failure, word, flags) else self.otherwise
        return self.otherwise


class EarlierPrompt(Frozen):
    """A request on the way to the verdict."""

    system: str
    user: str


class Screening(EarlierPrompt):
    """A request for each screenshot: those with a score from ``threshold`` on are sent for the verdict, ``most`` at most."""

    threshold: int = Field(ge=1, le=5)
    most: int = Field(ge=1)


class Steps(Frozen):
    """How the trajectory is written in place of ``{steps}``; a line may have ``{number}`` (from 1), ``{index}`` (from 0),
    ``{action}``, ``{thought}`` and ``{url}``."""

    line: str
    between: str = "\n"
    empty: str = Field("", description="the text for an action or a thought that is not known")
    stripped: bool = Field(False, description="whether actions and thoughts lose the spaces around them")
    without_last: bool = Field(False, description="whether the last action is left out, as the agent's answer")


class Judge(Frozen):
    """What a judge is sent, and how its verdict is read. Texts may have ``{goal}``, ``{answer}`` (the agent's last one),
    ``{count}`` (of the screenshots), ``{platform}``, ``{steps}``, ``{key_points}`` and ``{reasons}`` (of the screening)."""

    title: str = Field(min_length=1)
    version: str = Field(min_length=1, description="edition of what is published: a commit, or a version of the paper")
    source: str = Field(min_length=1, description="where the prompt is published, what of it is ours, and the known faults")
    system: str | None = None
    user: tuple[str, ...] = Field(min_length=1, description=f"the parts of the user's turn; one is {SCREENSHOTS}")
    user_without_screenshots: tuple[str, ...] | None = Field(None, description="the same if no screenshot passes the screening")
    screenshots: int | None = Field(None, ge=1, description="how many are sent, the last ones; all if not given")
    most_screenshots: int | None = Field(None, ge=1, description="of longer trajectories only so many are looked at, the first")
    missing_count: bool = Field(False, description="whether a step without a screenshot takes the place of one")
    ring: bool = Field(False, description="whether a red ring marks the place of an action on its screenshot")
    jpeg: int | None = Field(None, ge=1, le=100, description="quality, if the screenshots are encoded as JPEG")
    steps: Steps | None = None
    key_points: EarlierPrompt | None = None
    screening: Screening | None = None
    needs_answer: bool = Field(False, description="whether a trajectory without an answer is a failure without a request")
    votes: int = Field(1, ge=1, description="responses for a verdict, which is that of more than half of them")
    again: int = Field(0, ge=0, description="further requests for a response that cannot be read")
    sampling: dict[str, float | int] = Field({}, description="of the requests, unless the command says otherwise")
    readings: dict[str, Reading] = Field(min_length=1, description="names of the judges that read these responses, and how")
    name: str = Field("", exclude=True)

    @property
    def file(self) -> str:
        """The name of what all readings of the responses share: their file's."""
        return self.name if len(self.readings) == 1 else self.name.rsplit("-", 1)[0]

    def digest(self, sampling: Mapping[str, float | int]) -> str:
        """Of all that is sent: responses with one digest may be read in any way."""
        asked = self.model_dump_json(exclude={"title", "version", "source", "readings", "sampling"})
        return sha256(f"{asked}{sorted(sampling.items())}".encode()).hexdigest()[:16]

    def verdict(self, responses: tuple[str, ...]) -> Verdict:
        """That of more than half of the responses."""
        said = [self.readings[self.name].verdict(each) for each in responses]
        return next((each for each in said if 2 * said.count(each) > len(said)), "unreadable")


class Rule(NamedTuple):
    """A judge that needs no model. ``says`` is whether a case is a success; ``None`` if the rule cannot know."""

    name: str
    title: str
    version: str
    source: str
    says: Callable[[Case], bool | None]

    @property
    def file(self) -> str:
        return self.name

    def digest(self, sampling: Mapping[str, float | int]) -> str:
        """Of its name and its version."""
        return sha256(f"{self.name} {self.version}".encode()).hexdigest()[:16]


AnyJudge: TypeAlias = Judge | Rule

_RULES = (
    Rule(
        "rule-own",
        "The benchmark's own verdict",
        "1",
        "the environment's score, or the data set's record of it",
        lambda case: case.own,
    ),
    Rule("rule-claim", "The agent's own claim", "1", "success if the agent ended the task as done", lambda case: case.claimed),
    Rule(
        "rule-second", "A second person", "1", "the data set's second label, a ceiling of agreement", lambda case: case.second
    ),
    Rule("rule-answer", "An answer", "1", "success if the agent gave an answer", lambda case: bool(case.answer)),
    Rule("rule-success", "Always success", "1", "what agreement is worth without looking", lambda case: True),
)
RULES = {rule.name: rule for rule in _RULES}


@cache
def _shipped() -> dict[str, Path]:
    files = sorted((config_folder() / FOLDER).glob("*.yaml"))
    return {name: file for file in files for name in read_record(file, Judge, "the judge", yaml=True).readings}


def list_judges() -> list[str]:
    """The names of the shipped judges and of the rules."""
    return [*_shipped(), *RULES]


def load_judge(name: str) -> AnyJudge:
    """A shipped judge, a rule, or the first reading of a file whose name ends in ``.yaml``.

    Raises :class:`UsageError` for another name or a wrong file.
    """
    if name in RULES:
        return RULES[name]
    shipped = {} if name.endswith(".yaml") else _shipped()
    if not name.endswith(".yaml") and name not in shipped:
        known = [*shipped, *RULES]
        raise UsageError(f"unknown judge {name!r}{nearest(name, known)}; expected {', '.join(known)}, or a .yaml file")
    judge = read_record(shipped.get(name, Path(name)), Judge, "the judge", yaml=True)
    return judge.model_copy(update={"name": name if name in judge.readings else next(iter(judge.readings))})
