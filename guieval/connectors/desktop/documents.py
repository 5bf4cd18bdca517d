"""Spreadsheets (.xlsx) and text documents (.odt): made from the text of a task, and read as parts that a judge compares.

The parts of ``PATH`` have names ``PATH//PART``, which no file can have.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from guieval.errors import UsageError

MOST_BYTES = 64_000_000
"""The most bytes that a document may have unpacked."""
MOST_CELLS = 100_000
UNREADABLE = "(a document that cannot be read)"


def require_readers() -> None:
    """Raise :class:`UsageError` if a package that reads documents is missing."""
    missing = [package for package, module in (("openpyxl", "openpyxl"), ("odfpy", "odf")) if find_spec(module) is None]
    if missing:
        raise UsageError(f"environment 'desktop' needs the package {missing[0]!r}: pip install 'guieval[desktop]'")


def made(path: str, text: str) -> bytes:
    """The file ``path``: a spreadsheet of lines with cells between ``;``, a text document of paragraphs, or the text."""
    stream = io.BytesIO()
    if path.endswith(".xlsx"):
        from openpyxl import Workbook

        book = Workbook()
        assert book.active is not None
        book.active.title = "Sheet1"
        for line in text.splitlines():
            book.active.append([int(cell) if cell.isdigit() else cell for cell in line.split(";")])
        book.save(stream)
    elif path.endswith(".odt"):
        from odf.opendocument import OpenDocumentText
        from odf.text import P

        document = OpenDocumentText()
        for line in text.splitlines():
            document.text.addElement(P(text=line))
        document.write(stream)
    else:
        return text.encode()
    return stream.getvalue()


def parts(path: str, content: bytes) -> dict[str, str]:
    """What a judge compares of a file.

    ``PATH`` has the names of a spreadsheet's sheets, or the text. A cell of the first sheet is ``PATH//B2``, one of the second
    ``PATH//2!B2``; ``PATH//B2 formula`` is there if a formula calculates it. ``PATH//bold`` has the bold cells, or the bold
    texts of a text document, and ``PATH//heading`` its headings of the first level.
    """
    reader = {"xlsx": _spreadsheet, "odt": _text_document}.get(path.rpartition(".")[2])
    if reader is None:
        return {path: content.decode(errors="replace").rstrip("\n")}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
                return {path: UNREADABLE}
        found = reader(content)
    except Exception:  # whatever the readers raise about a file that an agent has made
        return {path: UNREADABLE}
    return {f"{path}//{name}" if name else path: text for name, text in found.items() if text or not name}


def _spreadsheet(content: bytes) -> dict[str, str]:
    from openpyxl import load_workbook

    values, formulas = (load_workbook(io.BytesIO(content), data_only=only) for only in (True, False))
    found = {"": "\n".join(values.sheetnames)}
    bold: list[str] = []
    for number, sheet in enumerate(values.worksheets, 1):
        if sheet.max_row * sheet.max_column > MOST_CELLS:
            return {"": UNREADABLE}
        for row in sheet.iter_rows():
            for cell in row:
                name = cell.coordinate if number == 1 else f"{number}!{cell.coordinate}"
                formula = formulas.worksheets[number - 1][cell.coordinate].data_type == "f"
                if cell.value is None and not formula:
                    continue
                found[name] = f"{cell.value:.10g}" if isinstance(cell.value, int | float) else str(cell.value)
                if formula:
                    found[f"{name} formula"] = "yes"
                if cell.font.bold:
                    bold.append(name)
    return {**found, "bold": " ".join(bold)}


def _text_document(content: bytes) -> dict[str, str]:
    from odf.opendocument import load
    from odf.teletype import extractText

    document = load(io.BytesIO(content))
    bold = {
        style.getAttribute("name")
        for style in document.automaticstyles.childNodes
        if any(
            each.getAttribute("fontweight") == "bold" for each in style.childNodes if each.tagName == "style:text-properties"
        )
    }
    lines, headings, bolds = [], [], []
    for node in _nodes(document.text):
        if node.tagName in ("text:p", "text:h"):
            lines.append(extractText(node))
        if node.tagName == "text:h" and node.getAttribute("outlinelevel") == "1":
            headings.append(extractText(node))
        if node.tagName in ("text:p", "text:h", "text:span") and node.getAttribute("stylename") in bold:
            bolds.append(extractText(node))
    return {"": "\n".join(lines).rstrip("\n"), "heading": "\n".join(headings), "bold": "\n".join(bolds)}


def _nodes(node: Any) -> Iterator[Any]:
    for child in node.childNodes:
        if child.nodeType == child.ELEMENT_NODE:
            yield child
            yield from _nodes(child)
