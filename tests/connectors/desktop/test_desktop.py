"""The desktop on a real display: its tasks are done and judged, it is closed off, and nothing is left of it."""

from __future__ import annotations

import asyncio
import io
import os
import re
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest

from guieval.actions import Hotkey, Stop, Type, action_to_json, executable
from guieval.connectors.desktop.environment import TASKS, Desktop
from guieval.connectors.desktop.home import APPLICATIONS, OFFICE_PROFILE, SETTINGS
from guieval.connectors.desktop.sandbox import ACCOUNT, TaskLimits
from guieval.connectors.desktop.session import DesktopSession
from guieval.connectors.desktop.task import SIZE, seeded
from guieval.errors import EnvironmentFailure, UsageError
from guieval.journal import RunFolder
from guieval.online import ABCDevice, EnvironmentTask
from guieval.reports.opened import OpenedOnlineRun, open_run
from tests.online.acting import Acting, below, left_of, running, wait_for_steps
from tests.online.devices import Result, on
from tests.waiting import PATIENCE

pytestmark = pytest.mark.ci
LIMITS = TaskLimits(1000, 3600, 256)
Files: TypeAlias = Mapping[str, str | bytes]
NO_FILES: Files = {}


@pytest.fixture(scope="module", autouse=True)
def desktop() -> Desktop:
    try:
        environment = Desktop()
        inside(lambda session: session.run("true"))
    except (UsageError, EnvironmentFailure) as error:
        pytest.skip(str(error))
    return environment


def inside(work: Callable[[DesktopSession], Awaitable[Result]], limits: TaskLimits = LIMITS, files: Files = NO_FILES) -> Result:
    """What ``work`` comes to in a desktop without an application."""

    async def opened() -> Result:
        session = await DesktopSession.start(SIZE, limits, {"Documents/": "", **files})
        try:
            return await work(session)
        finally:
            await session.close()

    return asyncio.run(opened())


def printed(script: str) -> str:
    return inside(lambda session: session.run(script)).decode()


def tasks(every: int) -> list[EnvironmentTask]:
    return list(Desktop().tasks())[::every]


@pytest.mark.full
def test_the_expert_does_the_tasks_and_nothing_else_does(desktop: Desktop) -> None:
    """Doing nothing, and the first half of the expert's steps, fail. Applications run in real time."""
    wrong: list[str] = []

    async def work(device: ABCDevice) -> None:
        for number, task in enumerate(Desktop().tasks()):
            await device.reset(task, number)
            ends = [(await device.score()).success]
            actions = seeded(TASKS[task.id], number, "en").actions
            for place, action in enumerate(actions):
                assert (step := await device.expert()) is not None and step.action == action
                if place == len(actions) // 2:
                    ends.append((await device.score()).success)
                done = executable(action)
                assert done is not None
                await device.step([done])
            score = await device.score()
            wrong.extend([f"{task.id}: {ends}, {score.reason}"] * ([*ends, score.success] != [False, False, True]))

    on(desktop, work)
    assert wrong == []


def test_a_run_of_a_scripted_expert_is_judged_and_shown(tmp_path: Path) -> None:
    scripts = {name: [action_to_json(action) for action in seeded(task, 0, "en").actions] for name, task in TASKS.items()}
    Acting.made(tmp_path, scripts, "--bench", "desktop", "--limit", "1").run(tmp_path / "run")
    (record,) = RunFolder(tmp_path / "run").tasks
    outcome = record.samples[0].outcome
    assert outcome is not None and outcome.score.success
    opened = open_run(tmp_path / "run")
    assert isinstance(opened, OpenedOnlineRun)
    assert [step.record.action for step in opened.trajectory(opened.tasks[0])][-1] == Stop()


def test_a_fresh_start_shows_the_same_picture_bit_by_bit(desktop: Desktop) -> None:
    async def work(device: ABCDevice) -> None:
        for task in tasks(12):
            first = (await device.reset(task, 1)).screenshot
            for _ in range(2):
                seen = await device.reset(task, 1)
                while seen.screenshot != first:  # a busy machine draws late
                    seen = await asyncio.wait_for(device.step([]), PATIENCE)

    on(desktop, lambda device: asyncio.wait_for(work(device), PATIENCE))
    assert re.fullmatch("[0-9a-f]{12}", desktop.identity()["reference screen"])


def test_text_that_no_keyboard_has_arrives_in_the_terminal(desktop: Desktop) -> None:
    async def work(device: ABCDevice) -> bytes:
        await device.reset(EnvironmentTask("terminal-sort-lines", 9), 0)
        await device.step([Type(text="echo 'héllo 中文 <&>' > Documents/x.txt"), Hotkey(keys=("enter",))])
        return (await device._session.home())["Documents/x.txt"]  # type: ignore[attr-defined, no-any-return]

    assert on(desktop, work) == "héllo 中文 <&>\n".encode()


