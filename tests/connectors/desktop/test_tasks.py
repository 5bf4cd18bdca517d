"""Tasks of the desktop without one: what their judge accepts and refuses, and the commands that carry out actions."""

from __future__ import annotations

import io
import shlex
import zipfile

import openpyxl
import pytest
from openpyxl.styles import Font

from guieval.actions import Drag, Hotkey, LongPress, Point, Press, Scroll, Type, Wait
from guieval.connectors.desktop.documents import MOST_BYTES, UNREADABLE, made, parts, require_readers
from guieval.connectors.desktop.environment import TASKS
from guieval.connectors.desktop.pointer_and_keys import ShellCommand, command_of
from guieval.connectors.desktop.task import SIZE, SeededTask, judged, seeded, state_of
from guieval.errors import UsageError
from tests.command_line import CommandLine
from tests.online.devices import EVERY
from tests.rows import every_row

MIDDLE = Point(500, 500)


def changed(task: SeededTask, goals: dict[str, str | None]) -> dict[str, str]:
    """The start with these changes."""
    return {path: text for path, text in {**task.start, **goals}.items() if text is not None}


def cells(**values: str) -> dict[str, str]:
    return {f"a.xlsx//{name}": text for name, text in values.items()}


def edited(*more: str) -> bytes:
    """A workbook of two sheets with bold cells, and cells ``more``."""
    stream, book = io.BytesIO(), openpyxl.Workbook()
    first, second = book.worksheets[0], book.create_sheet("Next")
    first.title, first["A1"], second["B1"] = "Sheet1", 0.5, "y"
    first["A1"].font = second["B1"].font = Font(bold=True)
    for name in more:
        second[name] = 1
    book.save(stream)
    return stream.getvalue()


def bomb() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", bytes(MOST_BYTES + 1))
    return stream.getvalue()


def wrong_ends(task: SeededTask) -> dict[str, dict[str, str]]:
    """Ends of HOME that are no success, with how each came to be."""
    goals = dict(task.goal)
    *most, last = goals
    half = dict.fromkeys(most) and {path: goals[path] for path in most}
    if not most and (text := goals[last]):
        half = {last: text[: len(text) // 2]}
    elsewhere = {f"Elsewhere/{path.rpartition('/')[2]}": text or "" for path, text in goals.items()}
    done = changed(task, goals)
    return {
        "nothing": dict(task.start),
        "half of it": changed(task, half),
        "the wrong place": changed(task, dict(elsewhere)),
        "more than that": {**done, "Documents/unasked.txt": "text"},
        "a file gone": {path: text for path, text in done.items() if path in goals} if len(done) > len(goals) else {},
    }


def test_every_task_is_done_at_its_goal_only() -> None:
    wrong = []
    for task in TASKS.values():
        for seed in range(3):
            filled = seeded(task, seed, "zh")
            if not judged(filled, changed(filled, dict(filled.goal))).success:
                wrong.append(f"{task.id} at its goal")
            for how, end in wrong_ends(filled).items():
                score = judged(filled, end)
                wrong += [f"{task.id} with {how}"] * (score.success or score.progress == 1)
    assert wrong == []


def test_a_seed_varies_names_and_numbers_and_not_the_task() -> None:
    for task in TASKS.values():
        first, again, other = (seeded(task, seed, "en") for seed in (0, 0, 1))
        assert first == again and len(first.actions) == len(other.actions), task.id
        assert (first.start, first.goal) != (other.start, other.goal), task.id
        assert "{" not in first.instruction + seeded(task, 0, "zh").instruction, task.id


@every_row(
    ("path", "content", "expected"),
    [
        ("a.txt", b"x\n\n", {"a.txt": "x"}),
        ("a.xlsx", made("a.xlsx", "item;12\n;x"), {"a.xlsx": "Sheet1", **cells(A1="item", B1="12", B2="x")}),
        ("a.xlsx", edited(), {"a.xlsx": "Sheet1\nNext", **cells(A1="0.5", bold="A1 2!B1"), "a.xlsx//2!B1": "y"}),
        ("a.odt", made("a.odt", "one\n\ntwo"), {"a.odt": "one\n\ntwo"}),
        ("a.xlsx", b"PK\x03\x04", {"a.xlsx": UNREADABLE}),
        ("a.odt", b"no archive", {"a.odt": UNREADABLE}),
        ("a.xlsx", bomb(), {"a.xlsx": UNREADABLE}),
        ("a.xlsx", edited("XFD99999"), {"a.xlsx": UNREADABLE}),
    ],
)
def test_parts_of_a_file(path: str, content: bytes, expected: dict[str, str]) -> None:
    assert parts(path, content) == expected


def test_no_file_passes_for_a_part_of_another_or_a_setting() -> None:
    """A file can have any name but one with an empty step."""
    for task in TASKS.values():
        filled = seeded(task, 0, "en")
        names = [path for path in filled.goal if "//" in path]
        files = {path.replace("//", "/"): str(filled.goal[path]).encode() for path in names}
        assert not names or not judged(filled, state_of({**filled.files, **files})).success, task.id


@every_row(
    ("action", "script"),
    [
        (Hotkey(keys=("ctrl", "C")), "xdotool key ctrl+c"),
        (Hotkey(keys=("shiftleft", "pagedown")), "xdotool key shift+Next"),
        (Hotkey(keys=("ctrl", "no such key")), None),
        (Hotkey(keys=("ctrl", "'); import os; ('")), None),
        (Press(button="HOME"), None),
        (Wait(duration=1e9), "sleep 10.000"),
        (LongPress(point=MIDDLE, duration=800), "xdotool mousemove 640 400 mousedown 1 sleep 0.800 mouseup 1"),
        (Scroll(point=MIDDLE, direction="up"), "xdotool mousemove 640 400 click --repeat 4 --delay 5 5"),
        (Drag(end=MIDDLE), "xdotool mousedown 1 sleep 0.1 mousemove 640 400 sleep 0.1 mouseup 1"),
        (Type(text="a<b\n"), "xdotool type --clearmodifiers --delay 4 --file -"),
    ],
)
def test_actions_as_commands(action: object, script: str | None) -> None:
    command = command_of(action, SIZE)  # type: ignore[arg-type]
    assert (command and command.script) == script


def test_no_text_of_an_action_is_part_of_a_script() -> None:
    hostile = "$(touch x)'; `y` \n\x00 é"
    for action in (*EVERY, Type(text=hostile), Hotkey(keys=(hostile,))):
        script = (command_of(action, SIZE) or ShellCommand("true")).script
        assert not {"$(touch", "`y`"} & set(shlex.split(script.replace(";", " "))) and hostile not in script, action


def test_missing_packages_are_named_in_one_sentence(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    sentence = guieval.sentence("run", "--model", "ocr-baseline", "--bench", "desktop", "--mode", "online")
    assert "bubblewrap" in sentence and "libreoffice-gtk3" in sentence and "make desktop" in sentence
    monkeypatch.setattr("guieval.connectors.desktop.documents.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"needs the package 'openpyxl': pip install 'guieval\[desktop\]'"):
        require_readers()
