"""What the tests cost in processor time, by folder, and whether a folder has outgrown its budget.

Processor time and not wall time: it is nearly the same on a busy machine. A slower machine needs more of it in every folder, so
a folder is compared with the others of the same run.
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
    "running": 90.0,
    "cli": 52.0,
    "reports": 48.0,
    "benchmarks": 38.0,
    "data": 30.0,
    "model_adapters": 35.0,
    "studies": 26.0,
    "online": 10.0,
    "engines": 17.0,
    "rewards": 18.0,
    "pinned": 27.0,
    "journal": 17.0,
    "evaluation": 12.0,
    "scoring": 5.0,
    "models": 10.0,
    "metrics": 7.0,
    "project": 9.0,
    "perf": 10.0,
    "training": 5.0,
    "playground": 7.0,
    "exchange": 19.0,
    "graphs": 6.0,
    "connectors": 7.0,
    "perturbed": 15.0,
    "board": 16.0,
}
"""Processor seconds of the core tier's folders; a run fails if a folder needs twice as much, measured by the median folder."""
LEAST = 4.0
"""A folder without a budget may cost this much."""
START = pytest.StashKey[float]()
TESTS = Path(__file__).resolve().parent


def spent() -> float:
    """Processor seconds of this process and of the children that it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def over_budget(seconds: dict[str, float]) -> list[str]:
    """A sentence for each folder that needs twice its budget, on a machine on which the median folder needs its budget."""
    pace = max(median([seconds[folder] / budget for folder, budget in BUDGETS.items() if folder in seconds] or [1.0]), 1.0)
    found = []
    for folder, needed in sorted(seconds.items()):
        budget = BUDGETS.get(folder, LEAST) * pace
        if needed > 2 * budget:
            found.append(f"tests/{folder} took {needed:.0f} processor seconds; its budget is {budget:.0f} here (tests/cost.py)")
    return found


class Cost:
    """Measures in the process that runs the tests, and adds up in the one that started it (with xdist, another one)."""

    def __init__(self, budgets: bool) -> None:
        self.budgets = budgets
        self.seconds: dict[str, float] = defaultdict(float)

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
        folder = report.nodeid.removeprefix("tests/").split("/")[0]
        for name, value in report.user_properties:
            if name == "processor seconds" and isinstance(value, float):
                self.seconds[folder] += value

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.budgets and session.exitstatus == 0 and over_budget(self.seconds):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = sum(self.seconds.values())
        terminalreporter.section(f"processor seconds by folder: {total:.0f} in all")
        for folder, seconds in sorted(self.seconds.items(), key=lambda entry: -entry[1]):
            terminalreporter.write_line(f"{seconds:7.1f}  tests/{folder}")
        for sentence in over_budget(self.seconds) if self.budgets else ():
            terminalreporter.write_line(f"FAILED {sentence}", red=True)
