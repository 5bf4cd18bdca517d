"""Tables for a terminal of a known width: no line is wider, and no word, number or id goes over two lines.

In order: what fits is printed as it is; sentences and headings are folded between words; spare columns are left out, and a note
says so; the other columns are cut into several tables; and where not even one column fits beside a row's name, rows become
paragraphs. A single word that is wider than its place loses its middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from guieval.errors import harmless
from guieval.reports.tables.table import Cell, Column, Number, Table, text

if TYPE_CHECKING:
    from rich.text import Text

PIPED_WIDTH = 160
"""How wide tables are in files, and where the output goes to another program."""
_GAP = 2
_SENTENCE = 24
"""What a column of sentences has at least, in cells of the terminal."""
_WIDE = re.compile("[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\U0001f300-\U0003ffff]")
_WORDS = re.compile(rf"(?:(?!{_WIDE.pattern})\S)+|\S")


def rendered(table: Table, width: int, full: str = "") -> list[Text]:
    """The table's lines. ``full`` says where everything is shown that is left out, e.g. "--json shows them"."""
    from rich.text import Text

    return [Text(line, style) if isinstance(line, str) else line for line, style in _lines(table, width, full)]


def fold(sentence: str, width: int, indent: int = 0) -> list[str]:
    """A sentence as lines of at most ``width``, further ones indented; a word that is longer, say a path, stays whole."""
    return _folded(sentence, width, indent, shorten=False)


def _lines(table: Table, width: int, full: str) -> Iterator[tuple[str | Text, str]]:
    if table.title:
        yield from ((line, "bold") for line in _folded(clean(table.title), width))
    cells = [[_clean_cell(cell) for cell in row] for row in table.rows]
    heads = [[clean(line) for line in column.name.split("\n")] for column in table.columns]
    floors = [_floor(table.columns[place], heads[place], _column(cells, place), width) for place in range(len(heads))]
    shown, left_out = _kept(table, floors, width)
    groups = list(_groups(shown, table.keys, floors, width))
    for number, group in enumerate(groups):
        if number:
            yield "", ""
        if _needed(group, floors) <= width:
            yield from _grid(table, cells, heads, group, floors, width, cut=len(groups) > 1)
        else:
            yield from _paragraphs(table, cells, heads, group, width)
    notes = [*table.notes]
    if left_out:
        names = ", ".join(" ".join(heads[place]) for place in left_out)
        notes.append(f"Left out at this width: {names}. " + (full or f"{_needed(range(len(heads)), floors)} columns show all."))
    for note in notes:
        yield from ((line, "") for line in _folded(clean(note), width, 2))
    yield "", ""


def clean(value: str) -> str:
    """Text that moves no cursor and has the width that it seems to have; leading blanks stay."""
    lead = len(value) - len(value.lstrip(" "))
    return " " * lead + harmless(" ".join(value.split()))


def _clean_cell(cell: Cell) -> str:
    return clean(text(cell))


def _column(cells: Sequence[Sequence[str]], place: int) -> list[str]:
    return [row[place] for row in cells if row]


def _wide(value: str) -> int:
    from rich.cells import cell_len

    return cell_len(value)


def _longest_word(value: str) -> int:
    return max((_wide(word.group()) for word in _words(value)), default=0) + len(value) - len(value.lstrip(" "))


def _natural(heads: Sequence[str], cells: Sequence[str]) -> int:
    return max(map(_wide, (*heads, *cells)), default=0)


