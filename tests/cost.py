"""What the tests cost in processor time, by folder, and whether a folder has outgrown its budget.

Processor time and not wall time: it is nearly the same on a busy machine. What remains of the difference between machines is
measured with a loop of fixed length, again and again while the tests run.
"""

from __future__ import annotations

import resource
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from statistics import median

import pytest

BUDGETS = {
    "running": 85.0,
    "cli": 48.0,
    "reports": 50.0,
    "benchmarks": 37.0,
    "data": 32.0,
    "model_adapters": 34.0,
    "studies": 26.0,
    "online": 20.0,
    "engines": 18.0,
    "rewards": 16.0,
    "pinned": 30.0,
    "journal": 17.0,
    "evaluation": 12.0,
    "scoring": 5.0,
    "models": 10.0,
    "metrics": 8.0,
    "project": 9.0,
    "perf": 10.0,
    "training": 5.0,
    "playground": 8.0,
    "exchange": 15.0,
    "connectors": 15.0,
}
"""Processor seconds of the core tier's folders; a run fails if a folder needs half as much again."""
LEAST = 4.0
"""A folder without a budget may cost this much."""
LOOP = 0.075
"""Processor seconds of :func:`loop` on the machine on which the budgets were set."""
EVERY = 300
"""Reports of tests between two measurements of the machine: processors that share a core are slower while all of them work."""
START = pytest.StashKey[float]()
TESTS = Path(__file__).resolve().parent


def spent() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def loop() -> float:
    """Processor seconds of a fixed piece of work."""
    start = time.process_time()
    sum(number * number % 7 for number in range(1_000_000))
    return time.process_time() - start


def over_budget(seconds: dict[str, float], slowdown: float) -> list[str]:
    """A sentence for each folder that needs half as much again as its budget; ``slowdown`` is this machine's, at least 1."""
    found = []
    for folder, needed in sorted(seconds.items()):
        budget = BUDGETS.get(folder, LEAST)
        if needed > 1.5 * budget * slowdown:
            found.append(f"tests/{folder} took {needed:.0f} processor seconds; its budget is {budget:.0f} (tests/cost.py)")
    return found


class Cost:
    """Measures in the process that runs the tests, and adds up in the one that started it (with xdist, another one)."""

    def __init__(self, budgets: bool) -> None:
        self.budgets = budgets
        self.seconds: dict[str, float] = defaultdict(float)
        self.loops: list[float] = []
        self.reports = 0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        item.stash[START] = spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append(("processor seconds", spent() - item.stash[START]))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports += 1
        if self.reports % EVERY == 0:
            self.loops.append(loop())
        folder = report.nodeid.removeprefix("tests/").split("/")[0]
        for name, value in report.user_properties:
            if name == "processor seconds" and isinstance(value, float):
                self.seconds[folder] += value

    def pytest_sessionstart(self) -> None:
        self.loops.append(loop())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.loops.append(loop())
        if self.budgets and session.exitstatus == 0 and over_budget(self.seconds, self.slowdown()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def slowdown(self) -> float:
        """How much slower this machine is than the one of the budgets."""
        return max(median(self.loops or [LOOP]) / LOOP, 1.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self.seconds.values())
        terminalreporter.section(f"processor seconds by folder: {total:.0f} in all")
        for folder, seconds in sorted(self.seconds.items(), key=lambda entry: -entry[1]):
            terminalreporter.write_line(f"{seconds:7.1f}  tests/{folder}")
        for sentence in over_budget(self.seconds, self.slowdown()) if self.budgets else ():
            terminalreporter.write_line(f"FAILED {sentence}", red=True)
