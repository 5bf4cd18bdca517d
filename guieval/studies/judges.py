"""Models as judges of tasks: they look at the last screenshots of a trajectory and say whether the task is done.

A judge is a file of ``configs/judges``, or one of the same form: what it is sent, and how its verdict is read. Verdicts are
written next to those of the environment, and never replace them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field

from guieval.actions import Frozen
from guieval.data.files import read_bytes
from guieval.data.screenshots import read_screenshot
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.engines.concurrency import AdaptiveConcurrency, Slots, as_they_end
from guieval.errors import FatalEngineError, GuievalError, UsageError, nearest
from guieval.metrics.measured import Measured, share_of
from guieval.models import Engine, ImageRef, Request
from guieval.models.messages import chat
from guieval.online.attempt import Attempt
from guieval.online.contract import Observation
from guieval.online.trajectory import TrajectoryStep, last_attempts
from guieval.steps import EpisodeKey, OnlineTask, Outcome, TaskRecord, validated

FOLDER = "judges"
"""The folder of verdicts in a run's directory, and that of the judges in ``configs``."""
Verdict: TypeAlias = Literal["success", "failure", "unreadable", "no response"]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return text


class Judge(Frozen):
    """What a judge is sent, and how its verdict is read. ``success`` and ``failure`` are searched for without regard to case;
    of several places the last counts, and a response with neither is ``unreadable``."""

    title: str = Field(min_length=1)
    source: str = Field(min_length=1, description="where the prompt is published, and what of it is ours")
    system: str | None = None
    user: str = Field(description="the text before the screenshots; {goal} is the task's instruction")
    screenshots: int = Field(1, ge=1, description="how many are sent, the last ones of the trajectory")
    success: Annotated[str, AfterValidator(_pattern)]
    failure: Annotated[str, AfterValidator(_pattern)]

    @property
    def digest(self) -> str:
        """Of all that it is sent and read by."""
        return sha256(self.model_dump_json(exclude={"title", "source"}).encode()).hexdigest()[:16]

    def read(self, response: str) -> Verdict:
        """The verdict that the response states last; ``"unreadable"`` if it states none."""
        ends = {
            verdict: max((found.end() for found in re.finditer(pattern, response, re.IGNORECASE)), default=-1)
            for verdict, pattern in (("success", self.success), ("failure", self.failure))
        }
        if ends["success"] == ends["failure"]:
            return "unreadable"
        return "success" if ends["success"] > ends["failure"] else "failure"


def list_judges() -> list[str]:
    """The names of the shipped judges."""
    return sorted(file.stem for file in (config_folder() / FOLDER).glob("*.yaml"))


def load_judge(name: str) -> Judge:
    """A shipped judge, or that of a file whose name ends in ``.yaml``; :class:`UsageError` for another name or a wrong file."""
    known = list_judges()
    if not name.endswith(".yaml") and name not in known:
        raise UsageError(f"unknown judge {name!r}{nearest(name, known)}; expected {', '.join(known)}, or a .yaml file")
    file = Path(name) if name.endswith(".yaml") else config_folder() / FOLDER / f"{name}.yaml"
    return read_record(file, Judge, "the judge", yaml=True)


class Case(NamedTuple):
    """A repetition of a task: what is judged, and the environment's outcome."""

    task: OnlineTask
    repetition: int
    steps: Sequence[TrajectoryStep]
    outcome: Outcome


class JudgedTask(Frozen):
    """A judge's verdict on a repetition of a task, as a line of its file, with the response that it was read from."""

    key: EpisodeKey
    repetition: int
    judge: str = Field(description="digest of the judge")
    model: str
    verdict: Verdict
    response: str | None = None
    error: str | None = None


def cases(run: Path, records: Iterable[TaskRecord]) -> list[Case]:
    """The repetitions of a run that have an outcome and at least one step."""
    attempts = last_attempts(run)
    found = (
        Case(each.task, number, attempts.get((each.task.episode_key, number), ()), sample.outcome)
        for each in records
        for number, sample in enumerate(each.samples)
        if sample.outcome is not None
    )
    return [case for case in found if case.steps]


