"""BrowserGym, with stand-ins for gymnasium and browsergym that have the published interface; and the real one where
GUIEVAL_BROWSERGYM_PYTHON names a Python that has it (with MINIWOB_URL set)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from guieval.actions import Click, Open, Point, Stop, Type
from guieval.conformance.environments import check_environment
from guieval.connectors.pages.browsergym import BrowserGym
from guieval.errors import UsageError
from guieval.online import ABCDevice
from guieval.online.find import load_environment
from tests.connectors.pages.as_a_person import ONE, do_all
from tests.connectors.pages.held import held
from tests.online.acting import left_of
from tests.online.devices import failure, on
from tests.rows import every_row

GYMNASIUM = """
registry = dict.fromkeys(["browsergym/counting.two", "browsergym/counting.one", "browsergym/other.task", "CartPole-v1"])


def make(name, **arguments):
    from browsergym.counting import Counting

    return Counting(int(name.endswith("two")) + 1, **arguments)
"""
COUNTING = """
import time

import numpy as np

print("a line that is not an answer")


class Page:
    # the one page of a browser, its context and its session
    url, title = "http://127.0.0.1/", lambda self: "Counting"
    context = property(lambda self: self)
    pages = property(lambda self: [self])

    def new_cdp_session(self, page):
        return self

    def send(self, what):
        return {"currentIndex": 1}

    def detach(self):
        pass


class Counting:
    task_entrypoint, unwrapped = None, property(lambda self: self)
    page = context = Page()

    def __init__(self, goal, *, action_mapping, headless, pw_chromium_kwargs={}):
        assert headless
        self.goal, self.mapping, self.chromium = goal, action_mapping, pw_chromium_kwargs

    def reset(self, seed=None):
        self.count, self.noise = 0, seed
        return self.seen(""), {}

    def step(self, action):
        error = ""
        for call in self.mapping(action):
            if call == "mouse_click(50, 25)":
                self.count += 1
            elif call == "keyboard_type('crash')":
                raise SystemExit(3)
            elif call == "keyboard_type('fault')":
                raise RuntimeError("a fault")
            elif call == "keyboard_type('options')":
                raise RuntimeError(f"options {self.chromium}")
            elif call == "keyboard_type('hang')":
                time.sleep(600)
            elif not call.startswith(("noop", "send_msg_to_user", "report_infeasible")):
                error = "NameError: " + call
        reward = float(self.count == self.goal)
        return self.seen(error), reward, bool(reward), False, {}

    def seen(self, error):
        pixels = np.full((50, 100, 3), self.noise % 256, np.uint8)
        pixels[: self.count] = 200
        goal = [{"type": "text", "text": f"Count to {self.goal}."}]
        return {"screenshot": pixels, "goal_object": goal, "goal": "", "last_action_error": error}

    def close(self):
        pass
"""
HIGHLEVEL = """
class HighLevelActionSet:
    def __init__(self, subsets, multiaction):
        assert subsets == ["chat", "infeas", "coord"] and multiaction

    def to_python_code(self, text):
        return text.splitlines()
"""
PERSON = """
from browsergym.core.registration import register_task
from browsergym.core.task import AbstractBrowserTask


class Person(AbstractBrowserTask):
    def __init__(self, seed):
        super().__init__(seed)
        self.viewport, self.slow_mo = {"width": 400, "height": 300}, 0

    @classmethod
    def get_task_id(cls):
        return "person.page"

    def setup(self, page):
        self.page = page
        page.goto(ADDRESS)
        return "Do it all.", {}

    def validate(self, page, messages):
        over = self.page.evaluate("typeof WOB_DONE_GLOBAL !== 'undefined' && WOB_DONE_GLOBAL")
        return float(over), over, "", {}

    def teardown(self):
        pass


