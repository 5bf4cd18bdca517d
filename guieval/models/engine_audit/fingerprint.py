"""How an engine that is known to be right answered the screens, in a file, and what another one answers otherwise.

A server also differs from itself, since the other requests of a batch change its rounding. So each screen is sent twice, and a
difference from the fingerprint counts if it is more than that between the two answers: by McNemar's exact test over screens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import dist
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from guieval.actions import Click
from guieval.data.shipped import __version__
from guieval.data.user_files import read_record
from guieval.errors import UsageError
from guieval.models.engine_audit.finding import AuditFinding
from guieval.models.engine_audit.screen import SentScreen
from guieval.models.frame_audit import mcnemar
from guieval.steps import Sample

UNLIKELY = 0.01
"""p below which answers differ more than by themselves."""
SMALL = 1e-3
"""Differences of a mean log-probability up to this are those of floating point."""


class KeptAnswer(BaseModel):
    """The answer to one screen. ``request`` is the digest of what was sent, ``logprob`` the mean over the answer's tokens,
    ``point`` a click in thousandths of the screen, and ``text`` is null if the request failed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    screen: str
    request: str
    prompt_tokens: int | None
    completion_tokens: int | None
    logprob: float | None
    text: str | None
    point: tuple[float, float] | None

    @classmethod
    def of(cls, screen: SentScreen, sample: Sample) -> KeptAnswer:
        usage, action = sample.usage, sample.action
        return cls(
            screen=screen.task.episode_id,
            request=screen.request,
            prompt_tokens=None if usage is None else usage.prompt_tokens,
            completion_tokens=None if usage is None else usage.completion_tokens,
            logprob=sample.logprob,
            text=sample.raw_response,
            point=tuple(action.point) if isinstance(action, Click) else None,
        )


class Fingerprint(BaseModel):
    """What one engine answered to the audit's requests, in a file that is compared with another engine's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    name: str = Field(description="of the checkpoint")
    guieval: str = __version__
    setup: str = Field("not recorded", description="who answered, and how, in words")
    answers: tuple[KeptAnswer, ...]


def fingerprint(name: str, screens: Sequence[SentScreen], setup: str) -> Fingerprint:
    """The fingerprint of the checkpoint called ``name``, as the engine of this ``setup`` answered."""
    return Fingerprint(name=name, setup=setup, answers=tuple(KeptAnswer.of(screen, screen.sample) for screen in screens))


def read_fingerprint(file: Path) -> Fingerprint:
    """The fingerprint in a file; :class:`UsageError` if there is none."""
    return read_record(file, Fingerprint, "the fingerprint (of `guieval dev audit-engine --save`)")


class ComparedAnswer(NamedTuple):
    """An answer next to the fingerprint's; what ends in ``again`` compares two answers of the audited server.

    ``tokens`` and ``logprob`` are differences, ``moved`` is the distance of two clicks in thousandths of the screen.
    """

    tokens: int | None
    changed: bool
    changed_again: bool
    moved: float | None
    logprob: float | None
    logprob_again: float | None


@dataclass(frozen=True)
class FingerprintAudit:
    """The answers to the screens next to those of a fingerprint.

    Raises :class:`UsageError` when the fingerprint is of other requests.
    """

    screens: Sequence[SentScreen]
    against: Fingerprint

    def __post_init__(self) -> None:
        known = {answer.screen: answer.request for answer in self.against.answers}
        if {screen.task.episode_id: screen.request for screen in self.screens} != known:
            raise UsageError(
                f"the fingerprint is of other requests (model {self.against.name!r}, guieval {self.against.guieval}): the "
                "screens as drawn, the prompts, the options or the sampling settings differ; save one with the present ones"
            )

    @cached_property
    def compared(self) -> dict[str, ComparedAnswer]:
        """Each screen that was answered both times, by its id."""
        known = {answer.screen: answer for answer in self.against.answers if answer.text is not None}
        return {
            name: _compared(screen, known[name])
            for screen in self.screens
            if screen.sample.answered and (name := screen.task.episode_id) in known
        }

    @property
    def findings(self) -> Iterator[AuditFinding]:
        """The result, and what the answers cannot show."""
        each = self.compared
        faults = []
        if lost := sum(answer.text is not None for answer in self.against.answers) - len(each):
            faults.append(f"{lost} screens of it have no answer now")
        if other := sum(bool(found.tokens) for found in each.values()):
            faults.append(f"prompt tokens differ on {other} of {len(each)} screens")
        turned = {screen.task.episode_id for screen in self.screens if screen.orientation != 1}
        faults += _differences([found for name, found in each.items() if name not in turned], "screens")
        faults += _differences([found for name, found in each.items() if name in turned], "screens with an EXIF orientation")
        if faults:
            yield AuditFinding("fingerprint", "fault", f"The answers are not those of the fingerprint: {'; '.join(faults)}")
        else:
            same = f"Tokens, answers and log-probabilities of {len(each)} screens are those of the fingerprint"
            yield AuditFinding("fingerprint", "fine", f"{same}, but for what differs between two answers of the same server")
        if all(found.logprob is None for found in each.values()):
            blind = (
                "There are no log-probabilities to compare, so nothing is known of what changes no answer, e.g. lossy encoding"
            )
            yield AuditFinding("fingerprint", "unknown", blind)


def _compared(screen: SentScreen, before: KeptAnswer) -> ComparedAnswer:
    now, again = KeptAnswer.of(screen, screen.sample), KeptAnswer.of(screen, screen.again or screen.sample)
    moved = None if now.point is None or before.point is None else dist(now.point, before.point)
    tokens = _minus(now.prompt_tokens, before.prompt_tokens)
    logprobs = _minus(now.logprob, before.logprob), _minus(now.logprob, again.logprob)
    return ComparedAnswer(
        None if tokens is None else int(tokens), now.text != before.text, now.text != again.text, moved, *logprobs
    )


def _minus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _differences(compared: Sequence[ComparedAnswer], words: str) -> Iterator[str]:
    """What differs more from the fingerprint than between two answers of the server."""
    if _more([(each.changed, each.changed_again) for each in compared]):
        moved = [each.moved for each in compared if each.changed and each.moved is not None]
        far = f" and clicks moved by {median(moved):.0f} thousandths of the screen in the median" if moved else ""
        own = sum(each.changed_again for each in compared)
        changed = sum(each.changed for each in compared)
        yield f"answers differ on {changed} of {len(compared)} {words}{far} ({own} when asked twice)"
    pairs = [(abs(each.logprob), abs(each.logprob_again or 0.0)) for each in compared if each.logprob is not None]
    if _more(pairs, SMALL):
        to, own = (median(values) for values in zip(*pairs, strict=True))
        yield f"log-probabilities of {len(pairs)} {words} differ by {to:.4f} in the median ({own:.4f} when asked twice)"


def _more(pairs: Sequence[tuple[float, float]], least: float = 0.0) -> bool:
    more, fewer = (sum(sign * (one - other) > least for one, other in pairs) for sign in (1, -1))
    return more > fewer and mcnemar(more, fewer) < UNLIKELY
