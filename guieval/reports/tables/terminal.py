"""Tables for a terminal of a known width: no line is wider, and no word, number or id is split over two lines.

In this order: a table that fits is printed unchanged; sentences and headings are wrapped between words; spare columns are left
out with a note; a table that may is turned; intervals go below their numbers, or the columns are split into several tables,
whichever takes fewer lines; and if not even one column fits next to a row's name, rows become paragraphs. A single word that is
wider than its column is shortened in the middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from guieval.errors import harmless
from guieval.reports.tables.table import Cell, Column, Number, Table, text, turned

if TYPE_CHECKING:
    from rich.text import Text

PIPED_WIDTH = 160
"""The width of tables in files and in output to another program."""
_GAP = 2
_SENTENCE = 20
"""The minimal width of a column of sentences, in cells of the terminal."""
_LABEL = 11
"""The minimal width of a row's name of several words, if the table does not fit otherwise."""
_NAME = 32
"""The width from which a row's name in one word may be shortened, if the table is split otherwise."""
_INTERVAL = r"(?:sd [.,\d]+(?: \[[-+.\d]+, [-+.\d]+\])?|\[[-+.\d]+, [-+.\d]+\])"
"""An interval, after the spread between repeats if there is one, which is never wrapped."""
_MISSING = r"\([\d,]+ missing\)"
_WIDE = re.compile("[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U0001f300-\U0003ffff]")
_WORDS = re.compile(rf"(?:(?!{_WIDE.pattern})\S)+|\S")


def as_text(tables: Iterable[Table], width: int = PIPED_WIDTH) -> str:
    """The tables one below another without colours, at most ``width`` characters wide where columns allow it."""
    return "".join(f"{line.plain}\n" for table in tables for line in rendered(table, width))


def fold(sentence: str, width: int, indent: int = 0) -> list[str]:
    """A sentence as lines of at most ``width``, further ones indented; a longer word, e.g. a path, stays whole."""
    return _folded(sentence, width, indent, shorten=False)


@dataclass(frozen=True, eq=False)
class _Shown:
    """A column as it is printed: the lines of its heading, a cell for each row, and how narrow it may get."""

    column: Column
    place: int
    heads: list[str]
    cells: list[str]
    floor: int


def _shown(table: Table, width: int, *, tall: bool = False) -> list[_Shown]:
    """The columns; if ``tall``, names of rows may be wrapped, and an interval or missing steps be below a number."""
    return [_column(table, place, width, tall) for place in range(len(table.columns))]


