"""JudgeVerdicts of a judge on trajectories, kept as they come, so that a second call requests only what is missing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import Field

from guieval.actions import Frozen
from guieval.data.files import read_bytes
from guieval.data.screenshots import Screenshot
from guieval.engines.concurrency import AdaptiveConcurrency, Slots, as_they_end
from guieval.errors import FatalEngineError, GuievalError, UsageError
from guieval.models import Engine, ImageRef, Request
from guieval.models.messages import Part, chat
from guieval.online.attempt import UNKNOWN
from guieval.running.costs import Tokens
from guieval.steps import StepTaskModel, Usage, validated
from guieval.studies.judges.cases import Case, CaseStep, shown
from guieval.studies.judges.judge import SCREENSHOTS, AnyJudge, Judge, Rule, Screening, Steps, Verdict, filled


class CaseVerdict(Frozen):
    """A judge's verdict on a case, as a line of its file, with the responses that it was read from.

    ``verdict`` is as the judge that asked reads ``responses``; another reading of the same responses reads them itself.
    """

    case: str
    repeat: int = Field(0, ge=0)
    judge: str = Field(description="digest of the judge and its sampling parameters")
    model: str = Field("", description="as the server calls it; empty for a rule")
    verdict: Verdict
    responses: tuple[str, ...] = Field((), description="one for each vote")
    before: tuple[str, ...] = Field((), description="responses on the way: the key points, and one for each screenshot")
    usage: tuple[Usage | None, ...] = Field((), description="tokens of every response that was received")
    error: str | None = None


Place: TypeAlias = tuple[str, int]
"""A case's id, and the number of the repeat."""
Found: TypeAlias = dict[Place, CaseVerdict]


def read_judgements(file: Path, judge: AnyJudge, digest: str | None = None, model: str | None = None) -> Found:
    """What a file has, without the cases that have no response; empty if there is no file.

    With a ``digest`` and a ``model``, raises :class:`UsageError` for lines of others. Another form of a line is a
    :class:`guieval.errors.DataError`.
    """
    found: Found = {}
    for number, line in enumerate(read_bytes(file).splitlines() if file.exists() else (), 1):
        each = validated(CaseVerdict, line, file=file, line=number)
        if digest is not None and (each.judge, each.model) != (digest, model):
            raise UsageError(
                f"{str(file)!r} has verdicts of {each.model!r} with the prompt {each.judge}, not of {model!r} with "
                f"{digest}; move the file away to judge anew"
            )
        if each.verdict != "no response":
            read = judge.verdict(each.responses) if isinstance(judge, Judge) and each.responses else each.verdict
            found[each.case, each.repeat] = each.model_copy(update={"verdict": read})
    return found


def apply(rule: Rule, cases: Sequence[Case]) -> Found:
    """A rule's verdicts."""
    digest = rule.digest({})
    said = ((case, rule.says(case)) for case in cases)
    verdicts: dict[bool | None, Verdict] = {True: "success", False: "failure", None: "unreadable"}
    return {(case.id, 0): CaseVerdict(case=case.id, judge=digest, verdict=verdicts[done]) for case, done in said}


async def ask(
    judge: Judge,
    engine: Engine,
    model: str,
    places: Sequence[tuple[Case, int]],
    *,
    sampling: Mapping[str, Any],
    concurrency: int | AdaptiveConcurrency,
) -> AsyncIterator[CaseVerdict]:
    """A verdict on each case and repeat, in the order of the responses.

    A request that fails is the verdict ``no response``; :class:`guieval.errors.FatalEngineError` if none can succeed.
    """
    slots = Slots(concurrency)

    async def one(case: Case, repeat: int) -> CaseVerdict:
        asking = _Asking(judge, engine, slots, case, repeat, sampling)
        about: dict[str, Any] = {"case": case.id, "repeat": repeat, "judge": judge.digest(sampling), "model": model}
        if judge.needs_answer and not case.answer:
            return CaseVerdict(**about, verdict="failure")
        try:
            responses = await asking.responses()
        except FatalEngineError:
            raise
        except GuievalError as error:
            return CaseVerdict(**about, verdict="no response", usage=tuple(asking.usage), error=str(error))
        verdict = judge.verdict(responses)
        return CaseVerdict(
            **about, verdict=verdict, responses=responses, before=tuple(asking.before), usage=tuple(asking.usage)
        )

    async for judged in as_they_end(one(*place) for place in places):
        yield judged


