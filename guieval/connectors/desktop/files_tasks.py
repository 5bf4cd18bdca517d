"""Tasks in the file manager (PCManFM), which begins in the folder Documents."""

from __future__ import annotations

from guieval.connectors.desktop.task import DesktopTask

_APP = "Files"
_FIRST, _SECOND = "in 162 88 250 158", "in 256 88 344 158"
"""The boxes of the first two icons."""
FILES = (
    DesktopTask(
        "files-rename",
        _APP,
        "Rename {a}.txt to {c}.txt.",
        "把 {a}.txt 重命名为 {c}.txt。",
        start={"Documents/{a}.txt": "{u}\n", "Documents/{b}.txt": "{v}\n"},
        goal={"Documents/{a}.txt": None, "Documents/{c}.txt": "{u}\n"},
        steps=("type {a}", "key esc", "key f2", "key ctrl+a", "type {c}.txt", "key enter"),
        opened="Documents",
    ),
    DesktopTask(
        "files-new-folder",
        _APP,
        "Make a folder {f} in Documents.",
        "在 Documents 中新建文件夹 {f}。",
        start={"Documents/{a}.txt": "{u}\n"},
        goal={"Documents/{f}/": ""},
        steps=("key ctrl+shift+n", "key ctrl+a", "type {f}", "key enter"),
        opened="Documents",
    ),
    DesktopTask(
        "files-delete",
        _APP,
        "Delete {b}.txt. The trash is fine.",
        "删除 {b}.txt（移到回收站即可）。",
        start={"Documents/{a}.txt": "{u}\n", "Documents/{b}.txt": "{v}\n", "Documents/{c}.txt": "{w}\n"},
        goal={"Documents/{b}.txt": None},
        steps=("type {b}", "key esc", "key delete"),
        opened="Documents",
    ),
    DesktopTask(
        "files-move",
        _APP,
        "Move {a}.txt into the folder {f}.",
        "把 {a}.txt 移动到文件夹 {f} 中。",
        start={"Documents/{f}/": "", "Documents/{a}.txt": "{u} {n}\n", "Documents/{b}.txt": "{v}\n"},
        goal={"Documents/{a}.txt": None, "Documents/{f}/{a}.txt": "{u} {n}\n"},
        steps=("type {a}", "key esc", "key ctrl+x", f"double 206 115 {_FIRST}", "key ctrl+v"),
        opened="Documents",
    ),
    DesktopTask(
        "files-move-all",
        _APP,
        "Move all three files of Documents into its folder {f}.",
        "把 Documents 中的三个文件全部移动到其中的文件夹 {f}。",
        start={
            **{"Documents/{f}/": "", "Documents/{a}.txt": "{u}\n"},
            **{"Documents/{b}.csv": "{v},{n}\n", "Documents/{c}.txt": "{w} {m}\n"},
        },
        goal={
            **{"Documents/{a}.txt": None, "Documents/{b}.csv": None, "Documents/{c}.txt": None},
            **{"Documents/{f}/{a}.txt": "{u}\n", "Documents/{f}/{b}.csv": "{v},{n}\n", "Documents/{f}/{c}.txt": "{w} {m}\n"},
        },
        steps=(f"click 300 115 {_SECOND}", "key shift+end", "key ctrl+x", f"double 206 115 {_FIRST}", "key ctrl+v"),
        opened="Documents",
    ),
    DesktopTask(
        "files-duplicate",
        _APP,
        "Make a copy of {a}.txt in the same folder, with the name {b}.txt.",
        "在同一文件夹中为 {a}.txt 建立一个副本，命名为 {b}.txt。",
        start={"Documents/{a}.txt": "{u} {n}\n", "Documents/{c}.txt": "{v}\n"},
        goal={"Documents/{b}.txt": "{u} {n}\n"},
        steps=("type {a}", "key esc", "key ctrl+c", "key ctrl+v", "key ctrl+a", "type {b}.txt", "key enter"),
        opened="Documents",
    ),
    DesktopTask(
        "files-sort-into-folders",
        _APP,
        "Move {a}.txt into the folder 1-{f} and {b}.txt into the folder 2-{g}.",
        "把 {a}.txt 移动到文件夹 1-{f}，把 {b}.txt 移动到文件夹 2-{g}。",
        start={
            **{"Documents/1-{f}/": "", "Documents/2-{g}/": "", "Documents/{c}.txt": "{w}\n"},
            **{"Documents/{a}.txt": "{u}\n", "Documents/{b}.txt": "{v} {n}\n"},
        },
        goal={
            **{"Documents/{a}.txt": None, "Documents/1-{f}/{a}.txt": "{u}\n"},
            **{"Documents/{b}.txt": None, "Documents/2-{g}/{b}.txt": "{v} {n}\n"},
        },
        steps=(
            *("type {a}", "key esc", "key ctrl+x", f"double 206 115 {_FIRST}", "key ctrl+v", "key alt+up"),
            *("type {b}", "key esc", "key ctrl+x", f"double 300 115 {_SECOND}", "key ctrl+v"),
        ),
        opened="Documents",
    ),
    DesktopTask(
        "files-name-by-content",
        _APP,
        "Read untitled.txt in the text editor and rename it to the word that it contains, followed by .txt.",
        "用文本编辑器查看 untitled.txt 的内容，然后以其中的那个词加 .txt 作为它的新文件名。",
        start={"Documents/untitled.txt": "{u}\n", "Documents/{a}.txt": "{v}\n"},
        goal={"Documents/untitled.txt": None, "Documents/{u}.txt": "{u}\n"},
        steps=(
            *("open Text Editor", "key ctrl+o", "key ctrl+l", "type ~/Documents/untitled.txt", "key enter", "key alt+tab"),
            *("type untitled", "key esc", "key f2", "key ctrl+a", "type {u}.txt", "key enter"),
        ),
        opened="Documents",
        also="Text Editor",
    ),
)
