"""Tasks in LibreOffice: spreadsheets in Calc, letters in Writer."""

from __future__ import annotations

from guieval.connectors.desktop.task import DesktopTask

_CALC, _WRITER = "LibreOffice Calc", "LibreOffice Writer"
_SHEET = "Documents/{a}.xlsx"
_LETTER = "Documents/{a}.odt"
OFFICE = (
    DesktopTask(
        "calc-change-amount",
        _CALC,
        "Change the amount of {v} to {n}{m} in the open spreadsheet and save it.",
        "把打开的电子表格中 {v} 的数量改为 {n}{m} 并保存。",
        start={_SHEET: "item;amount\n{u};1{n}\n{v};2{m}\n{w};{n}\n"},
        goal={f"{_SHEET}//B3": "{n}{m}"},
        steps=("key ctrl+home", "key down", "key down", "key right", "type {n}{m}", "key enter", "key ctrl+s"),
        opened=_SHEET,
    ),
    DesktopTask(
        "calc-sum-formula",
        _CALC,
        "Calculate the sum of the three amounts with a formula in cell B5, and save the spreadsheet.",
        "在单元格 B5 中用公式计算三个数量的总和，并保存电子表格。",
        start={_SHEET: "item;amount\n{u};{n}\n{v};{m}\n{w};{nm}\ntotal\n"},
        goal={f"{_SHEET}//B5": "{n+m+nm}", f"{_SHEET}//B5 formula": "yes"},
        steps=("key ctrl+end", "type =SUM(B2:B4)", "key enter", "key ctrl+s"),
        opened=_SHEET,
    ),
    DesktopTask(
        "calc-rename-sheet",
        _CALC,
        "Rename the sheet to {x} and save the spreadsheet.",
        "把工作表重命名为 {x} 并保存电子表格。",
        start={_SHEET: "item;amount\n{u};{n}\n{v};{m}\n"},
        goal={_SHEET: "{x}"},
        steps=("double 178 765", "key ctrl+a", "type {x}", "key enter", "key ctrl+s"),
        opened=_SHEET,
    ),
    DesktopTask(
        "calc-sort-rows",
        _CALC,
        "Sort the rows below the header by the amount, the smallest first, and save the spreadsheet.",
        "按数量从小到大对表头以下的行排序，并保存电子表格。",
        start={_SHEET: "item;amount\n{u};3{n}\n{v};1{m}\n{w};2{n}\n{x};{m}\n"},
        goal={
            **{f"{_SHEET}//A2": "{x}", f"{_SHEET}//B2": "{m}", f"{_SHEET}//A3": "{v}", f"{_SHEET}//B3": "1{m}"},
            **{f"{_SHEET}//A4": "{w}", f"{_SHEET}//B4": "2{n}", f"{_SHEET}//A5": "{u}", f"{_SHEET}//B5": "3{n}"},
        },
        steps=("click 168 212", "click 759 64", "key ctrl+s"),
        opened=_SHEET,
    ),
    DesktopTask(
        "calc-bold-header",
        _CALC,
        "Make the two cells of the header bold, and save the spreadsheet.",
        "把表头的两个单元格设为粗体，并保存电子表格。",
        start={_SHEET: "item;amount\n{u};{n}\n{v};{m}\n"},
        goal={f"{_SHEET}//bold": "A1 B1"},
        steps=("key ctrl+home", "key shift+right", "key ctrl+b", "key ctrl+s"),
        opened=_SHEET,
    ),
    DesktopTask(
        "calc-export-csv",
        _CALC,
        "Save the open spreadsheet as {b}.csv too, in the same folder, with commas between the fields.",
        "把打开的电子表格在同一文件夹中另存为 {b}.csv，字段之间用逗号分隔。",
        start={_SHEET: "{u};{n}\n{v};{m}\n{w};{nm}\n"},
        goal={"Documents/{b}.csv": "{u},{n}\n{v},{m}\n{w},{nm}\n"},
        steps=("key ctrl+shift+s", "key ctrl+a", "type ~/Documents/{b}.csv", "key enter", "key enter"),
        opened=_SHEET,
    ),
    DesktopTask(
        "writer-add-paragraph",
        _WRITER,
        "Add a paragraph '{x} {n}' at the end of the open document and save it.",
        "在打开的文档末尾添加一段“{x} {n}”并保存。",
        start={_LETTER: "{u}\n{v} {m}\n"},
        goal={_LETTER: "{u}\n{v} {m}\n{x} {n}\n"},
        steps=("key ctrl+end", "key enter", "type {x} {n}", "key ctrl+s"),
        opened=_LETTER,
    ),
    DesktopTask(
        "writer-title-and-bold",
        _WRITER,
        "Give the first paragraph the style Heading 1, make the last one bold, and save the document.",
        "把第一段设为“标题 1”样式，把最后一段设为粗体，并保存文档。",
        start={_LETTER: "{p} {u}\n{v} {m}\n{w} {n}\n"},
        goal={f"{_LETTER}//heading": "{p} {u}", f"{_LETTER}//bold": "{w} {n}"},
        steps=("key ctrl+home", "key ctrl+1", "key ctrl+end", "key shift+home", "key ctrl+b", "key ctrl+s"),
        opened=_LETTER,
    ),
    DesktopTask(
        "writer-replace-word",
        _WRITER,
        "Replace every '{u}' by '{x}' in the open document and save it.",
        "把打开的文档中所有“{u}”替换为“{x}”并保存。",
        start={_LETTER: "{u} {n}\n{v} and {u}\n{w}\nno {v}, but {u}\n"},
        goal={_LETTER: "{x} {n}\n{v} and {x}\n{w}\nno {v}, but {x}\n"},
        steps=("key ctrl+h", "type {u}", "click 669 317", "type {x}", "click 924 372", "key esc", "key ctrl+s"),
        opened=_LETTER,
    ),
    DesktopTask(
        "writer-total-of-spreadsheet",
        _WRITER,
        "Add a last paragraph to the open document that is the total of Documents/{b}.xlsx alone (look it up in LibreOffice "
        "Calc), and save the document.",
        "在 LibreOffice Calc 中查看 Documents/{b}.xlsx 的总计，在打开的文档末尾添加一段，只写这个数，并保存文档。",
        start={_LETTER: "{u}\n{v}:\n", "Documents/{b}.xlsx": "item;amount\n{w};{n}\n{x};{m}\ntotal;{n+m}\n"},
        goal={_LETTER: "{u}\n{v}:\n{n+m}\n"},
        steps=(
            *("open LibreOffice Calc", "key ctrl+o", "key ctrl+l", "type ~/Documents/{b}.xlsx", "key enter", "key alt+tab"),
            *("key ctrl+end", "key enter", "type {n+m}", "key ctrl+s"),
        ),
        opened=_LETTER,
        also=_CALC,
    ),
)
