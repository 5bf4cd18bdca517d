"""Every environment passes the conformance suite, and the suite finds broken promises."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from guieval.actions import ExecutableAction
from guieval.conformance import Finding
from guieval.conformance.environments import check_environment
from guieval.connectors.pages.browser import find_chromium
from guieval.errors import UsageError
from guieval.online import ABCDevice, EnvironmentTask, Observation, Score
from guieval.online.find import environments, load_environment
from guieval.playground.environments.phone import PhoneEnvironment
from tests.command_line import CommandLine
from tests.online.devices import Wrapped
from tests.rows import every_row


@pytest.mark.ci
@every_row("name", list(environments()))
def test_environments_keep_their_promises(name: str) -> None:
    try:
        environment = load_environment(name)
        if name == "miniwob":
            find_chromium("")
        environment.tasks()
    except UsageError as error:
        pytest.skip(str(error))
    assert check_environment(environment) == []


class WrongSize(Wrapped):
    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        seen = await super().reset(task, seed)
        return Observation(seen.goal, seen.screenshot, (1, 1))


class OtherGoal(Wrapped):
    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        seen = await super().reset(task, seed)
        return Observation("something else", seen.screenshot, seen.size)


class HalfSuccess(Wrapped):
    async def score(self) -> Score:
        return Score(success=True, progress=0.5)


class Fading(Wrapped):
    shown = 0

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        seen = await super().step(actions)
        Fading.shown += 1
        return Observation(seen.goal, seen.screenshot + bytes([Fading.shown % 256]), seen.size)


class ClosesOnce(Wrapped):
    closed = False

    async def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed before")
        self.closed = True


@every_row(
    ("device", "check", "sentence"),
    [
        (WrongSize, "observations", "size is (1, 1), the screenshot's (360, 800)"),
        (OtherGoal, "observations", "the goal is not the listed one"),
        (HalfSuccess, "observations", "a success has progress 0.5, not 1"),
        (Fading, "repeated resets", "the environment is declared deterministic, and shows something else"),
        (ClosesOnce, "close", "RuntimeError: closed before"),
    ],
)
def test_broken_promises_are_found(device: type[Wrapped], check: str, sentence: str) -> None:
    class Broken(PhoneEnvironment):
        name = "broken"

        async def open(self) -> ABCDevice:
            return device(await super().open())

    findings = {finding.check: finding.message for finding in check_environment(Broken())}
    assert sentence in findings[check]


def test_no_task_twice_and_none_without_steps() -> None:
    class Twice(PhoneEnvironment):
        def tasks(self) -> Sequence[EnvironmentTask]:
            return [EnvironmentTask("s0-0000", 3), EnvironmentTask("s0-0000", 3)]

    class Stepless(PhoneEnvironment):
        def tasks(self) -> Sequence[EnvironmentTask]:
            return [EnvironmentTask("s0-0000", 0)]

    assert any("is listed twice" in finding.message for finding in check_environment(Twice()))
    assert any("allows no step" in finding.message for finding in check_environment(Stepless()))


def test_the_command_checks_benchmark_and_environment_of_a_name(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Finding("demo", "tasks", "a broken promise")]  # tests/benchmarks tries the real ones
    monkeypatch.setattr("guieval.conformance.commands.check.check_benchmarks", lambda names: found)
    ran = guieval("dev", "check", "demo")
    assert ran.code == 1 and "benchmark demo: 1 problem\n" in ran.out and "environment demo: conforms\n" in ran.out