register_task("person.page", Person)
"""
BUTTON = Click(point=Point(500.0, 500.0))


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (
        ("gymnasium/__init__.py", GYMNASIUM),
        ("browsergym/counting/__init__.py", COUNTING),
        ("browsergym/core/action/highlevel.py", HIGHLEVEL),
        ("browsergym_core-9.9.dist-info/METADATA", "Metadata-Version: 2.1\nName: browsergym-core\nVersion: 9.9\n"),
    ):
        file = tmp_path / "packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    return tmp_path / "packages"


@pytest.mark.usefixtures("packages")
def test_it_keeps_the_contract() -> None:
    environment = BrowserGym(benchmark="counting")
    assert list(check_environment(environment)) == []
    assert [task.id for task in environment.tasks()] == ["one", "two"] and environment.version == "browsergym-9.9-counting"


@pytest.mark.usefixtures("packages")
def test_the_reward_judges() -> None:
    environment = BrowserGym(benchmark="counting")
    _, two = environment.tasks()

    async def work(device: ABCDevice) -> None:
        seen = await device.reset(two, 7)
        assert (seen.goal, seen.size, seen.over) == ("Count to 2.", (100, 50), False)
        seen = await device.step([Open(app="Clock"), BUTTON])
        assert not seen.over and not (await device.score()).success
        assert not (await device.step([])).over
        seen = await device.step([BUTTON])
        score = await device.score()
        assert seen.over and score.success and score.progress == 1.0 and score.reason == "BrowserGym's reward is 1"
        assert (await device.step([BUTTON])).over, "a task that has ended takes no further action"
        await device.reset(two, 7)
        await device.step([Stop(), BUTTON, BUTTON])
        assert not (await device.score()).success

    on(environment, work)


@pytest.mark.usefixtures("packages")
@every_row(("text", "message"), [("crash", "process has ended"), ("fault", "BrowserGym failed: RuntimeError: a fault")])
def test_what_fails_is_an_environment_failure_and_no_process_is_left(text: str, message: str) -> None:
    environment = BrowserGym(benchmark="counting")
    call, failed = failure(environment, environment.tasks()[0], Type(text=text))
    assert call == "step" and message in failed
    found = [each.info for each in psutil.process_iter(["ppid", "cmdline"])]  # those of other tests may end meanwhile
    assert not [each for each in found if each["ppid"] == os.getpid() and "counting" in (each["cmdline"] or ())]


@pytest.mark.usefixtures("packages")
def test_mistakes_give_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"No module named 'browsergym\.webarena'; pip install browsergym-webarena"):
        BrowserGym(benchmark="webarena").tasks()
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(UsageError, match=r"cannot be used in .*: ModuleNotFoundError"):
        BrowserGym(python=sys.executable).tasks()
    with pytest.raises(UsageError, match="does not answer"):
        BrowserGym(python="true").tasks()


@pytest.mark.usefixtures("packages")
@every_row(("allowed", "options"), [(False, "options {'proxy': {'server': 'http://127.0.0.1:9'}}"), (True, "options {}")])
def test_pages_reach_the_network_only_where_it_is_allowed(allowed: bool, options: str) -> None:
    environment = load_environment("browsergym", allow_network=allowed, benchmark="counting")
    call, failed = failure(environment, environment.tasks()[0], Type(text="options"))
    assert call == "step" and options in failed


@pytest.mark.usefixtures("packages")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_worker_that_hangs_ends_with_guieval() -> None:
    with held("browsergym", benchmark="counting", then="device.step([Type(text='hang')])") as process:
        (worker,) = psutil.Process(process.pid).children()
    assert not left_of([worker])


def real_python() -> str:
    python = os.environ.get("GUIEVAL_BROWSERGYM_PYTHON")
    return python or pytest.skip("GUIEVAL_BROWSERGYM_PYTHON does not name a Python with browsergym-miniwob")


def test_the_web_as_a_person_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "browsergym" / "person").mkdir(parents=True)
    (tmp_path / "browsergym" / "person" / "__init__.py").write_text(PERSON.replace("ADDRESS", repr(ONE.as_uri())))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    environment = BrowserGym(benchmark="person", python=real_python(), address_bar=True)
    do_all(environment, 300, address_bar=True)


def test_the_real_one() -> None:
    environment = BrowserGym(python=real_python())
    task = next(task for task in environment.tasks() if task.id == "click-test")

    async def work(device: ABCDevice) -> str:
        seen = await device.reset(task, 0)
        await device.step([BUTTON])
        await device.score()
        return seen.goal

    assert on(environment, work) == "Click the button."
