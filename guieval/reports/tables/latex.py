"""Tables in LaTeX for a paper of one or two columns: booktabs, a caption, a short label; notes are comments above the table.

A table takes one column of a page if it fits, else both (``table*``). One that is wider still is cut into several below each
other, each with the key columns, and one that is too high into several floats, so that no box is overfull and no float is too
large. What fits is estimated with the widths of Computer Modern; other usual fonts are narrower.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from guieval.errors import UsageError, whole_text
from guieval.reports.tables.table import Cell, Column, Number, Row, Table, text

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "\u2212": "$-$",
    **{mark: f"\\{mark}" for mark in "{}$&#_%"},
}
_LATIN = "\u024f"
"""The last letter that LaTeX sets without a font of its own."""
_HEAD, _KEYS = 9, (22, 16, 10)
"""Characters of a line of a heading and of a row's name: the widest of three with which the table fits a column. Longer ones
are broken, within a word only if it is twice as long."""
_BREAKS = re.compile(r"(?<=[/_.:-])(?=\w)|(?<= )")
"""Where a name may be broken."""
_COLUMN, _PAGE, _HEIGHT, _CAPTION = 228.0, 466.0, 530.0, 70.0
"""Points: the width of a column and of a page, and the height of a page, of LaTeX's own two-column article, since other usual
styles are as wide or have narrower letters, and are higher; and the height of a caption."""
_GAP = 6.0
"""Points between two columns."""
_SIZES = {"footnote": 8.0, "bold": 9.0, "tiny": 6.4}
"""Points of which a character takes the part in :data:`_WIDTHS`, in each style that is used."""
_WIDTHS = {
    **dict.fromkeys("iljI.,:;'![]| ", 0.3),
    **dict.fromkeys("frst()-/_", 0.43),
    **dict.fromkeys("0123456789aceoz", 0.535),
    **dict.fromkeys("+<>=±&\u2212", 0.83),
    **dict.fromkeys("mwMW%@#", 0.97),
}


def latex(table: Table, *, caption: str, label: str) -> str:
    """A booktabs table; the notes are above it as comments. It needs ``\\usepackage{booktabs}``.

    Long headings and names are broken into lines, and what a cell has besides its number (its interval) is below it. The label
    is ``tab:`` and ``label``; further floats of one table are numbered.
    """
    environment, groups, key = "table", [[*range(len(table.columns))]], _KEYS[0]
    narrow = next((key for key in _KEYS if len(list(_groups(table, _COLUMN, key))) == 1), None)
    if narrow is None:
        environment, groups = "table*", list(_groups(table, _PAGE, key))
    else:
        key = narrow
    notes = [line for note in table.notes for line in textwrap.wrap(_flat(note), 110, subsequent_indent="  ")]
    lines = [r"% needs \usepackage{booktabs}", *(f"% {note}" for note in notes)]
    parts = list(_parts(table, len(groups), key))
    for number, rows in enumerate(parts, 1):
        lines += [
            rf"\begin{{{environment}}}[t]",
            r"\centering",
            rf"\caption{{{tex(caption)}{f' (Part {number} of {len(parts)}.)' if len(parts) > 1 else ''}}}",
            rf"\label{{tab:{label}{f'-part-{number}' if number > 1 else ''}}}",
            r"\par\smallskip",
            r"\footnotesize\setlength{\tabcolsep}{3pt}",
        ]
        for group in groups:
            lines += [r"\par\medskip"] * (group is not groups[0])
            cells = [[row[place] for place in group if row] for row in rows]
            lines += _tabular([table.columns[place] for place in group], cells, key)
        lines.append(rf"\end{{{environment}}}")
    if any(mark > _LATIN for mark in "".join(line for line in lines if not line.startswith("%"))):
        lines.insert(1, "% has characters that pdfLaTeX has no font for: compile with LuaLaTeX or XeLaTeX and a font that does")
    return "\n".join(lines) + "\n"


def several(made: Sequence[tuple[Table, str, str]], label: str | None, caption: str | None, what: str, instead: str) -> str:
    """Tables, each with its caption and the name of its label; further ones with the same label are numbered.

    ``label`` is for all in place of theirs, ``caption`` for one: :class:`UsageError` for several, which says ``what`` these are
    and how to have one ``instead``.
    """
    if caption is not None and len(made) > 1:
        heads = "; ".join(table.title for table, _, _ in made)
        raise UsageError(f"--caption is for one table, and {what} {len(made)} ({heads}); {instead}")
    names, written = Counter[str](), []
    for table, own, name in made:
        name = slug(label or name)
        names[name] += 1
        written.append(latex(table, caption=caption or own, label=f"{name}-{names[name]}" if names[name] > 1 else name))
    return "\n".join(written)


def check_latex(form: str, label: str | None, caption: str | None) -> None:
    """Raise :class:`UsageError` if a label or a caption is given for a format without them."""
    if form != "latex" and (label or caption):
        raise UsageError(f"--label and --caption are for --format latex, not for {form}")


def slug(name: str) -> str:
    """A name as part of a label: small letters, digits and hyphens."""
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def tex(value: str) -> str:
    """Text with LaTeX's special characters escaped."""
    escaped = "".join(_SPECIAL.get(mark, mark) for mark in _flat(value))
    return re.sub("(?<=[-'])(?=[-'])", "{}", escaped)  # two hyphens would be set as a dash, two apostrophes as a quotation mark


