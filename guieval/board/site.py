"""Writes a board as a folder of pages: an index, a page for each benchmark, and the published tables as printed.

A page needs no other file and no network, so the folder works from a disk and on any web server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from guieval.board.numbers import (
    FILTERED,
    KIND,
    PUBLISHED,
    by_benchmark,
    numbers_of,
    numbers_table,
    printed_tables,
    protocols_table,
    published_numbers,
)
from guieval.board.orders import LEVEL, OrderCount, PairOrder, leading_columns, pair_orders
from guieval.data.doctor.counts import counted
from guieval.errors import UsageError
from guieval.reports.leaderboards.board import Board
from guieval.reports.leaderboards.published_results import ResultTable
from guieval.reports.pages.kit import NODES, SORTING, STYLE, THEME, whole_page
from guieval.reports.tables.table import Row, Table, columns, share

INDEX, PRINTED, MARKER = "index.html", "published.html", "guieval-board.txt"
HERE = Path(__file__).parent


def write_site(board: Board, tables: Sequence[ResultTable], folder: Path) -> None:
    """Write the pages into ``folder``, and remove those of an earlier board.

    Raises :class:`UsageError` for a folder with other contents, or one that cannot be written.
    """
    pages = dict(_pages(board, tables))
    try:
        if folder.exists() and not (folder / MARKER).is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{str(folder)!r} exists and is no board; choose another --site")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MARKER).write_text(f"A board of guieval. Open {INDEX} in a browser.\n", encoding="ascii")
        for file in folder.glob("*.html"):
            file.unlink()
        for name, text in pages.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the board cannot be written to {str(folder)!r}: {error.strerror}") from None


def _pages(board: Board, tables: Sequence[ResultTable]) -> Iterator[tuple[str, str]]:
    numbers = by_benchmark([*numbers_of(board), *published_numbers(tables)])
    orders, leading = pair_orders(board), list(leading_columns(board))
    files = _files(list(numbers))
    links = [(INDEX, "All benchmarks"), *((file, name) for name, file in files.items())]
    links += [(PRINTED, "Published tables")] * bool(tables)
    rows: list[Row] = []
    for name, of in numbers.items():
        own = [each for each in orders if each.among.benchmark == name]
        kinds = dict.fromkeys(each.among for each in own)
        yield (
            files[name],
            _page(
                f"Board: {name}",
                links,
                files[name],
                sentences=[_sentence(OrderCount.of(own))],
                tables=[protocols_table(board, among, leading) for among in kinds],
                pairs=_pairs_table(own),
                shown=numbers_table(of),
                numbers=of,
            ),
        )
        rows.append(_summary(name, [str(each.row[KIND]) for each in of], own))
    whole = OrderCount.of(orders)
    heads = ("benchmark", "numbers", "published", "pairs", "order changes", "both decided", "only levelled", "share")
    summary = Table("Benchmarks", columns(*heads), tuple(rows), keys=1)
    yield INDEX, _page("Board", links, INDEX, sentences=[_sentence(whole), *_READING], tables=[summary], notes=board.notes)
    if tables:
        yield PRINTED, _page("Published tables", links, PRINTED, sentences=_PRINTED, tables=list(printed_tables(tables)))


_READING = (
    "A pair is two models on the same steps, of the same labels, in the same mode, under at least two protocols. Each protocol "
    "judges the same responses, so nothing but the rules differs. The order is by exact match over all steps; where missing "
    f"steps could decide it, it is open. A protocol decides an order if the paired test finds it (Holm's correction, {LEVEL}).",
    "Ranks are among runs of one benchmark, mode, protocol and set of steps; runs that no test distinguishes share one. "
    "Published numbers have no journal: they are ranked as printed, within their own table, and never among recomputed ones.",
)
_PRINTED = ("As the papers print them, in per cent unless a heading says otherwise. There is no journal of these.",)


def _page(title: str, links: Sequence[tuple[str, str]], here: str, **values: Any) -> str:
    given = {"pairs": None, "shown": None, "numbers": (), "notes": (), **values}
    styles, scripts = [STYLE, HERE / "board.css"], [NODES, THEME, SORTING, HERE / "board.js"]
    filtered = ",".join(FILTERED)
    return whole_page(
        HERE / "board.html.jinja", styles, scripts, title=title, links=links, here=here, filtered=filtered, **given
    )


def _files(names: Sequence[str]) -> dict[str, str]:
    """A file for each benchmark, called by its name."""
    found: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^a-z0-9]+", "-", name.lower())[:60].strip("-")
        taken = {INDEX, PRINTED, *found.values()}
        options = (f"{plain}{end}.html" for end in ("", *(f"-{number}" for number in range(2, len(names) + 4))))
        found[name] = next(each for each in options if each not in taken and each != ".html")
    return found


def _sentence(count: OrderCount) -> str:
    if not count.pairs:
        return "No two models here have the same steps under several protocols, so no order can change."
    return (
        f"The order of two models changes with the protocol in {count.changes:,} of {counted(count.pairs, 'pair')} "
        f"({share(count.changes / count.pairs)}); the tests decide both orders in {count.decided:,}. In {count.levels:,} more "
        "the two are equal under some protocol, and one is ahead under another."
    )


def _summary(name: str, kinds: Sequence[str], pairs: Sequence[PairOrder]) -> Row:
    count, published = OrderCount.of(pairs), kinds.count(PUBLISHED)
    part = share(count.changes / count.pairs) if count.pairs else None
    return name, len(kinds) - published, published, count.pairs, count.changes, count.decided, count.levels, part


def _pairs_table(pairs: Sequence[PairOrder]) -> Table | None:
    """The pairs whose order is not the same under all protocols."""
    rows = tuple(
        (each.first, each.second, *(_named(each, order) for order in ("first", "second", "equal", "open")))
        for _, of in groupby(pairs, key=lambda pair: pair.among)
        for each in of
        if each.changes or each.levels
    )
    names = ("first", "second", "first ahead", "second ahead", "equal", "open")
    heads = columns(*names, folds=names)
    notes = ("*: the paired test decides this order.",)
    return Table("Pairs whose order depends on the protocol", heads, rows, notes, keys=2) if rows else None


def _named(pair: PairOrder, order: Any) -> str:
    return ", ".join(f"{name}{'*' * (name in pair.decided)}" for name in pair.under(order)) or "-"