def _column(table: Table, place: int, width: int, tall: bool) -> _Shown:
    column = table.columns[place]
    heads = [clean(line) for line in column.name.split("\n")]
    cells = [clean(text(row[place])) if row else "" for row in table.rows]
    need = max(map(_wide, cells), default=0)
    if column.folds or (tall and place < table.keys):
        longest = max(map(_longest_word, cells), default=0)
        need = max(min(need, _SENTENCE), longest) if column.folds else max(min(need, _LABEL), min(longest, _NAME))
    elif tall:
        parts = [re.sub(f" ({_INTERVAL}|{_MISSING})", r"\n\1", cell).split("\n") for cell in cells]
        need = max((_wide(part) for of_cell in parts for part in of_cell), default=0)
    head = max(map(_longest_word, heads))
    return _Shown(column, place, heads, cells, min(max(min(head, _SENTENCE) if tall else head, need), width // 2))


def rendered(table: Table, width: int, full: str = "") -> Iterator[Text]:
    """The table's lines. ``full`` is a hint how to see the columns that are dropped, e.g. "--json shows them"."""
    from rich.text import Text

    if table.title:
        yield from (Text(line, "bold") for line in _folded(clean(table.title), width))
    columns = _shown(table, width)
    shown, left_out = _kept(columns, width)
    if _needed(shown) <= width:
        yield from _grid(table, shown, width, cut=False)
    else:
        turning = turned(table) if table.turns else table
        places = [each.place for each in shown] if turning is table else range(len(turning.columns))
        low, tall = ([_shown(turning, width, tall=tall)[place] for place in places] for tall in (False, True))
        layouts = [(turning, low), (turning, tall)]
        if (
            _needed(upright := [each for each in _shown(table, width, tall=True) if each.place in {of.place for of in shown}])
            <= width
        ):
            layouts.append((table, upright))
        yield from min((list(_blocks(of, each, width)) for of, each in layouts), key=len)
    notes = [*table.notes]
    if left_out:
        names = ", ".join(" ".join(each.heads) for each in left_out)
        notes.append(f"Left out at this width: {names}. " + (full or f"{_needed(columns)} columns show all."))
    for note in notes:
        yield from map(Text, _folded(clean(note), width, 2))
    yield Text()


def clean(value: str) -> str:
    """Text without control characters, so that its width is as displayed; leading blanks stay."""
    lead = len(value) - len(value.lstrip(" "))
    return " " * lead + harmless(" ".join(value.split()))


def _wide(value: str) -> int:
    from rich.cells import cell_len

    return cell_len(value)


def _longest_word(value: str) -> int:
    return max((_wide(word.group()) for word in _words(value)), default=0) + len(value) - len(value.lstrip(" "))


def _needed(columns: Sequence[_Shown]) -> int:
    return sum(column.floor for column in columns) + _GAP * (len(columns) - 1)


def _kept(columns: Sequence[_Shown], width: int) -> tuple[list[_Shown], list[_Shown]]:
    """The columns that are shown, and those that do not fit."""
    shown, left_out = list(columns), []
    while _needed(shown) > width:
        spare = max(shown, key=lambda each: each.column.spare)
        if not spare.column.spare:
            break
        shown.remove(spare)
        left_out.append(spare)
    for each in reversed(left_out[:-1]):  # the wide column removed last may leave room for narrow ones removed before
        if _needed([*shown, each]) <= width:
            shown.append(each)
    return [column for column in columns if column in shown], [each for each in columns if each not in shown]


def _groups(shown: Sequence[_Shown], keys: int, width: int) -> Iterator[list[_Shown]]:
    """The columns of each table: the keys, and as many of the others as fit, at least one."""
    names, rest = list(shown[:keys]), list(shown[keys:])
    if not rest:
        yield names
    while rest:
        count = 1
        while count < len(rest) and _needed([*names, *rest[: count + 1]]) <= width:
            count += 1
        yield [*names, *rest[:count]]
        rest = rest[count:]


def _blocks(table: Table, shown: Sequence[_Shown], width: int) -> Iterator[Text]:
    """The lines of a table that is split into several, a blank line between two."""
    from rich.text import Text

    groups = list(_groups(shown, table.keys, width))
    for number, group in enumerate(groups):
        if number:
            yield Text()
        if _needed(group) <= width:
            yield from _grid(table, group, width, cut=len(groups) > 1)
        else:
            yield from _paragraphs(table, group, width)


def _widths(group: Sequence[_Shown], keys: int, width: int) -> list[int]:
    """The remaining width goes to the columns that want more: to a row's name all that it wants, else first to the modest."""
    widths = [each.floor for each in group]
    left = width - _needed(group)
    wants = sorted((max(map(_wide, (*each.heads, *each.cells))) - each.floor, at) for at, each in enumerate(group))
    for number, (want, at) in enumerate(sorted(wants, key=lambda each: each[1] >= keys or each[0] > left)):
        share = left if at < keys and want <= left else left // (len(wants) - number)
        more = max(0, min(want, share))
        widths[at] += more
        left -= more
    return widths


def _grid(table: Table, group: Sequence[_Shown], width: int, *, cut: bool) -> Iterator[Text]:
    """The columns side by side; if the table is ``cut``, without the rows that have nothing in these."""
    from rich.text import Text

    widths = _widths(group, table.keys, width)
    heads = [[line for head in each.heads for line in _folded(head, own)] for each, own in zip(group, widths, strict=True)]
    height = max(map(len, heads))
    top = [[""] * (height - len(lines)) + lines for lines in heads]
    yield from (Text(line, "bold") for line in _joined(group, top, widths))
    yield Text("─" * (sum(widths) + _GAP * (len(widths) - 1)))
    for number, row in enumerate(table.rows):
        if not row:
            yield Text()
            continue
        if cut and all(row[each.place] is None for each in group[table.keys :]):
            continue
        folded = [_folded(each.cells[number], own) for each, own in zip(group, widths, strict=True)]
        for line_number, line in enumerate(_joined(group, folded, widths)):
            shown = Text(line)
            if not line_number:
                _embolden(shown, [row[each.place] for each in group], widths)
            yield shown


def _embolden(line: Text, cells: Sequence[Cell], widths: Sequence[int]) -> None:
    """Set the best cells in bold. Positions are in terminal cells, so wide characters before them are counted."""
    at = 0
    for cell, width in zip(cells, widths, strict=True):
        if isinstance(cell, Number) and cell.best:
            start = next(index for index in range(len(line) + 1) if _wide(line.plain[:index]) >= at)
            line.stylize("bold", start, start + width)
        at += width + _GAP


def _joined(group: Sequence[_Shown], lines: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for parts in zip_longest(*lines, fillvalue=""):
        padded = []
        for each, part, width in zip(group, parts, widths, strict=True):
            blank = " " * (width - _wide(part))
            padded.append(blank + part if each.column.right else part + blank)
        yield (" " * _GAP).join(padded).rstrip()


def _paragraphs(table: Table, group: Sequence[_Shown], width: int) -> Iterator[Text]:
    from rich.text import Text

    for number in (number for number, row in enumerate(table.rows) if row):
        names = ", ".join(each.cells[number].strip() for each in group[: table.keys])
        yield from (Text(line, "bold") for line in _folded(names, width))
        for each in group[table.keys :]:
            yield from map(Text, _folded(f"  {' '.join(each.heads)}: {each.cells[number].strip()}", width, 2))


def _folded(value: str, width: int, indent: int = 0, *, shorten: bool = True) -> list[str]:
    """Lines of whole words, those after the first indented; leading blanks are an indentation of all."""
    lead = len(value) - len(value.lstrip(" "))
    lines, line, after = [], " " * lead, 0
    for found in _words(value):
        word = _short(found.group(), width - lead - indent) if shorten else found.group()
        blank = " " * (found.start() - after) if line.strip() else ""
        after = found.end()
        if line.strip() and _wide(line) + len(blank) + _wide(word) > width:
            lines.append(line)
            line, blank = " " * (lead + indent), ""
        line += blank + word
    return [*lines, line.rstrip()]


def _words(value: str) -> Iterator[re.Match[str]]:
    """Words, intervals and counts of missing steps; mostly East Asian text may be wrapped at any character."""
    for found in re.finditer(rf"{_INTERVAL}|{_MISSING}|\S+", value):
        word = found.group()
        yield from _WORDS.finditer(value, *found.span()) if 2 * len(_WIDE.findall(word)) > len(word) else [found]


def _short(word: str, width: int) -> str:
    """A word that is too wide without its middle, since names often differ at their ends."""
    if _wide(word) <= width:
        return word
    from rich.cells import chop_cells, set_cell_size

    tail = max(0, (width - 1) // 2)
    end = chop_cells(word[::-1], tail)[0][::-1] if tail else ""
    return set_cell_size(word, max(0, width - 1 - _wide(end))).rstrip() + "…" + end