def test_memory_limits_how_many_run_at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=1_100_000_000))
    assert Desktop().most_devices == 2 and "the free memory allows 2 desktops at once, at 500 MB each" in caplog.text


@pytest.mark.full
def test_no_macro_of_a_document_runs() -> None:
    """The same document runs its macro with the lowest security."""

    async def opened(session: DesktopSession) -> bool:
        await session.launch(f"{APPLICATIONS['LibreOffice Writer']} hostile.odt")
        for _ in range(9):
            await session.settled()
        return "ran" in await session.home()

    low = re.sub("(Level.*?|Disable.*?)<value>[^<]*", r"\g<1><value>0", SETTINGS[OFFICE_PROFILE])
    files = {"hostile.odt": with_macro()}
    assert inside(opened, files={**files, OFFICE_PROFILE: low}) and not inside(opened, files=files)


def with_macro() -> bytes:
    """A text document that writes a file ``ran`` when it is opened."""
    here, office = "urn:oasis:names:tc:opendocument:xmlns:", "http://openoffice.org/2000/"
    library = f'<l:library xmlns:l="{office}library" l:name="Standard"'
    parts = {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f'<o:document-content xmlns:o="{here}office:1.0" xmlns:t="{here}text:1.0" xmlns:s="{here}script:1.0" '
        'xmlns:x="http://www.w3.org/1999/xlink" xmlns:dom="http://www.w3.org/2001/xml-events" '
        'xmlns:ooo="http://openoffice.org/2004/office" o:version="1.2"><o:scripts><o:event-listeners><s:event-listener '
        's:language="ooo:script" s:event-name="dom:load" x:type="simple" x:href="vnd.sun.star.script:Standard.M.Run?'
        'language=Basic&amp;location=document"/></o:event-listeners></o:scripts><o:body><o:text/></o:body></o:document-content>',
        "Basic/script-lc.xml": f'<l:libraries xmlns:l="{office}library">{library} l:link="false"/></l:libraries>',
        "Basic/Standard/script-lb.xml": f'{library}><l:element l:name="M"/></l:library>',
        "Basic/Standard/M.xml": f'<s:module xmlns:s="{office}script" s:name="M" s:language="StarBasic">'
        'Sub Run\nOpen "/home/user/ran" For Output As #1\nClose #1\nEnd Sub</s:module>',
    }
    entries = "".join(f'<m:file-entry m:full-path="{name}" m:media-type="text/xml"/>' for name in parts)
    root = f'<m:file-entry m:full-path="/" m:media-type="{parts["mimetype"]}"/>'
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{here}manifest:1.0">{root}{entries}</m:manifest>')
    return stream.getvalue()


def test_there_is_no_network() -> None:
    assert printed("ls /sys/class/net /proc/sys/net/ipv4/conf 2>&1; tail -n +3 /proc/net/dev | cut -d: -f1").split()[-1] == "lo"
    assert printed("bash -c 'echo > /dev/tcp/1.1.1.1/80' 2> /dev/null && echo reached").strip() == ""


def test_no_file_and_no_variable_of_the_user_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    assert "sk-secret" not in printed("cat /proc/*/environ | tr '\\0' '\\n'; env")
    assert not {"root", "work", "mnt"} & set(printed("ls /").split()) and printed("ls /home").split() == ["user"]
    assert printed("touch /usr/x /etc/x && echo written").strip() == "" and not Path("/etc/x").exists()
    assert printed("cat /etc/shadow /etc/passwd; id -u").split() == [ACCOUNT, "1000"]


def test_a_task_has_limits() -> None:
    async def flood(session: DesktopSession) -> None:
        await session.run("for i in $(seq 90); do sleep 99 > /dev/null & done")
        await session.run("true")

    async def hoard(session: DesktopSession) -> None:
        await session.run("head -c 600000000 /dev/zero | tail > /dev/null & sleep 0")
        while True:
            await session.settled()

    with pytest.raises(EnvironmentFailure, match=r"use \d+ MB; the limit is 300"):
        inside(lambda session: asyncio.wait_for(hoard(session), PATIENCE), LIMITS._replace(memory=300))
    with pytest.raises(EnvironmentFailure, match="the desktop has ended"):
        inside(lambda session: session.run("sleep 99"), LIMITS._replace(seconds=3))
    with pytest.raises(EnvironmentFailure, match="the desktop has ended"):
        inside(flood, LIMITS._replace(processes=64))


def test_nothing_is_left_of_a_killed_run(tmp_path: Path) -> None:
    agent = Acting.made(tmp_path, {task.id: [action_to_json(Type(text="x"))] for task in tasks(1)}, "--bench", "desktop")
    with agent.held(after=1):
        process = agent.start(tmp_path / "run")
        wait_for_steps(process, tmp_path / "run", 1)
        started = below(process)
        assert running("Xvfb", started) and running("gedit", started)
        os.kill(process.pid, 9)
        process.wait()
        assert not left_of(started)