def read_verdicts(file: Path, judge: Judge, model: str) -> dict[tuple[EpisodeKey, int], JudgedTask]:
    """The verdicts of a file, those without a response left out; empty if there is none.

    Raises :class:`UsageError` for verdicts of another judge or model, :class:`guieval.errors.DataError` for another line.
    """
    found: dict[tuple[EpisodeKey, int], JudgedTask] = {}
    for number, line in enumerate(read_bytes(file).splitlines() if file.exists() else (), 1):
        each: JudgedTask = validated(JudgedTask, line, file=file, line=number)
        if (each.judge, each.model) != (judge.digest, model):
            raise UsageError(
                f"{str(file)!r} has verdicts of {each.model!r} with the prompt {each.judge}, not of {model!r} with "
                f"{judge.digest}; move the file away to judge anew"
            )
        if each.verdict != "no response":
            found[each.key, each.repetition] = each
    return found


async def ask(
    judge: Judge,
    engine: Engine,
    model: str,
    run: Path,
    chosen: Sequence[Case],
    *,
    sampling: Mapping[str, Any],
    concurrency: int | AdaptiveConcurrency,
) -> AsyncIterator[JudgedTask]:
    """A verdict on each case, in the order of the responses.

    A request that fails is the verdict ``no response``; :class:`guieval.errors.FatalEngineError` if none can succeed.
    """
    slots = Slots(concurrency)

    async def one(case: Case) -> JudgedTask:
        about: dict[str, Any] = {
            "key": case.task.episode_key,
            "repetition": case.repetition,
            "judge": judge.digest,
            "model": model,
        }
        async with slots:
            try:
                response = await engine.generate(await asyncio.to_thread(_request, judge, run, case, sampling))
            except FatalEngineError:
                raise
            except GuievalError as error:
                return JudgedTask(**about, verdict="no response", error=str(error))
        return JudgedTask(**about, verdict=judge.read(response.readable), response=response.in_full)

    async for judged in as_they_end(map(one, chosen)):
        yield judged


def _request(judge: Judge, run: Path, case: Case, sampling: Mapping[str, Any]) -> Request:
    seen = case.steps[-judge.screenshots :]
    attempt = Attempt(case.task)
    tasks = [attempt.shown(Observation(step.goal, b"", step.size), step.screenshot) for step in seen]
    goal = case.steps[0].goal
    prepared = chat(judge.user.replace("{goal}", goal), *map(ImageRef, tasks), system=judge.system)
    pictures = tuple(read_screenshot(run, step.screenshot, step.size) for step in seen)
    return Request(prepared, pictures, sampling, f"{case.task.episode_key}/{case.repetition}/judge", tasks[-1])


class Agreement(NamedTuple):
    """A judge against the environment, over the repetitions on which both have a verdict."""

    judged_success: Measured
    success: Measured
    agreement: Measured
    kappa: Measured
    sensitivity: Measured
    specificity: Measured


def agreement(chosen: Sequence[Case], verdicts: Mapping[tuple[EpisodeKey, int], JudgedTask]) -> Agreement:
    """How a judge's verdicts agree with the outcomes. ``sensitivity`` is the share of the environment's successes that it calls
    successes, ``specificity`` that of the others that it calls failures; kappa is Cohen's. What it did not answer readably
    is missing from all of them; what the environment did not judge is in its success rate alone."""
    read = [
        (case.outcome.score, found.verdict == "success")
        for case in chosen
        if (found := verdicts.get((case.task.episode_key, case.repetition))) and found.verdict in ("success", "failure")
    ]
    n, missing = len(read), len(chosen) - len(read)
    both = [(score.success, judged) for score, judged in read if not score.unjudged]
    true, said = [true for true, _ in both], [said for _, said in both]
    of = "repetitions of tasks"

    def share(rows: Sequence[bool]) -> Measured:
        return share_of(sum(rows), len(rows), of, interval=bool(rows))

    return Agreement(
        share_of(sum(judged for _, judged in read), n, of, missing=missing, interval=bool(n)),
        share(true),
        share([a == b for a, b in both]),
        Measured(_kappa(true, said), len(both), of, unit=""),
        share([said for true, said in both if true]),
        share([not said for true, said in both if not true]),
    )


def _kappa(true: Sequence[bool], said: Sequence[bool]) -> float | None:
    """Cohen's kappa; ``None`` if both always say the same one thing, for which it is not defined."""
    if len({*true, *said}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(true, said))
