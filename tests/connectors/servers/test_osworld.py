"""OSWorld, with a stand-in for its class DesktopEnv that has the published signatures and runs code on a screen of its own."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import guieval
from guieval.actions import Click, Drag, Hotkey, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait
from guieval.conformance.environments import check_environment
from guieval.connectors.servers.osworld import OSWorld, OSWorldVerified
from guieval.connectors.servers.pyautogui_code import pyautogui_code
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online import ABCDevice, EnvironmentTask
from guieval.online.contract import UNKNOWN
from tests.online.deadlines import SECONDS, Deadlines
from tests.online.devices import EVERY, failure, on, played
from tests.online.test_runs import outcomes, settings, write_agent
from tests.rows import every_row
from tests.waiting import PATIENCE, until

STAND_IN = '''
"""A desktop with the signatures of OSWorld's DesktopEnv: a task is done when its text has been typed and the task ended."""

import io
from threading import Event
from types import SimpleNamespace
from typing import Any

from PIL import Image

MADE = []
FAULTS = []
HANGS = []
GO_ON = Event()


def hang():
    for begin in HANGS:
        begin()
    assert GO_ON.wait(60)


class DesktopEnv:
    def __init__(self, provider_name="vmware", region=None, path_to_vm=None, snapshot_name="init_state",
                 action_space="pyautogui", cache_dir="cache", screen_size=(1920, 1080), headless=False,
                 require_a11y_tree=True, require_terminal=False, os_type="Ubuntu", enable_proxy=False, client_password=""):
        if provider_name not in ("docker", "vmware"):
            raise ValueError(f"Invalid provider name: {provider_name}")
        if "boot" in FAULTS:
            FAULTS.remove("boot")
            hang()
        self.size, self.done, self.typed, self.called, self.judged = screen_size, [], "", [], 0
        self.open, self.machine = True, (snapshot_name, enable_proxy, client_password)
        MADE.append(self)

    def reset(self, task_config=None, seed=None, options=None):
        self.task, self.done, self.typed, self.called = task_config, [], "", []
        self.evaluator = task_config["evaluator"]
        return self._get_obs()

    def _get_obs(self):
        stream = io.BytesIO()
        Image.new("RGB", self.size, (len(self.called) % 256, len(self.typed) % 256, 0)).save(stream, "PNG")
        return {"screenshot": stream.getvalue(), "accessibility_tree": None, "terminal": None,
                "instruction": self.task["instruction"]}

    def step(self, action, pause=2):
        for fault in list(FAULTS):
            FAULTS.remove(fault)
            if fault == "crash":
                raise RuntimeError("Failed to execute command as " + self.machine[2])
            if fault == "exit":
                raise SystemExit(1)
            if fault == "hang":
                hang()
            if fault == "black":
                return {"screenshot": None}, 0, False, {}
        self.done.append(action)
        if action not in ("WAIT", "DONE", "FAIL"):
            exec(action, {"pyautogui": self, "time": SimpleNamespace(sleep=lambda seconds: None)})
        assert pause == 0.0
        return self._get_obs(), 0, action in ("DONE", "FAIL"), {}

    def __getattr__(self, name):  # the functions of pyautogui
        if name not in ("click", "doubleClick", "rightClick", "moveTo", "dragTo", "mouseDown", "mouseUp", "scroll", "hscroll",
                        "typewrite", "press", "hotkey"):
            raise AttributeError(name)

        def call(*arguments, **named):
            self.called.append((name, *arguments))
            if name == "typewrite":
                self.typed += arguments[0]
            if (name, *arguments) == ("hotkey", "shift", ","):
                self.typed += "<"
        return call

    def evaluate(self):
        self.judged += 1
        if self.evaluator["func"] == "infeasible":
            return int(self.done[-1:] == ["FAIL"])
        if self.done[-1:] == ["FAIL"]:
            return 0
        return self.evaluator.get("value", float(self.typed == self.evaluator["text"]))

    def close(self):
        assert self.open
        self.open = False
