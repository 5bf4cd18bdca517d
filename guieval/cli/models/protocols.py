"""``guieval protocols``: the scoring protocols, and what one of them does in words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say, show
from guieval.errors import UsageError, nearest
from guieval.evaluation import get_protocol, list_protocols
from guieval.registry import benchmarks
from guieval.reports.protocol_page import measured_part, protocol_page
from guieval.reports.tables.table import Table, columns
from guieval.scoring.matrix import ALL, answered_file, judge_answers


def protocols(
    name: Annotated[str | None, typer.Argument(help="Show one protocol: rules, metrics, failures, source and notes.")] = None,
    dataset: Annotated[str | None, typer.Option(help="List only those written for this data set, or benchmark.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write the page on all protocols, docs/protocols.md.")] = False,
    predictions: Annotated[
        Path | None, path_option("--markdown: a predictions file with its labels, to show under all of them.")
    ] = None,
) -> None:
    """List scoring protocols, or show one protocol's rules in words."""
    if sum((name is not None, dataset is not None, markdown)) > 1:
        raise UsageError("give a protocol's name, --dataset or --markdown, one of them")
    if predictions is not None and not markdown:
        raise UsageError("--predictions belongs to --markdown; `guieval score FILE --protocol all` shows one file's metrics")
    if name is not None:
        say(get_protocol(name).describe())
        return
    listed = [get_protocol(each) for each in list_protocols(None if dataset is None else _dataset(dataset))]
    if markdown:
        page = protocol_page(listed)
        if predictions is not None:
            judged = judge_answers(answered_file(predictions), [ALL])
            page += "\n" + measured_part(judged, f"guieval score {predictions.name} --protocol all")
        echo(page, nl=False)
        return
    heads = columns("protocol", "summary", "source", folds=("summary", "source"), spare=("source",))
    show(
        Table("", heads, tuple((each.name, each.summary, each.source) for each in listed)),
        full="`guieval protocols NAME` has it.",
    )


def _dataset(name: str) -> str:
    known = {benchmark: each.dataset or benchmark for benchmark, each in benchmarks().items()}
    known |= {dataset: dataset for each in list_protocols() for dataset in get_protocol(each).datasets or ()}
    known |= {dataset: dataset for dataset in list(known.values())}
    if name not in known:
        raise UsageError(f"unknown data set {name!r}{nearest(name, known)}; known: {', '.join(sorted(set(known.values())))}")
    return known[name]
