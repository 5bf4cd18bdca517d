"""Reports from Python: :func:`guieval.compare` and :func:`guieval.leaderboard`, which the commands of these names call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from guieval.errors import UsageError
from guieval.given import AnyPath, OneOrMore, Paths, every, every_path, one_path
from guieval.journal.run_folders import paired, rivals, several_runs
from guieval.metrics.registry import use_metrics
from guieval.reports.comparison import Comparison, compare_all, write_flips
from guieval.reports.comparison import flips as flips_of
from guieval.reports.comparison_formats import FORMATS as COMPARISON_FORMATS
from guieval.reports.comparison_formats import written as comparisons_written
from guieval.reports.leaderboards.board import Board, arranged
from guieval.reports.leaderboards.formats import FORMATS, written
from guieval.reports.leaderboards.leaderboard import leaderboard as board_of
from guieval.reports.leaderboards.published_results import get_results, list_results
from guieval.reports.score_tables import names_of
from guieval.reports.tables.records import apart, check_ending, writable
from guieval.reports.tables.writers import Format, format_named
from guieval.running.costs import read_prices
from guieval.scoring.matrix import ALL
from guieval.wings import offered


def compare(
    first: AnyPath,
    *others: AnyPath,
    protocol: OneOrMore | None = None,
    format: Format | None = None,
    metrics: str | None = None,
    out: AnyPath | None = None,
    label: str | None = None,
    caption: str | None = None,
    anyway: bool = False,
    flips: AnyPath | None = None,
    metrics_from: Paths | None = None,
) -> tuple[Comparison, ...]:
    """Compare runs with the first on the same steps, as ``guieval compare`` does: one comparison for each pair of runs.

    Two folders of runs are compared mode by mode, and a folder alone, e.g. a campaign's, model by model with the one that was
    run first; p-values of several ``others`` are Holm's. The other arguments are the options of the same names: with ``out``
    all comparisons are written to that file, in ``format`` (default: by the file's ending), and with ``flips`` the steps that
    flipped, ``flips_file`` of a comparison. Raises :class:`guieval.errors.UsageError` for runs that are unlike, unless
    ``anyway``.
    """
    use_metrics(every_path(metrics_from))
    pairs = [pair for other in others for pair in paired(Path(first), Path(other))] if others else rivals(Path(first))
    file, written_to, chosen = one_path(flips), one_path(out), None
    if file is not None:
        check_ending(file)
        writable(file)
    if written_to is not None:
        chosen = format_named(format, written_to, COMPARISON_FORMATS)
        writable(written_to)
    compared = compare_all(pairs, every(protocol), metrics, anyway=anyway)
    if file is not None:
        folders = [(one.folder, other.folder) for one, other in pairs]
        several = len({one.name for one, _ in folders}) < len(pairs)
        files = [apart(file, Path("-".join(other.parts[-2:])) if several else one, pairs) for one, other in folders]
        for found, own in zip(compared, files, strict=True):
            write_flips(list(flips_of(found)), own)
        compared = [replace(found, flips_file=own) for found, own in zip(compared, files, strict=True)]
    if written_to is not None and chosen is not None:
        text = comparisons_written(compared, chosen, label=label, caption=caption)
        written_to.write_text(text, encoding="utf-8", newline="")
    return tuple(compared)


def leaderboard(
    runs: Paths,
    *,
    protocol: OneOrMore | None = None,
    format: Format | None = None,
    metrics: str | None = None,
    metrics_from: Paths | None = None,
    sort: str | None = None,
    out: AnyPath | None = None,
    reference: OneOrMore | None = None,
    prices: AnyPath | None = None,
    no_intervals: bool = False,
    label: str | None = None,
    caption: str | None = None,
    anyway: bool = False,
    by: str | None = None,
    site: AnyPath | None = None,
) -> Board:
    """Several runs as one table, with ranks and intervals, as ``guieval leaderboard`` makes it.

    ``runs`` are run directories, or folders that hold several. The other arguments are the options of the same names: with
    ``out`` the board is written to that file, in ``format`` (default: by the file's ending); with ``site`` it becomes pages in
    that folder, under all protocols by default, and ``reference="all"`` alone needs no run. Raises
    :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    use_metrics(every_path(metrics_from))
    places, folder, named = every_path(runs), one_path(site), list(dict.fromkeys(every(reference)))
    if not places and (folder is None or not named):
        raise UsageError("a leaderboard needs run directories, e.g. `guieval leaderboard runs/*`")
    file, chosen = one_path(out), None
    if file is not None:
        chosen = format_named(format, file, FORMATS)
        writable(file)
    tables = [get_results(name) for name in (list_results() if named == [ALL] else named)]
    protocols = every(protocol) or ([ALL] if folder is not None else None)
    priced = () if prices is None else read_prices(Path(prices))
    board = arranged(
        board_of(several_runs(places), protocols, tables, anyway=anyway, prices=priced, by=names_of(by) if by else ())
        if places
        else Board((), (), (), (), ()),
        metrics,
        sort,
    )
    if folder is not None:
        offered("board", "site")(board, tables, folder)
    if file is not None and chosen is not None:
        file.write_text(
            written(board, chosen, intervals=not no_intervals, label=label, caption=caption), encoding="utf-8", newline=""
        )
    return board
