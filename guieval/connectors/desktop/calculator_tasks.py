"""Tasks in the calculator (MATE Calculator): their results stay in its settings, on the clipboard or in a file."""

from __future__ import annotations

from guieval.connectors.desktop.task import CLIPBOARD, DesktopTask

_APP = "Calculator"
_SETTING = "//setting org/mate/calc"
CALCULATOR = (
    DesktopTask(
        "calculator-copy-product",
        _APP,
        "Calculate {n} times {m} and copy the result to the clipboard.",
        "计算 {n} 乘以 {m}，并把结果复制到剪贴板。",
        start={"Documents/": ""},
        goal={CLIPBOARD: "{n*m}"},
        steps=("type {n}*{m}", "key enter", "key ctrl+c"),
    ),
    DesktopTask(
        "calculator-copy-price",
        _APP,
        "Three chairs cost {n} each and 12 lamps cost {m} each. Copy the price of all of them to the clipboard.",
        "三把椅子每把 {n} 元，12 盏灯每盏 {m} 元。把它们的总价复制到剪贴板。",
        start={"Documents/": ""},
        goal={CLIPBOARD: "{3*n+12*m}"},
        steps=("type 3*{n}", "key enter", "type +12*{m}", "key enter", "key ctrl+c"),
    ),
    DesktopTask(
        "calculator-display-settings",
        _APP,
        "In the calculator's preferences, choose 6 decimal places, thousands separators and radians as angle units.",
        "在计算器的首选项中，设置显示 6 位小数和千位分隔符，并把角度单位设为弧度。",
        start={"Documents/{a}.txt": "{u}\n"},
        goal={f"{_SETTING} accuracy": "6", f"{_SETTING} show-thousands": "true", f"{_SETTING} angle-units": "'radians'"},
        steps=(
            *("click 460 299", "click 490 508", "double 575 359", "type 6", "key tab"),
            *("click 521 421", "click 713 467", "key down", "key enter"),
        ),
    ),
    DesktopTask(
        "calculator-change-base",
        _APP,
        "Switch the calculator to its programming mode, and copy the hexadecimal form of {n}{m} to the clipboard.",
        "把计算器切换到编程模式，并把 {n}{m} 的十六进制形式复制到剪贴板。",
        start={"Documents/": ""},
        goal={f"{_SETTING} button-mode": "'programming'", CLIPBOARD: "{nm:X}"},
        steps=("key alt+m", "key p", "type {n}{m}", "key enter", "click 492 408", "click 479 440", "key ctrl+c"),
    ),
    DesktopTask(
        "calculator-product-of-file",
        _APP,
        "Multiply the two numbers in Documents/{a}.txt with the calculator, and add the result as a last line to that file "
        "with the text editor.",
        "用计算器把 Documents/{a}.txt 中的两个数相乘，并用文本编辑器把结果作为最后一行添加到该文件中。",
        start={"Documents/{a}.txt": "{u} {n}\n{v} {m}\n", "Documents/{b}.txt": "{w}\n"},
        goal={"Documents/{a}.txt": "{u} {n}\n{v} {m}\n{n*m}\n"},
        steps=(
            *("open Text Editor", "key ctrl+o", "key ctrl+l", "type ~/Documents/{a}.txt", "key enter", "key alt+tab"),
            *(
                "type {n}*{m}",
                "key enter",
                "key ctrl+c",
                "key alt+tab",
                "key ctrl+end",
                "key enter",
                "key ctrl+v",
                "key ctrl+s",
            ),
        ),
        also="Text Editor",
    ),
    DesktopTask(
        "calculator-name-of-folder",
        _APP,
        "Calculate the square of {n}{m} with the calculator, and make a folder with the result as its name in Documents, "
        "with the terminal.",
        "用计算器计算 {n}{m} 的平方，并用终端在 Documents 中建立一个以结果为名的文件夹。",
        start={"Documents/{a}.txt": "{u}\n"},
        goal={"Documents/{nm*nm}/": ""},
        steps=(
            *("type {n}{m}^2", "key enter", "key ctrl+c", "open Terminal"),
            *("type mkdir Documents/", "key shift+insert", "key enter"),
        ),
        also="Terminal",
    ),
)
