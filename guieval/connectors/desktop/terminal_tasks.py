"""Tasks in the terminal (xterm with bash)."""

from __future__ import annotations

from guieval.connectors.desktop.task import DesktopTask

_APP = "Terminal"
TERMINAL = (
    DesktopTask(
        "terminal-make-folder",
        _APP,
        "Make the folder {f}/{g} in Documents, with an empty file {a}.txt in it.",
        "在 Documents 中建立文件夹 {f}/{g}，并在其中建立空文件 {a}.txt。",
        start={"Documents/{b}.txt": "{u}\n"},
        goal={"Documents/{f}/": "", "Documents/{f}/{g}/": "", "Documents/{f}/{g}/{a}.txt": ""},
        steps=(
            "type cd Documents",
            "key enter",
            "type mkdir -p {f}/{g}",
            "key enter",
            "type touch {f}/{g}/{a}.txt",
            "key enter",
        ),
    ),
    DesktopTask(
        "terminal-sort-lines",
        _APP,
        "Write the lines of Documents/{a}.txt in alphabetical order to Documents/{b}.txt. {a}.txt stays as it is.",
        "把 Documents/{a}.txt 的各行按字母顺序写入 Documents/{b}.txt。{a}.txt 保持不变。",
        start={"Documents/{a}.txt": "pear {n}\nfig\nlemon {m}\napple\n"},
        goal={"Documents/{b}.txt": "apple\nfig\nlemon {m}\npear {n}\n"},
        steps=("type sort Documents/{a}.txt > Documents/{b}.txt", "key enter"),
    ),
    DesktopTask(
        "terminal-select-lines",
        _APP,
        "Write those lines of Documents/{a}.log that contain '{u}' to {b}.txt in the folder Documents/{f}.",
        "把 Documents/{a}.log 中包含“{u}”的行写入文件夹 Documents/{f} 中的 {b}.txt。",
        start={
            "Documents/{a}.log": "1 {u} {n}\n2 {v} {m}\n3 {w}\n4 {v} and {u}\n5 {x} {n}\n",
            "Documents/{f}/": "",
        },
        goal={"Documents/{f}/{b}.txt": "1 {u} {n}\n4 {v} and {u}\n"},
        steps=("type cd Documents", "key enter", "type grep {u} {a}.log > {f}/{b}.txt", "key enter"),
    ),
    DesktopTask(
        "terminal-run-script",
        _APP,
        "Make Documents/{a}.sh executable and run it in the folder Documents.",
        "把 Documents/{a}.sh 设为可执行，并在 Documents 文件夹中运行它。",
        start={"Documents/{a}.sh": "#!/bin/sh\necho {u} {n} > {b}.txt\n"},
        goal={"Documents/{a}.sh//executable": "", "Documents/{b}.txt": "{u} {n}\n"},
        steps=("type cd Documents", "key enter", "type chmod +x {a}.sh", "key enter", "type ./{a}.sh", "key enter"),
    ),
    DesktopTask(
        "terminal-rename-all",
        _APP,
        "Give all three .txt files in Documents the ending .md in place of .txt.",
        "把 Documents 中三个 .txt 文件的扩展名都改为 .md。",
        start={
            **{"Documents/{a}.txt": "{u}\n", "Documents/{b}.txt": "{v}\n", "Documents/{c}.txt": "{w}\n"},
            "Documents/{d}.csv": "{x},{n}\n",
        },
        goal={
            **{"Documents/{a}.txt": None, "Documents/{b}.txt": None, "Documents/{c}.txt": None},
            **{"Documents/{a}.md": "{u}\n", "Documents/{b}.md": "{v}\n", "Documents/{c}.md": "{w}\n"},
        },
        steps=(
            *("type cd Documents", "key enter", "type mv {a}.txt {a}.md", "key enter"),
            *("type mv {b}.txt {b}.md", "key enter", "type mv {c}.txt {c}.md", "key enter"),
        ),
    ),
    DesktopTask(
        "terminal-count-and-note",
        _APP,
        "Count the lines of Documents/{a}.csv in the terminal, and add a line with that number alone to the end of "
        "Documents/{b}.txt with the text editor.",
        "在终端中统计 Documents/{a}.csv 的行数，并用文本编辑器在 Documents/{b}.txt 末尾添加一行，只写这个数字。",
        start={
            "Documents/{a}.csv": "{u},1\n{v},{n}\n{w},{m}\n{x},4\n{y},5\n{z},6\n{u},7\n",
            "Documents/{b}.txt": "{u} {n}\n",
        },
        goal={"Documents/{b}.txt": "{u} {n}\n7\n"},
        steps=(
            *("type wc -l Documents/{a}.csv", "key enter", "open Text Editor", "key ctrl+o", "key ctrl+l"),
            *("type ~/Documents/{b}.txt", "key enter", "key ctrl+end", "key enter", "type 7", "key ctrl+s"),
        ),
        also="Text Editor",
    ),
)