def _floor(column: Column, heads: Sequence[str], cells: Sequence[str], width: int) -> int:
    """How narrow a column may get."""
    head = max(map(_longest_word, heads), default=0)
    natural = _natural((), cells)
    if column.folds:
        natural = max(min(natural, _SENTENCE), *map(_longest_word, cells), 0)
    return min(max(head, natural), width // 2)


def _needed(places: Sequence[int], floors: Sequence[int]) -> int:
    return sum(floors[place] for place in places) + _GAP * (len(places) - 1)


def _kept(table: Table, floors: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """The columns that are shown, and those that the width costs."""
    shown, left_out = list(range(len(floors))), []
    while _needed(shown, floors) > width:
        spare = max(shown, key=lambda place: table.columns[place].spare)
        if not table.columns[spare].spare:
            break
        shown.remove(spare)
        left_out.append(spare)
    for place in reversed(left_out[:-1]):  # a wide column that went last may leave room for narrow ones that went before it
        if _needed([*shown, place], floors) <= width:
            shown.append(place)
    return sorted(shown), sorted(set(left_out).difference(shown))


def _groups(shown: Sequence[int], keys: int, floors: Sequence[int], width: int) -> Iterator[list[int]]:
    """The columns of each table: the keys, and as many of the others as fit, at least one."""
    names, rest = list(shown[:keys]), list(shown[keys:])
    if not rest:
        yield names
    while rest:
        count = 1
        while count < len(rest) and _needed([*names, *rest[: count + 1]], floors) <= width:
            count += 1
        yield [*names, *rest[:count]]
        rest = rest[count:]


def _widths(
    places: Sequence[int], heads: Sequence[Sequence[str]], cells: Sequence[Sequence[str]], floors: Sequence[int], width: int
) -> dict[int, int]:
    """What is left of the width goes to the columns that want more, those that want little first."""
    widths = {place: floors[place] for place in places}
    left = width - _needed(places, floors)
    wants = sorted((_natural(heads[place], _column(cells, place)) - floors[place], place) for place in places)
    for number, (want, place) in enumerate(wants):
        more = max(0, min(want, left // (len(wants) - number)))
        widths[place] += more
        left -= more
    return widths


def _grid(
    table: Table,
    cells: Sequence[Sequence[str]],
    heads: Sequence[Sequence[str]],
    places: Sequence[int],
    floors: Sequence[int],
    width: int,
    *,
    cut: bool,
) -> Iterator[tuple[str | Text, str]]:
    """The columns side by side; where the table is ``cut``, without the rows that have nothing in these."""
    from rich.text import Text

    widths = _widths(places, heads, cells, floors, width)
    folded_heads = {place: [line for head in heads[place] for line in _folded(head, widths[place])] for place in places}
    height = max(map(len, folded_heads.values()))
    top = {place: [""] * (height - len(lines)) + lines for place, lines in folded_heads.items()}
    yield from ((line, "bold") for line in _joined(table, top, widths))
    yield "─" * (sum(widths.values()) + _GAP * (len(places) - 1)), ""
    for row, typed in zip(cells, table.rows, strict=True):
        if not row:
            yield "", ""
            continue
        if cut and all(typed[place] is None for place in places[table.keys :]):
            continue
        lines = {place: _folded(row[place], widths[place]) for place in places}
        for number, line in enumerate(_joined(table, lines, widths)):
            shown = Text(line)
            if not number:
                _embolden(shown, typed, places, widths)
            yield shown, ""


def _embolden(line: Text, row: Sequence[Cell], places: Sequence[int], widths: dict[int, int]) -> None:
    """Set the best cells in bold, colour or not: their place is known by cells, so wide characters before them are counted."""
    at = 0
    for place in places:
        cell = row[place]
        if isinstance(cell, Number) and cell.best:
            start = next(index for index in range(len(line) + 1) if _wide(line.plain[:index]) >= at)
            line.stylize("bold", start, start + widths[place])
        at += widths[place] + _GAP


def _joined(table: Table, lines: dict[int, list[str]], widths: dict[int, int]) -> Iterator[str]:
    for number in range(max(map(len, lines.values()), default=0)):
        parts = []
        for place, column in lines.items():
            part = column[number] if number < len(column) else ""
            blank = " " * (widths[place] - _wide(part))
            parts.append(blank + part if table.columns[place].right else part + blank)
        yield (" " * _GAP).join(parts).rstrip()


def _paragraphs(
    table: Table, cells: Sequence[Sequence[str]], heads: Sequence[Sequence[str]], places: Sequence[int], width: int
) -> Iterator[tuple[str, str]]:
    names, others = places[: table.keys], places[table.keys :]
    for row in filter(None, cells):
        for line in _folded(", ".join(row[place].strip() for place in names), width):
            yield line, "bold"
        for place in others:
            for line in _folded(f"  {' '.join(heads[place])}: {row[place].strip()}", width, 2):
                yield line, ""


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
    """Words; what is mostly East Asian, which has no blanks, may be folded at any character."""
    for found in re.finditer(r"\S+", value):
        word = found.group()
        yield from _WORDS.finditer(value, *found.span()) if 2 * len(_WIDE.findall(word)) > len(word) else [found]


def _short(word: str, width: int) -> str:
    """A word without its middle where it is too wide: names often differ at their ends."""
    if _wide(word) <= width:
        return word
    from rich.cells import chop_cells, set_cell_size

    tail = max(0, (width - 1) // 2)
    end = chop_cells(word[::-1], tail)[0][::-1] if tail else ""
    return set_cell_size(word, max(0, width - 1 - _wide(end))).rstrip() + "…" + end