def _flat(value: str) -> str:
    """One line of printable characters, which a comment may hold too."""
    return "".join(mark for mark in " ".join(whole_text(value).split()) if mark.isprintable())


def _tabular(heads: Sequence[Column], rows: Sequence[Sequence[Cell]], key: int) -> Iterator[str]:
    yield rf"\begin{{tabular}}{{@{{}}{''.join('r' if column.right else 'l' for column in heads)}@{{}}}}"
    yield r"\toprule"
    yield " & ".join(_stacked(_head(column), column.right) for column in heads) + r" \\"
    yield r"\midrule"
    lines = [line for row in rows for line in (_row(row, key) if row else [r"\midrule"])]
    yield from lines[:-1]
    yield from (line.removesuffix(r" \addlinespace") for line in lines[-1:])
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _row(cells: Sequence[Cell], key: int) -> list[str]:
    values = " & ".join(_cell(cell, key) for cell in cells) + r" \\"
    below = [_below(cell) for cell in cells]
    if not any(below):
        return [values]
    small = (rf"{{\tiny {tex(each)}}}" if each else "" for each in below)
    return [values, " & ".join(small) + r" \\ \addlinespace"]


def _cell(cell: Cell, key: int) -> str:
    if not isinstance(cell, Number):
        return _stacked(_lines(text(cell), key), right=False)
    shown = tex(_signed(cell.shown))
    return rf"\textbf{{{shown}}}" if cell.best and cell.of.value is not None else shown


def _below(cell: Cell) -> str:
    return " ".join(filter(None, (cell.marks, _signed(cell.ends)))) if isinstance(cell, Number) else ""


def _signed(number: str) -> str:
    """A number with a minus in place of the hyphen before its digits."""
    return re.sub(r"-(?=\d)", "\u2212", number)


def _stacked(lines: Sequence[str], right: bool) -> str:
    """Lines on top of each other. A bracket or an asterisk at the begin of a line would be an option of the break before it."""
    guarded = [("{}" if line.startswith(("[", "*")) else "") + tex(line) for line in lines]
    if len(lines) == 1:
        return guarded[0]
    return rf"\shortstack[{'r' if right else 'l'}]{{" + r" \\ ".join(guarded) + "}"


def _head(column: Column) -> list[str]:
    return _lines(column.flat, _HEAD)


def _lines(value: str, width: int) -> list[str]:
    """Lines of about ``width`` characters, broken after blanks and the marks that names have; at most twice as long."""
    lines = [""]
    for part in _BREAKS.split(_flat(value)):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    whole = (line.strip() for line in lines)
    return [piece for line in whole for piece in (textwrap.wrap(line, 2 * width) or [""])]


def _parts(table: Table, groups: int, key: int) -> Iterator[list[Row]]:
    """The rows in parts that, set ``groups`` times below each other, are no higher than a page; cut at gaps if there are."""
    room = (_HEIGHT - _CAPTION) / groups - 10.0 * max(len(_head(column)) for column in table.columns) - 20.0  # its rules
    part: list[Row] = []
    for row in table.rows:
        part.append(row)
        if len(part) > 1 and sum(_row_height(each, key) for each in part) > room:
            cut = max((place for place, each in enumerate(part) if not each), default=len(part) - 1)
            yield part[:cut]
            part = [each for each in part[cut:] if each]
    yield part


def _row_height(row: Row, key: int) -> float:
    lines = max((len(_lines(text(cell), key)) for cell in row if not isinstance(cell, Number)), default=1)
    return 10.0 * lines + (14.0 if any(map(_below, row)) else 0.0)


def _groups(table: Table, width: float, key: int) -> Iterator[list[int]]:
    """The places of the columns of each table: the keys, and as many of the others as fit, at least one."""
    widths = [_width(table, place, key) + _GAP for place in range(len(table.columns))]
    keys = list(range(table.keys))
    taken = sum(widths[: table.keys]) - _GAP
    group, used = keys, taken
    for place in range(table.keys, len(widths)):
        if used + widths[place] > width and len(group) > len(keys):
            yield group
            group, used = keys, taken
        group, used = [*group, place], used + widths[place]
    yield group


def _width(table: Table, place: int, key: int) -> float:
    """Points that a column takes, rather too many."""
    lines = [(line, "footnote") for line in _head(table.columns[place])]
    for cell in (row[place] for row in table.filled):
        if isinstance(cell, Number):
            lines += [(_signed(cell.shown), "bold" if cell.best else "footnote"), (_below(cell), "tiny")]
        else:
            lines += [(line, "footnote") for line in _lines(text(cell), key)]
    return max(sum(map(_mark_width, line)) * _SIZES[size] for line, size in lines)


def _mark_width(mark: str) -> float:
    """The part of the font's size that a character takes."""
    return _WIDTHS.get(mark, 0.8 if mark.isupper() else 0.6 if mark <= _LATIN else 1.0)
