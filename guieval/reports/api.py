"""Reports from Python: :func:`guieval.compare` and :func:`guieval.leaderboard`, which the commands of these names call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from guieval.errors import UsageError
from guieval.journal.run_folders import paired_runs, several_runs
from guieval.metrics.registry import read_metrics
from guieval.reports.comparison import Comparison, compare_runs, write_flips
from guieval.reports.comparison import flips as flips_of
from guieval.reports.leaderboards.formats import Format, format_named, written
from guieval.reports.leaderboards.leaderboard import Board, arranged
from guieval.reports.leaderboards.leaderboard import leaderboard as board_of
from guieval.reports.leaderboards.published_results import get_results
from guieval.reports.tables.records import apart, check_ending, writable
from guieval.running.costs import read_prices
from guieval.settings.given import AnyPath, OneOrMore, Paths, every, every_path, one_path


def use_metrics(files: Iterable[Path]) -> None:
    """Register the metrics of the user's files; :class:`guieval.errors.UsageError` for one that has none."""
    for file in files:
        read_metrics(file)


def compare(
    first: AnyPath,
    second: AnyPath,
    *,
    protocol: OneOrMore | None = None,
    anyway: bool = False,
    flips: AnyPath | None = None,
    metrics_from: Paths | None = None,
) -> tuple[Comparison, ...]:
    """Compare two runs on the same steps, as ``guieval compare`` does: one comparison for each pair of runs.

    Two folders of runs are compared mode by mode. The other arguments are the options of the same names; with ``flips`` the
    steps that flipped are written to that file, ``flips_file`` of a comparison. Raises :class:`guieval.errors.UsageError` for
    runs that are unlike, unless ``anyway``.
    """
    use_metrics(every_path(metrics_from))
    pairs = paired_runs(Path(first), Path(second))
    if (file := one_path(flips)) is not None:
        check_ending(file)
        writable(file)
    compared = [compare_runs(*pair, every(protocol), anyway=anyway) for pair in pairs]
    if file is not None:
        files = [apart(file, one, pairs) for one, _ in pairs]
        for found, own in zip(compared, files, strict=True):
            write_flips(list(flips_of(found)), own)
        compared = [replace(found, flips_file=own) for found, own in zip(compared, files, strict=True)]
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
    anyway: bool = False,
) -> Board:
    """Several runs as one table, with ranks and intervals, as ``guieval leaderboard`` makes it.

    ``runs`` are run directories, or folders that hold several. The other arguments are the options of the same names: with
    ``out`` the board is written to that file, in ``format`` (default: by the file's ending). Raises
    :class:`guieval.errors.UsageError` for whatever the command refuses.
    """
    use_metrics(every_path(metrics_from))
    if not (places := every_path(runs)):
        raise UsageError("a leaderboard needs run directories, e.g. `guieval leaderboard runs/*`")
    file, chosen = one_path(out), None
    if file is not None:
        chosen = format_named(format, file)
        writable(file)
    tables = [get_results(name) for name in dict.fromkeys(every(reference))]
    priced = () if prices is None else read_prices(Path(prices))
    board = arranged(
        board_of(several_runs(places), every(protocol) or None, tables, anyway=anyway, prices=priced), metrics, sort
    )
    if file is not None and chosen is not None:
        file.write_text(written(board, chosen, intervals=not no_intervals), encoding="utf-8", newline="")
    return board