@dataclass
class _Asking:
    """The requests for one verdict, and what has come back so far."""

    judge: Judge
    engine: Engine
    slots: Slots
    case: Case
    repeat: int
    sampling: Mapping[str, Any]
    before: list[str] = field(default_factory=list)
    usage: list[Usage | None] = field(default_factory=list)

    async def responses(self) -> tuple[str, ...]:
        """One for each vote."""
        judge, values = self.judge, self._values()
        seen = [step for step in self.case.steps if judge.missing_count or step.screenshot is not None]
        last = 0 if judge.screenshots is None else -judge.screenshots
        seen = [step for step in seen[: judge.most_screenshots][last:] if step.screenshot is not None]
        if judge.key_points is not None:
            values["key_points"] = key_points(await self._first(judge.key_points.system, filled(judge.key_points.user, values)))
        parts = judge.user
        if judge.screening is not None:
            seen, reasons = await self._screened(judge.screening, values, seen)
            values["reasons"] = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, 1))
            parts = parts if seen or judge.user_without_screenshots is None else judge.user_without_screenshots
        values["count"] = str(len(seen))
        texts = [part if part == SCREENSHOTS else filled(part, values) for part in parts]
        return tuple([await self._vote(texts, seen) for _ in range(judge.votes)])

    async def _vote(self, texts: Sequence[str], seen: Sequence[CaseStep]) -> str:
        """A response that can be read, if one of those that may be requested can."""
        for _ in range(self.judge.again + 1):
            response = await self._request(self.judge.system, texts, seen)
            if self.judge.verdict((response,)) != "unreadable":
                break
        return response

    async def _first(self, system: str, text: str, seen: Sequence[CaseStep] = ()) -> str:
        response = await self._request(system, (text, SCREENSHOTS), seen)
        self.before.append(response)
        return response

    async def _screened(
        self, screening: Screening, values: Mapping[str, str], seen: Sequence[CaseStep]
    ) -> tuple[list[CaseStep], list[str]]:
        """The screenshots that pass, and the reasons why."""
        text = filled(screening.user, values)
        responses = [await self._first(screening.system, text, [step]) for step in seen]
        passed = [
            (step, scored[1])
            for step, response in zip(seen, responses, strict=True)
            if (scored := score(response))[0] >= screening.threshold
        ]
        reasons = [reason for _, reason in passed if reason]
        return [step for step, _ in passed][: screening.most], reasons[: screening.most]

    async def _request(self, system: str | None, texts: Sequence[str], seen: Sequence[CaseStep]) -> str:
        async with self.slots:
            pictures = await asyncio.to_thread(
                lambda: [shown(step, ring=self.judge.ring, jpeg=self.judge.jpeg) for step in seen]
            )
            tasks = [self._step(picture, number) for number, picture in enumerate(pictures)]
            parts: list[Part] = []
            for text in texts:
                parts += map(ImageRef, tasks) if text == SCREENSHOTS else [text]
            name = f"{self.case.id}/judge{len(self.usage)}"
            last = tasks[-1] if tasks else self._step(None, 0)
            response = await self.engine.generate(
                Request(chat(*parts, system=system), tuple(pictures), self.sampling, name, last)
            )
        self.usage += [response.usage, *response.other_usage]
        return response.readable

    def _step(self, picture: Screenshot | None, number: int) -> StepTaskModel:
        """A screenshot as engines take it; they read its size alone."""
        return StepTaskModel(
            benchmark="judge",
            dataset="judge",
            episode_id=self.case.id or "case",
            step_index=number,
            episode_length=max(1, len(self.case.steps)),
            instruction=self.case.goal,
            screenshot=f"{number}.png",
            screenshot_size=(1, 1) if picture is None else picture.size,
            action=UNKNOWN,
        )

    def _values(self) -> dict[str, str]:
        """What the fields of the prompts stand for."""
        case, form = self.case, self.judge.steps
        lines = [] if form is None else list(_lines(form, case.steps[:-1] if form.without_last else case.steps))
        between = "" if form is None else form.between
        answer = "None" if case.answer is None else case.answer
        return {"goal": case.goal, "answer": answer, "platform": case.platform, "steps": between.join(lines)}


def _lines(form: Steps, steps: Sequence[CaseStep]) -> Iterator[str]:
    """The steps as a prompt writes them; those of which nothing is known are left out, unless a text replaces them."""
    for index, step in enumerate(steps):
        action, thought = (text.strip() if form.stripped else text for text in (step.action, step.thought))
        if action or thought or form.empty:
            known = {"action": action or form.empty, "thought": thought or form.empty, "url": step.url}
            yield filled(form.line, {"number": str(index + 1), "index": str(index), **known})


def key_points(response: str) -> str:
    """The key points of a response, as WebJudge reads them."""
    response = response.replace("\n\n", "\n")
    _, bold, after = response.partition("**Key Points**:")
    listed = after.split("**Key Points**:")[0] if bold else response.split("Key Points:")[-1]
    return "\n".join(line.lstrip() for line in listed.splitlines())


def score(response: str) -> tuple[int, str]:
    """The score of a screenshot and its reason, as WebJudge reads them; 0 without a digit from 1 to 5 after the word."""
    found = re.search("[1-5]", [*response.split("Score"), ""][1])
    if found is None:
        return 0, ""
    return int(found[0]), response.split("**Reasoning**:")[-1].strip().split("\n\n")[0].replace("\n", " ")


def spent(found: Collection[CaseVerdict]) -> Tokens:
    """The tokens of all responses."""
    tokens = Tokens()
    for each in found:
        for usage in each.usage:
            tokens.count(usage)
    return tokens