'''
TASKS: dict[str, dict[str, dict[str, Any]]] = {
    "os": {"a1": {"func": "typed", "text": "hello"}, "a2": {"func": "infeasible"}},
    "gimp": {"b1": {"func": "typed", "text": "half", "value": 0.5}},
}
QUICK: dict[str, Any] = {"settle": 0.0, "settle_score": 0.0, "pause": 0.0, "width": 64, "height": 40}


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """OSWorld's folder of tasks, and the stand-in where the package would be."""
    package = tmp_path / "checkout" / "desktop_env"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "desktop_env.py").write_text(STAND_IN)
    for name in [name for name in sys.modules if name.partition(".")[0] == "desktop_env"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(package.parent))
    folder = package.parent / "evaluation_examples"
    for domain, tasks in TASKS.items():
        (folder / "examples" / domain).mkdir(parents=True)
        for name, evaluator in tasks.items():
            config = {"id": name, "instruction": f"Do {name}.", "config": [], "evaluator": evaluator}
            (folder / "examples" / domain / f"{name}.json").write_text(json.dumps(config))
    (folder / "test_all.json").write_text(json.dumps({domain: list(tasks) for domain, tasks in TASKS.items()}))
    return folder


def stand_in() -> Any:
    import desktop_env.desktop_env

    return desktop_env.desktop_env


def osworld(examples: Path, **options: Any) -> OSWorld:
    return OSWorld(examples=str(examples), **{"max_steps": 15, **QUICK, **options})


def test_the_environment_conforms(examples: Path) -> None:
    assert check_environment(osworld(examples, machines=2)) == []
    assert stand_in().MADE and not any(desktop.open for desktop in stand_in().MADE)


def test_tasks_are_read_and_judged(examples: Path) -> None:
    environment = osworld(examples, max_steps=9)
    typed, infeasible, half = environment.tasks()
    assert typed == EnvironmentTask("a1", 9, "Do a1.", subset="os") and half.subset == "gimp"
    assert environment.version.startswith("osworld-checkout-test_all-") and environment.most_devices == 1
    assert {"snapshot name": "init_state", "machine image": UNKNOWN}.items() <= environment.identity().items()
    assert osworld(examples, max_steps=None, budget="50-steps").tasks()[2].max_steps == 50

    async def play(device: ABCDevice, task: EnvironmentTask, *actions: Any) -> Any:
        seen = await device.reset(task, 0)
        assert (seen.goal, seen.size) == (task.goal, (64, 40))
        seen = await device.step(actions)
        score = await device.score()
        assert await device.score() == score
        return seen.over, score.success, score.progress

    done = [Click(point=Point(1, 1)), Type(text="hello"), Stop()]
    assert on(environment, lambda device: play(device, typed, *done)) == (True, True, 1.0)
    assert stand_in().MADE[-1].judged == 1  # a judgement may press keys
    assert on(environment, lambda device: play(device, typed, Stop())) == (True, False, 0.0)
    assert on(environment, lambda device: play(device, infeasible, Stop(status="impossible"))) == (True, True, 1.0)
    assert on(environment, lambda device: play(device, infeasible, Stop())) == (True, False, 0.0)
    assert on(environment, lambda device: play(device, half, Wait())) == (False, False, 0.5)


def test_every_action_is_code_that_runs(examples: Path) -> None:
    environment = osworld(examples)

    played(environment, environment.tasks()[0], *([action] for action in EVERY if not isinstance(action, Stop)))
    desktop = stand_in().MADE[-1]
    texts = [action.text for action in EVERY if isinstance(action, Type)]
    assert desktop.typed == "".join(texts)
    assert ("hotkey", "ctrl", "'); import os; ('") in desktop.called  # typed as a name of a key, and nothing else
    untranslated = {action.type for action in EVERY if pyautogui_code(action, (64, 40)) is None}
    assert untranslated == {"OPEN", "PRESS", "WAIT", "STOP", "ANSWER", "ASK"}


@every_row(
    ("action", "code"),
    [
        (Click(point=Point(1000, 500)), "pyautogui.click(1919, 540)"),
        (LongPress(point=Point(0, 0)), "pyautogui.moveTo(0, 0); pyautogui.mouseDown(); time.sleep(1); pyautogui.mouseUp()"),
        (Scroll(point=Point(500, 500), direction="up"), "pyautogui.moveTo(960, 540); pyautogui.scroll(-5)"),
        (Scroll(point=Point(0, 0), direction="down", distance=1000), "pyautogui.moveTo(0, 0); pyautogui.scroll(11)"),
        (Scroll(point=Point(0, 0), direction="left", distance=1), "pyautogui.moveTo(0, 0); pyautogui.hscroll(1)"),
        (Scroll(point=Point(0, 0), direction="left", distance=1e308), "pyautogui.moveTo(0, 0); pyautogui.hscroll(1920)"),
        (Type(text="a<b"), "pyautogui.typewrite('a'); pyautogui.hotkey('shift', ','); pyautogui.typewrite('b')"),
        (Hotkey(keys=("ctrl", "s")), "pyautogui.hotkey('ctrl', 's')"),
        (Drag(end=Point(500, 500)), "pyautogui.dragTo(960, 540, duration=0.5, button='left')"),
        *((Press(button="ENTER"), "pyautogui.press('enter')"), (Press(button="HOME"), None), (Open(app="gimp"), None)),
        (Type(text=""), None),
    ],
)
def test_actions_are_translated(action: Any, code: str | None) -> None:
    assert pyautogui_code(action, (1920, 1080)) == code
    if code is not None:
        ast.parse(code)


@every_row(
    ("fault", "sentence"),
    [
        ("crash", "OSWorld failed: RuntimeError: Failed to execute command as [API key]"),
        ("exit", "OSWorld failed: SystemExit: 1"),
        ("black", "OSWorld's virtual machine gives no screenshot"),
    ],
)
def test_faults_are_environment_failures(examples: Path, fault: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MACHINE_PASSWORD", "osworld-public-evaluation")
    environment = osworld(examples, client_password_env="MACHINE_PASSWORD", enable_proxy=True, snapshot_name="clean")
    stand_in().FAULTS.append(fault)
    assert failure(environment, environment.tasks()[0], Click(point=Point(1, 1))) == ("step", sentence)
    assert stand_in().MADE[-1].machine == ("clean", True, "osworld-public-evaluation")


@pytest.mark.parametrize("fault", ["crash", "hang", "black"])
def test_a_broken_machines_task_is_repeated(
    tmp_path: Path, examples: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies: dict[str, list[Any]] = {"a1": [Type(text="hello"), Stop()], "b1": [Stop()]}
    replies["a2"] = [Wait(), Stop(status="impossible")]
    scripts = {name: [reply.model_dump_json() for reply in given] for name, given in replies.items()}
    agent = write_agent(tmp_path, scripts)
    osworld(examples)
    stand_in().FAULTS.append(fault)
    stand_in().HANGS.append(Deadlines(monkeypatch, OSWorld).pass_now)
    options = {"examples": str(examples), "max_steps": 15, **QUICK}
    running = settings(agent, bench="osworld", bench_options=options, environment_timeout=SECONDS)
    result = guieval.run(**running, progress=False, out=tmp_path / "run")
    found = outcomes(tmp_path / "run")
    ended = {"a1": "success", "a2": "success", "b1": "false completion"}
    assert result.complete and {name: outcome.ended for name, outcome in found.items()} == ended
    stand_in().GO_ON.set()
    assert sorted(outcome.attempt for outcome in found.values()) == [0, 0, 1]
    assert len(stand_in().MADE) == 4 and not any(desktop.open for desktop in stand_in().MADE)


def test_a_machine_that_boots_too_late_is_closed(examples: Path) -> None:
    environment = osworld(examples)

    async def impatient() -> None:
        opening, boots = asyncio.create_task(environment.open()), threading.Event()
        stand_in().HANGS.append(boots.set)
        assert await asyncio.to_thread(boots.wait, PATIENCE)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    stand_in().FAULTS.append("boot")
    asyncio.run(impatient())
    assert stand_in().MADE == []
    stand_in().GO_ON.set()
    until(lambda: [desktop.open for desktop in stand_in().MADE] == [False], "the late machine is closed")


def test_a_wrong_provider_is_a_failure_with_its_reason(examples: Path) -> None:
    with pytest.raises(EnvironmentFailure, match="OSWorld failed: ValueError: Invalid provider name: doker"):
        asyncio.run(osworld(examples, provider="doker").open())


def test_an_unknown_task_is_a_failure(examples: Path) -> None:
    call, failed = failure(osworld(examples), EnvironmentTask("zz", 3, subset="os"))
    assert call == "reset" and "OSWorld has no task 'zz' in 'os'" in failed


def test_a_score_that_is_none_is_a_failure(examples: Path) -> None:
    file = examples / "examples" / "gimp" / "b1.json"
    config = file.read_text()
    for value in (2, None, "1"):
        file.write_text(config.replace("0.5", json.dumps(value)))
        environment = osworld(examples)
        call, failed = failure(environment, environment.tasks()[2])
        assert call == "score" and re.search(r"OSWorld's score is .*; expected a number in \[0, 1\]", failed), value


@every_row(
    ("change", "sentence"),
    [
        (lambda folder: (folder / "test_all.json").rename(folder / "test_al.json"), "(did you mean 'test_al.json'?)"),
        (lambda folder: (folder / "test_all.json").write_text("{"), "test_all.json' is not JSON"),
        (lambda folder: (folder / "test_all.json").write_text("[]"), "test_all.json' is not a JSON object"),
        (lambda folder: (folder / "test_all.json").write_text('{"os": 3}'), "does not list ids of tasks by domain"),
        (lambda folder: (folder / "examples" / "os" / "a1.json").unlink(), "a1.json': No such file"),
        (lambda folder: (folder / "examples" / "os" / "a1.json").write_text('{"instruction": "x"}'), "' has no evaluator"),
        (
            lambda folder: (folder / "examples" / "os" / "a1.json").write_text(
                '{"instruction": "x", "evaluator": {"a": 1}, "proxy": 0}'
            ),
            "a1.json' has a field 'proxy', so it is a task of OSWorld-Verified: --bench osworld-verified",
        ),
    ],
)
def test_wrong_files_are_sentences(examples: Path, tmp_path: Path, change: Any, sentence: str) -> None:
    folder = shutil.copytree(examples, tmp_path / "examples")
    change(folder)
    with pytest.raises(UsageError) as refused:
        osworld(folder).tasks()
    assert sentence in str(refused.value)


def test_wrong_options_are_refused(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for options, sentence in (
        ({"machines": 0}, "option machines is 0; expected at least 1"),
        ({"pause": -1.0}, "option pause is -1; expected 0 to 3600 seconds"),
        ({"examples": ""}, "needs its tasks: --set bench_options.examples="),
        ({}, "has no step budget of its own; published results state theirs"),
        (
            {"budget": "15-steps", "max_steps": 9},
            "budget is 15-steps and max_steps 9: environment 'osworld' has no step budget",
        ),
        ({"client_password_env": "hunter2", "max_steps": 9}, "the one given is not set, and not repeated here"),
    ):
        with pytest.raises(UsageError) as refused:
            OSWorld(**{"examples": str(examples), **options})  # type: ignore[arg-type]
        assert sentence in str(refused.value)
    with pytest.raises(UsageError, match=r"a1.json' has no field 'proxy', so it is a task from before .*: --bench osworld$"):
        OSWorldVerified(examples=str(examples), budget="15-steps").tasks()
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(examples.parent)])
    with pytest.raises(UsageError, match="needs the package desktop_env: pip install desktop-env"):
        OSWorld(examples=str(examples))
