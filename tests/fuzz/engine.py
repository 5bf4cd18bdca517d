"""Runs the cases of a target, each within bounds of time and memory, and says how a case that fails is repeated."""

from __future__ import annotations

import json
import resource
import signal
import sys
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from guieval.actions import Click, Point, executable
from guieval.conformance import example_step
from guieval.connectors.pages.browsergym_actions import browsergym_call
from guieval.connectors.pages.mobilegym import mobilegym_action
from guieval.connectors.servers.androidworld import android_action
from guieval.connectors.servers.mobileworld import mobile_action
from guieval.connectors.servers.pyautogui_code import pyautogui_code
from guieval.journal.lines import read_line, write_line
from guieval.steps import Sample, StepRecord, StepTaskModel

SECONDS = 10
"""CPU time that a case may take: far above what any takes, far below what a quadratic reader would."""
MEMORY = 512 * 1024
"""Kilobytes by which a case may raise the most memory that the process has ever held."""
LONGEST_SENTENCE = 1200
"""Characters of an error's message, which may name a path, a field and what stands there."""
TASKS = tuple(example_step(Click(point=Point(500.0, 500.0)), setting=setting) for setting in ("high", "low", "grounding"))


QUICK: dict[str, Any] = {"timeout": 5.0, "max_attempts": 2, "patience": 0.0}
"""Settings of an engine whose server answers at once."""


class Wrong(Exception):
    """What a boundary did with a case is not what it promises."""


class _TooLong(BaseException):
    """A case used up its time; no part of the program may catch this."""


class Failed(NamedTuple):
    target: str
    seed: int
    why: str

    def __str__(self) -> str:
        return f"{self.why}\nrepeat it: python -m tests.fuzz {self.target} --seed {self.seed} --cases 1"


class Target(ABC):
    """One boundary. ``folder`` is empty and its own; ``real`` holds recorded material, where there is any on this machine."""

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, folder: Path, real: Path | None) -> None: ...

    @abstractmethod
    def check(self, dice: Random) -> None:
        """One case, made from the dice alone. Raises :class:`Wrong`, or anything else that the program should not raise."""

    def close(self) -> None:
        """Stop what the target has started."""
        return None


def run(target: Target, seeds: Iterable[int]) -> Iterator[Failed]:
    """The cases of these seeds that fail."""
    for seed in seeds:
        before = _peak()
        try:
            with _limited():
                target.check(Random(seed))
        except Wrong as wrong:
            yield Failed(target.name, seed, str(wrong))
        except _TooLong:
            yield Failed(target.name, seed, f"took more than {SECONDS} s of CPU time")
        except Exception as error:  # a boundary may fail in any way, and that is what is looked for
            yield Failed(
                target.name, seed, f"{type(error).__name__} instead of an error of our own:\n{traceback.format_exc()[-3000:]}"
            )
        grown = _peak() - before
        if grown > MEMORY:
            yield Failed(target.name, seed, f"took {grown // 1024} MiB of memory")


def _peak() -> int:
    """The most memory that this process has held, in kilobytes."""
    if not sys.platform.startswith("linux"):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux's ru_maxrss includes the peak of the process that started this one
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1])


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # numpy prints one where numbers overflow
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


async def at_once(seconds: float) -> None:
    """Waits are asked for in vain here; how long they may be is tested where time is."""
    assert 0 <= seconds < 1000


def sentence(error: Exception) -> None:
    """An error's message has to be one that a person can read: some text, on one line, of bounded length."""
    message = str(error)
    if not message.strip() or "\n" in message or len(message) > LONGEST_SENTENCE:
        raise Wrong(f"the message of {type(error).__name__} is not one sentence ({len(message)} characters): {message[:300]!r}")


def carried_out(sample: Sample) -> None:
    """Every action of a sample has to have its words in each environment, or none."""
    for action in map(executable, sample.actions):
        if action is None:
            continue
        for size in ((1080, 2400), (160, 210), (1, 1)):
            for words in (android_action, mobile_action, pyautogui_code, browsergym_call):
                json.dumps(words(action, size), allow_nan=False)
        json.dumps(mobilegym_action(action), allow_nan=False)


def stored(task: StepTaskModel, sample: Sample, *, compact: bool) -> None:
    """A record has to be read again as it was written."""
    record = StepRecord(task=task, samples=(sample,))
    if read_line(write_line(record, compact=compact)) != record:
        raise Wrong(f"a record is another one after it was stored: {sample!r:.500}")
